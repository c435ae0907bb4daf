import { BEGINS, BOUND_SHEET, listRecords } from './biff.ts'

/** Counts the cells of binary workbooks (MS-XLS, MS-XLSB), without the library that reads them. */

// Records with cells (MS-XLS, 2.3.2). Formulas do not count: their result may be empty.
const NUMBER = 0x0203
const RK = 0x027e
const MULTIPLE_RK = 0x00bd
const TEXT_CELLS: ReadonlySet<number> = new Set([0x00fd, 0x0204, 0x00d6])
const END = 0x000a
// Sheets of a hostile file may share records. No real workbook has more.
const MAX_RECORDS = 20_000_000

/** Returns the number of cells with content of each sheet, in the order of their names. */
export function countBinaryCells(stream: Uint8Array): readonly number[] {
  const bytes = Buffer.from(stream.buffer, stream.byteOffset, stream.byteLength)
  const places: number[] = []
  let left = MAX_RECORDS
  walk(bytes, 0, (type, at, length) => {
    if (type === BOUND_SHEET && length >= 4) places.push(bytes.readUInt32LE(at))
    return left-- > 0
  })
  const counted = new Map<number, number>()
  for (const place of places) {
    if (counted.has(place)) continue
    let cells = 0
    walk(bytes, place, (type, at, length) => {
      cells += countCells(bytes, type, at, length)
      return left-- > 0
    })
    counted.set(place, cells)
  }
  return left > 0 ? places.map((place) => counted.get(place)!) : []
}

// Some writers give each sheet a drawing, but not its objects.
const OBJECT = 0x005d

/** True if a sheet has pictures or shapes. */
export function hasDrawings(stream: Uint8Array): boolean {
  const bytes = Buffer.from(stream.buffer, stream.byteOffset, stream.byteLength)
  for (const { type } of listRecords(bytes)) if (type === OBJECT) return true
  return false
}

/** Walks over the records from `from` to the end of their sheet. Charts in it are nested. */
function walk(
  bytes: Buffer,
  from: number,
  visit: (type: number, at: number, length: number) => boolean,
): void {
  let depth = 0
  for (const { type, at, size } of listRecords(bytes, from)) {
    if (BEGINS.has(type)) depth++
    else if (type === END && --depth <= 0) return
    else if (depth === 1 && !visit(type, at, Math.min(size, bytes.length - at))) return
  }
}

function countCells(bytes: Buffer, type: number, at: number, length: number): number {
  if (TEXT_CELLS.has(type)) return 1
  // Zeros may be shown as dashes.
  if (type === NUMBER && length >= 14) return Number(bytes.readDoubleLE(at + 6) !== 0)
  if (type === RK && length >= 10) return Number(isNonZero(bytes.readUInt32LE(at + 6)))
  if (type !== MULTIPLE_RK) return 0
  let cells = 0
  for (let one = at + 4; one + 6 <= at + length - 2; one += 6)
    cells += Number(isNonZero(bytes.readUInt32LE(one + 2)))
  return cells
}

// Types of the records of cells of the other binary format (MS-XLSB, 2.4): numbers and texts.
const FIRST_CELL = 2
const LAST_CELL = 7

/** Counts the cells with content of a sheet of an xlsb. */
export function countXlsbCells(bytes: Uint8Array): number {
  let at = 0
  // Each byte has seven bits, and tells if another follows.
  const readNumber = (max: number): number => {
    let value = 0
    for (let n = 0; n < max; n++) {
      const byte = bytes[at++] ?? 0
      value |= (byte & 0x7f) << (7 * n)
      if (byte < 0x80) break
    }
    return value
  }
  let cells = 0
  while (at < bytes.length) {
    const type = readNumber(2)
    if (type >= FIRST_CELL && type <= LAST_CELL) cells++
    const size = readNumber(4)
    at += size
  }
  return cells
}

// The last two bits tell how the number is stored.
const isNonZero = (rk: number): boolean => rk >>> 2 !== 0
