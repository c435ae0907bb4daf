import type { Attachment } from './mail.ts'
import type { PagedText } from './texts.ts'

/** Lists the formats of text documents by media type. Each format loads on first use. */

/** A text document and its attachments. */
export interface TextDocument extends PagedText {
  readonly attachments?: readonly Attachment[]
}

export interface FormatOptions {
  /** The encoding of a text file that the caller names; null if the bytes must tell it. */
  readonly encoding: string | null
}

type OpenDocument = (bytes: Uint8Array, mediaType: string, options: FormatOptions) => Promise<TextDocument>

const loadMarkup = () => import('./markup.ts')

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
  [/^message\/rfc822$/, async (bytes) => (await import('./mail.ts')).openMail(bytes)],
  [/^application\/vnd\.ms-outlook$/, async (bytes) => (await import('./outlook.ts')).openOutlook(bytes)],
  [/^text\/html$/, async (bytes, _, options) => (await loadMarkup()).openHtml(bytes, options)],
  [/^image\/svg\+xml$/, async (bytes, _, options) => (await loadMarkup()).openSvg(bytes, options)],
  [/^application\/xml$/, async (bytes, _, options) => (await loadMarkup()).openXml(bytes, options)],
  [/^text\/(calendar|vcard)$/, async (bytes, _, options) => (await loadMarkup()).openFolded(bytes, options)],
  [/^text\/vtt$/, async (bytes, _, options) => (await loadMarkup()).openSubtitles(bytes, options)],
  [/^text\/(plain|markdown)$/, async (bytes, _, options) => (await loadMarkup()).openPlain(bytes, options)],
]

/** Returns the function that opens documents of a media type; undefined for types without text. */
export const findFormat = (mediaType: string): OpenDocument | undefined =>
  FORMATS.find(([pattern]) => pattern.test(mediaType))?.[1]
