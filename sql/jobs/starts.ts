import { z } from 'zod'
import { type Query, sql } from '../db.ts'
import type { StartRate } from './jobs.ts'

/** Rate that the starts of all workers share by its name. */
export interface SharedRate extends Omit<StartRate, 'burst'> {
  readonly name: string
}

/**
 * Reserves the next start, at most `maxWaitMs` ahead, and returns the ms until it. A negative number reserves nothing: its
 * amount is the ms until the start or, with `comesBack`, the ms after which the caller returns.
 */
export const reserveStart = (
  { name, starts, seconds }: SharedRate,
  { maxWaitMs, comesBack }: { readonly maxWaitMs: number; readonly comesBack: boolean },
): Query<{ wait_ms: number }> =>
  sql.prepared('start_rate_reserve', z.object({ wait_ms: z.number() }))`
    select start_rate_reserve(${name}, ${JSON.stringify({ starts, seconds, burst: 1 })}::jsonb, ${maxWaitMs}, ${comesBack}) as wait_ms`
