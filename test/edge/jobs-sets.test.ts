import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../until.ts'
import { startEdgeAndDatabase } from './harness.ts'
import { startOwnWorker } from './own-worker.ts'

/**
 * Jobs are cancelled and retried in sets. A row has the id of the transaction that wrote it, so the ids of the rows count
 * the transactions.
 */

const JOBS = 3000
const LIMITED = 1500
const DELETIONS = 500
const MAX_TRANSACTIONS_PER_JOB = 0.05

const { api, ...database } = await startEdgeAndDatabase()
const { query } = database
const admin = await api.register('admin@example.com')
const ann = await api.register('ann@example.com')
await startOwnWorker(database.url, 'system', {})

/** Adds jobs of an account; those before `LIMITED` have mailboxes of their own, which have a limit. */
const addJobs = async (queue: string, count: number): Promise<readonly string[]> =>
  (
    await query(
      `select job_id from job_enqueue((select jsonb_agg(jsonb_build_object('id', gen_random_uuid(), 'name', 'documents.extract',
         'queue', $1::text, 'owner_id', $2::int, 'mailbox', case when n < ${LIMITED} then 'document:' || n else 'm' end,
         'mailbox_limit', case when n < ${LIMITED} then 1 end, 'when_busy', 'wait',
         'payload', jsonb_build_object('documentId', n, 'force', false), 'max_tries', 3)) from generate_series(1, $3) n))`,
      [queue, ann.id, count],
    )
  ).map(({ job_id }) => String(job_id))

const bulk = async (token: string, json: object) => {
  const { status, json: job, text } = await api.post('/api/v1/jobs/bulk', { token, json })
  assert.equal(status, 202, text)
  return until('the action has ended', async () => {
    const { json: found } = await api.get(`/api/v1/jobs/${job.job_id}`, { token })
    return found.status === 'done' && found.result
  })
}

/** Returns the statuses of the rows that match a condition, and the number of transactions that wrote them. */
const countWrites = async (where: string, values: unknown[]) => {
  const [row] = await query(
    `select array_agg(distinct status) as statuses, count(*)::int as jobs, count(distinct xmin::text)::int as transactions
     from job where ${where}`,
    values,
  )
  return row as { statuses: string[]; jobs: number; transactions: number }
}

for (const [who, account] of [
  ['an admin', admin],
  ['an owner', ann],
] as const)
  test(`a bulk action of ${who} takes few transactions`, async () => {
    const queue = `of ${who}`
    await addJobs(queue, JOBS)
    assert.equal((await bulk(account.token, { action: 'cancel', filter: { queue } })).done, JOBS)
    const cancelled = await countWrites('queue = $1', [queue])
    assert.deepEqual([cancelled.statuses, cancelled.jobs], [['cancelled'], JOBS])
    assert.ok(cancelled.transactions <= JOBS * MAX_TRANSACTIONS_PER_JOB, `${cancelled.transactions}`)

    await query(
      `update job set status = 'failed', error_code = 'internal', error_detail = 'x' where queue = $1`,
      [queue],
    )
    assert.equal((await bulk(account.token, { action: 'retry', filter: { queue } })).done, JOBS)
    const retried = await countWrites(`retry_of in (select id from job where queue = $1)`, [queue])
    assert.deepEqual([retried.statuses, retried.jobs], [['available'], JOBS])
    assert.ok(retried.transactions <= JOBS * MAX_TRANSACTIONS_PER_JOB, `${retried.transactions}`)
    await query(`delete from job where name <> 'jobs.bulk'`)
  })

test('cancellations that arrive together share transactions, and none is refused', async () => {
  const ids = await addJobs('single', DELETIONS)
  const answers = await Promise.all(
    ids.map((id) => api.call('DELETE', `/api/v1/jobs/${id}`, { token: ann.token })),
  )
  assert.deepEqual(
    new Set(answers.map(({ status, json }) => `${status} ${json.status}`)),
    new Set(['202 cancelled']),
  )
  const { transactions } = await countWrites('id = any($1)', [ids])
  assert.ok(transactions <= DELETIONS * MAX_TRANSACTIONS_PER_JOB, `${transactions}`)
})
