import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { z } from 'zod'
import { createDatabase, sql } from '../../sql/db.ts'
import { createTestDatabase } from '../database.ts'
import { buildTextPdf } from '../pdfs.ts'
import { Client, runScript, startProcess } from '../service.ts'
import { type PoolerOptions, startPooler } from '../standins/pooler.ts'
import { until } from '../until.ts'
import * as crash from './crash.ts'

/** The whole service runs behind a pooler in transaction mode. Only LISTEN bypasses the pooler. */

const { url, query } = await createTestDatabase()

async function addPooler(options: Partial<PoolerOptions> = {}) {
  const started = await startPooler({ url, size: 3, ...options })
  after(() => started.stop())
  return started
}

const mainPooler = await addPooler()
const env = { DATABASE_URL_UNPOOLED: url, WORKER_QUEUES: 'documents,load_test' }
const [edge, worker] = await Promise.all([
  startProcess('edge', mainPooler.url, { ...env, OPENAI_API_KEY: 'k' }),
  startProcess('worker', mainPooler.url, { ...env, WORKER_THREADS: '2' }),
])
const client = new Client(edge.ready.port!)
await client.register('reader@example.com')

async function enqueue(body: object): Promise<string> {
  const response = await client.post('/api/v1/tasks/enqueue', { queue_type: 'load_test', ...body })
  assert.equal(response.status, 202)
  return ((await response.json()) as { task_id: string }).task_id
}

test('extracts a PDF, streams its pages and finds them', async () => {
  const { id } = (await (await client.upload(await buildTextPdf(7), 'report.pdf')).json()) as { id: number }
  const stream = await client.stream(`/api/v1/jobs/${await crash.extract(client, id)}/events`)
  assert.deepEqual(crash.assertComplete(await stream.waitForEnd()).result, { read: 7, unread: 0, skipped: 0 })
  const found = await client.fetch('/api/v1/documents?search=%22page%203%20of%207%22')
  assert.equal(((await found.json()) as { total: number }).total, 1)
  assert.ok(mainPooler.moves > 50, 'clients went from one server connection to another')
  const connected = await query(
    `select application_name as name, count(*)::int as n from pg_stat_activity where datname = current_database()
     and application_name not in ('test', '') group by 1 order by 1`,
  )
  assert.deepEqual(connected, [
    { name: 'millrace-edge-listen', n: 1 },
    { name: 'millrace-queue-listen', n: 1 },
    { name: 'pooler', n: 3 },
  ])
})

test('runs tasks once, even if the pooler restarts and the worker dies', async () => {
  const id = await enqueue({
    task_name: 'load_test_orchestrator',
    args: { task_name: 'io_simulation_task', count: 300, args: { operations: 1, duration_ms: 20 } },
  })
  const countDone = async (): Promise<number> => {
    const [row] = await query(
      "select count(*)::int as n from job where name like '%io_simulation%' and status = 'done'",
    )
    return row!.n as number
  }
  await until('some tasks are done', async () => (await countDone()) > 0)
  mainPooler.restart()
  await worker.kill()
  await startProcess('worker', mainPooler.url, { ...env, WORKER_THREADS: '2' })
  const { status, result } = await crash.waitForJob(query, id)
  assert.equal(status, 'done')
  assert.deepEqual(pick(result as Report), { completed: 300, failed: 0 })
  assert.equal(await countDone(), 300)
})

test('concurrent requests do not deadlock on pooled connections', async () => {
  // Each request reads within a transaction, and the requests outnumber the pooled connections.
  const asked = Array.from({ length: 12 }, () =>
    client.post('/api/v1/ai/chat?background=true', { message: 'Hello' }),
  )
  for (const { status } of await Promise.all(asked)) assert.equal(status, 202)
})

interface Report {
  readonly completed: number
  readonly failed: number
}
const pick = ({ completed, failed }: Report): Report => ({ completed, failed })

test('sets limits per transaction where the pooler rejects them per connection', async () => {
  const options = { url: mainPooler.url, applicationName: 'limits', size: 1, validateRows: true }
  const pooled = createDatabase({ ...options, pooled: true })
  const limits = sql.type(z.object({ limits: z.string() }))`
    select current_setting('statement_timeout') || ' ' || current_setting('idle_in_transaction_session_timeout') as limits`
  try {
    assert.deepEqual(await pooled.transaction((tx) => tx.one(limits)), { limits: '27s 1min' })
    assert.deepEqual(await pooled.one(limits), { limits: '0 0' })
  } finally {
    await pooled.close()
  }
  const direct = createDatabase(options)
  await assert.rejects(direct.one(limits), { code: 'database.down' })
  await direct.close()
})

test('reports an unsuitable pooler at the start', async () => {
  const assertRefused = async (
    kind: 'edge' | 'worker',
    url: string,
    env: Record<string, string>,
    why: RegExp,
  ) => {
    const { message } = await startProcess(kind, url, env).then(
      () => assert.fail('it started'),
      (error: Error) => error,
    )
    assert.match(message, /ended with 2:/)
    assert.match(message, why)
  }
  const [mixing, mapping] = [
    await addPooler({ size: 1, translatesNames: false }),
    await addPooler({ size: 1 }),
  ]
  await assertRefused(
    'edge',
    mixing.url,
    env,
    /PgBouncer needs version 1.21 and max_prepared_statements above 0/,
  )
  await assertRefused('worker', mapping.url, {}, /DATABASE_URL_UNPOOLED must name a direct connection/)
  await assertRefused(
    'edge',
    mapping.url,
    { DATABASE_URL_UNPOOLED: mixing.url },
    /where LISTEN receives nothing/,
  )
  const release = await runScript('tasks/migrate-main.ts', { DATABASE_URL: mapping.url, NODE_ENV: 'test' })
  assert.equal(release.status, 1)
  assert.match(release.stderr, /DATABASE_URL_UNPOOLED must name a direct connection/)
})
