import { findMarkedEncoding, findUnmarkedUtf16, isText, isUtf8 } from '../formats/encodings.ts'
import { createLazy } from '../platform/lazy.ts'

/** Detects a file's media type from its bytes. No other module imports `file-type`. */

/** Number of first bytes that tell a file's type. */
export const HEAD_BYTES = 64 * 1024

/** The client's name and type of the file; used only if the bytes are ambiguous. */
export interface MediaHint {
  readonly fileName?: string | undefined
  readonly mediaType?: string | undefined
}

// Types of files that consist of readable characters. If a readable file is detected as another type, two or three
// letters match by chance. For example, `file-type` takes "BM" for a bitmap, "MZ" for a program and "ID3" for music.
const TEXTUAL_TYPES = new Set([
  'application/pdf',
  'application/pgp-encrypted',
  'application/postscript',
  'application/rtf',
  'application/xml',
  'text/calendar',
  'text/vcard',
  'text/vtt',
])

const TYPE_ALIASES: Readonly<Record<string, string>> = {
  'image/apng': 'image/png',
  'text/rtf': 'application/rtf',
}

/**
 * Types of zip-based formats by file extension. The extension decides if the first bytes do not identify the format.
 */
export const ZIP_TYPES: Readonly<Record<string, string>> = {
  docx: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  xlsx: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  pptx: 'application/vnd.openxmlformats-officedocument.presentationml.presentation',
  odt: 'application/vnd.oasis.opendocument.text',
  ods: 'application/vnd.oasis.opendocument.spreadsheet',
  odp: 'application/vnd.oasis.opendocument.presentation',
  epub: 'application/epub+zip',
}
export const SVG_TYPE = 'image/svg+xml'
export const OUTLOOK_TYPE = 'application/vnd.ms-outlook'

export const loadFileType = createLazy(() => import('file-type'))

/**
 * Detects the media type of a file from its first bytes (64 KiB are plenty). The bytes show whether a file is text, in any
 * encoding and whatever its name. A text that browsers show as a page is `text/html`. Other text is `text/markdown` if the
 * client's name or type says so, or `message/rfc822` if it begins like an email. The rest is `text/plain`, including CSV,
 * JSON and source code. Anything unknown is `application/octet-stream`. Never throws for invalid bytes.
 */
export async function sniffMediaType(head: Uint8Array, hint: MediaHint): Promise<string> {
  const { fileTypeFromBuffer } = await loadFileType()
  const detected = (await fileTypeFromBuffer(head).catch(() => undefined))?.mime
  const known = (detected && (TYPE_ALIASES[detected] ?? detected)) ?? matchSignature(head)
  if (known === 'application/xml') return detectMarkup(decodeHead(head), hint) ?? known
  if (known && (TEXTUAL_TYPES.has(known) || !isCleanText(head))) return identifyContainer(known, head, hint)
  if (isOffsetPdf(head)) return 'application/pdf'
  return isWritten(head, hint) ? detectTextType(decodeHead(head), hint) : 'application/octet-stream'
}

// Types that say little: a name may tell more than the bytes.
const GENERIC_TYPES = new Set([
  'application/octet-stream',
  'application/zip',
  'application/x-cfb',
  'text/plain',
])

/** Chooses between the type of a document and that of a later look at the same bytes, whose name may be worse. */
export const chooseMediaType = (known: string, sniffed: string): string =>
  GENERIC_TYPES.has(sniffed) && known !== 'application/octet-stream' ? known : sniffed

/** Returns the encoding of a text that its first bytes prove; null for other files. */
export const findProvenEncoding = (head: Uint8Array, mediaType: string): string | null =>
  mediaType.startsWith('text/')
    ? (findMarkedEncoding(head) ?? findUnmarkedUtf16(head) ?? (isUtf8(head) ? 'utf-8' : null))
    : null

// Formats that the library does not detect if their distinguishing data lies beyond the first bytes.
const SIGNATURES: readonly (readonly [signature: string, mediaType: string])[] = [
  ['II*\0', 'image/tiff'],
  ['MM\0*', 'image/tiff'],
  ['PK\x03\x04', 'application/zip'],
]

function matchSignature(head: Uint8Array): string | undefined {
  const start = toLatin1(head, 4)
  return SIGNATURES.find(([signature]) => signature === start)?.[1]
}

/** Narrows the type of an archive or compound file by its first bytes or its name. */
function identifyContainer(mediaType: string, head: Uint8Array, { fileName = '' }: MediaHint): string {
  const extension = /\.([a-z]+)$/i.exec(fileName)?.[1]?.toLowerCase() ?? ''
  if (mediaType === 'application/zip') {
    // OpenDocument and EPUB files declare their type in the first entry, uncompressed (ISO/IEC 26300-3, 3.3).
    const [, declared] = /^PK[\s\S]{28}mimetype(application\/[\w.+-]+)PK/.exec(toLatin1(head, 200)) ?? []
    return declared ?? (Object.hasOwn(ZIP_TYPES, extension) ? ZIP_TYPES[extension]! : mediaType)
  }
  // An Outlook message has a stream with this name (MS-OXMSG, 2.1.3).
  const isMail =
    mediaType === 'application/x-cfb' &&
    (extension === 'msg' ||
      Buffer.from(head.buffer, head.byteOffset, head.byteLength).includes(
        '__properties_version1.0',
        0,
        'utf16le',
      ))
  return isMail ? OUTLOOK_TYPE : mediaType
}

// Types of text by their first words. The library knows them only in ASCII, from the first byte on.
const TEXT_SIGNATURES: readonly (readonly [start: RegExp, mediaType: string])[] = [
  [/^\{\\rtf\d/, 'application/rtf'],
  [/^BEGIN:VCALENDAR\b/i, 'text/calendar'],
  [/^BEGIN:VCARD\b/i, 'text/vcard'],
  [/^WEBVTT\b/, 'text/vtt'],
  [/^<\?xml\s/, 'application/xml'],
]

function detectTextType(text: string, hint: MediaHint): string {
  const markup = detectMarkup(text, hint)
  if (markup !== null) return markup
  const start = text.slice(0, MARKUP_CHARACTERS).trimStart()
  const signature = TEXT_SIGNATURES.find(([pattern]) => pattern.test(start))
  if (signature !== undefined) return signature[1]
  if (suggestsMarkdown(hint)) return 'text/markdown'
  return isMail(text) ? 'message/rfc822' : 'text/plain'
}

const toLatin1 = (bytes: Uint8Array, length: number): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, length)).toString('latin1')

/** Decodes the head of a text so that its ASCII characters can be read. */
function decodeHead(head: Uint8Array): string {
  const encoding = findMarkedEncoding(head) ?? findUnmarkedUtf16(head)
  if (encoding?.startsWith('utf-16')) return new TextDecoder(encoding).decode(head, { stream: true })
  return toLatin1(head, head.length).replace(/^\xef\xbb\xbf/, '')
}

const MARKUP_CHARACTERS = 4096
// Declarations and comments may precede the root element. The pattern ends each comment at its first `-->`, because
// backtracking over later ones would double the time with each comment.
const PROLOG = /^\s*(?:<\?xml[^>]*>\s*)?(?:<!--(?:(?!-->)[\s\S])*-->\s*)*/
const PAGE_ROOT = /^<(?:!doctype\s+html|html|head|body)\b/i
// Elements that begin pages without a root, such as exports of shops (MIME Sniffing, 7.1, and more of their kind).
const PAGE_ELEMENT =
  /^<(?:script|iframe|h[1-6]|div|font|table|a|style|title|b|br|p|meta|link|base|center|span|ul|ol|dl|form|img|pre|section|article|main|nav|header|footer|tr|td|strong|em|blockquote|hr)(?:[\s/][^<>]*)?>/i
// Sources that may begin with such an element, and whose text is more than their markup's.
const MARKUP_SOURCES = /\.(?:md|markdown|xml|xslt?|vue|svelte|astro|jsx?|tsx?|mjs|php|erb|ejs|hbs|txt)$/i

/** Returns the type of a page or drawing; null for other texts. */
function detectMarkup(text: string, hint: MediaHint): string | null {
  const head = text.slice(0, MARKUP_CHARACTERS)
  const body = head.slice(PROLOG.exec(head)![0].length)
  if (PAGE_ROOT.test(body)) return 'text/html'
  if (/^<(?:!doctype\s+svg\b|(?:[\w-]+:)?svg[\s/>])/i.test(body)) return SVG_TYPE
  const isPart =
    PAGE_ELEMENT.test(body) && !MARKUP_SOURCES.test(hint.fileName ?? '') && !suggestsMarkdown(hint)
  return isPart && !/^\s*<\?xml/.test(head) ? 'text/html' : null
}

/** True if the text begins with headers that are typical of email (RFC 5322, 3.6). */
function isMail(text: string): boolean {
  const [headers = ''] = text.split(/\r?\n\r?\n/, 1)
  const lines = headers.replace(/\r?\n[ \t]+/g, ' ').split(/\r?\n/)
  if (!lines.every((line) => /^[!-9;-~]+:/.test(line) || /^From /.test(line))) return false
  const has = (name: string): boolean => lines.some((line) => line.toLowerCase().startsWith(`${name}:`))
  return has('from') && ['date', 'message-id', 'mime-version', 'received'].some(has)
}

// By chance, this many bytes of another file have a control character among them.
const MIN_PROVEN_BYTES = 64
// Share of bytes beyond ASCII in texts of Latin script.
const MAX_ACCENT_SHARE = 0.3

/** True if the bytes are a text. A short one that is neither UTF-8 nor mostly ASCII counts only if its name says so. */
function isWritten(head: Uint8Array, hint: MediaHint): boolean {
  if (!isText(head)) return false
  if (findMarkedEncoding(head) !== null || findUnmarkedUtf16(head) !== null || isUtf8(head)) return true
  const accents = head.reduce((count, byte) => count + (byte >= 0x80 ? 1 : 0), 0)
  if (suggestsText(hint)) return hasNoControls(head) || accents <= MAX_ACCENT_SHARE * head.length
  return accents <= MAX_ACCENT_SHARE * head.length || (head.length >= MIN_PROVEN_BYTES && hasNoControls(head))
}

/** True for a text without any control, in which signatures of other types are chance hits. */
function isCleanText(head: Uint8Array): boolean {
  if (/^utf-(16|32)/.test(findMarkedEncoding(head) ?? '')) return isText(head)
  return hasNoControls(head) && (isUtf8(head) || head.length >= MIN_PROVEN_BYTES)
}

// True if the bytes have no control characters other than white space and escape.
function hasNoControls(head: Uint8Array): boolean {
  return head.every((byte) => byte >= 0x20 || (byte >= 0x09 && byte <= 0x0d) || byte === 0x1b)
}

// True if a PDF header follows junk from a mail gateway or scanner. PDF readers accept it in the first kilobyte.
function isOffsetPdf(head: Uint8Array): boolean {
  const start = toLatin1(head, 4096)
  const at = start.search(/%PDF-[12]\.\d/)
  return at >= 0 && at < 1024 && /\d+ \d+ obj\b/.test(start.slice(at))
}

function suggestsText({ fileName = '', mediaType = '' }: MediaHint): boolean {
  return (
    /^text\//i.test(mediaType) || /\.(txt|text|log|csv|md|markdown|html?|xhtml|eml|json)$/i.test(fileName)
  )
}

function suggestsMarkdown({ fileName = '', mediaType = '' }: MediaHint): boolean {
  return /\.(md|markdown)$/i.test(fileName) || /^text\/(x-)?markdown\b/i.test(mediaType)
}
