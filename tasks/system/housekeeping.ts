import { z } from 'zod'
import { defineTask, lazily } from '../task.ts'

const Result = z.strictObject({
  jobs: z.int(),
  tokens: z.int(),
  limits: z.int(),
  keys: z.int(),
  webhooks: z.int(),
  imports: z.int(),
  tallies: z.int(),
  previews: z.int(),
})
export type HousekeepingResult = z.output<typeof Result>

/**
 * Removes what has expired: ended jobs, tokens, rate limits, idempotency keys, API keys, files of imports, figures of ended
 * jobs; deleted webhook endpoints; and voice previews beyond a number.
 */
export const housekeeping = defineTask({
  name: 'system.housekeeping',
  queue: 'system',
  pool: 'io',
  actor: () => 'housekeeping',
  whenBusy: 'join',
  payload: z.strictObject({}),
  result: Result,
  run: lazily(() => import('./housekeeping-run.ts')),
})
