import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A public test collection: documents, questions and relevance judgements. */
export interface TestCollection {
  readonly name: string
  readonly documents: ReadonlyMap<string, string>
  readonly questions: ReadonlyMap<string, string>
  /** Maps a question and a document to a grade of relevance. 0 means not relevant. */
  readonly judgements: ReadonlyMap<string, ReadonlyMap<string, number>>
}

/** Reads the collections `cranfield`, `cacm`, `cisi` and `vaswani` in a folder, each in its published format. */
export function readCollections(folder: string): TestCollection[] {
  const text = (file: string): string => readFileSync(join(folder, file), 'latin1').replaceAll('\r', '')
  return [
    {
      name: 'cranfield',
      documents: parseTagged(
        text('cranfield/cran.all.1400.xml'),
        /<docno>(\d+)<\/docno>[\s\S]*?<text>([\s\S]*?)<\/text>/g,
      ),
      // The judgements number the questions consecutively, but the questions' own numbers have gaps.
      questions: new Map(
        [...text('cranfield/cran.qry.xml').matchAll(/<title>([\s\S]*?)<\/title>/g)].map(([, title], i) => [
          String(i + 1),
          title!,
        ]),
      ),
      judgements: parseJudgements(text('cranfield/cranqrel.trec.txt'), 2, 3),
    },
    {
      name: 'cacm',
      documents: parseMarked(text('cacm/cacm.all'), 'TWAK'),
      questions: parseMarked(text('cacm/query.text'), 'WA'),
      judgements: parseJudgements(text('cacm/qrels.text'), 1, null),
    },
    {
      name: 'cisi',
      documents: parseMarked(text('cisi/CISI.ALL'), 'TAW'),
      questions: parseMarked(text('cisi/CISI.QRY'), 'TAW'),
      judgements: parseJudgements(text('cisi/CISI.REL'), 1, null),
    },
    {
      name: 'vaswani',
      documents: parseTagged(text('vaswani/doc-text.trec'), /<DOCNO>(\d+)<\/DOCNO>([\s\S]*?)<\/DOC>/g),
      questions: parseTagged(text('vaswani/query-text.trec'), /<num>(\d+)<\/num><title>([\s\S]*?)<\/title>/g),
      judgements: parseJudgements(text('vaswani/qrels'), 2, 3),
    },
  ]
}

function parseTagged(text: string, pattern: RegExp): ReadonlyMap<string, string> {
  return new Map([...text.matchAll(pattern)].map(([, id, words]) => [id!, words!]))
}

/** Parses SMART's format, in which `.I` and a number start a record, and `.` and a letter start a field. */
function parseMarked(text: string, fields: string): ReadonlyMap<string, string> {
  const records = text.split(/^\.I /m).slice(1)
  return new Map(
    records.map((record) => {
      const parts = record.split(/^\.([A-Z])[ \t]*$/m)
      const wanted = parts.flatMap((part, i) =>
        i % 2 === 1 && fields.includes(part) ? [parts[i + 1]!.trim()] : [],
      )
      return [Number.parseInt(record, 10).toString(), wanted.join('\n\n')]
    }),
  )
}

/**
 * Parses lines that begin with the question. `document` and `grade` are column numbers; a null `grade` means that the
 * list has no grades.
 */
function parseJudgements(text: string, document: number, grade: number | null): TestCollection['judgements'] {
  const judgements = new Map<string, Map<string, number>>()
  for (const line of text.split('\n')) {
    const columns = line.trim().split(/\s+/)
    if (columns.length <= document) continue
    const question = String(Number(columns[0]))
    const of = judgements.get(question) ?? new Map<string, number>()
    judgements.set(
      question,
      of.set(String(Number(columns[document])), grade === null ? 1 : Number(columns[grade])),
    )
  }
  return judgements
}
