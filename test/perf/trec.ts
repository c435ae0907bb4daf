/**
 * Scores a ranking like trec_eval 9, with `map` over 1000 documents and `ndcg_cut_10`. Both are means over questions.
 */

export interface Ranked {
  readonly document: string
  readonly score: number
}

export interface Scores {
  readonly map: number
  readonly ndcg10: number
  /** Number of questions with judgements. */
  readonly questions: number
}

const MAP_DEPTH = 1000
const NDCG_CUT = 10

export function scoreRankings(
  runs: ReadonlyMap<string, readonly Ranked[]>,
  judgements: ReadonlyMap<string, ReadonlyMap<string, number>>,
): Scores {
  let [map, ndcg10, questions] = [0, 0, 0]
  for (const [question, run] of runs) {
    const judged = judgements.get(question)
    if (judged === undefined) continue
    questions++
    const grades = sortDocuments(run).map((document) => Math.max(0, judged.get(document) ?? 0))
    const ideal = [...judged.values()].filter((grade) => grade > 0).sort((a, b) => b - a)
    if (ideal.length === 0) continue
    map += averagePrecision(grades, ideal.length)
    ndcg10 += discountedGain(grades) / discountedGain(ideal)
  }
  return { map: map / questions, ndcg10: ndcg10 / questions, questions }
}

/** Sorts like trec_eval: only by score, as 4-byte floats. Among equal scores, the greater name comes first. */
function sortDocuments(run: readonly Ranked[]): string[] {
  return [...run]
    .sort((a, b) => Math.fround(b.score) - Math.fround(a.score) || (a.document < b.document ? 1 : -1))
    .slice(0, MAP_DEPTH)
    .map(({ document }) => document)
}

function averagePrecision(grades: readonly number[], relevant: number): number {
  let [found, sum] = [0, 0]
  for (const [i, grade] of grades.entries()) if (grade > 0) sum += ++found / (i + 1)
  return sum / relevant
}

function discountedGain(grades: readonly number[]): number {
  return grades.slice(0, NDCG_CUT).reduce((sum, grade, i) => sum + grade / Math.log2(i + 2), 0)
}
