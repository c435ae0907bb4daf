/** Reads the inverted index of a collection, see `rag_posting` in `sql/rag/tables.sql`. */

/** The chunks that contain a term. */
export interface TermPostings {
  readonly chunkCount: number
  readonly blocks: readonly PostingBlock[]
}

interface PostingBlock {
  /** The number of the first chunk of the block. */
  readonly firstChunk: number
  readonly bytes: Uint8Array
}

/** Receives a chunk that contains a term: how often, and the code of the chunk's length. */
type VisitPosting = (chunk: number, count: number, lengthCode: number) => void

/** The result of `rag_block_size`. */
const BLOCK_SIZE = 8192
const POSTING_BYTES = 4
/** The number of length codes, see `rag_length_code`. */
const LENGTH_CODES = 256

/** Parses rows of `readPostings`. */
export function parsePostings(rows: readonly string[]): Map<number, TermPostings> {
  const blocks = new Map<number, PostingBlock[]>()
  for (const row of rows) {
    const [afterTerm, afterBlock] = [row.indexOf(' '), row.indexOf(' ', row.indexOf(' ') + 1)]
    const term = Number(row.slice(0, afterTerm))
    const firstChunk = Number(row.slice(afterTerm + 1, afterBlock)) * BLOCK_SIZE
    const block = { firstChunk, bytes: Buffer.from(row.slice(afterBlock + 1), 'base64') }
    const known = blocks.get(term)
    if (known === undefined) blocks.set(term, [block])
    else known.push(block)
  }
  return new Map([...blocks].map(([term, all]) => [term, { chunkCount: countChunks(all), blocks: all }]))
}

const countChunks = (blocks: readonly PostingBlock[]): number =>
  blocks.reduce((sum, { bytes }) => sum + bytes.length / POSTING_BYTES, 0)

/** Visits the chunks that contain a term. */
export function visitPostings({ blocks }: TermPostings, visit: VisitPosting): void {
  for (const { firstChunk, bytes } of blocks)
    for (let at = 0; at < bytes.length; at += POSTING_BYTES)
      visit(firstChunk + bytes[at]! * 256 + bytes[at + 1]!, bytes[at + 2]!, bytes[at + 3]!)
}

/** Returns a bound that the numbers of all chunks of these postings are below. */
export function findChunkBound(postings: Iterable<TermPostings>): number {
  let bound = 0
  for (const { blocks } of postings)
    for (const { firstChunk } of blocks) bound = Math.max(bound, firstChunk + BLOCK_SIZE)
  return bound
}

/** Returns a value for each length code. */
export const mapLengths = (compute: (length: number) => number): Float64Array =>
  Float64Array.from({ length: LENGTH_CODES }, (_, code) => compute(2 ** (code / 16) - 1))
