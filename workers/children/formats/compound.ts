import { Unreadable } from '../images/images.ts'
import { openLegacyWorkbook } from './legacy-sheets.ts'
import { areSlidesEncrypted, readLegacySlides } from './legacy-slides.ts'
import { isWordEncrypted, readLegacyWord } from './legacy-word.ts'
import { decryptPackage } from './office-crypto.ts'
import { type CompoundEntry, readCompoundStreams } from './sheetjs.ts'
import { createPagedText, type PagedText } from './texts.ts'

/** Opens compound files (MS-CFB): doc, xls and ppt, and encrypted Office Open XML. */

/** A compound file by its content: a document, an encrypted archive, or a mail. */
export type Compound =
  | { readonly kind: 'document'; readonly document: PagedText }
  | { readonly kind: 'archive'; readonly bytes: Uint8Array }
  | { readonly kind: 'mail' }

/** Opens a compound file by its streams. @throws Unreadable, and Locked if the password is missing or wrong. */
export function openCompound(bytes: Uint8Array, password: string | null): Compound {
  const streams = readStreams(bytes)
  const hasPictures = streams.some(({ path }) => /^(ObjectPool\/|Data$|Pictures$)/i.test(path))
  const toDocument = (read: () => readonly string[]): Compound => ({
    kind: 'document',
    document: { ...openPages(read), hasPictures },
  })
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
  if (word !== undefined) {
    if (isWordEncrypted(word)) throw new Unreadable(LEGACY_ENCRYPTION)
    const tables = { table0: find('0Table'), table1: find('1Table') }
    return toDocument(() => readLegacyWord({ main: word, ...tables }))
  }
  const workbook = find('Workbook') ?? find('Book')
  if (workbook !== undefined) {
    if (isWorkbookEncrypted(workbook)) throw new Unreadable(LEGACY_ENCRYPTION)
    return { kind: 'document', document: openLegacyWorkbook(bytes) }
  }
  const slides = find('PowerPoint Document')
  const user = find('Current User')
  if (slides !== undefined) {
    if (areSlidesEncrypted(user)) throw new Unreadable(LEGACY_ENCRYPTION)
    return toDocument(() => readLegacySlides(slides, user))
  }
  throw new Unreadable('The document is a compound file of unknown kind')
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

/** Reads the pages of a document. @throws Unreadable if it is damaged. */
function openPages(read: () => readonly string[]): PagedText {
  try {
    return createPagedText(read())
  } catch (cause) {
    throw new Unreadable('The document is damaged, or older than Office 97', { cause })
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
