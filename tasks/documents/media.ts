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

const ALIASES: Readonly<Record<string, string>> = { 'image/apng': 'image/png' }

/**
 * The media type of a file from its first bytes (64 KiB are plenty). Readable characters are `text/plain`, or
 * `text/markdown` if the client says so by name or type; anything unknown is `application/octet-stream`.
 * HTML, CSV, JSON and the like are `text/plain`: readable, and harmless when shown. Never throws for bad bytes.
 */
export async function sniffMediaType(head: Uint8Array, hint: MediaHint): Promise<string> {
  const { fileTypeFromBuffer } = await import('file-type')
  const detected = (await fileTypeFromBuffer(head).catch(() => undefined))?.mime
  const known = detected && (ALIASES[detected] ?? detected)
  if (known && (WRITTEN.has(known) || !isClean(head))) return known
  if (isLatePdf(head)) return 'application/pdf'
  const written = isUnicode(head) || (hintsAtText(hint) && hasNoControls(head))
  if (!written) return 'application/octet-stream'
  return hintsAtMarkdown(hint) ? 'text/markdown' : 'text/plain'
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
  const start = Buffer.from(head.buffer, head.byteOffset, Math.min(head.byteLength, 4096)).toString('latin1')
  const at = start.search(/%PDF-[12]\.\d/)
  return at >= 0 && at < 1024 && /\d+ \d+ obj\b/.test(start.slice(at))
}

function hintsAtText({ fileName = '', mediaType = '' }: MediaHint): boolean {
  return /^text\//i.test(mediaType) || /\.(txt|text|log|csv|md|markdown)$/i.test(fileName)
}

function hintsAtMarkdown({ fileName = '', mediaType = '' }: MediaHint): boolean {
  return /\.(md|markdown)$/i.test(fileName) || /^text\/(x-)?markdown\b/i.test(mediaType)
}
