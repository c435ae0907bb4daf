import type { TestCollection } from './collections.ts'
import { queryRows } from './stack.ts'
import { type Ranked, type Scores, scoreRankings } from './trec.ts'

/** Checks the ranking of documents of several chunks against BM25 over whole documents, without feedback. */

// A section of this length is a chunk of its own.
const SECTION_CHARACTERS = 420
// The usual values.
const K1 = 1.2
const B = 0.75

/** Returns the collection with documents in Markdown, cut into sections that become chunks. */
export function cutIntoSections(collection: TestCollection): TestCollection {
  const documents = new Map(
    [...collection.documents].map(([id, text]) => {
      const sections = text.match(new RegExp(`[^]{1,${SECTION_CHARACTERS}}[^\\s]*(?:\\s+|$)`, 'g')) ?? []
      return [id, sections.map((section, i) => `# ${i + 1}\n\n${section.trim()}\n`).join('\n')]
    }),
  )
  return { ...collection, name: `${collection.name} in sections`, documents }
}

/** Ranks the documents of an indexed collection of one file each by BM25 over their terms. */
export async function rankByPlainBm25(
  url: string,
  { name, questions, judgements }: TestCollection,
): Promise<Scores> {
  const rows = await queryRows(
    url,
    `select regexp_replace(source, '.*/|[.].*', '', 'g') as id, array_agg(term) as terms
     from rag_collection o join rag_file f on f.collection_id = o.id join rag_chunk c on c.file_id = f.id, unnest(c.terms) term
     where o.name = $1 group by source`,
    [name],
  )
  const documents = rows.map((row) => ({ id: String(row.id), terms: row.terms as number[] }))
  const averageLength = documents.reduce((sum, { terms }) => sum + terms.length, 0) / documents.length
  const frequencies = new Map<number, number>()
  for (const { terms } of documents)
    for (const term of new Set(terms)) frequencies.set(term, (frequencies.get(term) ?? 0) + 1)
  const runs = new Map<string, readonly Ranked[]>()
  for (const [question, text] of questions) {
    const [row] = await queryRows(url, `select terms from rag_terms($1, 'english_stem')`, [text])
    const wanted = Map.groupBy(row!.terms as number[], (term) => term)
    const score = (terms: readonly number[]): number => {
      let sum = 0
      for (const [term, { length: weight }] of wanted) {
        const count = terms.filter((one) => one === term).length
        const frequency = frequencies.get(term) ?? 0
        const idf = Math.log(1 + (documents.length - frequency + 0.5) / (frequency + 0.5))
        sum += (weight * idf * count * (K1 + 1)) / (count + K1 * (1 - B + (B * terms.length) / averageLength))
      }
      return sum
    }
    const ranked = documents.map(({ id, terms }) => ({ document: id, score: score(terms) }))
    if (text.trim() !== '')
      runs.set(
        question,
        ranked.filter((one) => one.score > 0),
      )
  }
  return scoreRankings(runs, judgements)
}
