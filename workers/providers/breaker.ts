import { setTimeout as delay } from 'node:timers/promises'
import { type Failure, fail } from '../../sql/errors.ts'

/**
 * Circuit breaker for a provider that does not answer or asks for a pause. Without it, each request would run into its
 * timeout. Each thread has one per provider.
 */
export interface Breaker {
  /**
   * Waits until the breaker admits a request.
   * @throws the refusal, with the time to retry, if the wait would exceed `maxWaitMs`; the signal's reason.
   */
  enter(signal: AbortSignal): Promise<void>
  /** Records an answer of the provider, even an error that the request caused. */
  recordSuccess(): void
  /** Records a missing answer or a failure of the provider itself. */
  recordFailure(): void
  /** Blocks requests for the time that the provider asked for. */
  pause(seconds: number): void
}

export interface BreakerOptions {
  /** Consecutive failures that open the breaker. */
  readonly failures: number
  /** First open period, in ms; each further failure doubles it, up to `maxMs`. */
  readonly openMs: number
  readonly maxMs: number
  /** Longest wait before a refusal, in ms. */
  readonly maxWaitMs: number
  readonly now: () => number
}

const DEFAULTS: BreakerOptions = {
  failures: 5,
  openMs: 5000,
  maxMs: 60_000,
  maxWaitMs: 10_000,
  now: () => Date.now(),
}

// Limits the pause that a provider asks for: a longer one is a mistake.
const MAX_PAUSE_SECONDS = 300
// Larger values of Retry-After count as this one.
const MAX_RETRY_AFTER_SECONDS = 999_999_999

/**
 * Creates a circuit breaker. A refusal costs a job no try, because the provider was not asked.
 * @param provider its name in refusals.
 */
export function createBreaker(provider: string, options: Partial<BreakerOptions> = {}): Breaker {
  const { failures, openMs, maxMs, maxWaitMs, now } = { ...DEFAULTS, ...options }
  const refuse = (seconds: number): Failure => {
    const reason = `no answer to recent requests; retry in ${seconds} s`
    return fail('provider.paused', { provider, reason }, { retryAfter: seconds })
  }
  let failureCount = 0
  let openUntil = 0
  let pausedUntil = 0
  return {
    enter: async (signal) => {
      const deadline = now() + maxWaitMs
      for (;;) {
        const readyAt = Math.max(openUntil, pausedUntil)
        if (readyAt <= now()) break
        if (readyAt > deadline) throw refuse(Math.ceil((readyAt - now()) / 1000))
        await delay(readyAt - now(), undefined, { signal }).catch(() => signal.throwIfAborted())
      }
      // One request goes ahead as a probe. The others wait `openMs` and check again.
      if (failureCount >= failures) openUntil = now() + openMs
    },
    recordSuccess: () => {
      failureCount = 0
      openUntil = 0
    },
    recordFailure: () => {
      failureCount++
      if (failureCount >= failures)
        openUntil = now() + Math.min(openMs * 2 ** (failureCount - failures), maxMs)
    },
    pause: (seconds) => {
      pausedUntil = Math.max(pausedUntil, now() + Math.min(seconds, MAX_PAUSE_SECONDS) * 1000)
    },
  }
}

/**
 * Parses a Retry-After header, a number or a date (RFC 9110, section 10.2.3), to seconds; null if missing or invalid.
 */
export function parseRetryAfter(header: unknown, now = Date.now()): number | null {
  if (typeof header !== 'string' || header === '') return null
  // Some servers send fractions, or a negative number for a time in the past.
  if (/^[+-]?\d+(\.\d+)?$/.test(header))
    return Math.min(Math.max(0, Math.ceil(Number(header))), MAX_RETRY_AFTER_SECONDS)
  // The obsolete format of asctime has no zone, and is in UTC.
  const at = Date.parse(/(GMT|UTC|Z|[+-]\d\d:?\d\d)$/i.test(header) ? header : `${header} GMT`)
  return Number.isNaN(at)
    ? null
    : Math.min(Math.max(0, Math.ceil((at - now) / 1000)), MAX_RETRY_AFTER_SECONDS)
}
