import assert from 'node:assert/strict'
import fc from 'fast-check'
import { cancelJob, endJobs, type FinishEntry, recoverJobs } from '../../sql/jobs.ts'
import { beginJobs, dropHolds, takeJobs, takenOf } from '../../sql/staged.ts'
import type { TestDatabase } from '../database.ts'
import { ledgerOf, spec, TERMINAL } from './ledger-help.ts'

/** Workers, a queue and clients that do random things to the ledger, and what has to hold whatever they do. */

const ACTORS: readonly (string | null)[] = ['x', 'y', 'z', null]
const LEASES = 3

const pick = fc.nat({ max: 10_000 })
export const operation = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('enqueue' as const),
      actors: fc.array(fc.constantFrom(...ACTORS), { minLength: 1, maxLength: 4 }),
      join: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('stage' as const), count: fc.integer({ min: 1, max: 6 }) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('pull' as const),
      lease: fc.nat({ max: LEASES - 1 }),
      most: fc.integer({ min: 1, max: 5 }),
      // Held, or running at once.
      holdFrom: fc.constantFrom(1, 100),
    }),
  },
  {
    weight: 7,
    arbitrary: fc.record({ kind: fc.constant('take' as const), lease: fc.nat({ max: LEASES - 1 }), pick }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('progress' as const),
      pick,
      events: fc.integer({ min: 1, max: 4 }),
      repeat: fc.boolean(),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('finish' as const),
      picks: fc.array(pick, { minLength: 1, maxLength: 3 }),
      outcome: fc.constantFrom('done', 'failed', 'cancelled', 'retry', 'release', 'interrupted', 'crashed'),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('cancel' as const), pick }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('collide' as const), pick }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('expire' as const), lease: fc.nat({ max: LEASES - 1 }) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('recover' as const) }) },
)
export type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never

/** An attempt that some worker believes to have; it may be superseded already. */
interface Held {
  readonly id: string
  readonly actor: string | null
  readonly attempt: number
  readonly delivery: number
  /** Since when it is held, and with which others; null: it runs. */
  hold: Hold | null
  said: number
}

interface Hold {
  readonly id: string
  readonly since: string
  left: number
}

export async function createWorld(base: TestDatabase) {
  const { db, query } = base
  const ledger = ledgerOf(base)
  const leases = await Promise.all(Array.from({ length: LEASES }, () => ledger.lease()))
  const jobs: string[] = []
  const held: Held[] = []
  const ends = new Map<string, number>()
  const claims = new Map<string, { lease: string; delivery: number }>()
  const staged = new Set<string>()

  /** A delivery is dealt with; its row goes with the last one in it. */
  const remove = async ({ id, delivery }: { id: string; delivery: number }): Promise<void> => {
    const [found] = (await ledger.deliveries(id)).filter((one) => one.delivery === delivery)
    if (found === undefined) return
    await query(
      `update graphile_worker._private_jobs set payload = json_build_object('jobs', coalesce((
         select json_agg(one) from json_array_elements(payload -> 'jobs') one where one ->> 0 <> $2), '[]')) where id = $1`,
      [found.row, id],
    )
    await query(
      `delete from graphile_worker._private_jobs where id = $1 and json_array_length(payload -> 'jobs') = 0`,
      [found.row],
    )
  }

  /** What the queue would hand out: any delivery at all, also one that somebody else is busy with or that is stale. */
  const take = async (lease: string, at: number): Promise<void> => {
    const all = await ledger.deliveries()
    if (all.length === 0) return
    const { id, delivery } = all[at % all.length]!
    const job = await ledger.claim(id, lease, delivery)
    if (job === null) {
      const { status, delivery: current } = await ledger.row(id)
      // The delivery that a live attempt came by is still locked in the queue; any other that starts nothing is used up.
      if (!(status === 'running' && current === delivery)) await remove({ id, delivery })
      return
    }
    held.push({ id, actor: job.actor, attempt: job.attempt, delivery, hold: null, said: 0 })
    claims.set(`${id}/${job.attempt}`, { lease, delivery })
    if (job.actor === null) return
    const before = await query(
      `select id, status from job where actor = $1 and not status = any($2) and ordinal < (select ordinal from job where id = $3)`,
      [job.actor, TERMINAL, id],
    )
    assert.deepEqual(before, [], 'an actor handles its messages in their order')
  }

  const pull = async (lease: string, most: number, holdFrom: number): Promise<number> => {
    const wanted = { queue: 'test', lane: 'io', most, afterOwner: -1 }
    const rows = await db.any(
      takeJobs(lease, wanted, { floors: new Map(), others: true, spent: [] }, holdFrom),
    )
    for (const { hold, jobs } of rows.map(takenOf)) {
      const common = hold === null ? null : { ...hold, left: jobs.length }
      for (const { id, attempt, delivery } of jobs) {
        held.push({ id, actor: null, attempt, delivery, hold: common, said: 0 })
        assert.ok(!claims.has(`${id}/${attempt}`), `${id} was taken once`)
        claims.set(`${id}/${attempt}`, { lease, delivery })
      }
    }
    return rows.length
  }

  /** Nothing else keeps these from running as they are said to. */
  const settle = async (all: readonly Held[]): Promise<void> => {
    for (const one of all) {
      const { hold } = one
      one.hold = null
      if (hold !== null && --hold.left === 0) await db.run(dropHolds([hold.id]))
    }
  }

  const begin = async (all: readonly Held[]): Promise<void> => {
    const some = all.filter(({ hold }) => hold !== null)
    if (some.length === 0) return
    await db.any(
      beginJobs(
        some.map(({ id }) => id),
        true,
      ),
    )
    await settle(some)
  }

  const finish = async (all: readonly Held[], outcome: FinishEntry['outcome']): Promise<void> => {
    for (const one of all) if (held.includes(one)) held.splice(held.indexOf(one), 1)
    if (outcome !== 'done') await begin(all)
    const since = new Map(all.map(({ id, hold }) => [id, hold?.since ?? null]))
    const entries = all.map(({ id, attempt, actor }) => ({
      id,
      attempt,
      actor,
      outcome,
      result: JSON.stringify({ attempt }),
      code: 'internal',
      delay_ms: 0,
    }))
    const ended = await endJobs(db, entries, (id) => since.get(id)!)
    await settle(all)
    for (const id of ended) {
      if (TERMINAL.includes(outcome)) ends.set(id, (ends.get(id) ?? 0) + 1)
    }
    for (const one of all) await remove(one)
  }

  const run = async (op: Operation): Promise<void> => {
    switch (op.kind) {
      case 'enqueue': {
        const specs = op.actors.map((actor) =>
          spec({ actor, when_busy: op.join ? 'join' : 'wait', max_tries: 100, together: 3 }),
        )
        for (const { job_id, joined } of await ledger.enqueue(...specs)) if (!joined) jobs.push(job_id)
        return
      }
      case 'stage': {
        const specs = Array.from({ length: op.count }, () => spec({ front: 0, max_tries: 100 }))
        await ledger.enqueue(...specs)
        for (const { id } of specs) {
          jobs.push(id)
          staged.add(id)
        }
        return
      }
      case 'pull':
        await pull(leases[op.lease]!, op.most, op.holdFrom)
        return
      case 'take':
        return take(leases[op.lease]!, op.pick)
      case 'progress': {
        const one = held[op.pick % (held.length || 1)]
        if (one === undefined) return
        const from = one.said
        one.said += op.events
        await begin([one])
        const steps = Array.from({ length: op.events }, (_, i) => ({
          n: from + i + 1,
          data: { status: 'running', label: `${from + i + 1}`, attempt: one.attempt, n: from + i + 1 },
        }))
        await ledger.progress(one.id, one.attempt, ...steps)
        if (op.repeat) await ledger.progress(one.id, one.attempt, ...steps)
        return
      }
      case 'finish': {
        const all = [...new Set(op.picks.map((at) => held[at % (held.length || 1)]))].filter(
          (one) => one !== undefined,
        )
        return finish(all, op.outcome)
      }
      // A message arrives in the very moment in which its actor becomes idle.
      case 'collide': {
        const one = held[op.pick % (held.length || 1)]
        if (one === undefined) return
        const enqueue = { kind: 'enqueue' as const, actors: [one.actor], join: false }
        await Promise.all([finish([one], 'done'), run(enqueue), run(enqueue)])
        return
      }
      case 'cancel':
        if (jobs.length > 0) await db.one(cancelJob(jobs[op.pick % jobs.length]!))
        return
      case 'expire':
        // Its attempts stay in `held`: the worker that lost its lease does not know it yet.
        await query(`update worker_lease set expires_at = now() - interval '1 s' where id = $1`, [
          leases[op.lease]!,
        ])
        leases[op.lease] = await ledger.lease()
        return
      case 'recover':
        await db.any(recoverJobs(0))
    }
  }

  /** What holds in every committed state, as rows that break it. */
  const violations = () =>
    query(`
      with live as (select actor from job where actor is not null and status in ('sent', 'running'))
      select 'two live jobs of ' || actor as what from live group by actor having count(*) > 1
      union all
      select 'nobody sends the mailbox of ' || actor from job where status = 'queued' and actor is not null and actor not in (select actor from live)
      union all
      select 'sent without a delivery: ' || id from job where status = 'sent' and not exists (
        select from graphile_worker._private_jobs q cross join lateral json_array_elements(coalesce(q.payload -> 'jobs',
          json_build_array(json_build_array(q.payload -> 'id', q.payload -> 'delivery')))) one
        where one ->> 0 = job.id::text and (one ->> 1)::int = job.delivery)
      union all
      select 'seq of ' || id from job where seq <> (select count(*) from job_event where job_id = job.id)
        or seq <> (select coalesce(max(seq), 0) from job_event where job_id = job.id)`)

  const watch = async (until: Promise<unknown>): Promise<void> => {
    let over = false
    void until.finally(() => {
      over = true
    })
    while (!over) assert.deepEqual(await violations(), [])
  }

  /** Lets one last worker do all that is left, by what the queue hands out alone. */
  const drain = async (): Promise<void> => {
    for (let lease = 0; lease < LEASES; lease++) await run({ kind: 'expire', lease })
    await run({ kind: 'recover' })
    held.length = 0
    for (let rounds = 0; rounds < 500; rounds++) {
      const [next] = await ledger.deliveries()
      if (next === undefined) break
      await take(leases[0]!, 0)
      await finish([...held], 'done')
    }
    while ((await pull(leases[0]!, 5, 2)) > 0) await finish([...held], 'done')
  }

  /** Follows a job's events: who had it when, and that nobody else said anything. */
  const replay = async (id: string): Promise<void> => {
    let attempt = 0
    let deliveries = staged.has(id) ? 0 : 1
    let said = 0
    let holder = ''
    for (const { data } of await ledger.events(id)) {
      if (data.attempt !== undefined) {
        assert.equal(data.attempt, attempt, `only the running attempt of ${id} is heard`)
        assert.ok((data.n as number) > said, `${id} is heard once, and in order`)
        said = data.n as number
      } else if (data.status === 'running') {
        const claim = claims.get(`${id}/${++attempt}`)!
        assert.equal(claim.delivery, deliveries, `${id} is started by its current delivery`)
        assert.ok(holder === '' || holder === claim.lease, `${id} is not taken from the worker that has it`)
        holder = claim.lease
        said = 0
      } else if (data.status === 'queued') {
        deliveries++
        holder = ''
      }
    }
    const row = await ledger.row(id)
    assert.equal(row.attempt, attempt)
    if (row.status === 'done')
      assert.deepEqual(row.result, { attempt }, 'the result is that of the last attempt')
  }

  const check = async (): Promise<void> => {
    assert.deepEqual(await violations(), [])
    assert.deepEqual(await query('select * from job_hold'), [], 'no hold is left')
    assert.deepEqual(
      await query('select id, status from job where not status = any($1)', [TERMINAL]),
      [],
      'no job is lost',
    )
    for (const id of jobs) {
      await ledger.assertSound(id)
      await replay(id)
    }
    for (const [id, count] of ends) assert.equal(count, 1, `${id} was ended once`)
  }

  return { run, watch, drain, check }
}
