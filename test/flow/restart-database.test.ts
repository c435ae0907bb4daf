import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import pg from 'pg'
import { startEmbedded } from '../../sql/server/embedded/embedded.ts'
import { migrate } from '../../sql/server/migrate.ts'
import type { Child, Stream } from '../service.ts'
import { until } from '../until.ts'
import * as crash from './crash.ts'
import { startReader } from './reader.ts'

// The tests restart this database, so it cannot be the shared one.
const dataDir = await mkdtemp(join(tmpdir(), 'millrace-restart-'))
const database = await startEmbedded({ dataDir, ephemeral: true, settings: { synchronous_commit: 'on' } })
const { url } = database
await migrate(url)
const pool = new pg.Pool({ connectionString: url, max: 2 })
pool.on('error', () => {})
after(async () => {
  await pool.end()
  await database.stop()
  await rm(dataDir, { recursive: true, force: true })
})

/** Retries a query until the server answers. */
function query(text: string, values: readonly unknown[] = []): Promise<Record<string, unknown>[]> {
  const ask = async (): Promise<Record<string, unknown>[] | null> => {
    try {
      return (await pool.query(text, [...values])).rows ?? []
    } catch (error) {
      if (error instanceof pg.DatabaseError && !error.code?.startsWith('57P')) throw error
      return null
    }
  }
  return until('the database answers', ask, 20_000)
}

// The document outlasts all restarts.
await crash.recordWrites(query, 5)
// A long lease, so that none expires on a busy machine. partition.test.ts covers outages that outlast a lease.
const lease = { LEASE_SECONDS: '10' }
const workers = await Promise.all(['first', 'second'].map((name) => crash.startWorker(url, name, lease)))
const client = await startReader(url)
const PAGES = 200

// SIGINT is PostgreSQL's fast shutdown, as in an orderly restart; SIGKILL crashes the server. There are more outages
// than tries per job, because an outage must not count as a failed try.
const SIGNALS = ['SIGINT', 'SIGKILL', 'SIGKILL', 'SIGINT'] as const

test(`reads a document across ${SIGNALS.join(', ')} of the database`, async (t) => {
  const id = await crash.uploadText(client, PAGES, SIGNALS.join())
  const jobId = await crash.extract(client, id)
  const stream = await client.stream(`/api/v1/jobs/${jobId}/events`)
  const all = await client.stream('/api/v1/jobs/events')
  const waiting = client.post(`/api/v1/documents/${id}/extract`)
  for (const [n, signal] of SIGNALS.entries()) {
    await crash.waitForPages(query, jobId, 8 * (n + 1))
    await restart(signal)
    const upAt = performance.now()
    await until('the edge can read', async () => (await client.fetch(`/api/v1/jobs/${jobId}`)).status === 200)
    const again = `/api/v1/documents/${id}/extract?background=true`
    await until('the edge can write', async () => (await client.post(again)).status === 202)
    t.diagnostic(`reads and writes ${Math.round(performance.now() - upAt)} ms after the start`)
  }
  await assertDocumentRead(id, jobId, stream, SIGNALS.length)
  const answer = await waiting
  assert.deepEqual([answer.status, await answer.json()], [200, { read: PAGES, unread: 0, skipped: 0 }])
  await all.until('the stream of all jobs shows the end', (frames) =>
    frames.some(({ data }) => data.job_id === jobId && data.status === 'done'),
  )
  assert.ok(!all.ended && !stream.broken)
  all.close()
  await assertWorkersAlive()
})

/** Stops the server and waits until it has been restarted. */
async function restart(signal: 'SIGINT' | 'SIGKILL'): Promise<void> {
  const pid = readPostmasterPid()
  assert.notEqual(pid, 0, 'a signal to process 0 reaches the whole process group')
  process.kill(pid, signal)
  await until('a new server is running', () => ![0, pid].includes(readPostmasterPid()))
}

async function assertDocumentRead(id: number, jobId: string, stream: Stream, outages: number): Promise<void> {
  const frames = await crash.readWholeStream(stream)
  assert.deepEqual(crash.assertComplete(frames).result, { read: PAGES, unread: 0, skipped: 0 })
  await crash.assertGapless(query, jobId, frames)
  await crash.assertPagesOnce(query, jobId, PAGES)
  const pages = (await (await client.fetch(`/api/v1/documents/${id}/pages`)).json()) as { status: string }[]
  assert.equal(pages.filter(({ status }) => status === 'read').length, PAGES)
  // Each outage interrupts at most one attempt, and none counts as a failed try.
  const { attempt, tries, interruptions } = await crash.readJobRow(query, jobId)
  assert.ok(attempt <= 1 + outages, `the job took ${attempt} attempts`)
  assert.deepEqual({ tries, interruptions }, { tries: 1, interruptions: 0 })
}

/** Asserts that no worker was declared dead: both keep their first lease and run new jobs. */
async function assertWorkersAlive(): Promise<void> {
  const areLeasesLive = async (): Promise<boolean> => {
    const rows = await query('select id from worker_lease where expires_at > now()')
    return workers.every(({ ready }) => rows.some(({ id }) => id === ready.lease))
  }
  await until('both workers renew their leases', areLeasesLive, 30_000)
  assert.deepEqual(workers.filter(hasLostLease), [])
  for (const title of ['one more', 'and another']) {
    const jobId = await crash.extract(
      client,
      await crash.uploadText(client, 2, `${title} ${performance.now()}`),
    )
    assert.equal((await crash.waitForJob(query, jobId)).status, 'done')
  }
}

function hasLostLease({ log }: Child): boolean {
  return log.some((line) => line.includes('Rescued jobs from a worker') || line.includes('The lease is lost'))
}

/** Returns the process id of the server; 0 if it is down. */
function readPostmasterPid(): number {
  try {
    return Number.parseInt(readFileSync(join(dataDir, 'postgres/postmaster.pid'), 'utf8'), 10) || 0
  } catch {
    return 0
  }
}
