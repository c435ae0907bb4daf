import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDatabase } from '../../sql/db.ts'
import { createReader } from '../../sql/reads/reader.ts'
import { createSearcher } from '../../tasks/rag/searcher.ts'
import { Vectors } from '../../tasks/rag/vectors.ts'
import { cutIntoSections, rankByPlainBm25 } from './articles.ts'
import { readCollections, type TestCollection } from './collections.ts'
import type { Finding, Measured, Target } from './report.ts'
import type { Stack } from './stack.ts'
import { type Ranked, type Scores, scoreRankings } from './trec.ts'

/**
 * `npm run bench -- retrieval DIR` indexes public collections for keyword search through a real edge and worker. It
 * scores the ranking of all documents as trec_eval does. A document's score is that of its best chunk.
 */

// Published scores of BM25 with feedback, in percent.
const BASELINES: Readonly<Record<string, { readonly map: number; readonly ndcg10?: number }>> = {
  cranfield: { map: 31.5, ndcg10: 36.6 },
  cacm: { map: 35.3 },
  cisi: { map: 23.8 },
  vaswani: { map: 30.2 },
}
const TUNING_COLLECTIONS = ['cranfield', 'vaswani']
// The documents of vaswani are too short for several chunks.
const IN_SECTIONS = ['cranfield', 'cacm', 'cisi']
// Several chunks of a document can rank, so the search must return more chunks than documents are needed.
const SEARCH_DEPTH = 3000
const QUERIES = 2000
const VECTORS = 100_000
const DIMENSIONS = 384

export async function measureRetrieval(stack: Stack): Promise<Measured> {
  const folder = process.argv[3]
  if (folder === undefined) throw new Error('Usage: npm run bench -- retrieval DIR')
  const root = mkdtempSync(join(tmpdir(), 'millrace-bench-rag-'))
  chmodSync(root, 0o755)
  try {
    const collections = readCollections(folder)
    for (const collection of collections) writeDocuments(root, collection)
    const url = await stack.createDatabase()
    const env = { RAG_ROOT: root, RAG_EMBEDDINGS: 'lexical', OPEN_AREAS: 'rag', AUTH_LEVEL: 'none' }
    const edge = await stack.edge(url, env)
    await stack.worker(url, { WORKER_QUEUES: 'rag', ...env })
    const findings: Finding[] = []
    const rates: number[] = []
    for (const collection of collections) {
      rates.push(await indexCollection(edge.port, collection))
      findings.push(...findingsOf(collection.name, await rankDocuments(url, collection)))
      if (IN_SECTIONS.includes(collection.name))
        findings.push(await measureSections({ url, port: edge.port, root }, collection))
    }
    // The first run is excluded, because it also starts the thread.
    findings.push({
      name: 'indexing',
      unit: 'chunks/s',
      values: rates.slice(1),
      target: { of: 'value', atLeast: 500 },
    })
    findings.push(...(await measureQueries(edge.port, collections.at(-1)!)))
    findings.push(measureNearest())
    return {
      rounds: 1,
      findings,
      notes: [
        `Tuned on ${TUNING_COLLECTIONS.join(' and ')} alone; one configuration for all.`,
        `Queries: ${QUERIES} from vaswani over HTTP on one connection, ${collections.at(-1)!.documents.size} chunks.`,
      ],
    }
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
}

function writeDocuments(root: string, { name, documents }: TestCollection, extension = 'txt'): void {
  mkdirSync(join(root, name))
  for (const [id, text] of documents) writeFileSync(join(root, name, `${id}.${extension}`), text)
}

/** Compares the ranking of documents of several chunks with that of whole documents without feedback. */
async function measureSections(
  { url, port, root }: { readonly url: string; readonly port: number; readonly root: string },
  collection: TestCollection,
): Promise<Finding> {
  const cut = cutIntoSections(collection)
  writeDocuments(root, cut, 'md')
  await indexCollection(port, cut)
  return {
    name: `${cut.name}: nDCG@10`,
    unit: '%',
    values: [(await rankDocuments(url, cut)).ndcg10 * 100],
    reference: {
      name: 'BM25 of whole documents',
      values: [(await rankByPlainBm25(url, collection)).ndcg10 * 100],
    },
    // With 52 to 225 questions, the means differ by one percent by chance.
    target: { of: 'ratio', atLeast: 0.98 },
  }
}

/** Indexes a collection and returns the chunks per second, from the request to the answer. */
async function indexCollection(port: number, { name }: TestCollection): Promise<number> {
  const answer = await post(port, '/rag/index', { path: name, collection_name: name })
  const { total_chunks, duration_ms } = answer as { total_chunks: number; duration_ms: number }
  return total_chunks / (duration_ms / 1000)
}

async function rankDocuments(url: string, { name, questions, judgements }: TestCollection): Promise<Scores> {
  const db = createDatabase({ url, applicationName: 'bench', size: 1, validateRows: false })
  const reader = await createReader({ url, applicationName: 'bench' })
  const searcher = createSearcher(db, reader)
  const runs = new Map<string, readonly Ranked[]>()
  for (const [question, query] of questions) {
    const search = {
      collection: name,
      viewer: { ownerId: null, seesAll: true },
      query,
      topK: SEARCH_DEPTH,
      filter: null,
      vector: null,
    }
    const best = new Map<string, number>()
    for (const { metadata, score } of query.trim() === '' ? [] : await searcher.search(search)) {
      const document = String(metadata.file_name).replace(/\.\w+$/, '')
      if (!best.has(document)) best.set(document, score)
    }
    runs.set(
      question,
      [...best].map(([document, score]) => ({ document, score })),
    )
  }
  await Promise.all([reader.close(), db.close()])
  return scoreRankings(runs, judgements)
}

function findingsOf(name: string, { map, ndcg10, questions }: Scores): Finding[] {
  const baseline = BASELINES[name]!
  const atLeast = (value: number | undefined): { target?: Target } =>
    value === undefined
      ? {}
      : { target: { of: 'value', atLeast: value, text: `BM25 with feedback: ${value}` } }
  return [
    {
      name: `${name}: MAP (${questions} questions)`,
      unit: '%',
      values: [map * 100],
      ...atLeast(baseline.map),
    },
    { name: `${name}: nDCG@10`, unit: '%', values: [ndcg10 * 100], ...atLeast(baseline.ndcg10) },
  ]
}

async function measureQueries(port: number, { name, questions }: TestCollection): Promise<Finding[]> {
  const queries = [...questions.values()]
  const times: number[] = []
  for (let n = 0; n < QUERIES + 50; n++) {
    const startedAt = performance.now()
    await post(port, '/rag/search', {
      query: queries[n % queries.length]!.trim(),
      collection_name: name,
      top_k: 10,
    })
    // The first 50 queries warm up the code.
    if (n >= 50) times.push(performance.now() - startedAt)
  }
  times.sort((a, b) => a - b)
  const at = (share: number): number => times[Math.floor(times.length * share)]!
  return [
    { name: 'query p50', unit: 'ms', values: [at(0.5)] },
    { name: 'query p99', unit: 'ms', values: [at(0.99)], target: { of: 'value', atMost: 30 } },
  ]
}

/** Measures the exact search among 100,000 vectors. */
function measureNearest(): Finding {
  const floats = Float32Array.from({ length: VECTORS * DIMENSIONS }, (_, i) => Math.sin(i * 0.7))
  const rows = Array.from({ length: VECTORS }, (_, chunk) => ({
    chunk,
    floats: floats.subarray(chunk * DIMENSIONS, (chunk + 1) * DIMENSIONS),
  }))
  const vectors = new Vectors(DIMENSIONS, rows)
  const values: number[] = []
  for (let round = 0; round < 20; round++) {
    const startedAt = performance.now()
    const [first] = vectors.findNearest(rows[round * 777]!.floats, 200, null)
    if (round >= 5) values.push(performance.now() - startedAt)
    if (first === undefined) throw new Error('No nearest vector was found')
  }
  return {
    name: `exact search of ${VECTORS} vectors of ${DIMENSIONS}`,
    unit: 'ms',
    values,
    target: { of: 'value', atMost: 60 },
  }
}

async function post(port: number, path: string, body: object): Promise<unknown> {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
  return answer.json()
}
