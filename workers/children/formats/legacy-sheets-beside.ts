import { BEGIN, BOUND_SHEET, isBiff8, listRecords } from './biff.ts'
import { decodeHeader } from './sheet-parts.ts'

/** Reads what a sheet of Excel 97 to 2003 shows besides its cells: text boxes, charts, headers and footers (MS-XLS). */

const OBJECT = 0x5d
const TEXT_OBJECT = 0x1b6
const CONTINUE = 0x3c
const CHART_TEXT = 0x100d
const HEADERS: readonly number[] = [0x14, 0x15]
// SheetJS reads the texts of comments.
const COMMENT_KIND = 0x19
const KIND_AT = 4
const LENGTH_AT = 10
const NAME_AT = 6
const RECORD_HEAD_BYTES = 4

/** Returns the lines of each sheet by its name; none for earlier versions. */
export function readTextsBeside(stream: Buffer): ReadonlyMap<string, ReadonlySet<string>> {
  const reader = new BesideReader()
  if (isBiff8(stream))
    for (const { type, at, size } of listRecords(stream))
      reader.take(type, at, stream.subarray(at, at + size))
  return reader.lines
}

class BesideReader {
  readonly lines = new Map<string, Set<string>>()
  // Names of sheets by the place of their first record.
  readonly #names = new Map<number, string>()
  #sheet = new Set<string>()
  #isComment = false
  // The text of a box, and the number of its characters in further records.
  #words = ''
  #left = 0

  take(type: number, at: number, data: Buffer): void {
    if (type === BOUND_SHEET && data.length >= NAME_AT + 2)
      this.#names.set(data.readUInt32LE(0), decodeCharacters(data.subarray(NAME_AT + 1), data[NAME_AT]!))
    else if (type === BEGIN) this.#openSheet(this.#names.get(at - RECORD_HEAD_BYTES))
    else if (type === OBJECT && data.length >= KIND_AT + 2)
      this.#isComment = data.readUInt16LE(KIND_AT) === COMMENT_KIND
    else if (type === TEXT_OBJECT && data.length >= LENGTH_AT + 2) {
      this.#left = this.#isComment ? 0 : data.readUInt16LE(LENGTH_AT)
      this.#words = ''
    } else if (type === CONTINUE && this.#left > 0) this.#continue(data)
    else if (type === CHART_TEXT && data.length > 3) this.#add(decodeCharacters(data.subarray(3), data[2]!))
    else if (HEADERS.includes(type) && data.length > 2)
      this.#add(decodeHeader(decodeCharacters(data.subarray(2), data.readUInt16LE(0))))
  }

  #openSheet(name: string | undefined): void {
    // Charts within a sheet begin like sheets, but have no name.
    if (name === undefined) return
    this.#sheet = this.lines.get(name) ?? new Set()
    this.lines.set(name, this.#sheet)
  }

  #continue(data: Buffer): void {
    const part = decodeCharacters(data, this.#left)
    this.#words += part
    this.#left = part === '' ? 0 : this.#left - part.length
    if (this.#left === 0) this.#add(this.#words)
  }

  #add(text: string): void {
    const line = text.replace(/\r\n?/g, '\n').trim()
    if (line !== '') this.#sheet.add(line)
  }
}

/** Decodes characters, which follow a byte that tells their width (MS-XLS, 2.5.293). */
function decodeCharacters(data: Buffer, count: number): string {
  const isWide = ((data[0] ?? 0) & 1) === 1
  return isWide
    ? data.toString('utf16le', 1, Math.min(data.length, 1 + 2 * count))
    : data.toString('latin1', 1, Math.min(data.length, 1 + count))
}
