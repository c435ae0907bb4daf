import { z } from 'zod'
import { nothing, type Query, sql } from './db.ts'
import type { Claimed } from './jobs.ts'

/** Jobs that wait in the ledger, and how workers take them and hold them; the invariants are in `schema/06-jobs.sql`. */

/** Staged jobs of one owner or, where nothing holds them, of several. */
export interface Taken {
  /** What they are held by; null: they run already. */
  readonly hold: Hold | null
  readonly jobs: readonly TakenJob[]
}

export interface TakenJob extends Claimed {
  readonly ordinal: number
}

/** A row for jobs that were taken together: none of them is written as running until somebody has to know. */
export interface Hold {
  readonly id: string
  /** When they were taken, as PostgreSQL writes it. */
  readonly since: string
}

/** Of which lane how many staged jobs are wanted: the same number for each of the owners after `afterOwner`. */
export interface Wanted {
  readonly queue: string
  readonly lane: string
  readonly most: number
  readonly afterOwner: number
}

/** What is known before a take. */
export interface Known {
  /** Of these owners only what was added after their floor, the ordinal of a job. */
  readonly floors: ReadonlyMap<number, number>
  /** Whether jobs of other owners are looked for. */
  readonly others: boolean
  /** Holds that are over. */
  readonly spent: readonly string[]
}

/** From so many jobs an owner on a take holds them: fewer are written as running at once. */
export const HOLD_FROM = 16

const Pulled = z.object({ hold: z.string().nullable(), since: z.string().nullable(), jobs: z.string() })

/** Takes staged jobs of one lane; rows for `takenOf`. */
export const takeJobs = (
  lease: string,
  { queue, lane, most, afterOwner }: Wanted,
  { floors, others, spent }: Known,
  holdFrom = HOLD_FROM,
): Query<z.output<typeof Pulled>> =>
  sql.prepared('job_pull', Pulled)`
    select hold::text as hold, held_at::text as since, jobs from job_pull(${lease}::uuid, ${queue}, ${lane}, ${most}::int4,
      ${afterOwner}::int4, ${sql.array([...floors.keys()], 'int4')}, ${sql.array([...floors.values()], 'int8')},
      ${others}::boolean, ${holdFrom}::int4, ${sql.array(spent, 'int8')})`

export const takenOf = ({ hold, since, jobs }: z.output<typeof Pulled>): Taken => ({
  hold: hold === null ? null : { id: hold, since: since! },
  jobs: (JSON.parse(jobs) as Parameters<typeof takenJob>[0][]).map(takenJob),
})

const takenJob = ([
  id,
  ordinal,
  attempt,
  tries,
  max_tries,
  delivery,
  owner,
  name,
  request_id,
  payload,
]: readonly [
  id: string,
  ordinal: number,
  attempt: number,
  tries: number,
  max_tries: number,
  delivery: number,
  owner: number,
  name: string,
  request_id: string | null,
  payload: string,
]): TakenJob => ({
  id,
  ordinal,
  attempt,
  tries,
  max_tries,
  delivery,
  owner_id: owner === 0 ? null : owner,
  name,
  actor: null,
  request_id,
  payload,
  // One that was interrupted has a delivery of its own.
  interruptions: 0,
})

/**
 * Writes that jobs run which are held; those that are not stay as they are. `waits`: until their attempts have no fence up;
 * else a row for each that has.
 */
export const beginJobs = (ids: readonly string[], waits: boolean): Query<{ id: string }> =>
  sql.prepared(
    'job_begin',
    z.object({ id: z.string() }),
  )`select id from job_begin(${sql.array(ids, 'uuid')}, ${waits}::boolean) as id`

/** Removes holds that are over; without jobs that have ended theirs can be taken again. */
export const dropHolds = (ids: readonly string[]): Query<unknown> =>
  sql.prepared('job_hold_drop', nothing)`delete from job_hold where id = any(${sql.array(ids, 'int8')})`

/** Which of these lanes have staged jobs: `queue/lane`. */
export const stagedLanes = (queues: readonly string[], lanes: readonly string[]): Query<{ key: string }> =>
  sql.type(z.object({ key: z.string() }))`
    select queue || '/' || lane as key from unnest(${sql.array(queues, 'text')}, ${sql.array(lanes, 'text')}) as l(queue, lane)
    where exists (select from job where job.queue = l.queue and job.lane = l.lane and job.status = 'queued' and job.actor is null)`
