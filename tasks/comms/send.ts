import { setTimeout as delay } from 'node:timers/promises'
import {
  beginRequest,
  type Channel,
  type Send,
  sendById,
  settleFailed,
  settleSent,
  settleUnknown,
  takenIds,
} from '../../sql/comms.ts'
import { type ErrorCode, Failure, fail } from '../../sql/errors.ts'
import type { TaskContext } from '../context.ts'
import type { Found, Handed, Request } from './ports.ts'

/**
 * Sends a message once, however often its job runs. A request is noted in the ledger before it goes out, and what
 * became of it after it was answered. What was certainly not taken (refused, too many requests, no connection) may go
 * out again. What may have been taken never does, unless the provider itself takes a repetition for the same message:
 * it is looked up where the provider has a list, and is `unknown` where that does not settle it.
 */

/** What the channels differ in. */
export interface Medium {
  readonly channel: Channel
  /** The provider knows a message that comes twice. */
  readonly repeatable: boolean
  hand(request: Request): Promise<Handed>
  /** What the provider has that looks like it, since a time in ms; absent: there is no list. */
  readonly find?: (sinceMs: number, signal: AbortSignal) => Promise<readonly Found[]>
  /** When to look there, in ms after the request ended. */
  readonly looksMs?: readonly number[]
  /** What a failure of the provider is called. */
  readonly failed: ErrorCode
}

// Our clock and the provider's may differ by this much, and the provider's counts whole seconds.
const CLOCK_SKEW_MS = 30_000

const CUT_OFF = 'The attempt to send it was cut off before the provider had answered'

// An attempt that is cut short while it waits for its turn has done nothing wrong: a job is not given up because of a few
// such, but is because of so many.
const PATIENT_ATTEMPTS = 25

/** Sends it, unless an earlier attempt has. Answers the row once it is settled: `sent` or `unknown`. */
export async function sendOnce(ctx: TaskContext, id: string, mediumOf: MediumOf): Promise<Send> {
  if (ctx.job.attempt > 1 && ctx.job.attempt <= PATIENT_ATTEMPTS)
    ctx.progress('Waits for its turn, once more')
  const send = await ctx.db.one(sendById(id))
  if (send.status === 'sent' || send.status === 'unknown') return send
  const medium = mediumOf(send)
  // An earlier attempt came as far as this, and did not live to hear the answer.
  if (send.status === 'sending' && !medium.repeatable)
    return lookUp(ctx, send, medium, { kind: 'unknown', reason: CUT_OFF, answered: false })
  return request(ctx, send, medium)
}

export type MediumOf = (send: Send) => Medium

async function request(ctx: TaskContext, send: Send, medium: Medium): Promise<Send> {
  let begun: Send | null = null
  const begin = async (): Promise<void> => {
    begun = await ctx.fenced((tx) => tx.maybeOne(beginRequest(send.id, medium.repeatable)))
    if (begun === null) throw new AlreadySettled()
    ctx.progress('Handed over to the provider')
  }
  let handed: Handed
  try {
    handed = await medium.hand({ signal: ctx.signal, begin })
  } catch (error) {
    if (error instanceof AlreadySettled) return ctx.db.one(sendById(send.id))
    // That this request was not taken says nothing about one before it that may have been.
    if (error instanceof Failure && error.code !== 'job.superseded' && send.status !== 'sending')
      await persist(ctx, () => ctx.db.run(settleFailed(send.id, error.code, error.detail)))
    throw error
  }
  if (handed.kind === 'taken') return store(ctx, send, handed)
  return lookUp(ctx, begun ?? send, medium, handed)
}

/** Somebody else has settled it since this attempt began. */
class AlreadySettled extends Error {}

/** Settles what may have been taken: by the provider's list, or as unknown. */
async function lookUp(
  ctx: TaskContext,
  send: Send,
  medium: Medium,
  handed: Handed & { kind: 'unknown' },
): Promise<Send> {
  // The same message, again: the next attempt of the job does that.
  if (medium.repeatable) throw fail(medium.failed, { reason: handed.reason })
  const found = await lookRepeatedly(ctx, send, medium)
  if (found !== null) return store(ctx, send, { kind: 'taken', detail: null, ...found })
  if (handed.answered) {
    const failure = fail(medium.failed, { reason: handed.reason })
    await persist(ctx, () => ctx.db.run(settleFailed(send.id, failure.code, failure.detail)))
    throw failure
  }
  // Cut short by a stop or a time limit: another attempt comes, and looks again.
  if (ctx.signal.aborted && ctx.signal.reason !== 'cancelled') ctx.signal.throwIfAborted()
  await persist(ctx, () => ctx.db.run(settleUnknown(send.id, handed.reason)))
  ctx.log.warn({ sendId: send.id, reason: handed.reason }, 'It is unknown whether a message was sent')
  return ctx.db.one(sendById(send.id))
}

async function lookRepeatedly(ctx: TaskContext, send: Send, medium: Medium): Promise<Found | null> {
  const { find, looksMs = [0] } = medium
  if (find === undefined) return null
  for (const [n, at] of looksMs.entries()) {
    if (ctx.signal.aborted) return null
    await delay(at - (looksMs[n - 1] ?? 0), undefined, { signal: ctx.signal }).catch(() => {})
    // A provider that can't be asked does not settle it; the job has no use for its failure.
    const found = await look(ctx, send, medium).catch((error) => {
      ctx.log.warn({ sendId: send.id, error: String(error) }, 'The provider could not be asked')
      return null
    })
    if (found !== null) return found
  }
  return null
}

/** What the provider has of a send and no other send has claimed; null when there is nothing, or it has no list. */
export async function look(ctx: TaskContext, send: Send, medium: Medium): Promise<Found | null> {
  if (medium.find === undefined) return null
  const since = (send.requested_ms ?? send.created_ms) - CLOCK_SKEW_MS
  const all = await medium.find(since, ctx.signal)
  if (all.length === 0) return null
  const rows = await ctx.db.any(takenIds(medium.channel, send.recipients[0]!, since - CLOCK_SKEW_MS))
  const taken = new Set(rows.map((row) => row.provider_id))
  return all.find(({ providerId }) => !taken.has(providerId)) ?? null
}

/** Stores what was taken. Not fenced: what the provider has is true whoever heard of it. */
export async function store(ctx: TaskContext, send: Send, taken: Handed & { kind: 'taken' }): Promise<Send> {
  const stored = await persist(ctx, () => ctx.db.maybeOne(settleSent(send.id, taken)))
  return stored ?? ctx.db.one(sendById(send.id))
}

/** Repeats a write through an outage for a while: what is not stored now is asked of the provider again. */
async function persist<T>(ctx: TaskContext, write: () => Promise<T>): Promise<T> {
  for (let failures = 0; ; failures++) {
    try {
      return await write()
    } catch (error) {
      if (failures >= 8 || !(error instanceof Failure && error.retryable)) throw error
      await delay(Math.min(50 * 2 ** failures, 2000), undefined, { signal: ctx.signal }).catch(() => {
        throw error
      })
    }
  }
}

/** The message of a send that is not settled. @throws when it is gone, which the ledger's constraints rule out. */
export function messageOf<M>(send: Send, schema: { parse(value: unknown): M }): M {
  return schema.parse(send.message)
}

/** What is written about a send that nobody knows the end of. */
export function unknownText(send: Send): string {
  return `Whether it was sent is unknown: ${send.detail}. It is not sent again by itself.`
}
