import { type ComputeProducts, instantiateProducts, type Memory } from './products.ts'
import { type Hit, selectTop } from './top.ts'

/** A chunk and its vector of length 1. */
export interface ChunkVector {
  readonly chunk: number
  readonly floats: Float32Array
}

interface VectorPart {
  readonly memory: Memory
  readonly products: ComputeProducts
  readonly chunks: Uint32Array
}

const PAGE_BYTES = 65_536
// Vectors are stored in parts, because WebAssembly allocates each memory as a whole, with at most 4 GiB.
const PART_BYTES = 64 * 1024 * 1024
// Number of floats that one step of the products reads. Rows are padded to a multiple of it.
const STRIDE = 8

/** Vectors of the same dimension. Searches compare all of them with the query. */
export class Vectors {
  readonly dimensions: number
  readonly bytes: number
  private readonly parts: readonly VectorPart[]
  private readonly rowBytes: number

  constructor(dimensions: number, rows: readonly ChunkVector[]) {
    this.dimensions = dimensions
    this.rowBytes = Math.ceil(dimensions / STRIDE) * STRIDE * 4
    const rowsPerPart = Math.max(1, Math.floor(PART_BYTES / this.rowBytes))
    const parts: VectorPart[] = []
    for (let from = 0; from < rows.length; from += rowsPerPart)
      parts.push(this.createPart(rows.slice(from, from + rowsPerPart)))
    this.parts = parts
    this.bytes = parts.reduce((sum, { memory }) => sum + memory.buffer.byteLength, 0)
  }

  /**
   * Returns the chunks nearest to a vector of length 1 by cosine similarity, best first.
   *
   * @param allowed as in `searchTerms`.
   */
  findNearest(query: Float32Array, max: number, allowed: Uint8Array | null): Hit[] {
    const hits = this.parts.flatMap(({ memory, products, chunks }) => {
      const rows = chunks.length * this.rowBytes
      new Float32Array(memory.buffer, rows, query.length).set(query)
      products(0, chunks.length, this.rowBytes, rows, rows + this.rowBytes)
      const scores = new Float32Array(memory.buffer, rows + this.rowBytes, chunks.length)
      if (allowed !== null)
        for (const [row, chunk] of chunks.entries()) if (allowed[chunk] !== 1) scores[row] = Number.NaN
      return selectTop(scores, max, -2).map(({ chunk: row, score }) => ({ chunk: chunks[row]!, score }))
    })
    return hits.sort((a, b) => b.score - a.score || a.chunk - b.chunk).slice(0, max)
  }

  /** Creates a part. Its memory holds the rows, then space for the query vector and for the products. */
  private createPart(rows: readonly ChunkVector[]): VectorPart {
    const bytes = (rows.length + 1) * this.rowBytes + rows.length * 4
    const { memory, products } = instantiateProducts(Math.ceil(bytes / PAGE_BYTES))
    for (const [i, { floats }] of rows.entries())
      new Float32Array(memory.buffer, i * this.rowBytes, this.dimensions).set(floats)
    return { memory, products, chunks: Uint32Array.from(rows, ({ chunk }) => chunk) }
  }
}
