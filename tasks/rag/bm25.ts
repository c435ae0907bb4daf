import type { Postings } from './postings.ts'
import { type Hit, topOf } from './top.ts'
import { hashOf, termsOf } from './words.ts'

/**
 * BM25 (Robertson and Zaragoza 2009, "The Probabilistic Relevance Framework", 3.3) with pseudo-relevance feedback: the
 * query is expanded with the heaviest terms of the best chunks (Rocchio's, by their BM25 weights) and runs again.
 */

// Tuned on Cranfield and Vaswani alone, over k1 1.2 and 1.6, b 0.5 and 0.65, 5 and 8 chunks, 40 and 60 terms, weights
// 0.5 and 0.7; CACM and CISI were only evaluated. `npm run bench -- retrieval DIR` has the figures.
const K1 = 1.2
const B = 0.65
const FEEDBACK_CHUNKS = 5
const FEEDBACK_TERMS = 60
// The share of the added terms in the whole query.
const FEEDBACK_SHARE = 0.7
// A term of only one chunk just identifies that chunk; one of a third of all chunks says nothing.
const FEWEST_CHUNKS = 2
const MAX_OF_CHUNKS = 0.3

/** A query in words: its terms, and those between quotation marks, which must occur in this order. */
export interface Query {
  readonly terms: readonly number[]
  readonly phrases: readonly (readonly number[])[]
}

// Each is looked for in every chunk that has its words: 500 of them in 10,000 chunks held up all searches for 7 s.
const MAX_PHRASES = 8

/** Parses a query; `"…"` is a phrase, of which the first 8 count. */
export function queryOf(text: string): Query {
  const phrases = [...text.matchAll(/["“„]([^"“”„]+)["”“]/gu)].map(([, words]) => termsOf(words!).map(hashOf))
  return {
    terms: termsOf(text).map(hashOf),
    phrases: phrases.filter(({ length }) => length > 1).slice(0, MAX_PHRASES),
  }
}

/** The weights of a query's terms, by term number. */
type Weights = ReadonlyMap<number, number>

/**
 * The best chunks for a query, each with its share of a score that no chunk can reach: above 0 and below 1. If any
 * chunks hold all of its phrases, only those are returned; if none does, only its words count.
 * @param allowed 1 for each chunk that may be returned; null: all may.
 */
export function searchTerms(
  postings: Postings,
  query: Query,
  max: number,
  allowed: Uint8Array | null,
): Hit[] {
  const given = weightsOf(postings, query)
  if (given.size === 0) return []
  const admitted = withPhrases(postings, query.phrases, allowed)
  const first = topOf(scored(postings, given, admitted), FEEDBACK_CHUNKS)
  if (first.length === 0) return []
  const weights = withFeedback(postings, given, first)
  const bound = boundOf(postings, weights)
  return topOf(scored(postings, weights, admitted), max).map(({ chunk, score }) => ({
    chunk,
    score: score / bound,
  }))
}

function weightsOf(postings: Postings, { terms }: Query): Weights {
  const weights = new Map<number, number>()
  for (const hash of terms) {
    const term = postings.numberOf(hash)
    if (term !== undefined) weights.set(term, (weights.get(term) ?? 0) + 1)
  }
  return normalized(weights)
}

function normalized(weights: Weights): Weights {
  let sum = 0
  for (const weight of weights.values()) sum += weight
  return new Map([...weights].map(([term, weight]) => [term, weight / sum]))
}

function idfOf(postings: Postings, term: number): number {
  const frequency = postings.frequency(term)
  return Math.log(1 + (postings.size - frequency + 0.5) / (frequency + 0.5))
}

function saturated(postings: Postings, count: number, chunk: number): number {
  const length = postings.length(chunk) / postings.averageLength
  return (count * (K1 + 1)) / (count + K1 * (1 - B + B * length))
}

function scored(postings: Postings, weights: Weights, allowed: Uint8Array | null): Float64Array {
  const { heads, chunks, counts } = postings
  const scores = new Float64Array(postings.size)
  for (const [term, weight] of weights) {
    const idf = idfOf(postings, term) * weight
    for (let at = heads[term]!; at < heads[term + 1]!; at++)
      scores[chunks[at]!]! += idf * saturated(postings, counts[at]!, chunks[at]!)
  }
  if (allowed !== null) for (let chunk = 0; chunk < scores.length; chunk++) scores[chunk]! *= allowed[chunk]!
  return scores
}

/** The limit of the score of a chunk that repeats every term endlessly. */
function boundOf(postings: Postings, weights: Weights): number {
  let bound = 0
  for (const [term, weight] of weights) bound += idfOf(postings, term) * weight * (K1 + 1)
  return bound
}

function withFeedback(postings: Postings, given: Weights, first: readonly Hit[]): Weights {
  const whole = first.reduce((sum, { score }) => sum + score, 0)
  const lent = new Map<number, number>()
  for (const { chunk, score } of first) {
    for (const [term, count] of countsOf(postings, chunk)) {
      const weight = (score / whole) * idfOf(postings, term) * saturated(postings, count, chunk)
      lent.set(term, (lent.get(term) ?? 0) + weight)
    }
  }
  const max = postings.size * MAX_OF_CHUNKS
  const says = (term: number): boolean => {
    const frequency = postings.frequency(term)
    return given.has(term) || (frequency >= FEWEST_CHUNKS && frequency <= max)
  }
  const best = [...lent]
    .filter(([term]) => says(term))
    .sort((a, b) => b[1] - a[1] || a[0] - b[0])
    .slice(0, FEEDBACK_TERMS)
  const weights = new Map([...given].map(([term, weight]) => [term, weight * (1 - FEEDBACK_SHARE)]))
  for (const [term, weight] of normalized(new Map(best)))
    weights.set(term, (weights.get(term) ?? 0) + weight * FEEDBACK_SHARE)
  return weights
}

function countsOf({ starts, terms }: Postings, chunk: number): ReadonlyMap<number, number> {
  const counts = new Map<number, number>()
  for (let at = starts[chunk]!; at < starts[chunk + 1]!; at++) {
    const term = terms[at]!
    counts.set(term, (counts.get(term) ?? 0) + 1)
  }
  return counts
}

/** The allowed chunks that contain all phrases; all allowed chunks when none does. */
function withPhrases(
  postings: Postings,
  phrases: Query['phrases'],
  allowed: Uint8Array | null,
): Uint8Array | null {
  if (phrases.length === 0) return allowed
  const sequences = phrases.map((phrase) => phrase.map((hash) => postings.numberOf(hash)))
  if (sequences.some((sequence) => sequence.includes(undefined))) return allowed
  const having = new Uint8Array(postings.size)
  let found = false
  const [rarest] = (sequences.flat() as number[]).sort(
    (a, b) => postings.frequency(a) - postings.frequency(b),
  )
  for (let at = postings.heads[rarest!]!; at < postings.heads[rarest! + 1]!; at++) {
    const chunk = postings.chunks[at]!
    if (allowed !== null && allowed[chunk] === 0) continue
    if (!sequences.every((sequence) => holds(postings, chunk, sequence as number[]))) continue
    having[chunk] = 1
    found = true
  }
  return found ? having : allowed
}

function holds({ starts, terms }: Postings, chunk: number, sequence: readonly number[]): boolean {
  const end = starts[chunk + 1]! - sequence.length
  for (let at = starts[chunk]!; at <= end; at++)
    if (terms[at] === sequence[0] && sequence.every((term, i) => terms[at + i] === term)) return true
  return false
}
