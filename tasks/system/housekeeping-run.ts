import { deleteExpiredEmailChanges } from '../../sql/accounts/email-changes.ts'
import { deleteExpiredMailedTokens, deleteExpiredRefreshTokens } from '../../sql/accounts.ts'
import { deleteExpiredApiKeys } from '../../sql/api-keys.ts'
import { deleteAbandonedImports } from '../../sql/blog/transfer.ts'
import type { Query } from '../../sql/db.ts'
import { deleteExpiredIdempotencyKeys } from '../../sql/idempotency.ts'
import { deleteExpiredTallies } from '../../sql/jobs/tallies.ts'
import { deleteExpiredJobs } from '../../sql/jobs.ts'
import { deleteExpiredLimits, deleteOldLoginFailures } from '../../sql/limits.ts'
import { deleteExpiredChallenges } from '../../sql/passkeys.ts'
import { deleteExcessPreviews } from '../../sql/voice.ts'
import { purgeEndpoints } from '../../sql/webhooks.ts'
import { inBatches } from '../batches.ts'
import type { TaskContext } from '../context.ts'
import type { HousekeepingResult } from './housekeeping.ts'

// Small enough that no statement holds its locks for long.
const BATCH = 1000
// Most have about 50 kB, the longest several MB.
const MOST_PREVIEWS = 1000

/** The work of `system.housekeeping`. */
export async function run({ db, settings, signal }: TaskContext): Promise<HousekeepingResult> {
  const all = (query: () => Query<{ count: number }>) => inBatches(signal, BATCH, () => db.one(query()))
  return {
    jobs: await all(() => deleteExpiredJobs(settings.keepResultSeconds, BATCH)),
    tokens:
      (await all(() => deleteExpiredRefreshTokens(BATCH))) +
      (await all(() => deleteExpiredMailedTokens(BATCH))) +
      (await all(() => deleteExpiredEmailChanges(BATCH))) +
      (await all(() => deleteExpiredApiKeys(BATCH))) +
      (await all(() => deleteExpiredChallenges(BATCH))),
    limits:
      (await all(() => deleteExpiredLimits(BATCH))) +
      (await all(() => deleteOldLoginFailures(settings.loginLockSeconds, BATCH))),
    keys: await all(() => deleteExpiredIdempotencyKeys(BATCH)),
    webhooks: await all(() => purgeEndpoints(BATCH)),
    imports: await all(() => deleteAbandonedImports(BATCH)),
    tallies: (await db.one(deleteExpiredTallies())).count,
    previews: await all(() => deleteExcessPreviews(MOST_PREVIEWS, BATCH)),
  }
}
