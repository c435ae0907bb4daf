import { z } from 'zod'
import { deleteExpiredMailedTokens, deleteExpiredRefreshTokens } from '../../sql/accounts.ts'
import { deleteAbandonedImports } from '../../sql/blog/transfer.ts'
import type { Query } from '../../sql/db.ts'
import { deleteExpiredIdempotencyKeys } from '../../sql/idempotency.ts'
import { deleteExpiredJobs, unlockOrphanedPools } from '../../sql/jobs.ts'
import { deleteExpiredLimits, deleteOldLoginFailures } from '../../sql/limits.ts'
import { deleteOldPreviews } from '../../sql/voice.ts'
import { defineTask } from '../task.ts'

// Small enough that no statement holds its locks for long.
const BATCH = 1000
// Previews of voices: most have some 50 kB, the longest some MB.
const PREVIEW_DAYS = 30
const MOST_PREVIEWS = 1000

/** Removes what has run out: ended jobs, tokens, counts of limits, idempotency keys, files whose import has ended, previews of voices. */
export const housekeeping = defineTask({
  name: 'system.housekeeping',
  queue: 'system',
  pool: 'io',
  actor: () => 'housekeeping',
  whenBusy: 'join',
  payload: z.strictObject({}),
  result: z.strictObject({
    jobs: z.int(),
    tokens: z.int(),
    limits: z.int(),
    keys: z.int(),
    imports: z.int(),
    previews: z.int(),
  }),
  run: async ({ db, settings, signal }) => {
    const all = async (query: () => Query<{ count: number }>): Promise<number> => {
      let total = 0
      for (let count = BATCH; count === BATCH && !signal.aborted; total += count)
        ({ count } = await db.one(query()))
      return total
    }
    await db.run(unlockOrphanedPools())
    return {
      jobs: await all(() => deleteExpiredJobs(settings.keepResultSeconds, BATCH)),
      tokens:
        (await all(() => deleteExpiredRefreshTokens(BATCH))) +
        (await all(() => deleteExpiredMailedTokens(BATCH))),
      limits:
        (await all(() => deleteExpiredLimits(BATCH))) +
        (await all(() => deleteOldLoginFailures(settings.loginLockSeconds, BATCH))),
      keys: await all(() => deleteExpiredIdempotencyKeys(BATCH)),
      imports: await all(() => deleteAbandonedImports(BATCH)),
      previews: await all(() => deleteOldPreviews(PREVIEW_DAYS, MOST_PREVIEWS, BATCH)),
    }
  },
})
