import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { beforeEach, describe, test } from 'node:test'
import { z } from 'zod'
import { type Queries, sql } from '../../sql/db.ts'
import { connect } from '../../sql/driver.ts'
import { cancelJob, type JobSpec } from '../../sql/jobs.ts'
import { stagedLanes, takeJobs, takenOf } from '../../sql/staged.ts'
import { testDatabase } from '../database.ts'
import { ledgerOf, spec } from './ledger-help.ts'

/** Jobs behind an owner's first ones: they wait in the ledger, and workers take them owner by owner. */

const base = await testDatabase()
const { db, query, url } = base
const ledger = ledgerOf(base)
const owners: number[] = []
for (const name of ['a', 'b', 'c']) {
  const [row] = await query(`insert into account (email, password_hash) values ($1, 'x') returning id`, [
    `${name}@example.com`,
  ])
  owners.push(row!.id as number)
}
const [A, B, C] = owners as [number, number, number]

const some = (count: number, owner: number | null, more: Partial<JobSpec> = {}): JobSpec[] =>
  Array.from({ length: count }, () => spec({ owner_id: owner, queue: 'q', front: 3, lane: 'io', ...more }))
type KnownOwners = readonly (readonly [number, number])[]
/** What is taken, never held. */
const takeFrom = async (
  tx: Queries,
  wanted: { most: number; afterOwner?: number; lane?: string },
  known: KnownOwners = [],
  others = true,
) => {
  const rows = await tx.any(
    takeJobs(
      randomUUID(),
      { queue: 'q', lane: 'io', afterOwner: -1, ...wanted },
      { floors: new Map(known), others, spent: [] },
      1_000_000,
    ),
  )
  return rows.map(takenOf).flatMap(({ jobs }) => jobs)
}
const take = (most: number, afterOwner = -1, lane = 'io', known: KnownOwners = []) =>
  takeFrom(db, { most, afterOwner, lane }, known)
const entriesRead = sql.type(z.object({ n: z.number() }))`
  select pg_stat_get_xact_tuples_returned('job_staged_idx'::regclass)::int as n`
const ownersOf = (jobs: readonly { owner_id: number | null }[]) => jobs.map(({ owner_id }) => owner_id)
const states = async (): Promise<Record<string, number>> => {
  const rows = await query('select status, count(*)::int as n from job group by 1')
  return Object.fromEntries(rows.map(({ status, n }) => [status, n]))
}
const deliveries = async (): Promise<number> => {
  const [row] = await query(
    `select coalesce(sum(coalesce(json_array_length(payload -> 'jobs'), 1)), 0)::int as n from graphile_worker._private_jobs`,
  )
  return row!.n as number
}

describe('staging', { concurrency: false }, () => {
  beforeEach(() => query('truncate job, job_event_row, graphile_worker._private_jobs cascade'))

  test('the first few of an owner go to the queue, the others wait without a delivery', async () => {
    await ledger.enqueue(...some(5, A), ...some(2, B), ...some(4, null))
    assert.deepEqual(await states(), { sent: 3 + 2 + 3, queued: 2 + 1 })
    assert.equal(await deliveries(), 8)
    await ledger.enqueue(...some(2, B))
    assert.deepEqual(await states(), { sent: 9, queued: 4 })
  })

  test('it is per queue and owner, whatever was said in one call or in many', async () => {
    for (let i = 0; i < 5; i++) await ledger.enqueue(...some(1, A))
    await ledger.enqueue(...some(2, A, { queue: 'other' }))
    assert.deepEqual(await states(), { sent: 5, queued: 2 })
  })

  test('delayed jobs, messages to actors and jobs that name no number are never staged', async () => {
    await ledger.enqueue(...some(6, A, { delay_ms: 3_600_000 }))
    await ledger.enqueue(...Array.from({ length: 6 }, (_, i) => some(1, A, { actor: `x${i}` })[0]!))
    await ledger.enqueue(...Array.from({ length: 6 }, () => spec({ owner_id: B, queue: 'q' })))
    assert.deepEqual(await states(), { sent: 18 })
  })

  test('owners have the same share of a take, the oldest jobs first', async () => {
    await ledger.enqueue(...some(50, A), ...some(10, B), ...some(5, C), ...some(4, null))
    const first = await take(8)
    // 2 each; nobody's have one staged.
    assert.deepEqual(
      [A, B, C, null].map((owner) => ownersOf(first).filter((id) => id === owner).length),
      [2, 2, 2, 1],
    )
    const [oldest] = await query(
      `select id from job where owner_id = $1 and delivery = 0 order by ordinal limit 1`,
      [A],
    )
    assert.equal(first.find(({ owner_id }) => owner_id === A)!.id, oldest!.id)
    assert.deepEqual(ownersOf(await take(100, B)), [])
    const rest = ownersOf(await take(90))
    assert.deepEqual(
      [A, B].map((owner) => rest.filter((id) => id === owner).length),
      [45, 5],
    )
  })

  test('a take of fewer jobs than there are owners takes no more, and the next one goes on after them', async () => {
    await ledger.enqueue(...some(9, A), ...some(9, B), ...some(9, C))
    assert.deepEqual(ownersOf(await take(2)), [A, B])
    assert.deepEqual(ownersOf(await take(2, B)), [C, C])
    assert.deepEqual(ownersOf(await take(2, C)), [])
  })

  test('a taken job is claimed as if it had been delivered, and ends like any other', async () => {
    await ledger.enqueue(...some(4, A))
    const [job] = await take(10)
    assert.deepEqual([job!.attempt, job!.tries, job!.delivery], [1, 1, 0])
    const row = await ledger.row(job!.id)
    assert.deepEqual([row.status, row.seq, row.started_at !== null], ['running', 1, true])
    await ledger.finish({ id: job!.id, attempt: 1, outcome: 'retry', delay_ms: 0 })
    // Another try goes by the queue.
    assert.deepEqual([await ledger.status(job!.id), await deliveries()], ['sent', 4])
  })

  test('two that take at once never take the same', async () => {
    await ledger.enqueue(...some(203, A))
    const takes = await Promise.all(Array.from({ length: 8 }, () => take(25)))
    const ids = takes.flat().map(({ id }) => id)
    assert.equal(new Set(ids).size, ids.length)
    for (let left = 200 - ids.length; left > 0; ) left -= (await take(100)).length
    assert.deepEqual(await states(), { sent: 3, running: 200 })
  })

  test('a lane is taken by itself, and lanes with staged jobs are named', async () => {
    await ledger.enqueue(...some(5, A, { lane: 'cpu' }), ...some(1, A))
    const lanes = async () =>
      (await db.any(stagedLanes(['q', 'q', 'other'], ['io', 'cpu', 'io']))).map(({ key }) => key)
    assert.deepEqual(await lanes(), ['q/io', 'q/cpu'])
    assert.equal((await take(10, -1, 'cpu')).length, 2)
    assert.deepEqual(await lanes(), ['q/io'])
  })

  test('of owners that are known only what lies beyond their floors is taken, as fairly', async () => {
    await ledger.enqueue(...some(9, A), ...some(9, B), ...some(9, C))
    const all = await take(12)
    const last = (owner: number) => all.filter(({ owner_id }) => owner_id === owner).at(-1)!.ordinal
    const known = (floors: KnownOwners, afterOwner = -1) =>
      takeFrom(db, { most: 2, afterOwner }, floors, false)
    assert.deepEqual(ownersOf(await known([])), [])
    assert.deepEqual(ownersOf(await known([[A, last(A) + 100]])), [])
    assert.deepEqual(
      ownersOf(
        await known([
          [A, last(A)],
          [B, last(B)],
        ]),
      ),
      [A, B],
    )
    assert.deepEqual(
      ownersOf(
        await known(
          [
            [A, last(A)],
            [B, last(B)],
          ],
          A,
        ),
      ),
      [B],
    )
    assert.deepEqual(
      ownersOf(
        await known([
          [0, 0],
          [C, 0],
        ]),
      ),
      [C, C],
    )
  })

  test('owners that are not known are found wherever they are, and the known taken from their floors', async () => {
    await ledger.enqueue(...some(9, A), ...some(9, B), ...some(9, C), ...some(9, null))
    const all = await take(12)
    const last = (owner: number | null) => all.filter(({ owner_id }) => owner_id === owner).at(-1)!.ordinal
    const taken = async (most: number, after: number, known: KnownOwners) =>
      ownersOf(await take(most, after, 'io', known))
    const C1 = [C, last(C)] as const
    assert.deepEqual(await taken(1, -1, [[0, last(null)], [A, last(A) + 99], C1]), [null])
    assert.deepEqual(
      await taken(4, A, [
        [A, 0],
        [C, last(C) + 99],
      ]),
      [B, B, B],
    )
    assert.deepEqual(await taken(9, B, [C1]), [C, C, C])
    assert.deepEqual(await taken(9, C, [[A, 0]]), [])
    assert.deepEqual(
      await taken(1, -1, [
        [A, 0],
        [B, 0],
      ]),
      [null],
    )
    assert.deepEqual(
      (
        await taken(99, -1, [
          [B, 0],
          [2_147_483_646, 0],
        ])
      ).sort(),
      [A, A, A, null],
    )
  })

  test('more owners than have a share in one take get theirs in the next', async () => {
    const rows = await query(
      `insert into account (email, password_hash) select 'many' || n || '@example.com', 'x' from generate_series(1, 130) n returning id`,
    )
    const many = rows.map(({ id }) => id as number)
    await ledger.enqueue(...many.flatMap((owner) => some(4, owner)))
    const known = many.slice(0, 60).map((owner) => [owner, 0] as const)
    const first = ownersOf(await take(500, -1, 'io', known))
    assert.equal(first.length, 100)
    const rest = ownersOf(await take(500, Math.max(...(first as number[])), 'io', known))
    assert.deepEqual([...first, ...rest].sort(), many.toSorted())
  })

  test('while a snapshot is held, what was taken long ago is not read again', async (t) => {
    await ledger.enqueue(...some(2003, A))
    const holder = await connect({ url, applicationName: 'holder' })
    t.after(() => holder.end())
    await holder.query('begin isolation level repeatable read')
    await holder.query('select from job limit 1')
    // Of this transaction alone: other connections tell what they read when they like.
    const readFor = (...what: [{ most: number }, KnownOwners, boolean]) =>
      db.transaction(async (tx) => {
        const entries = async () => (await tx.one(entriesRead)).n
        const before = await entries()
        const jobs = await takeFrom(tx, ...what)
        return { jobs: jobs.length, read: (await entries()) - before }
      })
    const taken = await take(1900)
    const floors = [[A, taken.at(-1)!.ordinal]] as const
    const known = await readFor({ most: 10 }, floors, false)
    assert.equal(known.jobs, 10)
    assert.ok(
      known.read >= 10 && known.read <= 30,
      `${known.read} entries of the index were read for 10 jobs`,
    )
    await ledger.enqueue(...some(4, C))
    const others = await readFor({ most: 4 }, floors, true)
    assert.equal(others.jobs, 3)
    assert.ok(others.read >= 3 && others.read <= 30, `${others.read} entries were read to find others`)
    const whole = await readFor({ most: 10 }, [], true)
    assert.ok(whole.read > 1900, 'which looking at the whole does')
  })

  test('a staged job is cancelled at once, and not taken', async () => {
    await ledger.enqueue(...some(4, A))
    const [{ id }] = (await query(`select id from job where status = 'queued'`)) as [{ id: string }]
    await db.one(cancelJob(id))
    assert.deepEqual([await ledger.status(id), (await take(10)).length], ['cancelled', 0])
  })
})
