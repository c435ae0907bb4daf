import { z } from 'zod'
import type { Queries } from '../../sql/db.ts'
import {
  applyStoredEvent,
  type NewEvent,
  pendingEvent,
  takeEvent,
  tieEventToJob,
} from '../../sql/payment-changes.ts'
import { defineTask, type EnqueueOptions, enqueue } from '../task.ts'
import { changesOf, lookUpOf, type ProviderEvent, subjectOf } from './changes.ts'
import { lookUp } from './look-up.ts'
import { isDeeper, objectOf, type ProviderObject, storable } from './reading.ts'

/** Applies a stored event. What it does is decided by the event and the rows alone, and doing it again changes nothing. */
export const applyEvent = defineTask({
  name: 'payments.event',
  queue: 'payments',
  pool: 'io',
  actor: ({ subject }) => `payment:${subject}`,
  payload: z.strictObject({ event_id: z.string(), subject: z.string() }),
  result: z.strictObject({}),
  // Nobody waits for it, and it has to be done some time: an hour passes before the last one.
  tries: 16,
  timeoutSeconds: 60,
  run: async ({ db, settings, job }, { event_id }) => {
    const pending = await db.maybeOne(pendingEvent(event_id))
    if (pending === null) return {}
    const event = asEvent(pending.type, pending.at, objectOf(pending.data))
    const wanted = settings.payments.secretKey === undefined ? null : lookUpOf(event)
    // Without a fence: of two attempts at once, one applies it, and it does not matter which.
    const apply = applyStoredEvent(event_id, changesOf(event))
    if (wanted === null) await db.one(apply)
    else
      await db.transaction(async (tx) => {
        const { applied } = await tx.one(apply)
        const options = { ownerId: null, requestId: job.requestId, maxTries: settings.workerMaxTries }
        if (applied) await enqueue(tx, lookUp, wanted, options)
      })
    return {}
  },
})

const Envelope = z.looseObject({
  id: z.string().min(1).max(255),
  type: z.string().min(1).max(255),
  created: z.int().min(0).max(100_000_000_000),
  data: z.looseObject({ object: z.looseObject({}) }),
})

// The provider's own are less than ten deep; what walks them must not run out of stack.
const DEEPEST = 64

/** An event as the provider sends it, ready to be stored; null when it is none. */
export function readEvent(given: unknown): NewEvent | null {
  const result = Envelope.safeParse(given)
  if (!result.success || isDeeper(result.data.data, DEEPEST)) return null
  const { id, type, created, data } = result.data
  const { object, previous_attributes: before } = data
  return {
    id: String(storable(id)),
    type: String(storable(type)),
    created,
    data: storable({ object, previous_attributes: objectOf(before) }),
  }
}

function asEvent(type: string, at: number, data: ProviderObject): ProviderEvent {
  return { type, at, object: objectOf(data.object), before: objectOf(data.previous_attributes) }
}

/** Stores an event and adds its job, both or neither; the job that it has, or null when it was applied before. */
export async function takeIn(
  tx: Queries,
  event: NewEvent,
  options: EnqueueOptions,
): Promise<{ jobId: string | null; fresh: boolean }> {
  const { fresh, job_id } = await tx.one(takeEvent(event))
  if (!fresh) return { jobId: job_id, fresh }
  const subject = subjectOf(asEvent(event.type, event.created, objectOf(event.data)))
  const { jobId } = await enqueue(tx, applyEvent, { event_id: event.id, subject }, options)
  await tx.run(tieEventToJob(event.id, jobId))
  return { jobId, fresh }
}
