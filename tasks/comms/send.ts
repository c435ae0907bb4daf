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
 * Sends a message once, however often its job runs. The ledger records a request before it is sent, and its outcome
 * afterwards. A message that was certainly not accepted (refused, too many requests, no connection) may be sent again.
 * One that may have been accepted never is, unless the provider itself recognizes repetitions: it is looked up if the
 * provider has a list, and is `unknown` if that does not settle it.
 */

/** What differs between channels. */
export interface Medium {
  readonly channel: Channel
  /** Whether the provider recognizes a message that is sent twice. */
  readonly repeatable: boolean
  hand(request: Request): Promise<Handed>
  /** The provider's messages since a time in ms that match this one; absent: there is no list. */
  readonly find?: (sinceMs: number, signal: AbortSignal) => Promise<readonly Found[]>
  /** When to look it up, in ms after the request ended. */
  readonly looksMs?: readonly number[]
  /** The error code of a provider failure. */
  readonly failed: ErrorCode
}

// Our clock and the provider's may differ by this much, and the provider's counts whole seconds.
const CLOCK_SKEW_MS = 30_000

const CUT_OFF = 'the attempt was cut off before the provider answered'

// Many heartbeats.
const HEARD_WITHIN_MS = 10_000

// An attempt that is cut short while it waits for its turn is not to blame: the job is given up only after this many of
// them.
const PATIENT_ATTEMPTS = 25

/** Sends it, unless an earlier attempt has. Returns the row once it is settled: accepted, whatever became of it, or `unknown`. */
export async function sendOnce(ctx: TaskContext, id: string, mediumOf: MediumOf): Promise<Send> {
  if (ctx.job.attempt > 1 && ctx.job.attempt <= PATIENT_ATTEMPTS)
    ctx.progress('Waiting for its turn once more')
  for (;;) {
    const send = await ctx.db.one(sendById(id))
    if (isSettled(send)) return send
    if (send.status === 'cancelled') await endAsCancelled(ctx)
    const medium = mediumOf(send)
    // An earlier attempt got this far, and ended before the answer arrived.
    const isCutOff = send.status === 'sending' && !medium.repeatable
    const settled = isCutOff
      ? await lookUp(ctx, send, medium, { kind: 'unknown', reason: CUT_OFF, answered: false })
      : await request(ctx, send, medium)
    if (settled !== null) return settled
  }
}

/** Whether there is nothing left to send; one that failed with the provider's id was accepted. */
function isSettled({ status, provider_id: providerId }: Send): boolean {
  return providerId !== null || status === 'sent' || status === 'unknown'
}

/**
 * Waits for its worker to be told that the job is cancelled, which happened together with the message: at the next heartbeat.
 * @throws what that aborts it with.
 */
async function endAsCancelled({ signal }: TaskContext): Promise<never> {
  await delay(HEARD_WITHIN_MS, undefined, { signal })
  throw fail('job.cancelled')
}

export type MediumOf = (send: Send) => Medium

/** Null: somebody else has changed it meanwhile, such as an attempt that was taken over and knows more. */
async function request(ctx: TaskContext, send: Send, medium: Medium): Promise<Send | null> {
  let begun: Send | null = null
  const begin = async (): Promise<void> => {
    begun = await ctx.fenced((tx) => tx.maybeOne(beginRequest(send.id, ctx.job, medium.repeatable)))
    if (begun === null) throw new AlreadySettled()
    ctx.progress('Handed over to the provider')
  }
  let handed: Handed
  try {
    handed = await medium.hand({ signal: ctx.signal, begin })
  } catch (error) {
    if (error instanceof AlreadySettled) return null
    // This request was not accepted, but an earlier one may have been.
    if (error instanceof Failure && error.code !== 'job.superseded' && send.status !== 'sending')
      await persist(ctx, () => ctx.db.run(settleFailed(send.id, ctx.job.attempt, error.code, error.detail)))
    throw error
  }
  if (handed.kind === 'taken') return store(ctx, send, handed)
  return lookUp(ctx, begun ?? send, medium, handed)
}

/** Somebody else has settled it since this attempt began. */
class AlreadySettled extends Error {}

/** Settles a message that may have been accepted: by the provider's list, or as unknown. Null as in `request`. */
async function lookUp(
  ctx: TaskContext,
  send: Send,
  medium: Medium,
  handed: Handed & { kind: 'unknown' },
): Promise<Send | null> {
  // The next attempt of the job sends the same message again.
  if (medium.repeatable) throw fail(medium.failed, { reason: handed.reason })
  const found = await lookRepeatedly(ctx, send, medium)
  if (found !== null) return store(ctx, send, { kind: 'taken', detail: null, ...found })
  if (handed.answered) {
    const failure = fail(medium.failed, { reason: handed.reason })
    await persist(ctx, () => ctx.db.run(settleFailed(send.id, ctx.job.attempt, failure.code, failure.detail)))
    throw failure
  }
  // Aborted by a shutdown or a time limit: another attempt follows, and looks again.
  if (ctx.signal.aborted && ctx.signal.reason !== 'cancelled') ctx.signal.throwIfAborted()
  const settled = await persist(ctx, () => ctx.db.maybeOne(settleUnknown(send.id, handed.reason)))
  if (settled !== null)
    ctx.log.warn({ sendId: send.id, reason: handed.reason }, 'It is unknown whether a message was sent')
  return settled
}

async function lookRepeatedly(ctx: TaskContext, send: Send, medium: Medium): Promise<Found | null> {
  const { find, looksMs = [0] } = medium
  if (find === undefined) return null
  for (const [n, at] of looksMs.entries()) {
    if (ctx.signal.aborted) return null
    await delay(at - (looksMs[n - 1] ?? 0), undefined, { signal: ctx.signal }).catch(() => {})
    // A failed look-up settles nothing, and must not fail the job.
    const found = await look(ctx, send, medium).catch((error) => {
      ctx.log.warn({ sendId: send.id, error: String(error) }, 'The provider could not be asked')
      return null
    })
    if (found !== null) return found
  }
  return null
}

/** The provider's record of a send that no other send has claimed; null when there is none, or no list. */
export async function look(ctx: TaskContext, send: Send, medium: Medium): Promise<Found | null> {
  if (medium.find === undefined) return null
  const since = (send.requested_ms ?? send.created_ms) - CLOCK_SKEW_MS
  const all = await medium.find(since, ctx.signal)
  if (all.length === 0) return null
  const rows = await ctx.db.any(takenIds(medium.channel, send.recipients[0]!, since - CLOCK_SKEW_MS))
  const taken = new Set(rows.map((row) => row.provider_id))
  return all.find(({ providerId }) => !taken.has(providerId)) ?? null
}

/**
 * Stores that a message was accepted. Not fenced: that holds whichever attempt learns of it. Null: it was settled otherwise, or
 * another message has the provider's id.
 */
export function store(ctx: TaskContext, send: Send, taken: Handed & { kind: 'taken' }): Promise<Send | null> {
  return persist(ctx, () => ctx.db.maybeOne(settleSent(send.id, taken)))
}

/** Retries a write for a while during an outage: what is not stored now must be looked up at the provider again. */
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

/** The text for a send whose outcome is unknown. */
export function unknownText(send: Send): string {
  return `It is unknown whether it was sent: ${send.detail}. It is not sent again automatically.`
}
