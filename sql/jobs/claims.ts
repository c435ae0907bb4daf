import { z } from 'zod'
import { noRows, type Query, sql } from '../db.ts'

/** Deliveries from the queue, and statements to claim jobs with them; see `functions/job_claim.sql`. */

/** A delivery says that a mailbox has due jobs of a task, starting at an ordinal. */
export interface Delivery {
  readonly task: string
  readonly mailbox: string
  /** Concurrency limit of the mailbox; null if unlimited. */
  readonly limit: number | null
  readonly first: number
  /** Id of the job at `first`. */
  readonly id: string
  /** Owner of the first job; null: none. */
  readonly owner: number | null
  /** Priority of the first job: -1 high, 1 low; null for normal. */
  readonly priority?: -1 | 1 | null
}

export interface ClaimedJob {
  readonly id: string
  readonly name: string
  readonly attempt: number
  readonly tries: number
  readonly max_tries: number
  /** Number of process deaths while the job ran. If it reaches `SUSPECT_FROM`, an isolated runner runs the job. */
  readonly interruptions: number
  readonly owner_id: number | null
  readonly mailbox: string
  readonly mailbox_limit: number | null
  readonly request_id: string | null
  /** traceparent of the enqueuing span (W3C Trace Context); null if the job is not traced. */
  readonly trace_parent: string | null
  /** JSON text, which only the thread that runs the job parses. */
  readonly payload: string
  /** Seconds between the due time and the claim. */
  readonly waited: number
  /** Number of the claim's event. */
  readonly seq: number
}

/** A delivery and the number of free slots for its jobs. */
export interface ClaimRequest {
  readonly delivery: Delivery
  readonly freeSlots: number
}

const ClaimResult = z.object({
  claims: z.string().nullable(),
  /** Mailboxes whose delivery is not done: claim with it again. */
  again: z.array(z.string()),
  /** Time until a job may start that its rate holds back, in ms; null if there is none. */
  wait_ms: z.number().nullable(),
  /** True if subscribers have been notified of the jobs. */
  notified: z.boolean(),
})
type ClaimResult = z.output<typeof ClaimResult>

/**
 * Claims at most `freeSlots` jobs per delivery; each delivery must have a different mailbox. Parse the result with
 * `parseClaims`. With `notifies`, or with a delivery, the statement also notifies subscribers, which saves a round trip.
 */
export const claimJobs = (
  lease: string,
  wanted: readonly ClaimRequest[],
  notifies = false,
): Query<ClaimResult> => {
  const column = <T>(of: (one: ClaimRequest) => T): readonly T[] => wanted.map(of)
  return sql.prepared('job_claim', ClaimResult)`
    select claims, again, wait_ms, case when claims is not null and (${notifies}::boolean or delivers)
      then job_notify(array(select (one ->> 0)::uuid from json_array_elements(claims::json) one)) end is not null as notified
    from job_claim(${lease}::uuid,
      ${sql.array(
        column(({ delivery }) => delivery.task),
        'text',
      )},
      ${sql.array(
        column(({ delivery }) => delivery.mailbox),
        'text',
      )},
      ${sql.array(
        column(({ delivery }) => delivery.limit),
        'int4',
      )},
      ${sql.array(
        column(({ delivery }) => delivery.first),
        'int8',
      )},
      ${sql.array(
        column(({ freeSlots }) => freeSlots),
        'int4',
      )})`
}

type ClaimedTuple = readonly [
  id: string,
  name: string,
  attempt: number,
  tries: number,
  max_tries: number,
  interruptions: number,
  owner_id: number | null,
  mailbox: string,
  mailbox_limit: number | null,
  request_id: string | null,
  payload: string,
  waited: number,
  trace_parent: string | null,
  seq: number,
]

/** Returns the claimed jobs in the order in which they were added. */
export const parseClaims = ({ claims }: Pick<ClaimResult, 'claims'>): readonly ClaimedJob[] =>
  claims === null ? [] : (JSON.parse(claims) as ClaimedTuple[]).map(toClaimedJob)

const toClaimedJob = ([
  id,
  name,
  attempt,
  tries,
  max_tries,
  interruptions,
  owner_id,
  mailbox,
  mailbox_limit,
  request_id,
  payload,
  waited,
  trace_parent,
  seq,
]: ClaimedTuple): ClaimedJob => ({
  id,
  name,
  attempt,
  tries,
  max_tries,
  interruptions,
  owner_id,
  mailbox,
  mailbox_limit,
  request_id,
  payload,
  waited,
  trace_parent,
  seq,
})

/** Adds deliveries to the end of the queue, for any worker. */
export const requeueDeliveries = (deliveries: readonly Delivery[]): Query<unknown> =>
  sql.type(noRows)`select job_deliver(${sql.array(
    deliveries.map(({ id }) => id),
    'uuid',
  )})`
