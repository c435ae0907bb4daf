import type { Postings } from './postings.ts'
import { type Hit, selectTop } from './top.ts'
import { hashTerm, tokenize } from './words.ts'

/**
 * Ranks chunks by BM25 (Robertson and Zaragoza 2009, "The Probabilistic Relevance Framework", 3.3) with
 * pseudo-relevance feedback. The first pass finds the best chunks. The second pass extends the query with the terms
 * that have the highest BM25 weights in these chunks (Rocchio).
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
// A term in one chunk only identifies that chunk; a term in a third of all chunks does not discriminate.
const MIN_TERM_CHUNKS = 2
const MAX_CHUNK_SHARE = 0.3

/** A query as hashes of terms. The terms of a phrase (text in quotation marks) must occur in sequence. */
export interface Query {
  readonly terms: readonly number[]
  readonly phrases: readonly (readonly number[])[]
}

// Limited because each phrase is searched in many chunks: 500 phrases over 10,000 chunks would block all searches for 7
// s.
const MAX_PHRASES = 8

/** Parses a query; `"…"` is a phrase. Ignores phrases of one term and all after the first 8. */
export function parseQuery(text: string): Query {
  const phrases = [...text.matchAll(/["“„]([^"“”„]+)["”“]/gu)].map(([, words]) =>
    tokenize(words!).map(hashTerm),
  )
  return {
    terms: tokenize(text).map(hashTerm),
    phrases: phrases.filter(({ length }) => length > 1).slice(0, MAX_PHRASES),
  }
}

/** The weights of a query's terms, by term number. */
type Weights = ReadonlyMap<number, number>

/**
 * Returns the best chunks for a query. Scores are greater than 0 and less than 1, because they are divided by a bound
 * that no chunk can reach. If any chunk contains all phrases, returns only such chunks; otherwise ignores the phrases.
 *
 * @param allowed 1 for each chunk that may be returned; null allows all.
 */
export function searchTerms(
  postings: Postings,
  query: Query,
  max: number,
  allowed: Uint8Array | null,
): Hit[] {
  const queryWeights = computeWeights(postings, query)
  if (queryWeights.size === 0) return []
  const eligible = filterByPhrases(postings, query.phrases, allowed)
  const feedbackHits = selectTop(scoreChunks(postings, queryWeights, eligible), FEEDBACK_CHUNK_COUNT)
  if (feedbackHits.length === 0) return []
  const weights = expandQuery(postings, queryWeights, feedbackHits)
  const bound = computeUpperBound(postings, weights)
  return selectTop(scoreChunks(postings, weights, eligible), max).map(({ chunk, score }) => ({
    chunk,
    score: score / bound,
  }))
}

function computeWeights(postings: Postings, { terms }: Query): Weights {
  const weights = new Map<number, number>()
  for (const hash of terms) {
    const term = postings.numberOf(hash)
    if (term !== undefined) weights.set(term, (weights.get(term) ?? 0) + 1)
  }
  return normalizeWeights(weights)
}

function normalizeWeights(weights: Weights): Weights {
  let sum = 0
  for (const weight of weights.values()) sum += weight
  return new Map([...weights].map(([term, weight]) => [term, weight / sum]))
}

function computeIdf(postings: Postings, term: number): number {
  const frequency = postings.countChunks(term)
  return Math.log(1 + (postings.size - frequency + 0.5) / (frequency + 0.5))
}

function computeSaturation(postings: Postings, count: number, chunk: number): number {
  const length = postings.length(chunk) / postings.averageLength
  return (count * (K1 + 1)) / (count + K1 * (1 - B + B * length))
}

function scoreChunks(postings: Postings, weights: Weights, allowed: Uint8Array | null): Float64Array {
  const { chunkOffsets, chunks, counts } = postings
  const scores = new Float64Array(postings.size)
  for (const [term, weight] of weights) {
    const idf = computeIdf(postings, term) * weight
    for (let at = chunkOffsets[term]!; at < chunkOffsets[term + 1]!; at++)
      scores[chunks[at]!]! += idf * computeSaturation(postings, counts[at]!, chunks[at]!)
  }
  if (allowed !== null) for (let chunk = 0; chunk < scores.length; chunk++) scores[chunk]! *= allowed[chunk]!
  return scores
}

/** Returns the limit of a chunk's score as the occurrences of every term grow to infinity. */
function computeUpperBound(postings: Postings, weights: Weights): number {
  let bound = 0
  for (const [term, weight] of weights) bound += computeIdf(postings, term) * weight * (K1 + 1)
  return bound
}

function expandQuery(postings: Postings, queryWeights: Weights, feedbackHits: readonly Hit[]): Weights {
  const totalScore = feedbackHits.reduce((sum, { score }) => sum + score, 0)
  const candidates = new Map<number, number>()
  for (const { chunk, score } of feedbackHits) {
    for (const [term, count] of countTerms(postings, chunk)) {
      const weight =
        (score / totalScore) * computeIdf(postings, term) * computeSaturation(postings, count, chunk)
      candidates.set(term, (candidates.get(term) ?? 0) + weight)
    }
  }
  const max = postings.size * MAX_CHUNK_SHARE
  const isUseful = (term: number): boolean => {
    const frequency = postings.countChunks(term)
    return queryWeights.has(term) || (frequency >= MIN_TERM_CHUNKS && frequency <= max)
  }
  const heaviest = [...candidates]
    .filter(([term]) => isUseful(term))
    .sort((a, b) => b[1] - a[1] || a[0] - b[0])
    .slice(0, FEEDBACK_TERM_COUNT)
  const weights = new Map([...queryWeights].map(([term, weight]) => [term, weight * (1 - FEEDBACK_SHARE)]))
  for (const [term, weight] of normalizeWeights(new Map(heaviest)))
    weights.set(term, (weights.get(term) ?? 0) + weight * FEEDBACK_SHARE)
  return weights
}

function countTerms({ termOffsets, terms }: Postings, chunk: number): ReadonlyMap<number, number> {
  const counts = new Map<number, number>()
  for (let at = termOffsets[chunk]!; at < termOffsets[chunk + 1]!; at++) {
    const term = terms[at]!
    counts.set(term, (counts.get(term) ?? 0) + 1)
  }
  return counts
}

/** Returns the allowed chunks that contain all phrases, or all allowed chunks if none contains them all. */
function filterByPhrases(
  postings: Postings,
  phrases: Query['phrases'],
  allowed: Uint8Array | null,
): Uint8Array | null {
  if (phrases.length === 0) return allowed
  const sequences = phrases.map((phrase) => phrase.map((hash) => postings.numberOf(hash)))
  if (sequences.some((sequence) => sequence.includes(undefined))) return allowed
  const matching = new Uint8Array(postings.size)
  let found = false
  const [rarest] = (sequences.flat() as number[]).sort(
    (a, b) => postings.countChunks(a) - postings.countChunks(b),
  )
  for (let at = postings.chunkOffsets[rarest!]!; at < postings.chunkOffsets[rarest! + 1]!; at++) {
    const chunk = postings.chunks[at]!
    if (allowed !== null && allowed[chunk] === 0) continue
    if (!sequences.every((sequence) => containsSequence(postings, chunk, sequence as number[]))) continue
    matching[chunk] = 1
    found = true
  }
  return found ? matching : allowed
}

function containsSequence(
  { termOffsets, terms }: Postings,
  chunk: number,
  sequence: readonly number[],
): boolean {
  const end = termOffsets[chunk + 1]! - sequence.length
  for (let at = termOffsets[chunk]!; at <= end; at++)
    if (terms[at] === sequence[0] && sequence.every((term, i) => terms[at + i] === term)) return true
  return false
}
