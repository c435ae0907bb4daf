/** The terms of a text in one dictionary, as `rag_terms` returns them. */
export interface TextTerms {
  /** The terms, in order. */
  readonly terms: readonly number[]
  /** Terms that count only if nothing else is asked. */
  readonly common_terms: readonly number[]
}

/** A query as terms. */
export interface Query {
  /** The number of occurrences of each term in the query. */
  readonly terms: ReadonlyMap<number, number>
  /** The sequences of each phrase, one for each dictionary. The terms of a sequence occur one after the other. */
  readonly phrases: readonly (readonly (readonly number[])[])[]
}

// Limited because each phrase is searched in many chunks.
const MAX_PHRASES = 8

/** Returns a query and its phrases (texts in quotation marks). Ignores all phrases after the first 8. */
export function splitQuery(text: string): readonly string[] {
  const phrases = [...text.matchAll(/["“„]([^"“”„]+)["”“]/gu)].map(([, words]) => words!)
  return [text, ...phrases.slice(0, MAX_PHRASES)]
}

/** Builds a query from the terms of the texts of `splitQuery`, in each dictionary. Ignores phrases of one term. */
export function buildQuery([all = [], ...phrases]: readonly (readonly TextTerms[])[]): Query {
  const terms = new Map<number, number>()
  for (const analyzed of all)
    for (const [term, count] of Map.groupBy(analyzed.terms, (term) => term))
      terms.set(term, Math.max(terms.get(term) ?? 0, count.length))
  if (terms.size === 0)
    for (const analyzed of all) for (const term of analyzed.common_terms) terms.set(term, 1)
  return {
    terms,
    phrases: phrases
      .map((sequences) => sequences.map((sequence) => sequence.terms).filter(({ length }) => length > 1))
      .filter(({ length }) => length > 0),
  }
}
