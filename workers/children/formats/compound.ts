import WordExtractor from 'word-extractor'
import { Unreadable } from '../images/images.ts'
import { openLegacyWorkbook } from './legacy-sheets.ts'
import { areSlidesEncrypted, readLegacySlides } from './legacy-slides.ts'
import { decryptPackage } from './office-crypto.ts'
import { type CompoundEntry, readCompoundStreams } from './sheetjs.ts'
import { createPagedText, PageCollector, type PagedText } from './texts.ts'

/**
 * Opens compound files (MS-CFB): doc, xls and ppt, and encrypted Office Open XML. The only importer of
 * `word-extractor`.
 */

const SIGNATURE = Buffer.from('d0cf11e0a1b11ae1', 'hex')

export const isCompound = (bytes: Uint8Array): boolean =>
  SIGNATURE.equals(bytes.subarray(0, SIGNATURE.length))

/** A compound file by its content: a document, an encrypted archive, or a mail. */
export type Compound =
  | { readonly kind: 'document'; readonly document: PagedText }
  | { readonly kind: 'archive'; readonly bytes: Uint8Array }
  | { readonly kind: 'mail' }

/** Opens a compound file by its streams. @throws Unreadable, and Locked if it is encrypted and the password is not its own. */
export async function openCompound(bytes: Uint8Array, password: string | null): Promise<Compound> {
  const streams = readStreams(bytes)
  const find = (name: string): Uint8Array | undefined =>
    streams.find(({ path }) => path.toLowerCase() === name.toLowerCase())?.content
  const encrypted = find('EncryptedPackage')
  if (encrypted !== undefined)
    return {
      kind: 'archive',
      bytes: decryptPackage(find('EncryptionInfo') ?? Buffer.alloc(0), encrypted, password),
    }
  if (find('__properties_version1.0') !== undefined) return { kind: 'mail' }
  const word = find('WordDocument')
  if (word !== undefined) return { kind: 'document', document: await openDoc(bytes, word) }
  const workbook = find('Workbook') ?? find('Book')
  if (workbook !== undefined) {
    if (isWorkbookEncrypted(workbook)) throw new Unreadable(LEGACY_ENCRYPTION)
    return { kind: 'document', document: openLegacyWorkbook(bytes) }
  }
  const slides = find('PowerPoint Document')
  if (slides !== undefined) return { kind: 'document', document: openPpt(slides, find('Current User')) }
  throw new Unreadable('Compound files of this kind cannot be read')
}

function readStreams(bytes: Uint8Array): readonly CompoundEntry[] {
  try {
    return readCompoundStreams(bytes)
  } catch (cause) {
    throw new Unreadable('The document is damaged', { cause })
  }
}

const LEGACY_ENCRYPTION =
  'The document is encrypted and needs a password, and the encryption of Office 97 to 2003 cannot be read'
const IS_ENCRYPTED = 0x0100

/** Opens a document of Word 97 to 2003. It has one page: the file does not say where pages end. */
async function openDoc(bytes: Uint8Array, main: Uint8Array): Promise<PagedText> {
  if (main.length > 12 && (Buffer.from(main).readUInt16LE(10) & IS_ENCRYPTED) !== 0)
    throw new Unreadable(LEGACY_ENCRYPTION)
  const options = { filterUnicode: false, includeFooters: false }
  try {
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const word = await new WordExtractor().extract(buffer)
    const pages = new PageCollector()
    const parts = [
      word.getHeaders(options),
      word.getBody(options),
      word.getTextboxes(options),
      word.getFootnotes(options),
      word.getEndnotes(options),
      word.getAnnotations(options),
      word.getFooters(options),
    ]
    for (const part of parts) {
      pages.add(part.replace(/\t\t(?=[^\t])/g, '\n'))
      pages.endLine()
    }
    return createPagedText(pages.end())
  } catch (cause) {
    throw new Unreadable('The document is damaged, or older than Word 97', { cause })
  }
}

const BOF_RECORDS: ReadonlySet<number> = new Set([0x0009, 0x0209, 0x0409, 0x0809])
const FILE_PASS = 0x2f
// The record follows the first one, or a few that protect the file from changes.
const MAX_RECORDS_BEFORE = 10

/** True if a workbook stream is encrypted (MS-XLS, 2.4.117). */
function isWorkbookEncrypted(stream: Uint8Array): boolean {
  const bytes = Buffer.from(stream)
  for (let at = 0, n = 0; at + 4 <= bytes.length && n < MAX_RECORDS_BEFORE; n++) {
    const type = bytes.readUInt16LE(at)
    if (type === FILE_PASS) return true
    if (n === 0 && !BOF_RECORDS.has(type)) return false
    at += 4 + bytes.readUInt16LE(at + 2)
  }
  return false
}

function openPpt(slides: Uint8Array, currentUser: Uint8Array | undefined): PagedText {
  if (areSlidesEncrypted(currentUser)) throw new Unreadable(LEGACY_ENCRYPTION)
  try {
    return createPagedText(readLegacySlides(slides, currentUser))
  } catch (cause) {
    throw new Unreadable('The document is damaged', { cause })
  }
}
