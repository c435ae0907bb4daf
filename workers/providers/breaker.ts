import { setTimeout as delay } from 'node:timers/promises'
import type { Failure } from '../../sql/errors.ts'

/**
 * Holds back requests to a provider that does not answer, or that asked for a pause: each would take its whole time
 * limit to fail. One per provider and thread.
 */
export interface Breaker {
  /**
   * Waits until a request may be made.
   * @throws the refusal, which says when to retry, if that is not soon; the signal's reason.
   */
  enter(signal: AbortSignal): Promise<void>
  /** The provider has answered, whatever the answer. */
  succeeded(): void
  /** It did not answer, or reported a failure of its own. */
  failed(): void
  /** It asked to be sent no requests for this time. */
  pause(seconds: number): void
}

export interface BreakerOptions {
  /** Failures in a row that open it. */
  readonly failures: number
  /** How long it stays open the first time, in ms; twice as long each time after that. */
  readonly openMs: number
  readonly maxMs: number
  /** How long a request waits before it is refused, in ms: a refusal costs its job one of few tries. */
  readonly patienceMs: number
  readonly now: () => number
}

const DEFAULTS: BreakerOptions = {
  failures: 5,
  openMs: 5000,
  maxMs: 60_000,
  patienceMs: 10_000,
  now: () => Date.now(),
}

// A pause that a provider asks for is a mistake if it is longer than this.
const LONGEST_PAUSE_SECONDS = 300

/** Creates a closed breaker; `refuse` makes its failure from the seconds to wait. */
export function createBreaker(
  refuse: (seconds: number) => Failure,
  options: Partial<BreakerOptions> = {},
): Breaker {
  const { failures, openMs, maxMs, patienceMs, now } = { ...DEFAULTS, ...options }
  let failed = 0
  let closedAt = 0
  let pausedUntil = 0
  return {
    enter: async (signal) => {
      const until = now() + patienceMs
      for (;;) {
        const at = Math.max(closedAt, pausedUntil)
        if (at <= now()) break
        if (at > until) throw refuse(Math.ceil((at - now()) / 1000))
        await delay(at - now(), undefined, { signal }).catch(() => signal.throwIfAborted())
      }
      // One request goes ahead as a probe; the others wait for its result, or until its time is up.
      if (failed >= failures) closedAt = now() + openMs
    },
    succeeded: () => {
      failed = 0
      closedAt = 0
    },
    failed: () => {
      failed++
      if (failed >= failures) closedAt = now() + Math.min(openMs * 2 ** (failed - failures), maxMs)
    },
    pause: (seconds) => {
      pausedUntil = Math.max(pausedUntil, now() + Math.min(seconds, LONGEST_PAUSE_SECONDS) * 1000)
    },
  }
}

/** Seconds of a Retry-After header: a number, or a date (RFC 9110, section 10.2.3); null when there is none. */
export function retryAfterOf(header: unknown, now = Date.now()): number | null {
  if (typeof header !== 'string' || header === '') return null
  if (/^\d{1,9}$/.test(header)) return Number(header)
  const at = Date.parse(header)
  return Number.isNaN(at) ? null : Math.max(0, Math.ceil((at - now) / 1000))
}
