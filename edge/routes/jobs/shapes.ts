import { z } from 'zod'
import type { Caller } from '../../pipeline/auth.ts'
import type { Edge } from '../../pipeline/context.ts'
import { Timestamp } from '../../pipeline/schemas.ts'

/** Requests and responses of the job routes. */

export const STATUSES = ['queued', 'running', 'done', 'failed', 'cancelled'] as const

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
    result: z.unknown(),
    error: z.strictObject({ code: z.string(), detail: z.string() }).nullable(),
    created_at: Timestamp,
    started_at: Timestamp.nullable(),
    finished_at: Timestamp.nullable(),
  })
  .meta({ id: 'Job' })

export const JobEvent = z
  .strictObject({ seq: z.int(), kind: z.string(), at: Timestamp, data: z.unknown() })
  .meta({ id: 'JobEvent' })

// The maximum length of a list, as elsewhere.
export const MOST_EVENTS = 1000

// An id that is not a UUID gets the same response as an unknown one.
export const JobParams = z.object({ job_id: z.string() })

export function isAdmin(caller: Caller): boolean {
  return caller.role === 'admin'
}

/** Parameters for reading one job: it is found if the caller may see it, as long as it is kept. */
export function visible({ settings }: Edge, caller: Caller, jobId: string) {
  return [caller.ownerId, isAdmin(caller), jobId, settings.keepResultSeconds] as const
}
