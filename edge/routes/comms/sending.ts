import { type Channel, insertSend, msUntil, type SendAttachment } from '../../../sql/comms.ts'
import type { Queries } from '../../../sql/db.ts'
import { uuidv7 } from '../../../sql/ids.ts'
import { enqueue, type JobRef, type TaskDefinition } from '../../../tasks/task.ts'
import type { Caller } from '../../pipeline/auth.ts'
import type { Edge } from '../../pipeline/context.ts'
import { invalid } from '../../pipeline/input.ts'
import { MAX_DAYS_AHEAD } from './shapes.ts'

/** How all channels send: a row of the ledger and its job, in the transaction of the request. */

export interface SendInput {
  readonly edge: Edge
  readonly caller: Caller
  readonly tx: Queries
  readonly requestId: string
}

/** A message to send: of the task of its channel, with what its job and its answers have of it. */
interface Sending<P, R> {
  readonly channel: Channel
  readonly task: TaskDefinition<P & { readonly send_id: string }, R>
  readonly payload: P
  readonly to: readonly string[]
  readonly message: object
  /** When to send it; absent: at once. */
  readonly sendAt: string | undefined
  /** The template that it was made of. */
  readonly template: string | undefined
  readonly attachments?: readonly SendAttachment[]
  /** What a caller is answered whose message is scheduled. */
  readonly scheduled: (answer: Scheduled) => R
}

/** What the answers about all scheduled messages have in common. */
interface Scheduled {
  readonly id: string
  readonly status: 'scheduled'
  readonly message: string
}

const DAY_MS = 86_400_000

/** Adds a message and its job. @throws request.invalid for a time that has passed, or is too far ahead. */
export async function sendJob<P, R>(
  { edge, caller, tx, requestId }: SendInput,
  { channel, task, payload, to, message, sendAt, template, attachments, scheduled }: Sending<P, R>,
): Promise<JobRef<R>> {
  const { ownerId } = caller
  const id = uuidv7()
  const delayMs = sendAt === undefined ? 0 : await delayOf(tx, sendAt)
  const options = { ownerId, requestId, delayMs, settings: edge.settings }
  const ref = await enqueue(tx, task, { ...payload, send_id: id }, options)
  const row = { id, channel, ownerId, jobId: ref.jobId, recipients: to, message }
  await tx.run(
    insertSend({
      ...row,
      sendAt: sendAt ?? null,
      template: template ?? null,
      attachments: attachments ?? [],
    }),
  )
  if (sendAt === undefined) return ref
  const text = `It is to be sent at ${new Date(sendAt).toISOString()}`
  return { ...ref, answer: scheduled({ id, status: 'scheduled', message: text }) }
}

async function delayOf(tx: Queries, sendAt: string): Promise<number> {
  const { ms } = await tx.one(msUntil(sendAt))
  if (ms <= 0) throw invalid('body', 'send_at', 'must be in the future', 'too_small')
  if (ms > MAX_DAYS_AHEAD * DAY_MS)
    throw invalid('body', 'send_at', `must be at most ${MAX_DAYS_AHEAD} days ahead`, 'too_big')
  return ms
}
