import { countMarkup, HTML_RULES } from './held-markup.ts'
import { countLetterBytes } from './held-text.ts'

/** Counts the letters of the texts of a mail (MIME), without the library that reads it. */

const MAX_DEPTH = 10

/** Counts the letters of a mail's own texts. If a text has several versions, the shortest counts. */
export function countMail(bytes: Uint8Array): number {
  return countPart(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1'), 0)
}

function countPart(source: string, depth: number): number {
  const end = /\r?\n\r?\n/.exec(source)
  if (end === null || depth > MAX_DEPTH) return 0
  const headers = source.slice(0, end.index).replace(/\r?\n[ \t]+/g, ' ')
  const body = source.slice(end.index + end[0].length)
  const read = (name: string): string => new RegExp(`^${name}:(.*)$`, 'im').exec(headers)?.[1]?.trim() ?? ''
  const type = read('content-type') || 'text/plain'
  const boundary = /boundary\s*=\s*(?:"([^"]+)"|([^\s;]+))/i.exec(type)
  if (/^multipart\//i.test(type) && boundary !== null) {
    const counts = splitParts(body, boundary[1] ?? boundary[2]!).map((part) => countPart(part, depth + 1))
    return /^multipart\/alternative/i.test(type)
      ? (counts.filter((count) => count > 0).sort((a, b) => a - b)[0] ?? 0)
      : counts.reduce((sum, count) => sum + count, 0)
  }
  const isFile =
    /^attachment/i.test(read('content-disposition')) ||
    /name\*?\d*\*?\s*=/i.test(`${type} ${read('content-disposition')}`)
  if (isFile || !/^text\/(plain|html)/i.test(type)) return 0
  const content = decode(body, read('content-transfer-encoding').toLowerCase())
  return /^text\/html/i.test(type) ? countMarkup(content, HTML_RULES) : countLetterBytes(content)
}

/** Splits a body at the lines of its boundary. Text before and behind them is no part. */
function splitParts(body: string, boundary: string): string[] {
  const parts: string[] = []
  let from = -1
  for (let at = body.indexOf(`--${boundary}`); at !== -1; at = body.indexOf(`--${boundary}`, at + 1)) {
    if (at > 0 && body[at - 1] !== '\n') continue
    if (from !== -1) parts.push(body.slice(from, at))
    const line = body.indexOf('\n', at)
    const isLast = body.startsWith('--', at + boundary.length + 2)
    from = line === -1 || isLast ? -1 : line + 1
  }
  if (from !== -1) parts.push(body.slice(from))
  // A part without headers begins with the blank line.
  return parts.map((part) => (/^\r?\n/.test(part) ? `\n${part}` : part))
}

/** Drops files between the lines of their text (uuencode). */
function dropUuencoded(body: string): string {
  const kept: string[] = []
  let isFile = false
  if (!/^begin [0-7]{3,4} /m.test(body)) return body
  for (const line of body.split('\n')) {
    if (/^begin [0-7]{3,4} /.test(line)) isFile = true
    if (!isFile) kept.push(line)
    if (/^end\s*$/.test(line)) isFile = false
  }
  return kept.join('\n')
}

function decode(body: string, encoding: string): Buffer {
  if (encoding === 'base64') return Buffer.from(body, 'base64')
  const plain = dropUuencoded(body)
  const text =
    encoding === 'quoted-printable'
      ? plain
          .replace(/=\r?\n/g, '')
          .replace(/=([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
      : plain
  return Buffer.from(text, 'latin1')
}
