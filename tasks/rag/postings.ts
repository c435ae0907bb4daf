/**
 * The forward index (terms of each chunk, in order) and the inverted index (chunks of each term) of a collection in
 * memory. Flat arrays of numbers: 100,000 chunks of 150 terms take about 150 MB.
 */
export class Postings {
  /** The number of chunks. */
  readonly size: number
  /** A chunk's terms are `terms[termOffsets[chunk]]` to `terms[termOffsets[chunk + 1] - 1]`. */
  readonly termOffsets: Uint32Array
  readonly terms: Uint32Array
  /** The mean number of terms in a chunk. */
  readonly averageLength: number
  /**
   * A term's chunks are `chunks[chunkOffsets[term]]` to `chunks[chunkOffsets[term + 1] - 1]`, ascending. `counts` has
   * the term's number of occurrences in each of these chunks, at the same index.
   */
  readonly chunkOffsets: Uint32Array
  readonly chunks: Uint32Array
  readonly counts: Float32Array
  private readonly numbers = new Map<number, number>()

  /** @param chunks the hashes of each chunk's terms in order, see `words.ts`. */
  constructor(chunks: readonly Uint32Array[]) {
    this.size = chunks.length
    this.termOffsets = computeOffsets(chunks)
    this.terms = new Uint32Array(this.termOffsets[chunks.length]!)
    this.averageLength = Math.max(1, this.terms.length / Math.max(1, chunks.length))
    const frequencies = this.numberTerms(chunks)
    this.chunkOffsets = new Uint32Array(frequencies.length + 1)
    for (let term = 0; term < frequencies.length; term++)
      this.chunkOffsets[term + 1] = this.chunkOffsets[term]! + frequencies[term]!
    const total = this.chunkOffsets[frequencies.length]!
    this.chunks = new Uint32Array(total)
    this.counts = new Float32Array(total)
    this.invert()
  }

  /** Returns the number of a term in this collection; undefined if no chunk contains it. */
  numberOf(hash: number): number | undefined {
    return this.numbers.get(hash)
  }

  length(chunk: number): number {
    return this.termOffsets[chunk + 1]! - this.termOffsets[chunk]!
  }

  /** Returns the number of chunks that contain a term. */
  countChunks(term: number): number {
    return this.chunkOffsets[term + 1]! - this.chunkOffsets[term]!
  }

  /** Numbers the terms; returns the number of chunks that contain each. */
  private numberTerms(chunks: readonly Uint32Array[]): readonly number[] {
    const frequencies: number[] = []
    const lastChunks: number[] = []
    let at = 0
    for (const [chunk, hashes] of chunks.entries()) {
      for (const hash of hashes) {
        let term = this.numbers.get(hash)
        if (term === undefined) {
          term = frequencies.length
          this.numbers.set(hash, term)
          frequencies.push(0)
          lastChunks.push(-1)
        }
        this.terms[at++] = term
        if (lastChunks[term] === chunk) continue
        lastChunks[term] = chunk
        frequencies[term]!++
      }
    }
    return frequencies
  }

  private invert(): void {
    const ends = this.chunkOffsets.slice(0, -1)
    for (let chunk = 0; chunk < this.size; chunk++) {
      for (let at = this.termOffsets[chunk]!; at < this.termOffsets[chunk + 1]!; at++) {
        const term = this.terms[at]!
        const end = ends[term]!
        if (end > this.chunkOffsets[term]! && this.chunks[end - 1] === chunk) {
          this.counts[end - 1]!++
          continue
        }
        this.chunks[end] = chunk
        this.counts[end] = 1
        ends[term]!++
      }
    }
  }
}

function computeOffsets(chunks: readonly Uint32Array[]): Uint32Array {
  const starts = new Uint32Array(chunks.length + 1)
  for (const [chunk, { length }] of chunks.entries()) starts[chunk + 1] = starts[chunk]! + length
  return starts
}
