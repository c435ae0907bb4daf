import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'

const Result = z.strictObject({
  jobs: z.int(),
  tokens: z.int(),
  limits: z.int(),
  keys: z.int(),
  webhooks: z.int(),
  imports: z.int(),
  tallies: z.int(),
  /** Number of accounts whose deletion is due; each now has a job. */
  accounts: z.int(),
  previews: z.int(),
})

/**
 * Prunes expired rows: finished jobs, their statistics, tokens, rate limits, idempotency keys, API keys and import
 * files. Also prunes deleted webhook endpoints, and voice previews above a maximum number. Adds jobs for account
 * deletions that are due, and for the next scheduled posts if their job was lost.
 */
export const pruneExpired = defineTask({
  name: 'system.prune',
  queue: 'system',
  pool: 'io',
  actor: () => 'prune',
  whenBusy: 'join',
  payload: z.strictObject({}),
  result: Result,
  run: loadLazily(() => import('./prune.work.ts')),
})
