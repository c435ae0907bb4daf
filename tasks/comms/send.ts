import { setTimeout as delay } from 'node:timers/promises'
import {
  beginSendRequest,
  type Channel,
  findAcceptedIds,
  findSendById,
  markDeferred,
  markFailed,
  markSent,
  markUnknown,
  type Outcomes,
  type Send,
} from '../../sql/comms/sends.ts'
import { type ErrorCode, Failure, fail } from '../../sql/errors.ts'
import type { TaskContext } from '../context.ts'
import { computeBackoff } from '../platform/backoff.ts'
import type {
  EmailSubmitResult,
  ProviderMessage,
  ProviderRequest,
  RecipientOutcome,
  SubmitResult,
} from './ports.ts'

/**
 * Sends a message once, however often its job runs. The ledger records each request before it is sent, and its outcome
 * afterwards.
 *
 * A request that the provider certainly did not accept for now (rate limited, no connection, 4xx of SMTP) is repeated
 * for hours, with growing delays. If the provider may have accepted it, it is repeated only if the provider recognizes
 * duplicates. Otherwise the attempt looks the message up in the provider's list. Without a match, the status becomes
 * `unknown`.
 */

/** The parts of sending that differ between channels. */
export interface ChannelAdapter {
  readonly channel: Channel
  /** True if the provider recognizes duplicates. */
  readonly isIdempotent: boolean
  submit(request: ProviderRequest): Promise<EmailSubmitResult>
  /**
   * Finds matching messages at the provider since a time, in ms since the epoch; absent if the provider has no list.
   */
  readonly find?: (sinceMs: number, signal: AbortSignal) => Promise<readonly ProviderMessage[]>
  /** Times for lookups, in ms after the request ended. */
  readonly lookupDelaysMs?: readonly number[]
  /** Error code for failures of the provider. */
  readonly failureCode: ErrorCode
  /** Time after the due time for which requests that were not accepted are repeated, in ms. */
  readonly retryMs: number
}

// The first delay before another attempt. The delays grow up to an hour, or a 48th of the time for all attempts. A message
// may wait that long after the provider is back, and a later text message to its number waits behind it.
const FIRST_DELAY_SECONDS = 1
const MAX_DELAY_SECONDS = 3600
const MIN_ATTEMPTS = 48

// Providers that recognize duplicates do so for a day, so a message that may have been accepted is repeated for less.
const MAX_UNCERTAIN_MS = 23 * 3_600_000

// Allows for the difference between the clocks of this machine and of the provider. The provider's times are whole
// seconds.
const CLOCK_SKEW_MS = 30_000

const INTERRUPTED_REASON = 'the attempt was interrupted before the provider answered'

// Spans several heartbeats, because workers abort cancelled jobs at their next heartbeat.
const CANCEL_TIMEOUT_MS = 10_000

// Limits the number of events of a job: later attempts do not report that they retry.
const MAX_REPORTED_ATTEMPTS = 25

/** Sends a message unless an earlier attempt has sent it. Returns its row once it has an outcome. */
export async function sendOnce(ctx: TaskContext, id: string, createAdapter: AdapterFactory): Promise<Send> {
  if (ctx.job.attempt > 1 && ctx.job.attempt <= MAX_REPORTED_ATTEMPTS) ctx.reportProgress('Retrying the send')
  for (;;) {
    const send = await ctx.db.one(findSendById(id))
    if (hasOutcome(send)) return send
    if (send.status === 'cancelled') await awaitCancellation(ctx)
    const adapter = createAdapter(send)
    // An earlier attempt sent the request and ended before the response arrived.
    const isInterrupted = send.status === 'sending' && !adapter.isIdempotent
    const result = isInterrupted
      ? await resolveUnknown(ctx, send, adapter, {
          kind: 'unknown',
          reason: INTERRUPTED_REASON,
          answered: false,
        })
      : await submitMessage(ctx, send, adapter)
    if (result !== null) return result
  }
}

/**
 * True if the send needs no further request. A failed message with a provider id was accepted, so another request would
 * send a duplicate.
 */
function hasOutcome({ status, provider_id: providerId }: Send): boolean {
  return providerId !== null || status === 'sent' || status === 'unknown'
}

/**
 * Waits until the worker aborts this job, which was cancelled together with the message.
 *
 * @throws the reason of the abort, or fail('job.cancelled') after a timeout.
 */
async function awaitCancellation({ signal }: TaskContext): Promise<never> {
  await delay(CANCEL_TIMEOUT_MS, undefined, { signal })
  throw fail('job.cancelled')
}

export type AdapterFactory = (send: Send) => ChannelAdapter

/**
 * Submits a message and returns its row. Returns null if the row changed in the meantime: a superseded attempt may have
 * recorded an outcome.
 */
async function submitMessage(ctx: TaskContext, send: Send, adapter: ChannelAdapter): Promise<Send | null> {
  let current: Send | null = null
  const begin = async (): Promise<void> => {
    current = await ctx.runFenced((tx) =>
      tx.maybeOne(beginSendRequest(send.id, ctx.job, adapter.isIdempotent)),
    )
    if (current === null) throw new RequestRefusedError()
    ctx.reportProgress('Sending to the provider')
  }
  let handed: EmailSubmitResult
  try {
    handed = await adapter.submit({ signal: ctx.signal, begin })
  } catch (error) {
    if (error instanceof RequestRefusedError) return null
    if (!(error instanceof Failure)) throw error
    const rejection = { failure: error, isUncertain: send.status === 'sending' }
    return endAttempt(send, await deferOrFail(ctx, send, adapter, rejection))
  }
  if (handed.kind === 'taken') return recordAccepted(ctx, send, handed)
  if (handed.kind === 'partly') return recordRecipients(ctx, send, adapter, handed.recipients)
  return resolveUnknown(ctx, current ?? send, adapter, handed)
}

/** A request that the provider did not accept. */
interface Rejection {
  readonly failure: Failure
  /** True if the provider may have accepted an earlier request. */
  readonly isUncertain?: boolean
  readonly outcomes?: Outcomes
}

/**
 * Stores the outcome of a request that the provider did not accept, and returns the failure of this attempt. A transient
 * failure costs no try: the message waits for its next attempt until its time is over. Our own outages and shortages
 * pass unchanged.
 */
async function deferOrFail(
  ctx: TaskContext,
  send: Send,
  adapter: ChannelAdapter,
  { failure, isUncertain = false, outcomes = {} }: Rejection,
): Promise<Failure> {
  const { code, detail, retryAfter = 0 } = failure
  const { attempt } = ctx.job
  if (code === 'job.superseded' || (failure.retry === 'free' && !code.startsWith('provider.'))) return failure
  const limitMs = isUncertain ? Math.min(adapter.retryMs, MAX_UNCERTAIN_MS) : adapter.retryMs
  const leftSeconds = (limitMs - send.waited_ms) / 1000
  if (failure.retryable && leftSeconds > 0) {
    const longest = Math.min(MAX_DELAY_SECONDS, adapter.retryMs / 1000 / MIN_ATTEMPTS)
    // A rate names the time at which the message may start.
    const backoff =
      code === 'provider.rate_limited' ? 0 : computeBackoff(FIRST_DELAY_SECONDS, attempt, longest)
    const seconds = Math.min(Math.max(backoff, retryAfter), MAX_DELAY_SECONDS, Math.ceil(leftSeconds))
    await retryWrite(ctx, () =>
      ctx.db.run(markDeferred(send.id, attempt, { seconds, detail, isUncertain, outcomes })),
    )
    return new Failure(code, detail, { cause: failure, retryAfter: seconds, retry: 'free' })
  }
  // If the provider may have accepted an earlier request, the end of the job makes the outcome unknown.
  if (!isUncertain)
    await retryWrite(ctx, () => ctx.db.run(markFailed(send.id, attempt, { code, detail, outcomes })))
  return failure.retryable ? new Failure(code, detail, { cause: failure, retry: 'never' }) : failure
}

/**
 * Stores the outcomes of an email's recipients, of whom the server refused some. Deferred ones are tried alone later.
 * Returns the row once the message has its outcome; null if the row changed in the meantime.
 */
async function recordRecipients(
  ctx: TaskContext,
  send: Send,
  adapter: ChannelAdapter,
  recipients: readonly RecipientOutcome[],
): Promise<Send | null> {
  const outcomes = Object.fromEntries(
    recipients.map(({ address, status, detail }) => [
      address,
      { ...(status === 'deferred' ? {} : { status }), ...(detail === null ? {} : { detail }) },
    ]),
  )
  const isSent = recipients.some(({ status }) => status === 'sent')
  const deferred = recipients.filter(({ status }) => status === 'deferred')
  const refused = recipients.filter(({ status }) => status === 'failed')
  if (deferred.length === 0 && isSent) {
    const failed = [...send.deliveries, ...refused].filter(({ status }) => status === 'failed')
    const detail = `The mail server accepted the message, but not for ${listAddresses(failed)}`
    return recordAccepted(ctx, send, { kind: 'taken', providerId: null, status: 'sent', detail, outcomes })
  }
  const [first] = [...deferred, ...refused]
  const reason = `${first?.detail} for ${listAddresses(deferred.length > 0 ? deferred : refused)}`
  const failure = fail(deferred.length > 0 ? 'email.failed' : 'email.refused', { reason })
  return endAttempt(send, await deferOrFail(ctx, send, adapter, { failure, outcomes }), isSent)
}

/** Ends an attempt that has failed. Returns null if no other follows and some recipients have the message: it is sent. */
function endAttempt({ deliveries }: Send, failure: Failure, isSent = false): null {
  if (!failure.retryable && (isSent || deliveries.some(({ status }) => status === 'sent'))) return null
  throw failure
}

const listAddresses = (recipients: readonly { readonly address: string }[]): string =>
  recipients.map(({ address }) => address).join(', ')

/** Thrown if the ledger refuses a request because the message has changed since this attempt read it. */
class RequestRefusedError extends Error {}

/**
 * Looks up a message that may have been accepted, and records the outcome. Returns null if the row changed in the
 * meantime.
 */
async function resolveUnknown(
  ctx: TaskContext,
  send: Send,
  adapter: ChannelAdapter,
  handed: SubmitResult & { kind: 'unknown' },
): Promise<Send | null> {
  const { reason, retryAfter } = handed
  const failure = fail(adapter.failureCode, { reason }, retryAfter === undefined ? {} : { retryAfter })
  // The provider recognizes duplicates, so the job's next attempt repeats the request.
  if (adapter.isIdempotent) throw await deferOrFail(ctx, send, adapter, { failure, isUncertain: true })
  const found = await pollProvider(ctx, send, adapter)
  if (found !== null) return recordAccepted(ctx, send, { kind: 'taken', detail: null, ...found })
  if (handed.answered) throw await deferOrFail(ctx, send, adapter, { failure })
  // After a shutdown or timeout, another attempt follows and repeats the lookup.
  if (ctx.signal.aborted && ctx.signal.reason !== 'cancelled') ctx.signal.throwIfAborted()
  const result = await retryWrite(ctx, () => ctx.db.maybeOne(markUnknown(send.id, handed.reason)))
  if (result !== null)
    ctx.log.warn({ sendId: send.id, reason: handed.reason }, 'The outcome of a send is unknown')
  return result
}

async function pollProvider(
  ctx: TaskContext,
  send: Send,
  adapter: ChannelAdapter,
): Promise<ProviderMessage | null> {
  const { find, lookupDelaysMs = [0] } = adapter
  if (find === undefined) return null
  for (const [index, delayMs] of lookupDelaysMs.entries()) {
    if (ctx.signal.aborted) return null
    await delay(delayMs - (lookupDelaysMs[index - 1] ?? 0), undefined, { signal: ctx.signal }).catch(() => {})
    // A failed lookup proves nothing and must not fail the job.
    const found = await findAccepted(ctx, send, adapter).catch((error) => {
      ctx.log.warn({ sendId: send.id, error: String(error) }, 'Provider lookup failed')
      return null
    })
    if (found !== null) return found
  }
  return null
}

/**
 * Finds a send in the provider's list, ignoring entries that belong to other sends. Null if nothing matches or the
 * provider has no list.
 */
export async function findAccepted(
  ctx: TaskContext,
  send: Send,
  adapter: ChannelAdapter,
): Promise<ProviderMessage | null> {
  if (adapter.find === undefined) return null
  const since = (send.requested_ms ?? send.created_ms) - CLOCK_SKEW_MS
  const all = await adapter.find(since, ctx.signal)
  if (all.length === 0) return null
  const rows = await ctx.db.any(findAcceptedIds(adapter.channel, send.recipients[0]!, since - CLOCK_SKEW_MS))
  const taken = new Set(rows.map((row) => row.provider_id))
  return all.find(({ providerId }) => !taken.has(providerId)) ?? null
}

/**
 * Records that the provider accepted a message. Not fenced, because the acceptance is a fact even if a superseded
 * attempt learns of it. Returns null if the ledger has another outcome for the message, or another message with the
 * provider's id.
 */
export function recordAccepted(
  ctx: TaskContext,
  send: Send,
  taken: SubmitResult & { kind: 'taken' },
): Promise<Send | null> {
  return retryWrite(ctx, () => ctx.db.maybeOne(markSent(send.id, taken)))
}

/** Retries a write for a few seconds during an outage: a lost outcome would need another lookup at the provider. */
async function retryWrite<T>(ctx: TaskContext, write: () => Promise<T>): Promise<T> {
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

/** Describes a send with an unknown outcome, for the job's result. */
export function describeUnknown(send: Send): string {
  return `The outcome of the send is unknown: ${send.detail}. It is not retried automatically.`
}
