import { type Memory, type Products, productsIn } from './products.ts'
import { type Hit, topOf } from './top.ts'

/** A chunk and its vector, which has length 1. */
export interface Row {
  readonly chunk: number
  readonly floats: Float32Array
}

interface Part {
  readonly memory: Memory
  readonly products: Products
  readonly chunks: Uint32Array
}

const PAGE = 65_536
// A memory has at most 4 GiB, and is allocated as a whole.
const PART_BYTES = 64 * 1024 * 1024
// How many floats the products process at once.
const STRIDE = 8

/** Vectors of the same dimension, for searches that look at all of them. */
export class Vectors {
  readonly dimensions: number
  readonly bytes: number
  private readonly parts: readonly Part[]
  private readonly width: number

  constructor(dimensions: number, rows: readonly Row[]) {
    this.dimensions = dimensions
    this.width = Math.ceil(dimensions / STRIDE) * STRIDE * 4
    const perPart = Math.max(1, Math.floor(PART_BYTES / this.width))
    const parts: Part[] = []
    for (let from = 0; from < rows.length; from += perPart)
      parts.push(this.partOf(rows.slice(from, from + perPart)))
    this.parts = parts
    this.bytes = parts.reduce((sum, { memory }) => sum + memory.buffer.byteLength, 0)
  }

  /** The chunks nearest to a vector of length 1, by cosine, best first. @param allowed as in `searchTerms`. */
  nearest(wanted: Float32Array, max: number, allowed: Uint8Array | null): Hit[] {
    const hits = this.parts.flatMap(({ memory, products, chunks }) => {
      const rows = chunks.length * this.width
      new Float32Array(memory.buffer, rows, wanted.length).set(wanted)
      products(0, chunks.length, this.width, rows, rows + this.width)
      const scores = new Float32Array(memory.buffer, rows + this.width, chunks.length)
      if (allowed !== null)
        for (const [row, chunk] of chunks.entries()) if (allowed[chunk] === 0) scores[row] = Number.NaN
      return topOf(scores, max, -2).map(({ chunk: row, score }) => ({ chunk: chunks[row]!, score }))
    })
    return hits.sort((a, b) => b.score - a.score || a.chunk - b.chunk).slice(0, max)
  }

  /** Rows, then space for the wanted vector and for the products. */
  private partOf(rows: readonly Row[]): Part {
    const bytes = (rows.length + 1) * this.width + rows.length * 4
    const { memory, products } = productsIn(Math.ceil(bytes / PAGE))
    for (const [i, { floats }] of rows.entries())
      new Float32Array(memory.buffer, i * this.width, this.dimensions).set(floats)
    return { memory, products, chunks: Uint32Array.from(rows, ({ chunk }) => chunk) }
  }
}
