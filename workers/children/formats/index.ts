import { Unreadable } from '../images/images.ts'
import type { Archive } from './archive.ts'
import { describeUnreadable } from './describe.ts'
import type { Attachment } from './mail.ts'
import type { ReadEmbedded } from './related.ts'
import type { PagedText } from './texts.ts'

/** Lists the formats of text documents by media type. Each format loads on first use. */

/** A text document and its attachments. */
export interface TextDocument extends PagedText {
  readonly attachments?: readonly Attachment[]
}

export interface FormatOptions {
  /** The encoding of a text file that the caller names; null if the bytes must tell it. */
  readonly encoding: string | null
  /** Password of an encrypted document; null if there is none. */
  readonly password: string | null
  /** The client's name of the file. */
  readonly fileName?: string | undefined
}

type OpenDocument = (bytes: Uint8Array, mediaType: string, options: FormatOptions) => Promise<TextDocument>

const openZip = async (bytes: Uint8Array): Promise<Archive> =>
  (await import('./archive.ts')).Archive.open(bytes)
const loadMarkup = () => import('./markup.ts')
const loadMailFiles = () => import('./mail-files.ts')

/** The patterns also match templates, slide shows and documents with macros. */
const FORMATS: readonly (readonly [mediaType: RegExp, open: OpenDocument])[] = [
  [/^application\/vnd\.(openxmlformats-officedocument|ms-word|ms-powerpoint|ms-excel)\b/, openOffice],
  [/^application\/(msword|x-cfb|vnd\.visio)$/, openOffice],
  [/^application\/zip$/, openUnknownArchive],
  [
    /^application\/vnd\.oasis\.opendocument\.(text|spreadsheet|presentation|graphics)/,
    async (bytes, mediaType, { password }) =>
      (await import('./open-document.ts')).openOpenDocument(bytes, mediaType, password),
  ],
  [/^application\/epub\+zip$/, async (bytes) => (await import('./epub.ts')).openEpub(bytes)],
  [/^application\/rtf$/, async (bytes) => (await import('./rtf.ts')).openRtf(bytes)],
  [/^message\/rfc822$/, async (bytes) => (await loadMailFiles()).openMail(bytes)],
  [/^application\/vnd\.ms-tnef$/, async (bytes) => (await loadMailFiles()).openTnef(bytes)],
  [/^application\/pkcs7-mime$/, async (bytes) => (await loadMailFiles()).openSigned(bytes)],
  [/^application\/vnd\.ms-outlook$/, async (bytes) => (await import('./outlook.ts')).openOutlook(bytes)],
  [/^text\/html$/, async (bytes, _, options) => (await loadMarkup()).openHtml(bytes, options)],
  [/^image\/svg\+xml$/, async (bytes, _, options) => (await loadMarkup()).openSvg(bytes, options)],
  [/^application\/xml$/, openXml],
  [/^text\/(calendar|vcard)$/, async (bytes, _, options) => (await loadMarkup()).openFolded(bytes, options)],
  [/^text\/vtt$/, async (bytes, _, options) => (await loadMarkup()).openSubtitles(bytes, options)],
  [/^text\/(plain|markdown)$/, async (bytes, _, options) => (await loadMarkup()).openPlain(bytes, options)],
]

/** Returns the function that opens documents of a media type; undefined for types without text. */
export const findFormat = (mediaType: string): OpenDocument | undefined =>
  FORMATS.find(([pattern]) => pattern.test(mediaType))?.[1]

const COMPOUND_SIGNATURE = Buffer.from('d0cf11e0a1b11ae1', 'hex')

const isCompound = (bytes: Uint8Array): boolean =>
  COMPOUND_SIGNATURE.equals(bytes.subarray(0, COMPOUND_SIGNATURE.length))

/** Opens a file of Office, or of a program that writes the same formats, by its content. */
async function openOffice(
  bytes: Uint8Array,
  mediaType: string,
  options: FormatOptions,
): Promise<TextDocument> {
  if (!isCompound(bytes)) {
    // A workbook of Excel 2 to 4 is a bare stream of records.
    if (bytes[0] === 9) return (await import('./legacy-sheets.ts')).openOldWorkbook(bytes, options.password)
    return await openArchive(await openZip(bytes), mediaType, bytes)
  }
  const { openCompound } = await import('./compound.ts')
  const compound = openCompound(bytes, options.password)
  if (compound.kind === 'document') return compound.document
  if (compound.kind === 'mail') return (await import('./outlook.ts')).openOutlook(bytes)
  return await openArchive(await openZip(compound.bytes), mediaType, compound.bytes)
}

/** Opens an archive whose first bytes and name do not tell its format. */
async function openUnknownArchive(
  bytes: Uint8Array,
  mediaType: string,
  { fileName }: FormatOptions,
): Promise<TextDocument> {
  const createError = (cause?: unknown): Unreadable =>
    new Unreadable(describeUnreadable(mediaType, fileName), { cause })
  try {
    const archive = await openZip(bytes)
    if (findKind(await archive.contentType(await archive.findMainPart())) === undefined) throw createError()
    return await openArchive(archive, mediaType, bytes)
  } catch (error) {
    throw error instanceof Unreadable ? createError(error) : error
  }
}

/** Opens an Office Open XML file by the content type of its main part, or else by its media type. */
async function openArchive(
  archive: Archive,
  mediaType: string,
  bytes: Uint8Array,
  readEmbedded: ReadEmbedded | undefined = readEmbeddedFile,
): Promise<TextDocument> {
  const main = await archive.findMainPart()
  const declared = await archive.contentType(main)
  const kind = findKind(declared) ?? findKind(mediaType)
  if (kind === 'binary') {
    const workbook = await openBinaryWorkbook(archive, bytes)
    return { ...workbook, ...archive.describePages(workbook.pageCount) }
  }
  if (kind === 'word') return (await import('./word.ts')).openDocx(archive, readEmbedded)
  if (kind === 'slides') return (await import('./slides.ts')).openPptx(archive, readEmbedded)
  if (kind === 'drawing') return (await import('./visio.ts')).openVsdx(archive)
  if (kind === 'sheets') return (await import('./sheets.ts')).openXlsx(archive, readEmbedded)
  throw new Unreadable(describeUnreadable(mediaType))
}

async function openBinaryWorkbook(archive: Archive, bytes: Uint8Array): Promise<TextDocument> {
  const { openLegacyWorkbook } = await import('./legacy-sheets.ts')
  const { countParts } = await import('./held-parts.ts')
  const { countXlsbCells } = await import('./held-workbook.ts')
  const letters = async (): Promise<number> =>
    countParts(archive, await archive.listParts(/ms-excel\.worksheet$/), countXlsbCells)
  return openLegacyWorkbook(bytes, { letters })
}

const KINDS = [
  [/sheet\.binary/, 'binary'],
  [/wordprocessingml|ms-word/, 'word'],
  [/presentationml|ms-powerpoint/, 'slides'],
  [/spreadsheetml|ms-excel/, 'sheets'],
  [/visio/, 'drawing'],
] as const

const findKind = (type: string): (typeof KINDS)[number][1] | undefined =>
  KINDS.find(([pattern]) => pattern.test(type))?.[1]

/** Reads a file that a document shows. Files within that file are not read. */
async function readEmbeddedFile(bytes: Uint8Array, path: string): Promise<string> {
  const extension = /\.([a-z]+)$/i.exec(path)?.[1]?.toLowerCase() ?? ''
  try {
    const document = /^(docx|docm|dotx|xlsx|xlsm|xlsb|pptx|pptm)$/.test(extension)
      ? await openArchive(await openZip(bytes), '', bytes, undefined)
      : await EMBEDDED_TEXTS[extension]?.(bytes)
    const texts: string[] = []
    for (let n = 1; n <= (document?.pageCount ?? 0); n++) texts.push((await document!.read(n)).text)
    return texts.join('\n')
  } catch (error) {
    // The document itself can still be read.
    if (error instanceof Unreadable) return ''
    throw error
  }
}

const openHtml = async (bytes: Uint8Array): Promise<PagedText> =>
  (await loadMarkup()).openHtml(bytes, { encoding: null })
const openMail = async (bytes: Uint8Array): Promise<PagedText> => (await loadMailFiles()).openMail(bytes)
const EMBEDDED_TEXTS: Readonly<Record<string, (bytes: Uint8Array) => Promise<PagedText>>> = {
  html: openHtml,
  htm: openHtml,
  xhtml: openHtml,
  mht: openMail,
  mhtml: openMail,
  rtf: async (bytes) => (await import('./rtf.ts')).openRtf(bytes),
  txt: async (bytes) => (await loadMarkup()).openPlain(bytes, { encoding: null }),
}

async function openXmlWorkbook(bytes: Uint8Array): Promise<TextDocument> {
  const { openLegacyWorkbook } = await import('./legacy-sheets.ts')
  const { countMarkup, XML_WORKBOOK_RULES } = await import('./held-markup.ts')
  return openLegacyWorkbook(bytes, { letters: () => countMarkup(bytes, XML_WORKBOOK_RULES) })
}

/** Opens an XML file. Files of office programs in a single XML document are read as what they are. */
async function openXml(bytes: Uint8Array, mediaType: string, options: FormatOptions): Promise<TextDocument> {
  const { findFlatFormat, readFlatPackage } = await import('./flat.ts')
  const { openFlatWord } = await import('./word.ts')
  switch (findFlatFormat(bytes)) {
    case 'package':
      return await openArchive(readFlatPackage(bytes), mediaType, bytes)
    case 'word':
      return openFlatWord(bytes)
    case 'workbook':
      return await openXmlWorkbook(bytes)
    case 'open-document':
      return (await import('./open-document.ts')).openOpenDocument(bytes, mediaType, options.password)
    case null:
      return (await loadMarkup()).openXml(bytes, options)
  }
}
