import { z } from 'zod'
import type { Caller } from '../../pipeline/access/auth.ts'
import type { Edge } from '../../pipeline/context.ts'
import { Timestamp } from '../../pipeline/request/schemas.ts'

/** Requests and responses of the job routes. */

export const STATUSES = ['waiting', 'queued', 'running', 'done', 'failed', 'cancelled'] as const

const JobError = z.strictObject({ code: z.string(), detail: z.string() })

export const Job = z
  .strictObject({
    job_id: z.uuid(),
    name: z.string(),
    queue: z.string(),
    status: z.enum(STATUSES),
    label: z.string(),
    progress: z.strictObject({ current: z.int().nullable(), total: z.int().nullable() }).nullable(),
    attempts: z.int(),
    retry_of: z.uuid().nullable(),
    batch_id: z.uuid().nullable(),
    result: z.unknown(),
    error: JobError.nullable(),
    created_at: Timestamp,
    run_at: Timestamp.nullable().describe('Earliest next start; null if none is to come'),
    started_at: Timestamp.nullable(),
    finished_at: Timestamp.nullable(),
    expires_at: Timestamp.nullable().describe(
      'Until when the job is kept; null before its end, before that of its batch and in webhooks',
    ),
  })
  .meta({ id: 'Job' })

const JobAttempt = z
  .strictObject({
    attempt: z.int(),
    /** Host and process of the worker; null if the caller may not see them. */
    worker: z.string().nullable(),
    claimed_at: Timestamp,
    ended_at: Timestamp.nullable(),
    waited_seconds: z.number(),
    ran_seconds: z.number().nullable(),
    outcome: z.enum(['done', 'failed', 'cancelled', 'retry', 'release', 'interrupted']).nullable(),
    error: JobError.nullable(),
  })
  .meta({ id: 'JobAttempt' })

const JobLogLine = z
  .strictObject({
    at: Timestamp,
    attempt: z.int().nullable(),
    level: z.string(),
    message: z.string(),
    data: z.record(z.string(), z.unknown()),
  })
  .meta({ id: 'JobLogLine' })

const LINKS = ['document', 'conversation', 'send', 'payment', 'post', 'collection', 'account'] as const

export const JobDetails = z
  .strictObject({
    job: Job,
    owner_id: z.int().nullable(),
    request_id: z.string().nullable(),
    mailbox: z.strictObject({ name: z.string(), limit: z.int().nullable() }).nullable(),
    /** The caller's name for the mailbox; null if there is none, and for other callers. */
    key: z.string().nullable(),
    priority: z.enum(['low', 'normal', 'high']),
    /** The jobs on which it depends, in the caller's order. */
    after: z.array(z.uuid()),
    /** Due time of a scheduled job; null if the job is not scheduled. */
    due_at: Timestamp.nullable(),
    tries: z.int(),
    max_tries: z.int(),
    interruptions: z.int(),
    payload: z.unknown(),
    attempts: z.array(JobAttempt),
    waits_for: z
      .strictObject({
        ahead: z.int(),
        /** Controls that admins have set for the job's queue. */
        queue: z.strictObject({ paused_at: Timestamp.nullable(), limit: z.int().nullable() }),
        running: z.array(z.strictObject({ job_id: z.uuid(), name: z.string() })),
        jobs: z.array(z.strictObject({ job_id: z.uuid(), name: z.string(), status: z.enum(STATUSES) })),
      })
      .nullable(),
    log: z.array(JobLogLine).nullable(),
    chain: z.strictObject({ retry_of: z.array(z.uuid()), retried_by: z.array(z.uuid()) }),
    links: z.array(z.strictObject({ kind: z.enum(LINKS), id: z.string(), path: z.string() })),
  })
  .meta({ id: 'JobDetails' })
export type JobDetails = z.output<typeof JobDetails>

export const JobEvent = z
  .strictObject({ seq: z.int(), kind: z.string(), at: Timestamp, data: z.unknown() })
  .meta({ id: 'JobEvent' })

// Other lists have the same maximum.
export const MAX_EVENTS = 1000

// The schema accepts any text, so that an id that is not a UUID gets the same response as an unknown one.
export const JobParams = z.object({ job_id: z.string() })

export function isAdmin(caller: Caller): boolean {
  return caller.role === 'admin'
}

/** Returns the parameters for reading one job, which is found only if the caller may see it and it has not expired. */
export function buildJobReadParameters({ settings }: Edge, caller: Caller, jobId: string) {
  return [caller.ownerId, isAdmin(caller), jobId, settings.jobRetention] as const
}
