import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'

const TimeField = z.iso.datetime({ offset: true })

/** A filter for jobs; absent fields match any job. */
export const JobFilter = z.strictObject({
  status: z.enum(['waiting', 'queued', 'running', 'done', 'failed', 'cancelled']).optional(),
  queue: z.string().max(100).optional(),
  task: z.string().max(100).optional(),
  code: z.string().max(100).optional().describe('Error code of the failed job'),
  owner_id: z.int().min(1).max(2_147_483_647).optional(),
  batch: z.uuid().optional().describe('The batch to which the job belongs'),
  key: z.string().min(1).max(200).optional().describe("The caller's key of the job"),
  request_id: z.string().max(200).optional(),
  from: TimeField.optional().describe('Created at this time or later'),
  to: TimeField.optional().describe('Created before this time'),
  search: z.string().min(1).max(200).optional().describe('Part of the label or the error message'),
})

export const JobsAction = z.strictObject({
  action: z.enum(['retry', 'cancel', 'delete']).describe('`delete` applies to jobs that have ended'),
  filter: JobFilter.default({}),
  ids: z
    .array(z.uuid())
    .min(1)
    .max(1000)
    .optional()
    .describe('Restricts the action to these of the matching jobs'),
})

/** The action, and the jobs that its caller may change: those of any owner, or only those of this job's owner. */
const JobsActionPayload = JobsAction.extend({ owners: z.enum(['any', 'own']) })
export type JobsActionPayload = z.output<typeof JobsActionPayload>

export const JobsActionResult = z.strictObject({
  /** Number of jobs that now have the requested state. */
  done: z.int(),
  /** Number of jobs that this version cannot run, or that changed in the meantime. */
  refused: z.int(),
  /** True if more jobs match than one action may change. */
  more: z.boolean(),
})

// Limits the actions of an account, which leaves room for those of others.
const MAX_CONCURRENT_ACTIONS = 4

/**
 * Retries, cancels or deletes the jobs that matched a filter when this job was added, in batches of one transaction each.
 * Safe to repeat.
 */
export const bulkJobs = defineTask({
  name: 'jobs.bulk',
  queue: 'system',
  pool: 'io',
  isTool: true,
  // Its caller may have lost the right to change the jobs of others.
  refusesRetry: true,
  limit: MAX_CONCURRENT_ACTIONS,
  payload: JobsActionPayload,
  result: JobsActionResult,
  run: loadLazily(() => import('./bulk.work.ts')),
})
