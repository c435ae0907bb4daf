import { decodeLatin1, findMarkedEncoding, findUnmarkedUtf16, isText, isUtf8 } from '../formats/encodings.ts'
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

const EXCEL_TYPE = 'application/vnd.ms-excel'
const VISIO_TYPE = 'application/vnd.visio'
const XLSB_TYPE = 'application/vnd.ms-excel.sheet.binary.macroenabled.12'

/**
 * Types of zip-based formats by file extension. The extension decides if the first bytes do not identify the format.
 */
export const ZIP_TYPES: Readonly<Record<string, string>> = {
  docx: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  xlsx: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  xlsb: XLSB_TYPE,
  pptx: 'application/vnd.openxmlformats-officedocument.presentationml.presentation',
  odt: 'application/vnd.oasis.opendocument.text',
  ods: 'application/vnd.oasis.opendocument.spreadsheet',
  odp: 'application/vnd.oasis.opendocument.presentation',
  odg: 'application/vnd.oasis.opendocument.graphics',
  epub: 'application/epub+zip',
  vsdx: VISIO_TYPE,
  pages: 'application/vnd.apple.pages',
  numbers: 'application/vnd.apple.numbers',
  key: 'application/vnd.apple.keynote',
}
export const SVG_TYPE = 'image/svg+xml'
export const OUTLOOK_TYPE = 'application/vnd.ms-outlook'
const NETPBM_TYPE = 'image/x-portable-anymap'
const TNEF_TYPE = 'application/vnd.ms-tnef'

/** Types of flat OpenDocument files by the type of the same document as an archive. */
export const FLAT_TYPES: Readonly<Record<string, string>> = Object.fromEntries(
  ['text', 'spreadsheet', 'presentation', 'graphics'].map((kind) => [
    `application/vnd.oasis.opendocument.${kind}`,
    `application/vnd.oasis.opendocument.${kind}-flat-xml`,
  ]),
)

/** Types of compound files by the name of a stream, and by file extension if the first bytes do not name a stream. */
export const COMPOUND_TYPES: readonly (readonly [stream: string, extension: string, mediaType: string])[] = [
  ['__properties_version1.0', 'msg', OUTLOOK_TYPE],
  ['WordDocument', 'doc', 'application/msword'],
  ['Workbook', 'xls', EXCEL_TYPE],
  ['PowerPoint Document', 'ppt', 'application/vnd.ms-powerpoint'],
  // Presentations of PowerPoint 4 and workbooks of Excel 5.
  ['PP40', 'ppt', 'application/vnd.ms-powerpoint'],
  ['Book', 'xls', EXCEL_TYPE],
  ['VisioDocument', 'vsd', VISIO_TYPE],
]

export const loadFileType = createLazy(() => import('file-type'))

/**
 * Detects the media type of a file from its first bytes (64 KiB are plenty). The bytes show whether a file is text, in any
 * encoding and whatever its name. A text that browsers show as a page is `text/html`. Other text is `text/markdown` if the
 * client's name or type says so, or `message/rfc822` if it begins like one or more emails. The rest is `text/plain`, including CSV,
 * JSON and source code. Anything unknown is `application/octet-stream`. Never throws for invalid bytes.
 */
export async function sniffMediaType(head: Uint8Array, hint: MediaHint): Promise<string> {
  const { fileTypeFromBuffer } = await loadFileType()
  const detected = (await fileTypeFromBuffer(head).catch(() => undefined))?.mime
  const known = (detected && (TYPE_ALIASES[detected] ?? detected)) ?? matchSignature(head)
  if (known === 'application/xml')
    return detectMarkup(decodeHead(head), hint) ?? identifyContainer(known, head, hint)
  if (TEXT_IMAGE_PATTERN.test(decodeLatin1(head))) return NETPBM_TYPE
  // A picture in light greys has no controls, either, but it is no UTF-8.
  const isChance = known === NETPBM_TYPE ? isUtf8(head) && hasNoControls(head) : isCleanText(head)
  if (known && (TEXTUAL_TYPES.has(known) || !isChance)) return identifyContainer(known, head, hint)
  if (isOffsetPdf(head)) return 'application/pdf'
  if (!suggestsMarkdown(hint) && isMail(decodeHead(head), hint)) return 'message/rfc822'
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
    ? (findMarkedEncoding(head) ?? findUnmarkedUtf16(head) ?? (provesUtf8(head) ? 'utf-8' : null))
    : null

const ESCAPE = 0x1b

/** True if the text is UTF-8. ASCII proves nothing about the rest of a long file, nor with the escapes of ISO 2022. */
function provesUtf8(head: Uint8Array): boolean {
  const isLong = head.length >= HEAD_BYTES
  return isUtf8(head) && !head.includes(ESCAPE) && (!isLong || head.some((byte) => byte >= 0x80))
}

// Formats that the library does not detect if their distinguishing data lies beyond the first bytes.
const SIGNATURES: readonly (readonly [signature: string, mediaType: string])[] = [
  ['II*\0', 'image/tiff'],
  ['MM\0*', 'image/tiff'],
  ['PK\x03\x04', 'application/zip'],
  ['\x78\x9f\x3e\x22', TNEF_TYPE],
]

// Plain PBM, PGM and PPM: nothing but numbers behind the signature.
const TEXT_IMAGE_PATTERN = /^P[1-3]\s+(#[^\n]*\n\s*)*\d+\s+\d+\s[\s\d]*$/

// PBM, PGM, PPM and PAM, which share a reader.
const NETPBM_PATTERN = /^(P[4-6](\s+(#[^\n]*\n\s*)*\d+){2}\s|P7\n)/
const MAX_HEADER_BYTES = 1024

function matchSignature(head: Uint8Array): string | undefined {
  const start = decodeLatin1(head.subarray(0, MAX_HEADER_BYTES))
  const [, mediaType] = SIGNATURES.find(([signature]) => start.startsWith(signature)) ?? []
  if (mediaType !== undefined) return mediaType
  if (NETPBM_PATTERN.test(start)) return NETPBM_TYPE
  if (isPcx(head)) return 'image/vnd.zbrush.pcx'
  if (isOldWorkbook(head)) return EXCEL_TYPE
  const isCms = start.startsWith('0') && CMS_OBJECTS.some((object) => start.slice(0, 32).includes(object))
  return isCms ? 'application/pkcs7-mime' : undefined
}

/** True if the bytes begin with the signature of PCX and its version, encoding and bits per sample. */
function isPcx([signature, version = 1, encoding = 2, bits = 0]: Uint8Array): boolean {
  return signature === 10 && version <= 5 && version !== 1 && encoding <= 1 && [1, 2, 4, 8].includes(bits)
}

/** True for a workbook of Excel 2 to 4: the first record of a sheet, chart, macro or workspace (MS-XLS, 2.4.21). */
function isOldWorkbook([type, version = 1, size = 0, high, , , kind = 0, kindHigh = 0]: Uint8Array): boolean {
  const isBegin = type === 9 && [0, 2, 4].includes(version) && [4, 6].includes(size) && high === 0
  return isBegin && [0x10, 0x20, 0x40, 0x100].includes(kind + 256 * kindHigh)
}

// Object IDs of signed, encrypted and compressed data (RFC 5652, 14).
const CMS_OBJECTS = [
  '06092a864886f70d010702',
  '06092a864886f70d010703',
  '06092a864886f70d010706',
  '060b2a864886f70d0109100109',
  '060b2a864886f70d0109100117',
].map((object) => Buffer.from(object, 'hex').toString('latin1'))

/** Narrows the type of an archive, a compound file or an XML file by its first bytes or its name. */
function identifyContainer(mediaType: string, head: Uint8Array, { fileName = '' }: MediaHint): string {
  const extension = /\.([a-z]+)$/i.exec(fileName)?.[1]?.toLowerCase() ?? ''
  if (mediaType === 'application/zip') {
    // OpenDocument and EPUB files declare their type in the first entry, uncompressed (ISO/IEC 26300-3, 3.3).
    const [, declared] =
      /^PK[\s\S]{28}mimetype(application\/[\w.+-]+)PK/.exec(decodeLatin1(head.subarray(0, 200))) ?? []
    if (declared !== undefined) return declared
    if (isBinaryWorkbook(head)) return XLSB_TYPE
    return Object.hasOwn(ZIP_TYPES, extension) ? ZIP_TYPES[extension]! : mediaType
  }
  if (mediaType === 'application/x-cfb') return identifyCompound(head, extension) ?? mediaType
  return mediaType === 'application/xml' ? (identifyFlat(head) ?? mediaType) : mediaType
}

const LOCAL_HEADER_BYTES = 30

/** True for an Excel workbook in binary parts, by the local header of its main part. */
function isBinaryWorkbook(head: Uint8Array): boolean {
  const start = decodeLatin1(head)
  const at = start.indexOf('xl/workbook.bin')
  return at >= LOCAL_HEADER_BYTES && start.startsWith('PK\x03\x04', at - LOCAL_HEADER_BYTES)
}

/** Tells a compound file by its streams. Encrypted files have those of any, so their name decides. */
function identifyCompound(head: Uint8Array, extension: string): string | undefined {
  const bytes = Buffer.from(head.buffer, head.byteOffset, head.byteLength)
  const has = (stream: string): boolean => bytes.includes(`${stream}\0`, 0, 'utf16le')
  if (has('EncryptedPackage')) return Object.hasOwn(ZIP_TYPES, extension) ? ZIP_TYPES[extension] : undefined
  const [, , mediaType] =
    COMPOUND_TYPES.find(([stream]) => has(stream)) ??
    COMPOUND_TYPES.find(([, ending]) => ending === extension) ??
    []
  return mediaType ?? (Object.hasOwn(ZIP_TYPES, extension) ? ZIP_TYPES[extension] : undefined)
}

/** Tells a flat OpenDocument file by its root element, whose namespace has any prefix. */
function identifyFlat(head: Uint8Array): string | undefined {
  const start = decodeLatin1(head.subarray(0, 16_384))
  const [, prefix, kind] =
    /<(?:([\w.-]+):)?document\b[^>]*:mimetype\s*=\s*["'](application\/vnd\.oasis\.opendocument\.[a-z]+)/.exec(
      start,
    ) ?? []
  const declared = `xmlns${prefix === undefined ? '' : `:${prefix}`}=`
  const namespace = 'urn:oasis:names:tc:opendocument:xmlns:office:1.0'
  const isOpenDocument = [`"`, `'`].some((quote) => start.includes(`${declared}${quote}${namespace}${quote}`))
  return isOpenDocument && kind !== undefined ? FLAT_TYPES[kind] : undefined
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
  return 'text/plain'
}

/** Decodes the head of a text so that its ASCII characters can be read. */
function decodeHead(head: Uint8Array): string {
  const encoding = findMarkedEncoding(head) ?? findUnmarkedUtf16(head)
  if (encoding?.startsWith('utf-16')) return new TextDecoder(encoding).decode(head, { stream: true })
  return decodeLatin1(head).replace(/^\xef\xbb\xbf/, '')
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

// Headers that hardly any other text has (RFC 5322, 3.6; RFC 2045), and those that letters and notes have, too.
const MAIL_HEADERS =
  /^(mime-version|message-id|received|return-path|delivered-to|x-unsent|x-mozilla-status):/i
const LETTER_HEADERS = /^(from|to|cc|bcc|reply-to|sender|subject|date):/i
const DAYS = '(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)'
const MONTHS = '(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)'
/** Pattern of the line before each mail of an mbox file (RFC 4155). Some programs write the date as in headers. */
export const MBOX_LINE = `From [^\\n]{0,300}\\b${DAYS},? (?:${MONTHS} +\\d{1,2} +\\d{1,2}:\\d\\d(?::\\d\\d)?(?: [+\\w-]{1,9}){0,2} \\d{4}|\\d{1,2} ${MONTHS} \\d{4} \\d{1,2}:\\d\\d)[^\\n]{0,60}\\n`
const MBOX_START = new RegExp(`^${MBOX_LINE}`)

/**
 * True if the text begins with headers that are typical of email, complete or not. Apple puts a line with the length
 * before them. Drafts lack the sender and the date.
 */
function isMail(start: string, { fileName = '', mediaType = '' }: MediaHint): boolean {
  const text = start.replace(/^\s*(\d{1,10}[ \t]*\r?\n)?/, '')
  if (MBOX_START.test(text.slice(0, 500))) return true
  const [headers = ''] = text.split(/\r?\n\r?\n/, 1)
  const lines = headers
    .replace(/\r?\n[ \t]+/g, ' ')
    .trimEnd()
    .split(/\r?\n/)
  // The last header may be incomplete.
  if (headers.length === text.length && lines.length > 1) lines.pop()
  if (!lines.every((line) => /^[!-9;-~]+[ \t]*:/.test(line) || /^>?From /.test(line))) return false
  const count = (pattern: RegExp): number => lines.filter((line) => pattern.test(line)).length
  const [mail, letter] = [count(MAIL_HEADERS), count(LETTER_HEADERS)]
  if (/\.(eml|emlx|mbox)$/i.test(fileName) || /^message\/rfc822\b/i.test(mediaType)) return mail + letter > 0
  return (mail > 0 && letter > 0) || (letter >= 2 && count(/^from:/i) > 0 && count(/^date:/i) > 0)
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
  const start = decodeLatin1(head.subarray(0, 4096))
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
