import { z } from 'zod'
import { defineTask, lazily } from '../task.ts'

const Time = z.iso.datetime({ offset: true })

/** Which jobs are meant; what is absent may be anything. */
export const JobFilter = z
  .strictObject({
    status: z.enum(['queued', 'running', 'done', 'failed', 'cancelled']).optional(),
    queue: z.string().max(100).optional(),
    task: z.string().max(100).optional(),
    code: z.string().max(100).optional().describe('The code of the error that a job failed with'),
    owner_id: z.int().min(1).max(2_147_483_647).optional(),
    request_id: z.string().max(200).optional(),
    from: Time.optional().describe('Added at this time or later'),
    to: Time.optional().describe('Added before this time'),
    search: z.string().min(1).max(200).optional().describe("A part of the label, or of the error's text"),
  })
  .meta({ id: 'JobFilter' })

export const JobsAction = z
  .strictObject({
    action: z.enum(['retry', 'cancel', 'delete']).describe('`delete`: of jobs that have ended'),
    filter: JobFilter.default({}),
    ids: z.array(z.uuid()).min(1).max(1000).optional().describe('Only these, of those that the filter means'),
  })
  .meta({ id: 'JobsAction' })
export type JobsAction = z.output<typeof JobsAction>

export const JobsActed = z.strictObject({
  /** Jobs that are as asked for now. */
  done: z.int(),
  /** Jobs that this version cannot run again, or that have changed meanwhile. */
  refused: z.int(),
  /** Whether there are more than one action is for. */
  more: z.boolean(),
})
export type JobsActed = z.output<typeof JobsActed>

/**
 * Retries, cancels or deletes the jobs of a filter that there were when it was added, each in a transaction of its own. Doing it
 * again changes nothing.
 */
export const bulkJobs = defineTask({
  name: 'jobs.bulk',
  queue: 'system',
  pool: 'io',
  payload: JobsAction,
  result: JobsActed,
  run: lazily(() => import('./bulk-run.ts')),
})
