/** Detects what a file is by its bytes. The only importer of `file-type`. */

/** What the client said about the file; believed only where the bytes leave it open. */
export interface MediaHint {
  readonly fileName?: string | undefined
  readonly mediaType?: string | undefined
}

// Types that consist of readable characters. Any other verdict over readable characters is a chance match of two
// or three letters: "BM" is a bitmap to file-type, "MZ" a program, "ID3" music.
const WRITTEN = new Set([
  'application/pdf',
  'application/pgp-encrypted',
  'application/postscript',
  'application/rtf',
  'application/xml',
  'text/calendar',
  'text/vcard',
  'text/vtt',
])

const ALIASES: Readonly<Record<string, string>> = { 'image/apng': 'image/png', 'text/rtf': 'application/rtf' }

/** By their endings, since what an archive is can stand beyond its first bytes: then its name decides. */
export const ZIPPED: Readonly<Record<string, string>> = {
  docx: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  xlsx: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  pptx: 'application/vnd.openxmlformats-officedocument.presentationml.presentation',
  odt: 'application/vnd.oasis.opendocument.text',
  ods: 'application/vnd.oasis.opendocument.spreadsheet',
  odp: 'application/vnd.oasis.opendocument.presentation',
  epub: 'application/epub+zip',
}
export const OUTLOOK = 'application/vnd.ms-outlook'

/**
 * The media type of a file from its first bytes (64 KiB are plenty). Readable characters are `text/html`, `message/rfc822`
 * and the like where they begin so, `text/markdown` if the client says so by name or type, or else `text/plain`, as are CSV,
 * JSON and source code; anything unknown is `application/octet-stream`. Never throws for bad bytes.
 */
export async function sniffMediaType(head: Uint8Array, hint: MediaHint): Promise<string> {
  const { fileTypeFromBuffer } = await import('file-type')
  const detected = (await fileTypeFromBuffer(head).catch(() => undefined))?.mime
  const known = (detected && (ALIASES[detected] ?? detected)) ?? beginning(head)
  if (known === 'application/xml' && isHtml(head)) return 'text/html'
  if (known && (WRITTEN.has(known) || !isClean(head))) return contained(known, head, hint)
  if (isLatePdf(head)) return 'application/pdf'
  const written = isUnicode(head) || (hintsAtText(hint) && hasNoControls(head))
  return written ? writtenType(head, hint) : 'application/octet-stream'
}

// Where the library gives up, because what it looks for lies beyond the first bytes.
const BEGINNINGS: readonly (readonly [signature: string, mediaType: string])[] = [
  ['II*\0', 'image/tiff'],
  ['MM\0*', 'image/tiff'],
  ['PK\x03\x04', 'application/zip'],
]

function beginning(head: Uint8Array): string | undefined {
  const start = latin1(head, 4)
  return BEGINNINGS.find(([signature]) => signature === start)?.[1]
}

/** What an archive or compound file is, as far as its first bytes or its name say it. */
function contained(mediaType: string, head: Uint8Array, { fileName = '' }: MediaHint): string {
  const ending = /\.([a-z]+)$/i.exec(fileName)?.[1]?.toLowerCase() ?? ''
  if (mediaType === 'application/zip') {
    // The first entry of OpenDocument and EPUB, which is not packed, says it (ISO/IEC 26300-3, 3.3).
    const [, said] = /^PK[\s\S]{28}mimetype(application\/[\w.+-]+)PK/.exec(latin1(head, 200)) ?? []
    return said ?? (Object.hasOwn(ZIPPED, ending) ? ZIPPED[ending]! : mediaType)
  }
  // The names of its parts (MS-OXMSG, 2.1.3).
  const isMail =
    mediaType === 'application/x-cfb' &&
    (ending === 'msg' ||
      Buffer.from(head.buffer, head.byteOffset, head.byteLength).includes(
        '__properties_version1.0',
        0,
        'utf16le',
      ))
  return isMail ? OUTLOOK : mediaType
}

function writtenType(head: Uint8Array, hint: MediaHint): string {
  if (isHtml(head)) return 'text/html'
  if (hintsAtMarkdown(hint)) return 'text/markdown'
  return isMail(head) ? 'message/rfc822' : 'text/plain'
}

const latin1 = (bytes: Uint8Array, length: number): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, length)).toString('latin1')

// Comments and declarations may stand before the document's own element. A comment ends at its first end: if it could go on
// to a later one, the time would double with each.
const isHtml = (head: Uint8Array): boolean =>
  /^(\xef\xbb\xbf)?\s*(<\?xml[^>]*>\s*)?(<!--(?:(?!-->)[\s\S])*-->\s*)*<(!doctype\s+html|html|head|body)\b/i.test(
    latin1(head, 4096),
  )

/** Whether it begins with headers, of which some are those of a mail (RFC 5322, 3.6). */
function isMail(head: Uint8Array): boolean {
  const [headers = ''] = latin1(head, head.length).split(/\r?\n\r?\n/, 1)
  const lines = headers.replace(/\r?\n[ \t]+/g, ' ').split(/\r?\n/)
  if (!lines.every((line) => /^[!-9;-~]+:/.test(line) || /^From /.test(line))) return false
  const has = (name: string): boolean => lines.some((line) => line.toLowerCase().startsWith(`${name}:`))
  return has('from') && ['date', 'message-id', 'mime-version', 'received'].some(has)
}

/** UTF-8 without NUL, or UTF-16 with its byte order mark; a character may be cut in half at the end. */
function isUnicode(head: Uint8Array): boolean {
  const little = head[0] === 0xff && head[1] === 0xfe
  const big = head[0] === 0xfe && head[1] === 0xff
  const encoding = little ? 'utf-16le' : big ? 'utf-16be' : 'utf-8'
  try {
    return !new TextDecoder(encoding, { fatal: true }).decode(head, { stream: true }).includes('\0')
  } catch {
    return false
  }
}

function isClean(head: Uint8Array): boolean {
  return isUnicode(head) && ((head[0] ?? 0) >= 0xfe || hasNoControls(head))
}

// Tab, line feed, form feed, carriage return and escape occur in text.
function hasNoControls(head: Uint8Array): boolean {
  return head.every((byte) => byte >= 0x20 || (byte >= 0x09 && byte <= 0x0d) || byte === 0x1b)
}

// Readers accept a header anywhere in the first kilobyte, after the junk that mail gateways and scanners put there.
function isLatePdf(head: Uint8Array): boolean {
  const start = latin1(head, 4096)
  const at = start.search(/%PDF-[12]\.\d/)
  return at >= 0 && at < 1024 && /\d+ \d+ obj\b/.test(start.slice(at))
}

function hintsAtText({ fileName = '', mediaType = '' }: MediaHint): boolean {
  return (
    /^text\//i.test(mediaType) || /\.(txt|text|log|csv|md|markdown|html?|xhtml|eml|json)$/i.test(fileName)
  )
}

function hintsAtMarkdown({ fileName = '', mediaType = '' }: MediaHint): boolean {
  return /\.(md|markdown)$/i.test(fileName) || /^text\/(x-)?markdown\b/i.test(mediaType)
}
