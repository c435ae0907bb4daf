/** Lists the pieces of text in files of Word 6 to 2003 (MS-DOC, 2.9.177). */

/** A stretch of the text. */
export interface Piece {
  readonly at: number
  readonly length: number
  /** Bytes per character: 2 for UTF-16, 1 for a code page. */
  readonly width: 1 | 2
}

/** Lists the pieces in the order of the text. `at` is their place in the table. */
export function* listPieces(main: Buffer, table: Buffer, from: number): Generator<Piece> {
  let at = from
  // Properties precede the pieces.
  while (table[at] === 1) at += 3 + table.readInt16LE(at + 1)
  if (table[at] !== 2) throw new Error('The document has no pieces')
  const entries = table.subarray(at + 5, at + 5 + table.readUInt32LE(at + 1))
  const count = Math.max(0, Math.floor((entries.length - 4) / 12))
  // Pieces of a real file do not overlap, so that the text has no more characters than the file has bytes.
  for (let n = 0, left = main.length; n < count && left > 0; n++) {
    const length = Math.min(left, entries.readUInt32LE(n * 4 + 4) - entries.readUInt32LE(n * 4))
    if (length <= 0) continue
    left -= length
    const place = entries.readUInt32LE((count + 1) * 4 + n * 8 + 2)
    const isNarrow = (place & 0x40000000) !== 0
    const position = place & 0x3fffffff
    yield isNarrow ? { at: position / 2, length, width: 1 } : { at: position, length, width: 2 }
  }
}
