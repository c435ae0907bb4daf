/** Reads the records of workbook streams (MS-XLS, 2.1.4). */

export const BEGIN = 0x0809
/** The types of a first record, also of versions before Excel 5. */
export const BEGINS: ReadonlySet<number> = new Set([0x0009, 0x0209, 0x0409, BEGIN])
export const BOUND_SHEET = 0x85
const BIFF8 = 0x0600
// Place of the version in the first record of a stream.
const VERSION_AT = 4

export interface BiffRecord {
  readonly type: number
  /** Place of the data; four bytes with type and size precede it. */
  readonly at: number
  readonly size: number
}

export function* listRecords(stream: Buffer, from = 0): Generator<BiffRecord> {
  for (let at = from; at + 4 <= stream.length; ) {
    const [type, size] = [stream.readUInt16LE(at), stream.readUInt16LE(at + 2)]
    at += 4
    yield { type, at, size }
    at += size
  }
}

/** True for the stream of a workbook of Excel 97 to 2003. */
export const isBiff8 = (stream: Buffer): boolean =>
  stream.length >= VERSION_AT + 2 && stream.readUInt16LE(VERSION_AT) === BIFF8
