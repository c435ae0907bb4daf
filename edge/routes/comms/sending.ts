import {
  type Channel,
  computeMsUntil,
  insertSend,
  type SendAttachment,
  type SendStream,
} from '../../../sql/comms/sends.ts'
import type { Queries } from '../../../sql/db.ts'
import { uuidv7 } from '../../../sql/ids.ts'
import { enqueue, type JobRef, type TaskDefinition } from '../../../tasks/task.ts'
import type { Caller } from '../../pipeline/access/auth.ts'
import type { Edge } from '../../pipeline/context.ts'
import { failInvalidField } from '../../pipeline/request/input.ts'
import { MAX_DAYS_AHEAD } from './shapes.ts'

/** Sends messages of all channels by adding a ledger row and its job in the transaction of the request. */

export interface SendInput {
  readonly edge: Edge
  readonly caller: Caller
  readonly tx: Queries
  readonly requestId: string
}

/** A message to send, with the task of its channel and the payload of its job. */
interface OutgoingMessage<P, R> {
  readonly channel: Channel
  readonly task: TaskDefinition<P & { readonly send_id: string }, R>
  readonly payload: P
  readonly to: readonly string[]
  readonly message: object
  /** Time to send the message; undefined means immediately. */
  readonly sendAt: string | undefined
  /** Name of the template that the message was rendered from; undefined without one. */
  readonly template: string | undefined
  readonly attachments?: readonly SendAttachment[]
  /** All recipients, also of copies; default `to`. */
  readonly addresses?: readonly string[]
  readonly stream?: SendStream
  /** Builds the answer for a scheduled message. */
  readonly buildScheduledAnswer: (answer: ScheduledAnswer) => R
}

/** Fields that all answers for scheduled messages share. */
interface ScheduledAnswer {
  readonly id: string
  readonly status: 'scheduled'
  readonly message: string
}

const DAY_MS = 86_400_000

/** Adds a message and its job. @throws request.invalid if `sendAt` has passed or is too far ahead. */
export async function enqueueSend<P, R>(
  { edge, caller, tx, requestId }: SendInput,
  {
    channel,
    task,
    payload,
    to,
    message,
    sendAt,
    template,
    attachments,
    addresses = to,
    stream = 'transactional',
    buildScheduledAnswer,
  }: OutgoingMessage<P, R>,
): Promise<JobRef<R>> {
  const { ownerId } = caller
  const id = uuidv7()
  const delayMs = sendAt === undefined ? 0 : await requireDelay(tx, sendAt)
  const options = { ownerId, requestId, delayMs, settings: edge.settings }
  const ref = await enqueue(tx, task, { ...payload, send_id: id }, options)
  const row = { id, channel, ownerId, jobId: ref.jobId, recipients: to, message }
  await tx.run(
    insertSend({
      ...row,
      sendAt: sendAt ?? null,
      template: template ?? null,
      attachments: attachments ?? [],
      addresses,
      stream,
    }),
  )
  if (sendAt === undefined) return ref
  const text = `The message is scheduled for ${new Date(sendAt).toISOString()}`
  return { ...ref, immediateResult: buildScheduledAnswer({ id, status: 'scheduled', message: text }) }
}

async function requireDelay(tx: Queries, sendAt: string): Promise<number> {
  const { ms } = await tx.one(computeMsUntil(sendAt))
  if (ms <= 0) throw failInvalidField('body', 'send_at', 'must be in the future', 'too_small')
  if (ms > MAX_DAYS_AHEAD * DAY_MS)
    throw failInvalidField('body', 'send_at', `must be at most ${MAX_DAYS_AHEAD} days ahead`, 'too_big')
  return ms
}
