import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HISTOGRAM_BOUNDS } from '../../sql/jobs/tallies.ts'
import { bucketOf, createTallies } from '../../tasks/platform/tally.ts'
import { createTestDatabase } from '../database.ts'
import { until } from '../until.ts'
import { log } from '../workers/parts.ts'

/** Tests the counters of a worker. */

const { db, query } = await createTestDatabase()
const attempt = {
  queue: 'test',
  name: 'test.task',
  outcome: 'done',
  runSeconds: 0.02,
  waitSeconds: 3,
} as const

test('counts a time in the first bucket whose bound it does not exceed', () => {
  assert.deepEqual(
    [bucketOf(0), bucketOf(HISTOGRAM_BOUNDS[0]!), bucketOf(HISTOGRAM_BOUNDS[0]! + 1e-9)],
    [0, 0, 1],
  )
  for (const [bucket, bound] of HISTOGRAM_BOUNDS.entries()) assert.equal(bucketOf(bound), bucket)
  assert.equal(bucketOf(1e9), HISTOGRAM_BOUNDS.length)
})

test('stores counts at intervals and the rest on close, without duplicates', async () => {
  const tallies = createTallies(db, log, 20)
  tallies.countAttempt(attempt)
  tallies.countAttempt({ ...attempt, outcome: 'failed' })
  tallies.count('leases_lost')
  const countStored = async () =>
    (await query('select sum(attempts)::int as n from job_tally where span = 0'))[0]!.n
  await until('both attempts are stored', async () => (await countStored()) === 2)
  tallies.countAttempt(attempt)
  tallies.count('leases_lost')
  await tallies.close()
  await tallies.close()
  assert.equal(await countStored(), 3)
  const [row] =
    await query(`select attempts::int, round(run_seconds::numeric, 3)::float8 as run, wait_seconds as wait,
    runs[${bucketOf(0.02) + 1}]::int as runs, waits[${bucketOf(3) + 1}]::int as waits from job_tally where span = 0 and outcome = 'done'`)
  assert.deepEqual(row, { attempts: 2, run: 0.04, wait: 6, runs: 2, waits: 2 })
  assert.deepEqual(await query('select name, value::int from worker_counter'), [
    { name: 'leases_lost', value: 2 },
  ])
})

test('closes without an error if counts cannot be stored', async () => {
  await query('alter table job_tally rename to elsewhere')
  const tallies = createTallies(db, log, 5)
  tallies.countAttempt(attempt)
  await tallies.close()
  await query('alter table elsewhere rename to job_tally')
})
