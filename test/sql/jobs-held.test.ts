import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { z } from 'zod'
import { type Queries, sql } from '../../sql/db.ts'
import { cancelJob, endJobs, fenceJob, type JobSpec, recoverJobs, renewLease } from '../../sql/jobs.ts'
import { beginJobs, dropHolds, type TakenJob, takeJobs, takenOf } from '../../sql/staged.ts'
import { testDatabase } from '../database.ts'
import { IDLE, ledgerOf, spec, withClient } from './ledger-help.ts'

/** Jobs that a worker takes many at a time: they are written as running when somebody has to know. */

const base = await testDatabase()
const { db, query, url } = base
const ledger = ledgerOf(base)
const owners: number[] = []
for (const name of ['a', 'b']) {
  const [row] = await query(`insert into account (email, password_hash) values ($1, 'x') returning id`, [
    `${name}@example.com`,
  ])
  owners.push(row!.id as number)
}
const [A, B] = owners as [number, number]

const staged = (count: number, owner: number | null, more: Partial<JobSpec> = {}): JobSpec[] =>
  Array.from({ length: count }, () => spec({ owner_id: owner, queue: 'q', front: 0, ...more }))

interface Taking {
  readonly most?: number
  readonly floors?: ReadonlyMap<number, number>
  readonly others?: boolean
  readonly spent?: readonly string[]
  readonly holdFrom?: number
}
const take = async (
  lease: string,
  { most = 500, floors = new Map(), others = true, spent = [], holdFrom = 2 }: Taking = {},
  among: Queries = db,
) => {
  const wanted = { queue: 'q', lane: 'io', most, afterOwner: -1 }
  return (await among.any(takeJobs(lease, wanted, { floors, others, spent }, holdFrom))).map(takenOf)
}
/** Staged jobs that are held. */
const held = async (count: number, owner: number | null = A) => {
  await ledger.enqueue(...staged(count, owner))
  const lease = await ledger.lease()
  const [taken, ...more] = await take(lease)
  assert.ok(taken !== undefined && taken.hold !== null && more.length === 0)
  return { lease, hold: taken.hold, jobs: taken.jobs }
}
const done = (jobs: readonly Pick<TakenJob, 'id'>[], since: string | null, attempt = 1) =>
  endJobs(
    db,
    jobs.map(({ id }) => ({ id, attempt, outcome: 'done', result: `"${id}"`, actor: null })),
    () => since,
  )
const idsOf = (jobs: readonly { id: string }[]) => jobs.map(({ id }) => id)
const holds = () => query('select id::text as id, lease_id, owner from job_hold order by id')
const running = async (lease: string) => {
  const row = await db.maybeOne(renewLease(lease, IDLE, 60_000))
  return { running: idsOf(row!.running), holds: row!.holds }
}

describe('holds', { concurrency: false }, () => {
  beforeEach(() =>
    query('truncate job, job_event_row, job_hold, worker_lease, graphile_worker._private_jobs cascade'),
  )

  test('held jobs stay staged, are taken by nobody else, and end as their first attempt', async () => {
    const { lease, hold, jobs } = await held(20)
    assert.deepEqual(
      jobs.map(({ attempt, tries, delivery }) => [attempt, tries, delivery]),
      jobs.map(() => [1, 1, 0]),
    )
    assert.deepEqual(await holds(), [{ id: hold.id, lease_id: lease, owner: A }])
    for (const { id } of jobs) {
      const row = await ledger.row(id)
      assert.deepEqual([row.status, row.attempt, row.seq, row.lease_id], ['queued', 0, 0, null])
    }
    assert.deepEqual(await take(lease), [])
    assert.deepEqual([...(await done(jobs, hold.since))], idsOf(jobs))
    for (const { id } of jobs) {
      const row = await ledger.row(id)
      assert.deepEqual(
        [row.status, row.result, row.attempt, row.tries, row.seq, row.delivery, row.lease_id],
        ['done', id, 1, 1, 2, 1, null],
      )
      assert.equal(row.started_at!.getTime(), new Date(hold.since).getTime())
      await ledger.assertSound(id)
    }
    assert.deepEqual(await take(lease, { spent: [hold.id] }), [])
    assert.deepEqual(await holds(), [])
  })

  test('a job comes as it was added, whatever its texts are', async () => {
    const payload = { text: 'a\tb\n"c"\\ \u2028 ]},{', n: 1e21 }
    await ledger.enqueue(
      ...staged(2, null, { payload, request_id: 'r"\\1', max_tries: 7, name: 'test.other' }),
    )
    const [taken] = await take(await ledger.lease())
    for (const job of taken!.jobs) {
      assert.deepEqual(JSON.parse(job.payload), payload)
      assert.deepEqual(
        [job.request_id, job.max_tries, job.name, job.owner_id, job.actor],
        ['r"\\1', 7, 'test.other', null, null],
      )
    }
  })

  test('those of each owner are held together, and where they are few they run at once', async () => {
    await ledger.enqueue(...staged(3, A), ...staged(4, B), ...staged(2, null))
    const lease = await ledger.lease()
    const few = await take(lease, { most: 5, holdFrom: 16 })
    assert.deepEqual(
      few.map(({ hold, jobs }) => [hold, jobs.length]),
      [[null, 5]],
    )
    for (const { id } of few[0]!.jobs) {
      assert.deepEqual([await ledger.status(id), (await ledger.row(id)).lease_id], ['running', lease])
    }
    const rest = await take(lease, { holdFrom: 1 })
    assert.deepEqual(
      rest.map(({ hold, jobs }) => [hold !== null, new Set(jobs.map(({ owner_id }) => owner_id)).size]),
      rest.map(() => [true, 1]),
    )
    assert.equal(rest.flatMap(({ jobs }) => jobs).length, 4)
    assert.deepEqual((await holds()).map(({ owner }) => owner).sort(), [A, B].sort())
  })

  test('only what is done can end one that is held, and only as its first attempt', async () => {
    const { hold, jobs } = await held(4)
    const [job] = jobs
    assert.deepEqual([...(await done([job!], null))], [])
    assert.deepEqual([...(await done([job!], hold.since, 2))], [])
    for (const outcome of ['failed', 'cancelled', 'retry', 'release', 'interrupted'] as const)
      assert.deepEqual(await ledger.finish({ id: job!.id, attempt: 1, outcome }), [])
    assert.deepEqual(await ledger.progress(job!.id, 1, { n: 1, data: { label: 'x' } }), [])
    assert.equal(await ledger.status(job!.id), 'queued')
    assert.deepEqual([...(await done([job!], hold.since))], [job!.id])
    assert.deepEqual([...(await done([job!], hold.since))], [], 'and once')
  })

  test('what is begun runs under its lease since it was taken, and goes on as any other', async () => {
    const { lease, hold, jobs } = await held(4)
    const [one, two, three, four] = idsOf(jobs) as [string, string, string, string]
    await db.any(beginJobs([one, two, three], true))
    const row = await ledger.row(one)
    assert.deepEqual(
      [row.status, row.lease_id, row.attempt, row.tries, row.seq, row.started_at!.getTime()],
      ['running', lease, 1, 1, 1, new Date(hold.since).getTime()],
    )
    await db.any(beginJobs([one, two, three], true))
    assert.equal((await ledger.row(one)).attempt, 1)
    assert.deepEqual(await ledger.progress(one, 1, { n: 1, data: { label: 'x' } }), [one])
    assert.deepEqual([...(await done([{ id: one }], hold.since))], [one])
    assert.deepEqual(await ledger.finish({ id: two, attempt: 1, outcome: 'retry', delay_ms: 0 }), [two])
    assert.deepEqual(await ledger.finish({ id: three, attempt: 1, outcome: 'failed', code: 'internal' }), [
      three,
    ])
    assert.deepEqual(await Promise.all([one, two, three, four].map(ledger.status)), [
      'done',
      'sent',
      'failed',
      'queued',
    ])
    await db.any(beginJobs([one, two, three], true))
    assert.deepEqual(await Promise.all([one, two, three].map(ledger.status)), ['done', 'sent', 'failed'])
    for (const id of [one, two, three]) await ledger.assertSound(id)
  })

  test('one that nobody holds can not be begun', async () => {
    const [free] = staged(1, A)
    await ledger.enqueue(free!)
    await db.any(beginJobs([free!.id], true))
    assert.equal(await ledger.status(free!.id), 'queued')
  })

  test('a held job is cancelled as a running one: its worker is asked, and may be faster', async () => {
    const { lease, hold, jobs } = await held(3)
    const [one, two] = idsOf(jobs) as [string, string]
    for (const id of [one, two]) await db.one(cancelJob(id))
    const row = await ledger.row(one)
    assert.deepEqual([row.status, row.lease_id, row.cancel_requested_at !== null], ['running', lease, true])
    assert.deepEqual((await running(lease)).running.sort(), [one, two].sort())
    assert.deepEqual([...(await done([{ id: one }], hold.since))], [one])
    assert.deepEqual(await ledger.finish({ id: two, attempt: 1, outcome: 'cancelled' }), [two])
    assert.deepEqual([await ledger.status(one), await ledger.status(two)], ['done', 'cancelled'])
    for (const id of [one, two]) await ledger.assertSound(id)
  })

  test('a cancel that comes while a take is under way waits, and sees what it holds', async () => {
    await ledger.enqueue(...staged(3, A))
    const lease = await ledger.lease()
    let cancelled: Promise<unknown> = Promise.resolve()
    const [taken] = await db.transaction(async (tx) => {
      const all = await take(lease, {}, tx)
      cancelled = withClient(url, (client) => client.query('select job_cancel($1)', [all[0]!.jobs[0]!.id]))
      await untilOneWaits()
      return all
    })
    await cancelled
    const row = await ledger.row(taken!.jobs[0]!.id)
    assert.deepEqual([row.status, row.lease_id, row.cancel_requested_at !== null], ['running', lease, true])
  })

  test('a fence holds for the attempt that holds the job, and a take-over waits for its transaction', async () => {
    const { lease, hold, jobs } = await held(2)
    const [{ id }] = jobs as [TakenJob]
    assert.equal(await db.maybeOne(fenceJob(id, 2)), null)
    await query(`update worker_lease set expires_at = now() - interval '1 s' where id = $1`, [lease])
    let over = false
    const [recovered] = await db.transaction(async (tx) => {
      assert.deepEqual(await tx.maybeOne(fenceJob(id, 1)), { id })
      const recovery = withClient(url, (client) => client.query(`select job_recover('0', 2, 5)`)).then(
        ({ rows }) => {
          over = true
          return rows
        },
      )
      await untilOneWaits()
      assert.equal(over, false)
      return [recovery]
    })
    assert.equal((await recovered!).length, 2)
    assert.equal(await db.maybeOne(fenceJob(id, 1)), null)
    assert.deepEqual([...(await done(jobs, hold.since))], [], 'the old attempt has nothing more to say')
  })

  test('one that has its fence up is waited for, or passed over', async () => {
    const { jobs } = await held(3)
    const [fenced, free] = idsOf(jobs) as [string, string]
    const waiting = await db.transaction(async (tx) => {
      await tx.maybeOne(fenceJob(fenced, 1))
      const passed = await withClient(url, (client) =>
        client.query('select job_begin($1, false) as id', [[fenced, free]]),
      )
      assert.deepEqual(passed.rows, [{ id: fenced }])
      assert.deepEqual(
        (await query('select status from job where id = any($1) order by ordinal', [[fenced, free]])).map(
          (row) => row.status,
        ),
        ['queued', 'running'],
      )
      const begun = withClient(url, (client) => client.query('select job_begin($1, true)', [[fenced]]))
      await untilOneWaits()
      return [begun]
    })
    assert.deepEqual((await waiting[0]!).rows, [])
    assert.equal(await ledger.status(fenced), 'running')
  })

  test('what a worker held that is gone is delivered again; what had ended is not', async () => {
    const { lease, hold, jobs } = await held(5)
    const other = await held(3, B)
    const [ended, begun, ...rest] = jobs as [TakenJob, TakenJob, ...TakenJob[]]
    await done([ended], hold.since)
    await db.any(beginJobs([begun.id], true))
    assert.deepEqual(await db.any(recoverJobs(0)), [])
    await query(`update worker_lease set expires_at = now() - interval '1 s' where id = $1`, [lease])
    const recovered = idsOf(await db.any(recoverJobs(0)))
    assert.deepEqual(recovered.sort(), idsOf([begun, ...rest]).sort())
    for (const { id } of [begun, ...rest]) {
      const row = await ledger.row(id)
      assert.deepEqual([row.status, row.attempt, row.interruptions, row.tries], ['sent', 1, 1, 0])
      await ledger.assertSound(id)
    }
    assert.equal((await ledger.deliveries()).length, 4)
    assert.deepEqual(idsOf((await holds()) as { id: string }[]), [other.hold.id])
    assert.deepEqual([...(await done(rest, hold.since))], [])
    assert.deepEqual([...(await done(other.jobs, other.hold.since))], idsOf(other.jobs))
  })

  test('a heartbeat names what is held, and a hold that is dropped gives back what is left of it', async () => {
    const { lease, hold, jobs } = await held(4)
    assert.deepEqual(await running(lease), { running: [], holds: [hold.id] })
    const some = await db.maybeOne(renewLease(lease, IDLE, 60_000, [jobs[0]!.id]))
    assert.deepEqual(some, { running: [], holds: [] }, 'asked for few, it does not look for all')
    await done(jobs.slice(0, 1), hold.since)
    await db.run(dropHolds([hold.id]))
    const [again] = await take(lease)
    assert.deepEqual(idsOf(again!.jobs), idsOf(jobs.slice(1)))
  })

  test('those that take and hold at once never have the same', async () => {
    await ledger.enqueue(...staged(300, A), ...staged(300, B), ...staged(300, null))
    const leases = await Promise.all(Array.from({ length: 6 }, () => ledger.lease()))
    const all: string[] = []
    for (let rounds = 0; all.length < 900 && rounds < 200; rounds++) {
      const takes = await Promise.all(
        leases.map(async (lease, i) => {
          // Every other one has them run at once, as a worker of the version before does.
          const taken = await take(lease, { most: 20, holdFrom: i % 2 === 0 ? 1 : 1000 })
          return taken.flatMap(({ jobs }) => idsOf(jobs))
        }),
      )
      all.push(...takes.flat())
    }
    assert.deepEqual([all.length, new Set(all).size], [900, 900])
  })

  test('the end of an actor whose name was not said is an error, not a race', async () => {
    const { id } = await ledger.running({ actor: 'x' })
    await assert.rejects(
      query(`select job_done(array[$1::uuid], '{1}', '[1]', '{0}', '{}', '{}')`, [id]),
      /not told of all actors/,
    )
    assert.equal(await ledger.status(id), 'running')
  })

  test('the end of a job that is gone with its owner is refused', async () => {
    const [row] = await query(
      `insert into account (email, password_hash) values ('gone@example.com', 'x') returning id`,
    )
    const { hold, jobs } = await held(3, row!.id as number)
    await query('delete from account where id = $1', [row!.id])
    assert.deepEqual([...(await done(jobs, hold.since))], [])
  })

  test('while a snapshot is open, holds that are over are not read again', async () => {
    await ledger.enqueue(...staged(400, A))
    const lease = await ledger.lease()
    const entriesRead = sql.type(z.object({ n: z.number() }))`
      select pg_stat_get_xact_tuples_returned('job_hold_staged_idx'::regclass)::int as n`
    await withClient(url, async (holder) => {
      await holder.query('begin isolation level repeatable read')
      await holder.query('select from job limit 1')
      let floors = new Map<number, number>()
      let spent: string[] = []
      for (let round = 0; round < 100; round++) {
        const [taken] = await take(lease, { most: 3, floors, others: round === 0, spent })
        await done(taken!.jobs, taken!.hold!.since)
        floors = new Map([[A, taken!.jobs.at(-1)!.ordinal]])
        spent = [taken!.hold!.id]
      }
      // Of this transaction alone: other connections tell what they read when they like.
      const read = await db.transaction(async (tx) => {
        const before = (await tx.one(entriesRead)).n
        assert.equal((await take(lease, { most: 3, floors, others: false, spent }, tx))[0]!.jobs.length, 3)
        return (await tx.one(entriesRead)).n - before
      })
      assert.ok(read <= 4, `${read} holds were read for one that is over`)
    })
  })
})

/** A statement of another connection waits for a lock. */
async function untilOneWaits(): Promise<void> {
  for (;;) {
    const [row] = await query(
      `select count(*)::int as n from pg_locks where not granted and pid in (
         select pid from pg_stat_activity where datname = current_database())`,
    )
    if (row!.n !== 0) return
  }
}
