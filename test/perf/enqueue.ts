import { runMigrations } from 'graphile-worker'
import { createQueuePool } from '../../sql/driver.ts'
import { startChild } from './children.ts'
import { type LoadResult, ORDINARY, requestText, startGenerator } from './load/load.ts'
import type { Measured } from './report.ts'
import { ask, type Stack, signUp, storeDocuments } from './stack.ts'

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5)
const DOCUMENTS = 60_000

/** POSTs that each add a job, answered after its commit, against one `add_job` per POST behind nothing else. */
export async function enqueue(stack: Stack): Promise<Measured> {
  const url = await stack.database()
  const edge = await stack.edge(url)
  const account = await signUp(edge.port)
  const [first, last] = await storeDocuments(url, account.id, DOCUMENTS)
  const referenceUrl = await stack.emptyDatabase()
  await migrateQueue(referenceUrl)
  const reference = await startChild(new URL('./servers/add-job.ts', import.meta.url), {
    DATABASE_URL: referenceUrl,
  })
  const generator = await startGenerator()
  const [head = '', tail = ''] = requestText(
    'POST',
    '/api/v1/documents/{id}/extract?background=true',
    account.token,
  ).split('{id}')

  let next = first
  const load = async (port: number, pid: number): Promise<LoadResult> => {
    if (next + 10_000 > last) throw new Error('More documents are needed')
    const result = await generator.run({
      ...ORDINARY,
      port,
      head,
      tail,
      ids: [next, last],
      status: 202,
      serverPids: [pid],
      postmaster: stack.postmaster,
    })
    next += result.answered
    return result
  }
  const ours: LoadResult[] = []
  const theirs: LoadResult[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const turns = [
      async () => ours.push(await load(edge.port, edge.pid)),
      async () => theirs.push(await load(reference.ready.port!, reference.pid)),
    ]
    for (const turn of round % 2 === 0 ? turns : turns.reverse()) await turn()
  }
  await generator.stop()
  await reference.stop()
  await verify(url, referenceUrl, ours, theirs)
  return summary(ours, theirs)
}

function summary(ours: readonly LoadResult[], theirs: readonly LoadResult[]): Measured {
  const pair = (name: string, unit: string, of: (result: LoadResult) => number) => ({
    name,
    unit,
    values: ours.map(of),
    reference: { name: 'bare uWS, one add_job per POST', values: theirs.map(of) },
  })
  return {
    rounds: ROUNDS,
    findings: [
      pair('POSTs that add a job', 'requests/s', ({ perSecond }) => perSecond),
      pair('p50', 'ms', ({ p50 }) => p50),
      pair('p99', 'ms', ({ p99 }) => p99),
      pair('CPU of the server', 'µs/request', ({ cpuMicroseconds }) => cpuMicroseconds.server),
      pair('CPU of PostgreSQL', 'µs/request', ({ cpuMicroseconds }) => cpuMicroseconds.postgres),
    ],
    notes: [
      'Every POST was answered with 202 and is one job in the database; 64 connections, no worker running.',
    ],
    details: { ours, theirs },
  }
}

async function verify(
  url: string,
  referenceUrl: string,
  ours: readonly LoadResult[],
  theirs: readonly LoadResult[],
): Promise<void> {
  const answered = (results: readonly LoadResult[]): number =>
    results.reduce((sum, result) => sum + result.answered, 0)
  const [row] = await ask(
    url,
    `select (select count(*)::int from job where name = 'documents.extract') as jobs, (select count(*)::int from graphile_worker.jobs) as deliveries`,
  )
  const [reference] = await ask(referenceUrl, 'select count(*)::int as jobs from graphile_worker.jobs')
  if (
    row!.jobs !== answered(ours) ||
    row!.deliveries !== answered(ours) ||
    reference!.jobs !== answered(theirs)
  ) {
    throw new Error(
      `Jobs do not match answers: ${JSON.stringify({ row, ours: answered(ours), reference, theirs: answered(theirs) })}`,
    )
  }
}

async function migrateQueue(url: string): Promise<void> {
  const pgPool = createQueuePool({ url, applicationName: 'bench', size: 1, onError: () => {} })
  await runMigrations({ pgPool })
  await pgPool.end()
}
