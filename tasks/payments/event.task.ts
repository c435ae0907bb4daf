import { z } from 'zod'
import type { Queries } from '../../sql/db.ts'
import { linkEventToJob, type NewEvent, storeEvent } from '../../sql/payments/changes.ts'
import { defineTask, type EnqueueOptions, enqueue, loadLazily } from '../task.ts'
import { subjectOf, toProviderEvent } from './provider-events.ts'
import { objectOf } from './reading.ts'

/** Applies a stored event. Idempotent: the result depends only on the event and the existing rows. */
export const applyEvent = defineTask({
  name: 'payments.event',
  queue: 'payments',
  pool: 'io',
  actor: ({ subject }) => `payment:${subject}`,
  payload: z.strictObject({ event_id: z.string(), subject: z.string() }),
  result: z.strictObject({}),
  // High, because no caller retries this job, but it must eventually succeed. The last retry starts after about 40
  // minutes.
  tries: 16,
  timeoutSeconds: 60,
  run: loadLazily(() => import('./event.work.ts')),
})

/**
 * Stores an event and enqueues its job in the same transaction. `fresh` is true if the call enqueued a job. Otherwise
 * `jobId` is the job that already handles the event, or null if the event is applied.
 */
export async function ingestEvent(
  tx: Queries,
  event: NewEvent,
  options: EnqueueOptions,
): Promise<{ jobId: string | null; fresh: boolean }> {
  const { fresh, job_id } = await tx.one(storeEvent(event))
  if (!fresh) return { jobId: job_id, fresh }
  const subject = subjectOf(toProviderEvent(event.type, event.created, objectOf(event.data)))
  const { jobId } = await enqueue(tx, applyEvent, { event_id: event.id, subject }, options)
  await tx.run(linkEventToJob(event.id, jobId))
  return { jobId, fresh }
}
