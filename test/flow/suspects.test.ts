import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { ALONE_FROM_DEATHS, MAX_CRASHES } from '../../sql/jobs/jobs.ts'
import { createTestDatabase } from '../database.ts'
import { type Child, launchProcess } from '../service.ts'
import { until } from '../until.ts'
import * as crash from './crash.ts'
import { startReader } from './reader.ts'

/** A worker dies while it runs several jobs, one of which may be the cause. The others must not fail for it. */

const BYSTANDERS = 2
const { url, query } = await createTestDatabase()
const client = await startReader(url)

const addTask = async (duration_ms: number): Promise<string> => {
  const args = { operations: 1, duration_ms }
  const json = { task_name: 'io_simulation_task', queue_type: 'load_test', args }
  const answer = (await (await client.post('/api/v1/tasks/enqueue', json)).json()) as { task_id: string }
  return answer.task_id
}
/** Shortens the next attempts of jobs. */
const shortenJobs = (ids: readonly string[]) =>
  query(`update job set payload = jsonb_set(payload, '{duration_ms}', '1') where id = any($1)`, [ids])
/** The worker that was started last. */
let worker: Child | undefined
after(() => worker?.kill())
const startWorker = async (): Promise<Child> => {
  worker = await launchProcess('worker', url, { LEASE_SECONDS: '1', WORKER_QUEUES: 'load_test' })
  return worker
}
const waitForAttempt = (id: string, attempt: number) =>
  until(
    `attempt ${attempt} runs`,
    async () => {
      const row = await crash.readJobRow(query, id)
      return row.status === 'running' && row.attempt === attempt
    },
    60_000,
  )

/** Returns the id of the attempt's isolated process from the worker's log; null if there is none. */
function findIsolatedPid(worker: Child, jobId: string, attempt: number): number | null {
  for (const line of worker.log) {
    if (!line.includes('runs in an isolated process')) continue
    const entry = JSON.parse(line) as { jobId: string; attempt: number; isolatedPid: number }
    if (entry.jobId === jobId && entry.attempt === attempt) return entry.isolatedPid
  }
  return null
}

test('after two deaths a job runs isolated; the one that crashes again fails, and its bystanders and the worker survive', async () => {
  const killer = await addTask(60_000)
  const neighbours = await Promise.all(Array.from({ length: BYSTANDERS }, () => addTask(60_000)))
  // The whole worker dies twice, so each of its jobs is a suspect.
  for (const attempt of [1, 2]) {
    const { kill } = await startWorker()
    await waitForAttempt(killer, attempt)
    for (const id of neighbours) await waitForAttempt(id, attempt)
    await kill()
  }
  const last = await startWorker()
  // The jobs now share an isolated process. Its death proves none guilty.
  const killIsolated = async (attempt: number, interruptions: number): Promise<void> => {
    await waitForAttempt(killer, attempt)
    const pid = await until(
      'the job has an isolated process',
      () => findIsolatedPid(last, killer, attempt),
      60_000,
    )
    if (attempt === 3)
      for (const id of neighbours)
        await until('it shares the process', () => findIsolatedPid(last, id, attempt) === pid, 60_000)
    process.kill(pid, 'SIGKILL')
    await until(
      'the interruption is recorded',
      async () => (await crash.readJobRow(query, killer)).interruptions === interruptions,
      30_000,
    )
  }
  await killIsolated(3, 3)
  // The bystanders run again next to the killer, and succeed.
  await shortenJobs(neighbours)
  await until(
    'the bystanders are done',
    async () => {
      const [row] = await query(`select count(*)::int as n from job where id = any($1) and status = 'done'`, [
        neighbours,
      ])
      return row!.n === BYSTANDERS
    },
    120_000,
  )
  // The job is alone now, so each death counts.
  for (let crashes = 1; crashes <= MAX_CRASHES; crashes++)
    await killIsolated(3 + crashes, ALONE_FROM_DEATHS + crashes)
  const [row] = await query('select status, error_code, error_detail, attempt from job where id = $1', [
    killer,
  ])
  assert.deepEqual(row, {
    status: 'failed',
    error_code: 'job.crashed',
    error_detail: 'The job was given up after 3 crashes of its isolated process',
    attempt: 3 + MAX_CRASHES,
  })
  assert.equal(last.process.exitCode, null)
})

test('a job whose workers are killed for other reasons never fails', async () => {
  const innocent = await addTask(60_000)
  for (const attempt of [1, 2, 3, 4]) {
    await waitForAttempt(innocent, attempt)
    if (attempt === 4) await shortenJobs([innocent])
    await worker!.kill()
    await startWorker()
  }
  assert.equal((await crash.waitForJob(query, innocent)).status, 'done')
})
