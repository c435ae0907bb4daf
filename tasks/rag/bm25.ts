import type { ChunkFiles } from './chunk-files.ts'
import { findChunkBound, mapLengths, type TermPostings, visitPostings } from './postings.ts'
import type { Query } from './query.ts'
import { type Hit, selectTop } from './top.ts'

/**
 * Ranks chunks by BM25 (Robertson and Zaragoza 2009, "The Probabilistic Relevance Framework", 3.3) with
 * pseudo-relevance feedback. A chunk has a share of the score of its file, because a long article may have the words of a
 * query in different chunks. The first pass finds the best chunks. The second pass extends the query with the terms that
 * have the highest BM25 weights in these chunks (Rocchio).
 */

// Tuned on the Cranfield and Vaswani collections only; CACM and CISI served for evaluation. Tested values: k1 1.2 and
// 1.6, b 0.5 and 0.65, 5 and 8 chunks, 40 and 60 terms, shares 0.5 and 0.7. `npm run bench -- retrieval DIR` prints the
// results.
const K1 = 1.2
const B = 0.65
const FEEDBACK_CHUNK_COUNT = 5
const FEEDBACK_TERM_COUNT = 60
// Share of the added terms in the weight of the expanded query.
const FEEDBACK_SHARE = 0.7
// Share of the file's score in a chunk's score. Tested values: 0.3 to 0.6, also on Cranfield and Vaswani with files that
// are cut into several chunks.
const FILE_SHARE = 0.4
// A term in one chunk only identifies that chunk; a term in a third of all chunks does not discriminate.
const MIN_TERM_CHUNKS = 2
const MAX_CHUNK_SHARE = 0.3

/** A collection as its index shows it. */
export interface IndexedTerms {
  readonly chunkCount: number
  /** The mean number of terms in a chunk. */
  readonly averageLength: number
  readonly files: Pick<ChunkFiles, 'fileCount' | 'fileOf' | 'lengths'>
  /** Returns the postings of terms; none for a term that no chunk contains. */
  readPostings(terms: readonly number[]): Promise<ReadonlyMap<number, TermPostings>>
  /** Returns the terms of chunks. */
  readChunkTerms(chunks: readonly number[]): Promise<readonly ChunkTerm[]>
  /** Returns those of the chunks that contain one of the sequences of each phrase. */
  findPhrases(chunks: readonly number[], phrases: Query['phrases']): Promise<readonly number[]>
}

/** A term of some chunks. */
export interface ChunkTerm {
  readonly term: number
  /** The number of all chunks that contain the term. */
  readonly chunkCount: number
  /** The chunks, each as often as the term occurs in it. */
  readonly chunks: readonly number[]
}

/** The weights of terms. */
type Weights = ReadonlyMap<number, number>

/**
 * Returns the best chunks for a query. Scores are greater than 0 and less than 1, because they are divided by a limit. No
 * chunk can reach it, with any number of occurrences. If any chunk contains all phrases, returns only such chunks;
 * otherwise ignores the phrases.
 *
 * @param allowed 1 for each chunk that may be returned; null allows all.
 */
export async function searchTerms(
  index: IndexedTerms,
  query: Query,
  max: number,
  allowed: Uint8Array | null,
): Promise<Hit[]> {
  const postings = new Map(await index.readPostings([...query.terms.keys()]))
  const queryWeights = normalizeWeights([...query.terms].filter(([term]) => postings.has(term)))
  if (queryWeights.size === 0) return []
  const eligible = await filterByPhrases(index, postings, query, allowed)
  const feedbackHits = selectTop(scoreChunks(index, postings, queryWeights, eligible), FEEDBACK_CHUNK_COUNT)
  if (feedbackHits.length === 0) return []
  const weights = await expandQuery(index, queryWeights, feedbackHits)
  const unread = [...weights.keys()].filter((term) => !postings.has(term))
  for (const [term, found] of await index.readPostings(unread)) postings.set(term, found)
  return selectTop(scoreChunks(index, postings, weights, eligible), max)
}

function normalizeWeights(weights: readonly (readonly [number, number])[]): Weights {
  const sum = weights.reduce((total, [, weight]) => total + weight, 0)
  return new Map(weights.map(([term, weight]) => [term, weight / sum]))
}

const computeIdf = (count: number, frequency: number): number =>
  Math.log(1 + (count - frequency + 0.5) / (frequency + 0.5))

/** Returns the part of the saturation that depends on the length of a chunk or file. */
const computeLengthFactor = (averageLength: number, length: number): number =>
  K1 * (1 - B + (B * length) / averageLength)

const computeSaturation = (count: number, lengthFactor: number): number =>
  (count * (K1 + 1)) / (count + lengthFactor)

/** Scores the chunks that contain any of the terms, with their share of the score of their file. */
function scoreChunks(
  index: IndexedTerms,
  postings: ReadonlyMap<number, TermPostings>,
  weights: Weights,
  allowed: Uint8Array | null,
): Float64Array {
  const scores = new Float64Array(findChunkBound(postings.values()))
  const lengthFactors = mapLengths((length) => computeLengthFactor(index.averageLength, length))
  const files = new FileScores(index)
  let bound = 0
  for (const [term, weight] of weights) {
    const found = postings.get(term)
    if (found === undefined) continue
    const idf = computeIdf(index.chunkCount, found.chunkCount) * weight
    bound += idf * (K1 + 1)
    visitPostings(found, (chunk, count, lengthCode) => {
      scores[chunk]! += idf * computeSaturation(count, lengthFactors[lengthCode]!)
      files.count(chunk, count)
    })
    files.addTerm(found.chunkCount, weight)
  }
  for (let chunk = 0; chunk < scores.length; chunk++) {
    if (scores[chunk] === 0) continue
    const score = allowed !== null && allowed[chunk] !== 1 ? 0 : scores[chunk]! / bound
    scores[chunk] = score === 0 ? 0 : files.addShare(chunk, score)
  }
  return scores
}

/** The scores of files of several chunks. A file contains a term as often as its chunks. */
export class FileScores {
  readonly #fileCount: number
  readonly #fileOf: Uint32Array
  readonly #lengthFactors: Float64Array
  readonly #scores: Float64Array
  /** The occurrences of the current term in each file. */
  readonly #counts: Uint32Array
  /** The files that contain the current term, and their number. */
  readonly #found: Uint32Array
  #foundCount = 0
  /** The number of their chunks that contain the term. */
  #chunkCount = 0
  #bound = 0

  constructor({
    chunkCount,
    averageLength,
    files,
  }: Pick<IndexedTerms, 'chunkCount' | 'averageLength' | 'files'>) {
    const { fileCount, fileOf, lengths } = files
    const averageFileLength = (averageLength * chunkCount) / Math.max(1, fileCount)
    this.#fileCount = fileCount
    this.#fileOf = fileOf
    this.#lengthFactors = Float64Array.from(lengths, (length) =>
      computeLengthFactor(averageFileLength, length),
    )
    this.#scores = new Float64Array(lengths.length)
    this.#counts = new Uint32Array(lengths.length)
    this.#found = new Uint32Array(lengths.length)
  }

  /** Counts occurrences of the current term in a chunk. */
  count(chunk: number, count: number): void {
    const file = this.#fileOf[chunk]
    if (file === undefined || file === 0) return
    if (this.#counts[file] === 0) this.#found[this.#foundCount++] = file
    this.#counts[file]! += count
    this.#chunkCount++
  }

  /** Adds the scores of the current term, which `chunkCount` chunks contain. */
  addTerm(chunkCount: number, weight: number): void {
    const frequency = chunkCount - this.#chunkCount + this.#foundCount
    const idf = computeIdf(this.#fileCount, frequency) * weight
    this.#bound += idf * (K1 + 1)
    for (let i = 0; i < this.#foundCount; i++) {
      const file = this.#found[i]!
      this.#scores[file]! += idf * computeSaturation(this.#counts[file]!, this.#lengthFactors[file]!)
      this.#counts[file] = 0
    }
    this.#foundCount = 0
    this.#chunkCount = 0
  }

  /** Returns the score of a chunk with the share of its file, which is the same if it has no other chunk. */
  addShare(chunk: number, score: number): number {
    const file = this.#fileOf[chunk]
    if (file === undefined || file === 0) return score
    return (1 - FILE_SHARE) * score + (FILE_SHARE * this.#scores[file]!) / this.#bound
  }
}

async function expandQuery(
  index: IndexedTerms,
  queryWeights: Weights,
  feedbackHits: readonly Hit[],
): Promise<Weights> {
  const found = await index.readChunkTerms(feedbackHits.map(({ chunk }) => chunk))
  const lengths = countOccurrences(found.flatMap(({ chunks }) => chunks))
  const totalScore = feedbackHits.reduce((sum, { score }) => sum + score, 0)
  const shares = new Map(feedbackHits.map(({ chunk, score }) => [chunk, score / totalScore]))
  const candidates = found
    .filter(
      ({ term, chunkCount }) =>
        queryWeights.has(term) ||
        (chunkCount >= MIN_TERM_CHUNKS && chunkCount <= index.chunkCount * MAX_CHUNK_SHARE),
    )
    .map(({ term, chunkCount, chunks }) => {
      let weight = 0
      for (const [chunk, count] of countOccurrences(chunks)) {
        const saturation = computeSaturation(
          count,
          computeLengthFactor(index.averageLength, lengths.get(chunk)!),
        )
        weight += shares.get(chunk)! * computeIdf(index.chunkCount, chunkCount) * saturation
      }
      return [term, weight] as const
    })
  const heaviest = candidates.sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, FEEDBACK_TERM_COUNT)
  const weights = new Map([...queryWeights].map(([term, weight]) => [term, weight * (1 - FEEDBACK_SHARE)]))
  for (const [term, weight] of normalizeWeights(heaviest))
    weights.set(term, (weights.get(term) ?? 0) + weight * FEEDBACK_SHARE)
  return weights
}

function countOccurrences(values: readonly number[]): Map<number, number> {
  const counts = new Map<number, number>()
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
  return counts
}

/** Returns the allowed chunks that contain all phrases, or all allowed chunks if none contains them all. */
async function filterByPhrases(
  index: IndexedTerms,
  postings: ReadonlyMap<number, TermPostings>,
  { phrases }: Query,
  allowed: Uint8Array | null,
): Promise<Uint8Array | null> {
  const possible = phrases.map((sequences) =>
    sequences.filter((terms) => terms.every((term) => postings.has(term))),
  )
  if (phrases.length === 0 || possible.some(({ length }) => length === 0)) return allowed
  const candidates = findCandidates(postings, possible, allowed)
  const found = candidates.length === 0 ? [] : await index.findPhrases(candidates, possible)
  if (found.length === 0) return allowed
  const eligible = new Uint8Array(Math.max(...found) + 1)
  for (const chunk of found) eligible[chunk] = 1
  return eligible
}

/** Returns the allowed chunks that contain all terms of a sequence of each phrase, in any order. */
function findCandidates(
  postings: ReadonlyMap<number, TermPostings>,
  phrases: Query['phrases'],
  allowed: Uint8Array | null,
): number[] {
  const bound = findChunkBound(postings.values())
  let candidates: Uint8Array | null = allowed
  for (const sequences of phrases) {
    const ofPhrase = new Uint8Array(bound)
    for (const terms of sequences) {
      let ofSequence: Uint8Array | null = candidates
      for (const term of new Set(terms)) {
        const ofTerm = new Uint8Array(bound)
        visitPostings(postings.get(term)!, (chunk) => {
          if (ofSequence === null || ofSequence[chunk] === 1) ofTerm[chunk] = 1
        })
        ofSequence = ofTerm
      }
      for (let chunk = 0; chunk < bound; chunk++) ofPhrase[chunk]! |= ofSequence![chunk]!
    }
    candidates = ofPhrase
  }
  return [...candidates!.keys()].filter((chunk) => candidates![chunk] === 1)
}
