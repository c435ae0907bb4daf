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
  /** Those that are due, each of which has a job now. */
  accounts: z.int(),
  previews: z.int(),
})
export type HousekeepingResult = z.output<typeof Result>

/**
 * Removes what has expired: ended jobs, tokens, rate limits, idempotency keys, API keys, files of imports, figures of ended
 * jobs; deleted webhook endpoints; and voice previews beyond a number. Adds jobs that delete the accounts that are due.
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
