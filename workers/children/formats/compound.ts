import { Unreadable } from '../images/images.ts'
import { holdWhole } from './held.ts'
import { countBinaryCells, hasDrawings } from './held-workbook.ts'
import { openLegacyWorkbook } from './legacy-sheets.ts'
import { decryptWorkbook } from './legacy-sheets-crypto.ts'
import { OLD_PRESENTATION, readLegacySlides } from './legacy-slides.ts'
import { readLegacyWord } from './legacy-word.ts'
import { decryptWord } from './legacy-word-crypto.ts'
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
  const toDocument = (read: () => HeldPages): Compound => ({
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
    const streams = { main: word, table0: find('0Table'), table1: find('1Table') }
    return toDocument(() => readLegacyWord(decryptWord(streams, password)))
  }
  const workbook = find('Workbook') ?? find('Book')
  if (workbook !== undefined) {
    const plain = decryptWorkbook(workbook, password)
    const records = plain ?? workbook
    const held = { cells: countBinaryCells(records), hasPictures: hasDrawings(records) }
    return { kind: 'document', document: openLegacyWorkbook(plain ?? bytes, held, records) }
  }
  const slides = find('PowerPoint Document')
  if (slides !== undefined) {
    const extra = { user: find('Current User'), oldText: find('Text_Content') }
    return toDocument(() => readLegacySlides(slides, extra, password))
  }
  if (find('PP40') !== undefined) throw new Unreadable(OLD_PRESENTATION)
  if (find('VisioDocument') !== undefined)
    throw new Unreadable('Drawings of Visio 2010 or older cannot be read; save them as vsdx')
  throw new Unreadable('The document is a compound file of unknown kind')
}

function readStreams(bytes: Uint8Array): readonly CompoundEntry[] {
  try {
    return readCompoundStreams(bytes)
  } catch (cause) {
    throw new Unreadable('The document is damaged', { cause })
  }
}

/** Pages, and the letters that the file holds. */
interface HeldPages {
  readonly pages: readonly string[]
  readonly held: () => number
}

/** Reads the pages of a document. @throws Unreadable if it is damaged, and Locked. */
function openPages(read: () => HeldPages): PagedText {
  try {
    const { pages, held } = read()
    return { ...createPagedText(pages), holdings: holdWhole(pages, held) }
  } catch (cause) {
    if (cause instanceof Unreadable) throw cause
    throw new Unreadable('The document is damaged', { cause })
  }
}
