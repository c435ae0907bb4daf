/** The directories of TIFF files, classic and BigTIFF: what they say about each page. */

/** The tags of a directory (TIFF 6.0) that say how its picture is stored. */
export const Tag = {
  width: 256,
  height: 257,
  bits: 258,
  coding: 259,
  photometric: 262,
  stripOffsets: 273,
  samples: 277,
  rowsPerStrip: 278,
  stripCounts: 279,
  planar: 284,
  predictor: 317,
  tileWidth: 322,
  tileHeight: 323,
  tileOffsets: 324,
  tileCounts: 325,
  jpegTables: 347,
} as const

/** What a file says about one of its pages. */
export interface Directory {
  readonly offset: number
  readonly little: boolean
  readonly fields: ReadonlyMap<number, Field>
  /** The values of a tag, at most `most`; none when it is missing. Throws `RangeError` if they are outside the file. */
  values(tag: number, most?: number): number[]
  first(tag: number, otherwise: number): number
}

interface Field {
  readonly kind: number
  readonly count: number
  readonly at: number
}

// Bytes per value of each type of field (TIFF 6.0, section 2, and BigTIFF).
export const SIZES: Readonly<Record<number, number>> = {
  1: 1,
  2: 1,
  3: 2,
  4: 4,
  5: 8,
  6: 1,
  7: 1,
  8: 2,
  9: 4,
  10: 8,
  11: 4,
  12: 8,
  16: 8,
  17: 8,
  18: 8,
}

/** The directories of a file, one per page, as they are linked. Throws `RangeError` where a link leads outside it. */
export function* directories(bytes: Uint8Array): Generator<Directory> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const little = view.getUint16(0) === 0x4949
  const big = view.getUint16(2, little) === 43
  const word = (at: number) => (big ? Number(view.getBigUint64(at, little)) : view.getUint32(at, little))
  const value = (kind: number, at: number): number => {
    if (SIZES[kind] === 1) return view.getUint8(at)
    if (kind === 3) return view.getUint16(at, little)
    return SIZES[kind] === 8 ? Number(view.getBigUint64(at, little)) : view.getUint32(at, little)
  }
  const seen = new Set<number>()
  let offset = word(big ? 8 : 4)
  while (offset > 0 && !seen.has(offset)) {
    seen.add(offset)
    const entries = big ? word(offset) : view.getUint16(offset, little)
    const fields = new Map<number, Field>()
    let at = offset + (big ? 8 : 2)
    for (let i = 0; i < entries; i++, at += big ? 20 : 12) {
      const [kind, count, inline] = [view.getUint16(at + 2, little), word(at + 4), at + (big ? 12 : 8)]
      const fits = count * (SIZES[kind] ?? 4) <= (big ? 8 : 4)
      fields.set(view.getUint16(at, little), { kind, count, at: fits ? inline : word(inline) })
    }
    const values = (tag: number, most = Number.POSITIVE_INFINITY): number[] => {
      const { kind, count, at: from } = fields.get(tag) ?? { kind: 1, count: 0, at: 0 }
      const size = SIZES[kind] ?? 4
      if (from + Math.min(count, most) * size > bytes.length) throw new RangeError('Values outside the file')
      return Array.from({ length: Math.min(count, most) }, (_, i) => value(kind, from + i * size))
    }
    yield { offset, little, fields, values, first: (tag, otherwise) => values(tag, 1)[0] ?? otherwise }
    offset = word(at)
  }
}
