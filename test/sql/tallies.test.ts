import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  addTallies,
  deleteExpiredTallies,
  HISTOGRAM_BOUNDS,
  readTallyTotals,
  type Tally,
  WINDOWS,
} from '../../sql/jobs/tallies.ts'
import { createTestDatabase } from '../database.ts'

/** Statistics of ended jobs, added up for time spans of several lengths. */

const { db, query } = await createTestDatabase()
const createCounts = (at: Readonly<Record<number, number>>): number[] =>
  Array.from({ length: HISTOGRAM_BOUNDS.length + 1 }, (_, n) => at[n] ?? 0)
const createTally = (name: string, change: Partial<Tally> = {}): Tally => ({
  queue: 'test',
  name,
  outcome: 'done',
  attempts: 2,
  run_seconds: 0.5,
  wait_seconds: 1,
  runs: createCounts({ 0: 1, 3: 1 }),
  waits: createCounts({ 36: 2 }),
  ...change,
})

test('there are five bounds per decade, from a millisecond to hours', () => {
  assert.equal(HISTOGRAM_BOUNDS.length, 36)
  assert.deepEqual(
    [HISTOGRAM_BOUNDS[0], HISTOGRAM_BOUNDS[5], HISTOGRAM_BOUNDS[15], HISTOGRAM_BOUNDS[35]],
    [0.001, 0.01, 1, 10_000],
  )
  for (const [n, bound] of HISTOGRAM_BOUNDS.slice(1).entries()) assert.ok(bound / HISTOGRAM_BOUNDS[n]! < 1.6)
})

test('counts are added to each time span, and to the total', async () => {
  await query('truncate job_tally, worker_counter')
  await db.run(addTallies([createTally('a'), createTally('b', { outcome: 'failed' })], { leases_lost: 1 }))
  await db.run(
    addTallies([createTally('a', { attempts: 1, runs: createCounts({ 3: 1 }) })], {
      leases_lost: 2,
      children_lost: 1,
    }),
  )
  const rows = await query(`select distinct span from job_tally order by span`)
  assert.deepEqual(
    rows.map(({ span }) => span),
    [0, ...Object.values(WINDOWS).map(({ span }) => span)].sort((a, b) => Number(a) - Number(b)),
  )
  // A new time span may begin between the two calls.
  const sums =
    await query(`select span, sum(attempts)::int as attempts, sum(run_seconds)::float8 as run, sum(runs[4])::int as fourth,
    sum(waits[37])::int as last from job_tally where name = 'a' group by span`)
  for (const { attempts, run, fourth, last } of sums)
    assert.deepEqual({ attempts, run, fourth, last }, { attempts: 3, run: 1, fourth: 2, last: 4 })
  assert.deepEqual(await query('select name, value::int from worker_counter order by name'), [
    { name: 'children_lost', value: 1 },
    { name: 'leases_lost', value: 3 },
  ])
})

test('concurrent additions lose nothing and do not deadlock', async () => {
  await query('truncate job_tally, worker_counter')
  const names = ['c', 'a', 'b', 'd']
  await Promise.all(
    Array.from({ length: 40 }, (_, n) => {
      const some = names.map((name) => createTally(name, { outcome: n % 2 ? 'done' : 'retry' }))
      return db.run(addTallies(n % 3 ? some : some.toReversed(), { leases_lost: 1, threads_killed: 1 }))
    }),
  )
  const rows = await query(
    'select name, sum(attempts)::int as n from job_tally where span = 0 group by name order by name',
  )
  assert.deepEqual(
    rows,
    ['a', 'b', 'c', 'd'].map((name) => ({ name, n: 80 })),
  )
  assert.deepEqual(await query('select distinct value::int from worker_counter'), [{ value: 40 }])
})

test('time spans that no window shows are pruned, but never the total', async () => {
  await query('truncate job_tally')
  await db.run(addTallies([createTally('a')], {}))
  await query(`insert into job_tally select span, starts_at - make_interval(secs => span * 90), queue, 'old', outcome, attempts,
    run_seconds, wait_seconds, runs, waits from job_tally where span > 0`)
  assert.deepEqual(await db.one(deleteExpiredTallies()), { count: 4 })
  assert.deepEqual(await query('select distinct name from job_tally'), [{ name: 'a' }])
  assert.deepEqual(await db.one(deleteExpiredTallies()), { count: 0 })
})

test('totals are read as JSON, and are empty in an empty database', async () => {
  await query('truncate job_tally, worker_counter')
  const [row] = await query(`select array(${readTallyTotals.text}) as texts`)
  assert.deepEqual(row!.texts, ['[]', '{}', '[]'])
})
