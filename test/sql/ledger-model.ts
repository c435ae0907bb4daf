import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { type ClaimedJob, parseClaims } from '../../sql/jobs/claims.ts'
import {
  cancelJobs,
  closeBatch,
  endAttempts,
  type FinishEntry,
  rescueRunningJobs,
  SUSPECT_FROM_DEATHS,
  scheduleJobs,
} from '../../sql/jobs/jobs.ts'
import { claimQueueJobs } from '../../sql/worker-queues/claims.ts'
import type { TestDatabase } from '../database.ts'
import { buildJobSpec, createLedgerHelp, type JobFields, TERMINAL_STATUSES } from './ledger-help.ts'

/** Runs random operations of workers, a queue and clients on the ledger, and checks the invariants that always hold. */

/** Mailboxes of two actors, one with a limit of two, and those of two owners. */
const MAILBOXES: readonly JobFields[] = [
  { mailbox: 'x', mailbox_limit: 1 },
  { mailbox: 'y', mailbox_limit: 1 },
  { mailbox: 'two', mailbox_limit: 2 },
  { mailbox: 'mine', mailbox_limit: null },
  { mailbox: 'yours', mailbox_limit: null },
]
const LEASE_COUNT = 3
const SCHEDULE_DELAY_MS = 15

const pick = fc.nat({ max: 10_000 })
const mailbox = fc.constantFrom(...MAILBOXES)
export const operation = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('enqueue' as const),
      mailboxes: fc.array(mailbox, { minLength: 1, maxLength: 4 }),
      join: fc.boolean(),
      // True if the jobs are scheduled `SCHEDULE_DELAY_MS` ahead.
      later: fc.integer({ min: 0, max: 3 }).map((n) => n === 0),
      // The jobs on which these depend.
      after: fc.array(pick, { maxLength: 3 }),
      afterOutcome: fc.constantFrom('done', 'any'),
      // True if the jobs join an open batch.
      inBatch: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('batch' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('close' as const), pick }) },
  {
    weight: 9,
    arbitrary: fc.record({
      kind: fc.constant('fetch' as const),
      lease: fc.nat({ max: LEASE_COUNT - 1 }),
      pick,
      places: fc.integer({ min: 1, max: 5 }),
      // True if the delivery stays in the queue, as when a worker dies before it answers, or another worker gets the
      // delivery too.
      again: fc.boolean(),
    }),
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
      later: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('cancel' as const), pick }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('collide' as const), pick, mailbox }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('expire' as const), lease: fc.nat({ max: LEASE_COUNT - 1 }) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('recover' as const) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('schedule' as const) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('lock' as const), pick }) },
)
export type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never

/** Attempt that a worker still believes it holds; another may have superseded it. */
interface HeldAttempt {
  readonly id: string
  readonly limited: string | null
  readonly attempt: number
  lastProgress: number
}

/** @param isHttp true if the jobs are those of a worker queue, which workers claim over HTTP. */
export async function createLedgerModel(base: TestDatabase, isHttp = false) {
  const { db, query } = base
  const queueFields: JobFields = isHttp ? { name: 'http/task', queue: 'http' } : {}
  if (isHttp) await query(`insert into worker_queue (name) values ('http') on conflict do nothing`)
  const ledger = createLedgerHelp(base)
  const leases = await Promise.all(Array.from({ length: LEASE_COUNT }, () => ledger.lease()))
  const jobs: string[] = []
  const batches: string[] = []
  const later = new Set<string>()
  const held: HeldAttempt[] = []
  const ends = new Map<string, number>()
  const claims = new Map<string, string>()

  /**
   * Hands out a due delivery as the queue does, even one that another worker is handling. Ignores backoffs, but not
   * scheduled times.
   */
  const fetch = async (lease: string, at: number, places: number, again = false): Promise<boolean> => {
    if (isHttp) {
      const { claims, must_repeat } = await db.one(claimQueueJobs('http', lease, places))
      const claimed = parseClaims({ claims })
      const isAlone =
        claimed.every(({ interruptions }) => interruptions < SUSPECT_FROM_DEATHS) || claimed.length === 1
      assert.ok(isAlone, 'a suspect is claimed alone')
      await hold(lease, claimed)
      return claimed.length > 0 || must_repeat
    }
    const all = await ledger.deliveries()
    if (all.length === 0) return false
    const delivery = all[at % all.length]!
    await hold(lease, await ledger.claimMany(lease, { delivery, freeSlots: places }))
    if (!again) await query('delete from graphile_worker._private_jobs where id = $1', [delivery.row])
    return true
  }

  /** Notes and checks what a worker has claimed. */
  const hold = async (lease: string, claimed: readonly ClaimedJob[]): Promise<void> => {
    for (const { id, attempt, mailbox, mailbox_limit } of claimed) {
      held.push({ id, limited: mailbox_limit === null ? null : mailbox, attempt, lastProgress: 0 })
      assert.ok(!claims.has(`${id}/${attempt}`), `${id} was claimed once`)
      claims.set(`${id}/${attempt}`, lease)
      // A scheduled job runs at its time, in any order relative to jobs that were added later.
      if (mailbox_limit !== 1 || later.has(id)) continue
      const before = await query(
        `select id, status from job where mailbox = $1 and not status = any($2) and ordinal < (select ordinal from job where id = $3)`,
        [mailbox, TERMINAL_STATUSES, id],
      )
      assert.deepEqual(
        before.filter((one) => !later.has(one.id as string)),
        [],
        'an actor handles its messages in their order',
      )
    }
  }

  const finish = async (
    all: readonly HeldAttempt[],
    outcome: FinishEntry['outcome'],
    delay_ms = 0,
  ): Promise<void> => {
    for (const one of all) if (held.includes(one)) held.splice(held.indexOf(one), 1)
    const entries = all.map(({ id, attempt }) => ({
      id,
      attempt,
      outcome,
      result: JSON.stringify({ attempt }),
      code: 'internal',
      delay_ms,
    }))
    const ended = await endAttempts(db, entries)
    for (const id of new Set(entries.map((entry) => entry.id))) {
      if (ended.has(id) && TERMINAL_STATUSES.includes(outcome)) ends.set(id, (ends.get(id) ?? 0) + 1)
    }
  }

  const run = async (op: Operation): Promise<void> => {
    switch (op.kind) {
      case 'enqueue': {
        const picks: readonly number[] = op.after
        const after = [...new Set(picks.flatMap((at) => jobs[at % (jobs.length || 1)] ?? []))]
        const dependencies: JobFields =
          after.length === 0 ? {} : { after, after_outcome: op.afterOutcome as 'done' | 'any' }
        const batch = op.inBatch ? batches.at(-1) : undefined
        const specs = op.mailboxes.map((fields) =>
          buildJobSpec({
            ...queueFields,
            ...fields,
            ...dependencies,
            ...(batch === undefined ? {} : { batch_id: batch }),
            when_busy: op.join ? 'join' : 'wait',
            max_tries: 100,
            delay_ms: op.later ? SCHEDULE_DELAY_MS : null,
          }),
        )
        // A job that waits for others comes later, too.
        if (op.later || after.length > 0) for (const { id } of specs) later.add(id)
        const added = await ledger.enqueue(...specs).catch((error) => {
          assert.ok(['batch.closed', 'batch.cycle'].includes(error.code), String(error))
          return []
        })
        for (const { job_id, joined } of added) if (!joined) jobs.push(job_id)
        return
      }
      case 'batch': {
        const batch = buildJobSpec({
          ...queueFields,
          is_batch: true,
          payload: { is_open: true },
          max_tries: 100,
        })
        await ledger.enqueue(batch)
        jobs.push(batch.id)
        batches.push(batch.id)
        return
      }
      case 'close':
        await db.any(closeBatch(batches[op.pick % (batches.length || 1)] ?? randomUUID()))
        return
      case 'fetch':
        await fetch(leases[op.lease]!, op.pick, op.places, op.again)
        return
      case 'progress': {
        const one = held[op.pick % (held.length || 1)]
        if (one === undefined) return
        const from = one.lastProgress
        one.lastProgress += op.events
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
        return finish(all, op.outcome, op.later ? SCHEDULE_DELAY_MS : 0)
      }
      // Adds jobs while earlier ones end or are claimed.
      case 'collide': {
        const one = held[op.pick % (held.length || 1)]
        const mailbox = MAILBOXES.find((fields) => fields.mailbox === one?.limited) ?? op.mailbox
        const enqueue = {
          ...{ kind: 'enqueue' as const, mailboxes: [mailbox], join: false, later: false, inBatch: true },
          ...{ after: [op.pick, op.pick + 1], afterOutcome: 'any' as const },
        }
        const work = one === undefined ? fetch(leases[0]!, op.pick, 2) : finish([one], 'done')
        await Promise.all([work, fetch(leases[1]!, op.pick, 1), run(enqueue), run(enqueue)])
        return
      }
      case 'cancel':
        if (jobs.length > 0) await db.any(cancelJobs([jobs[op.pick % jobs.length]!]))
        return
      // Locks a job's row in any state, as a transaction that writes about the job does.
      case 'lock':
        await query('select pg_sleep(0.005) from (select from job where id = $1 for share) one', [
          jobs[op.pick % (jobs.length || 1)] ?? null,
        ])
        return
      case 'expire':
        // The lease's attempts stay in `held`: the worker does not know yet that its lease is gone.
        await query(`update worker_lease set expires_at = now() - interval '1 s' where id = $1`, [
          leases[op.lease]!,
        ])
        leases[op.lease] = await ledger.lease()
        return
      case 'recover':
        await db.any(rescueRunningJobs(null))
        return
      case 'schedule':
        await db.one(scheduleJobs(3))
    }
  }

  /** Selects the rows that break an invariant. Every committed state must satisfy the invariants. */
  const violations = () =>
    query(`
      with delivery as (
        select payload ->> 'mailbox' as mailbox, (payload ->> 'first')::bigint as first from graphile_worker._private_jobs
        union all select mailbox, first from worker_delivery
      ), box as (
        select mailbox, min(mailbox_limit) as most, min(ordinal) filter (where status = 'available') as head,
          min(ordinal) filter (where status = 'scheduled' and attempt > 0) as retried,
          count(*) filter (where status = 'running') as running
        from job where status in ('scheduled', 'available', 'running') group by mailbox
      )
      select 'more than its limit of ' || mailbox as what from box where running > most
      union all
      select 'no delivery leads to ' || mailbox from box
      where head is not null and (most is null or running < most) and (most = 1 and retried < head) is not true
        and not exists (select from delivery where delivery.mailbox = box.mailbox and first <= head)
      union all
      select 'seq of ' || id from job where seq <> (select count(*) from job_event where job_id = job.id)
        or seq <> (select coalesce(max(seq), 0) from job_event where job_id = job.id)
      union all
      select 'counts of ' || queue from (
        select queue, queued, running, waiting from job_count
        union all select queue, -(status in ('scheduled', 'available'))::int, -(status = 'running')::int, -(status = 'waiting')::int
        from job where finished_at is null) counts
      group by queue having sum(queued) <> 0 or sum(running) <> 0 or sum(waiting) <> 0
      union all
      select 'dependencies of ' || id from job where status = 'waiting' and after is not null and waits_for <> (
        select count(*) from unnest(after) a(after_id) join job before on before.id = after_id where before.finished_at is null)
      union all
      select 'members of ' || id from job where finished_at is null and payload ? 'is_open' and waits_for <>
        (payload ->> 'is_open')::boolean::int + (select count(*) from job m where m.batch_id = job.id and m.finished_at is null)
      union all
      select id || ' has ended before its members' from job where finished_at is not null and exists (
        select from job m where m.batch_id = job.id and m.finished_at is null)
      union all
      select id || ' depends on what did not succeed' from job where after_outcome = 'done' and attempt > 0 and exists (
        select from unnest(after) a(after_id) join job before on before.id = after_id where before.status <> 'done')`)

  const watch = async (until: Promise<unknown>): Promise<void> => {
    let over = false
    void until.finally(() => {
      over = true
    })
    while (!over) assert.deepEqual(await violations(), [])
  }

  /** Lets one worker with one slot finish all jobs, using only the queue's deliveries. */
  const drain = async (): Promise<void> => {
    // Expires every lease, also those not in `leases`: parallel `expire` operations on one lease each create another.
    await query(`update worker_lease set expires_at = now() - interval '1 s'`)
    leases[0] = await ledger.lease()
    await run({ kind: 'recover' })
    held.length = 0
    await query(`update job set run_at = now() where status = 'scheduled'`)
    while ((await db.one(scheduleJobs(100))).moved > 0);
    for (const batch of batches) await db.any(closeBatch(batch))
    for (let rounds = 0; rounds < 2000 && (await fetch(leases[0]!, 0, 1)); rounds++) {
      await finish([...held], 'done')
      // Actors that waited for these jobs.
      await query(`update job set run_at = now() where status = 'scheduled'`)
      await db.one(scheduleJobs(100))
    }
  }

  /** Asserts that a job's events match its claims, and that only the running attempt wrote progress. */
  const replay = async (id: string): Promise<void> => {
    let attempt = 0
    let lastSeen = 0
    let holder = ''
    for (const { data } of await ledger.events(id)) {
      if (data.attempt !== undefined) {
        assert.equal(data.attempt, attempt, `only the running attempt of ${id} is heard`)
        assert.ok((data.n as number) > lastSeen, `${id} is heard once, and in order`)
        lastSeen = data.n as number
      } else if (data.status === 'running') {
        assert.equal(holder, '', `${id} is not taken from the worker that has it`)
        holder = claims.get(`${id}/${++attempt}`)!
        lastSeen = 0
      } else if (data.status === 'queued' || data.status === 'waiting') holder = ''
    }
    const row = await ledger.row(id)
    assert.equal(row.attempt, attempt)
    if (row.status === 'done')
      assert.deepEqual(row.result, { attempt }, 'the result is that of the last attempt')
  }

  const check = async (): Promise<void> => {
    assert.deepEqual(await violations(), [])
    assert.deepEqual(
      await query('select id, status, mailbox, lease_id from job where not status = any($1)', [
        TERMINAL_STATUSES,
      ]),
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
