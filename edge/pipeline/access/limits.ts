import { LRUCache } from 'lru-cache'
import type { Database } from '../../../sql/db.ts'
import { type Failure, fail } from '../../../sql/errors.ts'
import { countRequest } from '../../../sql/limits/limits.ts'
import { networkKeyOf } from '../../../tasks/platform/addresses.ts'
import type { Settings } from '../../../tasks/platform/settings/settings.ts'
import type { Caller } from './auth.ts'

/** Rate limits per client or account, which all edge processes share through the database. */
export interface RateLimits {
  /** Counts a request. @throws fail('request.limited') with the seconds until the next request is allowed. */
  count(name: LimitName, address: string, caller: Caller | null): Promise<void>
}

export type LimitName = keyof Settings['limits']

// These limits count by account and exempt admins. All others count by network, before the caller has signed in.
const PER_ACCOUNT_LIMITS: ReadonlySet<LimitName> = new Set(['invite', 'export'])

// Maximum number of remembered refusals. Each forgotten one costs a query.
const MAX_REMEMBERED_REFUSALS = 10_000

export function createRateLimits(db: Database, settings: Settings): RateLimits {
  // A refused client stays refused without a query until its wait is over, because a flood must cost no queries.
  const refused = new LRUCache<string, number>({ max: MAX_REMEMBERED_REFUSALS })
  return {
    count: async (name, address, caller) => {
      const rate = settings.limits[name]
      const isPerAccount = caller !== null && PER_ACCOUNT_LIMITS.has(name)
      if (rate === null || (isPerAccount && caller.role === 'admin')) return
      const subject = isPerAccount ? `account ${caller.id}` : networkKeyOf(address)
      const key = `${name} ${subject}`
      const refusedUntil = refused.get(key)
      if (refusedUntil !== undefined) throw failLimited(Math.max(refusedUntil - performance.now(), 1))
      const { wait_ms } = await db.one(countRequest(name, subject, rate.max, rate.seconds))
      if (wait_ms === 0) return
      refused.set(key, performance.now() + wait_ms, { ttl: Math.ceil(wait_ms) })
      throw failLimited(wait_ms)
    },
  }
}

/** Returns the failure of a request that exceeds a rate limit; `waitMs` becomes `Retry-After`. */
export function failLimited(waitMs: number): Failure {
  const seconds = Math.ceil(waitMs / 1000)
  return fail('request.limited', { seconds }, { retryAfter: seconds })
}
