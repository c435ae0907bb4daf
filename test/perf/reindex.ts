import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Measured } from './report.ts'
import { queryRows, type Stack } from './stack.ts'

const FILES = Number(process.env.BENCH_FILES ?? 1000)
const PARAGRAPHS = 12
const CHANGED_FILES = FILES / 20
const RUNS = Number(process.env.BENCH_RUNS ?? 100)
const QUERIES = Number(process.env.BENCH_SAMPLES ?? 500)
const COLLECTION = 'churn'

/**
 * Indexes 1,000 files 100 times and changes a twentieth each time. Query times must stay close to those of a collection
 * that was indexed once, and table sizes within half of it.
 */
export async function reindex(stack: Stack): Promise<Measured> {
  const root = mkdtempSync(join(tmpdir(), 'millrace-bench-rag-'))
  chmodSync(root, 0o755)
  try {
    const churned = await startServices(stack, root)
    for (let file = 0; file < FILES; file++) writeFiles(root, file, 0)
    await post(churned.port, '/rag/index', { path: '.', collection_name: COLLECTION })
    const seconds: number[] = []
    for (let run = 1; run <= RUNS; run++) {
      for (let i = 0; i < CHANGED_FILES; i++) writeFiles(root, (run * CHANGED_FILES + i * 7) % FILES, run)
      const startedAt = performance.now()
      await post(churned.port, '/rag/index', { path: '.', collection_name: COLLECTION })
      seconds.push((performance.now() - startedAt) / 1000)
    }
    const fresh = await startServices(stack, root)
    await post(fresh.port, '/rag/index', { path: '.', collection_name: COLLECTION })
    const times = { churned: [] as number[], fresh: [] as number[] }
    // The collections alternate, so that both run under the same conditions.
    for (let n = 0; n < QUERIES + 20; n++) {
      for (const [name, { port }] of [
        ['churned', churned],
        ['fresh', fresh],
      ] as const) {
        const startedAt = performance.now()
        await post(port, '/rag/search', {
          query: `${word(n * 31)} ${word(n * 17)}`,
          collection_name: COLLECTION,
        })
        if (n >= 20) times[name].push(performance.now() - startedAt)
      }
    }
    const [after, before] = [await readTableSize(churned.url), await readTableSize(fresh.url)]
    return {
      rounds: 1,
      findings: [
        {
          name: 'size of the tables',
          unit: 'MiB',
          values: [after],
          reference: { name: 'fresh', values: [before] },
          // A run writes new versions of most postings before it can free the old ones.
          target: { of: 'ratio', atMost: 1.5 },
        },
        {
          name: 'query p99',
          unit: 'ms',
          values: [p99(times.churned)],
          reference: { name: 'fresh', values: [p99(times.fresh)] },
          target: { of: 'ratio', atMost: 1.1 },
        },
        { name: 'a run', unit: 's', values: seconds },
      ],
      notes: [
        `${RUNS} runs over ${FILES} files of ${PARAGRAPHS} paragraphs, ${CHANGED_FILES} of them changed each time.`,
      ],
    }
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
}

async function startServices(
  stack: Stack,
  root: string,
): Promise<{ readonly url: string; readonly port: number }> {
  const url = await stack.createDatabase()
  const env = { RAG_ROOT: root, RAG_EMBEDDINGS: 'lexical', OPEN_AREAS: 'rag', AUTH_LEVEL: 'none' }
  const { port } = await stack.edge(url, env)
  await stack.worker(url, { WORKER_QUEUES: 'rag', ...env })
  return { url, port }
}

const word = (n: number): string => `w${(n * 7919) % 5000}`

function writeFiles(root: string, file: number, version: number): void {
  const paragraph = (p: number): string =>
    Array.from({ length: 60 }, (_, i) => word(file * 131 + p * 61 + i * i + version * 977)).join(' ')
  const text = Array.from({ length: PARAGRAPHS }, (_, p) => paragraph(p)).join('\n\n')
  writeFileSync(join(root, `${file}.txt`), text)
}

/** Returns the size of the tables with indexes and TOAST, in MiB. */
async function readTableSize(url: string): Promise<number> {
  const [row] = await queryRows(
    url,
    `select sum(pg_total_relation_size(name::regclass)) as bytes from unnest(array['rag_collection', 'rag_file', 'rag_chunk', 'rag_posting', 'rag_vector']) name`,
  )
  return Number(row!.bytes) / 2 ** 20
}

function p99(times: readonly number[]): number {
  return [...times].sort((a, b) => a - b)[Math.floor(times.length * 0.99)]!
}

async function post(port: number, path: string, body: object): Promise<void> {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
  await answer.arrayBuffer()
}
