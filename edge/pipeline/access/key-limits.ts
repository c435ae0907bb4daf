import type { Database } from '../../../sql/db.ts'
import { reserveRequests } from '../../../sql/keys/api-keys.ts'
import type { RateLimit } from '../../../tasks/platform/settings/fields.ts'
import type { Header } from '../../http/reply.ts'

/** The requests that an API key has left in the current period. */
export class Allowance {
  readonly isExceeded: boolean
  /** Time until the period ends. */
  readonly resetMs: number
  readonly #limit: number
  readonly #remaining: number

  constructor(limit: number, remaining: number, resetMs: number, isExceeded: boolean) {
    this.#limit = limit
    this.#remaining = remaining
    this.resetMs = resetMs
    this.isExceeded = isExceeded
  }

  /** Returns the headers of draft-ietf-httpapi-ratelimit-headers-06. */
  headers(): Header[] {
    return [
      ['ratelimit-limit', String(this.#limit)],
      ['ratelimit-remaining', String(this.#remaining)],
      ['ratelimit-reset', String(Math.ceil(this.resetMs / 1000))],
    ]
  }
}

/** Rate limits of API keys, which all edge processes share through the database. */
export interface KeyLimits {
  /** Counts a request of a key and returns what the key has left. */
  count(keyId: string): Allowance | Promise<Allowance>
}

/** The part of a key's limit that this process has reserved. */
interface Reservation {
  left: number
  /** Number of requests that no process has reserved yet. */
  readonly unreserved: number
  /** End of the period, by `performance.now()`. */
  readonly endsAt: number
}

// A process reserves a hundredth of a key's limit at a time. Each additional process may leave that much unused.
const RESERVATIONS_PER_LIMIT = 100
// Above this number of keys, all reservations are dropped.
const MAX_RESERVATIONS = 100_000

/**
 * Creates limits of `max` requests per `seconds` for each key. A period begins with the first request after the
 * previous one.
 */
export function createKeyLimits(db: Database, { max, seconds }: RateLimit): KeyLimits {
  const share = Math.ceil(max / RESERVATIONS_PER_LIMIT)
  const reservations = new Map<string, Reservation>()
  const pending = new Map<string, Promise<void>>()

  const reserve = async (keyId: string): Promise<void> => {
    const { granted, remaining, reset_ms } = await db.one(reserveRequests(keyId, max, seconds, share))
    if (reservations.size >= MAX_RESERVATIONS) reservations.clear()
    const endsAt = performance.now() + reset_ms
    reservations.set(keyId, { left: granted, unreserved: remaining, endsAt })
  }

  /** Counts a request against the reservation of this process. Returns null if the process must reserve more first. */
  const takeReserved = (keyId: string): Allowance | null => {
    const found = reservations.get(keyId)
    const resetMs = found === undefined ? 0 : found.endsAt - performance.now()
    if (found === undefined || resetMs <= 0) return null
    if (found.left > 0) return new Allowance(max, --found.left + found.unreserved, resetMs, false)
    return found.unreserved > 0 ? null : new Allowance(max, 0, resetMs, true)
  }

  const takeAfterReserving = async (keyId: string): Promise<Allowance> => {
    for (;;) {
      const allowance = takeReserved(keyId)
      if (allowance !== null) return allowance
      const reserving =
        pending.get(keyId) ??
        reserve(keyId).finally(() => {
          pending.delete(keyId)
        })
      pending.set(keyId, reserving)
      await reserving
    }
  }

  return { count: (keyId) => takeReserved(keyId) ?? takeAfterReserving(keyId) }
}
