import type { Hit } from './top.ts'

/** A chunk with its rank (from 1) in each list; null if a list lacks the chunk. */
export interface FusedHit extends Hit {
  readonly lexical: number | null
  readonly vector: number | null
}

// Constant of the method (Cormack, Clarke and Büttcher 2009, "Reciprocal Rank Fusion outperforms Condorcet").
const RANK_CONSTANT = 60

/**
 * Fuses two ranked lists by reciprocal ranks. A chunk that is first in both lists scores 1. If `vector` is null, the
 * lexical hits keep their own scores, which are below 1.
 */
export function fuseRanks(lexical: readonly Hit[], vector: readonly Hit[] | null, max: number): FusedHit[] {
  if (vector === null)
    return lexical.slice(0, max).map((hit, i) => ({ ...hit, lexical: i + 1, vector: null }))
  const found = new Map<number, { lexical: number | null; vector: number | null }>()
  for (const [i, { chunk }] of lexical.entries()) found.set(chunk, { lexical: i + 1, vector: null })
  for (const [i, { chunk }] of vector.entries())
    found.set(chunk, { lexical: found.get(chunk)?.lexical ?? null, vector: i + 1 })
  const computeContribution = (rank: number | null): number =>
    rank === null ? 0 : (RANK_CONSTANT + 1) / (RANK_CONSTANT + rank) / 2
  return [...found]
    .map(([chunk, ranks]) => ({
      chunk,
      ...ranks,
      score: computeContribution(ranks.lexical) + computeContribution(ranks.vector),
    }))
    .sort((a, b) => b.score - a.score || a.chunk - b.chunk)
    .slice(0, max)
}
