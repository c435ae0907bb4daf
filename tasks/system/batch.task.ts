import { z } from 'zod'
import { BATCH_TASK, countBatchJobs } from '../../sql/jobs/batches.ts'
import { defineTask } from '../task.ts'

/** Ends a batch: it waits until the batch is closed and all of its jobs have ended, then counts these. */
export const endBatch = defineTask({
  name: BATCH_TASK,
  queue: 'system',
  pool: 'io',
  // Neither a pause nor a limit of its queue delays the end of a batch.
  isTool: true,
  payload: z.strictObject({ name: z.string().nullable(), is_open: z.boolean() }),
  result: z.strictObject({ total: z.int(), done: z.int(), failed: z.int(), cancelled: z.int() }),
  refusesRetry: true,
  run: ({ db, job }) => db.one(countBatchJobs(job.id)),
})
