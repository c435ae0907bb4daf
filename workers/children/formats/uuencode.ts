import type { Attachment } from './mail.ts'

/** Separates the files that older mail programs wrote into the body of a mail (POSIX, uuencode). */

const BEGIN = /^begin [0-7]{3,4} (\S.*)$/
const LINE = /^[!-`][ -`]*$/

interface Separated {
  readonly text: string
  readonly files: readonly Attachment[]
}

/** Returns the text without its encoded files. An incomplete file stays text. */
export function separateUuencoded(text: string): Separated {
  if (!/^begin [0-7]{3}/m.test(text)) return { text, files: [] }
  const lines = text.split(/\r?\n/)
  const kept: string[] = []
  const files: Attachment[] = []
  for (let at = 0; at < lines.length; at++) {
    const name = BEGIN.exec(lines[at]!)?.[1]?.trim()
    const end = name === undefined ? -1 : findEnd(lines, at + 1)
    if (name === undefined || end === -1) kept.push(lines[at]!)
    else {
      const bytes = Buffer.concat(lines.slice(at + 1, end).map(decodeLine))
      files.push({ name, mediaType: 'application/octet-stream', bytes })
      at = end
    }
  }
  return { text: kept.join('\n'), files }
}

/** Returns the index of the last line of a file; -1 if another line comes first. */
function findEnd(lines: readonly string[], from: number): number {
  let at = from
  while (at < lines.length && lines[at] !== 'end' && (lines[at] === '' || LINE.test(lines[at]!))) at++
  return lines[at] === 'end' && at > from ? at : -1
}

/** Decodes a line: its first character is its number of bytes, and four others are three bytes. */
function decodeLine(line: string): Uint8Array {
  if (line === '') return new Uint8Array()
  const valueAt = (at: number): number => ((line.charCodeAt(at) || 0x20) - 0x20) & 0x3f
  const bytes = Buffer.alloc(valueAt(0))
  for (let n = 0; n < bytes.length; n++) {
    const at = 1 + Math.floor(n / 3) * 4 + (n % 3)
    bytes[n] = ((valueAt(at) << (2 + 2 * (n % 3))) | (valueAt(at + 1) >> (4 - 2 * (n % 3)))) & 0xff
  }
  return bytes
}
