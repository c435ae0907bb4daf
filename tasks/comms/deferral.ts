/** Delays between the attempts to send a message. */

const MAX_DELAY_SECONDS = 3600

/**
 * Returns the delay before the next attempt, in seconds: about one after the first attempt, doubled with each further
 * one, up to an hour. The provider's Retry-After extends it, up to an hour.
 */
export function computeDelaySeconds(attempt: number, retryAfter = 0): number {
  const backoff = Math.min(2 ** Math.min(attempt - 1, 12), MAX_DELAY_SECONDS) * (0.75 + Math.random() / 2)
  return Math.min(Math.max(backoff, retryAfter), MAX_DELAY_SECONDS)
}
