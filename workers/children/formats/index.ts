import type { Attachment } from './mail.ts'
import type { PagedText } from './texts.ts'

/** Lists the formats of text documents by media type. Each format loads on first use. */

/** A text document and its attachments. */
export interface TextDocument extends PagedText {
  readonly attachments?: readonly Attachment[]
}

type OpenDocument = (bytes: Uint8Array, mediaType: string) => Promise<TextDocument>

const loadMarkup = () => import('./markup.ts')
const loadMailFiles = () => import('./mail-files.ts')

/** The patterns also match templates, slide shows and documents with macros. */
const FORMATS: readonly (readonly [mediaType: RegExp, open: OpenDocument])[] = [
  [
    /^application\/vnd\.(openxmlformats-officedocument\.wordprocessingml|ms-word)\./,
    async (bytes) => (await import('./word.ts')).openDocx(bytes),
  ],
  [
    /^application\/vnd\.(openxmlformats-officedocument\.presentationml|ms-powerpoint)\./,
    async (bytes) => (await import('./word.ts')).openPptx(bytes),
  ],
  [
    /^application\/vnd\.(openxmlformats-officedocument\.spreadsheetml\.|ms-excel\.(?!sheet\.binary))/,
    async (bytes) => (await import('./sheets.ts')).openXlsx(bytes),
  ],
  [
    /^application\/vnd\.oasis\.opendocument\.(text|spreadsheet|presentation)/,
    async (bytes, mediaType) => (await import('./open-document.ts')).openOpenDocument(bytes, mediaType),
  ],
  [/^application\/epub\+zip$/, async (bytes) => (await import('./epub.ts')).openEpub(bytes)],
  [/^application\/rtf$/, async (bytes) => (await import('./rtf.ts')).openRtf(bytes)],
  [/^message\/rfc822$/, async (bytes) => (await loadMailFiles()).openMail(bytes)],
  [/^application\/vnd\.ms-tnef$/, async (bytes) => (await loadMailFiles()).openTnef(bytes)],
  [/^application\/pkcs7-mime$/, async (bytes) => (await loadMailFiles()).openSigned(bytes)],
  [/^application\/vnd\.ms-outlook$/, async (bytes) => (await import('./outlook.ts')).openOutlook(bytes)],
  [/^text\/html$/, async (bytes) => (await loadMarkup()).openHtml(bytes)],
  [/^application\/xml$/, async (bytes) => (await loadMarkup()).openXml(bytes)],
  [/^text\/(calendar|vcard)$/, async (bytes) => (await loadMarkup()).openFolded(bytes)],
  [/^text\/vtt$/, async (bytes) => (await loadMarkup()).openSubtitles(bytes)],
  [/^text\/(plain|markdown)$/, async (bytes) => (await loadMarkup()).openPlain(bytes)],
]

/** Returns the function that opens documents of a media type; undefined for types without text. */
export const findFormat = (mediaType: string): OpenDocument | undefined =>
  FORMATS.find(([pattern]) => pattern.test(mediaType))?.[1]
