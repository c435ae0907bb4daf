import { z } from 'zod'
import type { Queries } from '../../sql/db.ts'
import { linkEventToJob, type NewEvent, takeEvent } from '../../sql/payment-changes.ts'
import { defineTask, type EnqueueOptions, enqueue, lazily } from '../task.ts'
import { asEvent, subjectOf } from './provider-events.ts'
import { objectOf } from './reading.ts'

/** Applies a stored event. The result depends only on the event and the rows, and doing it again changes nothing. */
export const applyEvent = defineTask({
  name: 'payments.event',
  queue: 'payments',
  pool: 'io',
  actor: ({ subject }) => `payment:${subject}`,
  payload: z.strictObject({ event_id: z.string(), subject: z.string() }),
  result: z.strictObject({}),
  // Nobody waits for it, but it must be done eventually: an hour passes before the last try.
  tries: 16,
  timeoutSeconds: 60,
  run: lazily(() => import('./event-run.ts')),
})

/** Stores an event and adds its job, both or neither. Returns its job, or null when it was applied before. */
export async function ingestEvent(
  tx: Queries,
  event: NewEvent,
  options: EnqueueOptions,
): Promise<{ jobId: string | null; fresh: boolean }> {
  const { fresh, job_id } = await tx.one(takeEvent(event))
  if (!fresh) return { jobId: job_id, fresh }
  const subject = subjectOf(asEvent(event.type, event.created, objectOf(event.data)))
  const { jobId } = await enqueue(tx, applyEvent, { event_id: event.id, subject }, options)
  await tx.run(linkEventToJob(event.id, jobId))
  return { jobId, fresh }
}
