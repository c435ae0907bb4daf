import type { Hit } from './top.ts'

/** A chunk with its ranks, from 1, in the lists that contain it. */
export interface Fused extends Hit {
  readonly lexical: number | null
  readonly vector: number | null
}

// Cormack, Clarke and Büttcher 2009, "Reciprocal Rank Fusion outperforms Condorcet".
const K = 60

/**
 * Joins two lists by reciprocal ranks; the score is 1 for what is first in both. Without vectors, the lexical list
 * keeps its own scores, which are below 1.
 */
export function fused(lexical: readonly Hit[], vector: readonly Hit[] | null, max: number): Fused[] {
  if (vector === null)
    return lexical.slice(0, max).map((hit, i) => ({ ...hit, lexical: i + 1, vector: null }))
  const found = new Map<number, { lexical: number | null; vector: number | null }>()
  for (const [i, { chunk }] of lexical.entries()) found.set(chunk, { lexical: i + 1, vector: null })
  for (const [i, { chunk }] of vector.entries())
    found.set(chunk, { lexical: found.get(chunk)?.lexical ?? null, vector: i + 1 })
  const part = (rank: number | null): number => (rank === null ? 0 : (K + 1) / (K + rank) / 2)
  return [...found]
    .map(([chunk, places]) => ({ chunk, ...places, score: part(places.lexical) + part(places.vector) }))
    .sort((a, b) => b.score - a.score || a.chunk - b.chunk)
    .slice(0, max)
}
