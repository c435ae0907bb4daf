import { deleteExpiredMailedTokens } from '../../sql/accounts/accounts.ts'
import { findDueAccounts } from '../../sql/accounts/deletions.ts'
import { deleteExpiredEmailChanges } from '../../sql/accounts/email-changes.ts'
import { deleteExpiredOidcLogins } from '../../sql/accounts/oidc.ts'
import { deleteExpiredChallenges } from '../../sql/accounts/passkeys.ts'
import { deleteExpiredRefreshTokens } from '../../sql/accounts/sessions.ts'
import { deleteExpiredPreviews } from '../../sql/blog/previews.ts'
import { deleteAbandonedImports } from '../../sql/blog/transfer.ts'
import type { Query } from '../../sql/db.ts'
import { deleteExpiredIdempotencyKeys } from '../../sql/idempotency/idempotency.ts'
import { deleteExpiredJobs, deleteUnusedRates } from '../../sql/jobs/prune.ts'
import { deleteExpiredTallies } from '../../sql/jobs/tallies.ts'
import { deleteExpiredApiKeys } from '../../sql/keys/api-keys.ts'
import {
  deleteExpiredRequestCounts,
  deleteExpiredWebhookRates,
  deleteOldLoginFailures,
} from '../../sql/limits/limits.ts'
import { deleteExcessPreviews } from '../../sql/voice/previews.ts'
import { purgeEndpoints } from '../../sql/webhooks/webhooks.ts'
import { deleteUnusedCounts, listStrandedJobs } from '../../sql/worker-queues/queues.ts'
import { DELETION_MAILBOX_PREFIX, deleteDueAccount } from '../accounts/delete.task.ts'
import { enqueueAnnouncement } from '../blog/announcement.ts'
import type { TaskContext } from '../context.ts'
import { enqueueMany } from '../task.ts'
import { cancelStranded } from '../worker-queues/cancel-stranded.task.ts'
import { runInBatches } from './batches.ts'

type PruneResult = Readonly<
  Record<
    'jobs' | 'tokens' | 'limits' | 'keys' | 'webhooks' | 'imports' | 'tallies' | 'accounts' | 'previews',
    number
  >
>

// Small enough that no statement holds its locks for long.
const BATCH_SIZE = 1000
// Limits storage: a preview usually has about 50 kB, at most several MB.
const MAX_PREVIEWS = 1000

/** Runs `system.prune`. */
export async function run(ctx: TaskContext): Promise<PruneResult> {
  const { db, settings, signal } = ctx
  const deleteAll = (query: () => Query<{ count: number }>) =>
    runInBatches(signal, BATCH_SIZE, () => db.one(query()))
  await enqueueAnnouncement(db, settings, null)
  // Queues may have gone with their accounts or organizations.
  if ((await db.any(listStrandedJobs(null, 1))).length > 0)
    await enqueueMany(db, cancelStranded, [{ queue: null }], { ownerId: null, settings })
  return {
    jobs:
      (await deleteAll(() => deleteExpiredJobs('others', settings.jobRetention, BATCH_SIZE))) +
      (await deleteAll(() => deleteExpiredJobs('failed', settings.jobRetention, BATCH_SIZE))),
    tokens:
      (await deleteAll(() => deleteExpiredRefreshTokens(BATCH_SIZE))) +
      (await deleteAll(() => deleteExpiredMailedTokens(BATCH_SIZE))) +
      (await deleteAll(() => deleteExpiredEmailChanges(BATCH_SIZE))) +
      (await deleteAll(() => deleteExpiredApiKeys(BATCH_SIZE))) +
      (await deleteAll(() => deleteExpiredPreviews(BATCH_SIZE))) +
      (await deleteAll(() => deleteExpiredChallenges(BATCH_SIZE))) +
      (await deleteAll(() => deleteExpiredOidcLogins(BATCH_SIZE))),
    limits:
      (await deleteAll(() => deleteUnusedRates(BATCH_SIZE))) +
      (await deleteAll(() => deleteExpiredRequestCounts(BATCH_SIZE))) +
      (await deleteAll(() => deleteExpiredWebhookRates(BATCH_SIZE))) +
      (await deleteAll(() => deleteOldLoginFailures(settings.loginLockSeconds, BATCH_SIZE))),
    keys: await deleteAll(() => deleteExpiredIdempotencyKeys(BATCH_SIZE)),
    webhooks: await deleteAll(() => purgeEndpoints(BATCH_SIZE)),
    imports: await deleteAll(() => deleteAbandonedImports(BATCH_SIZE)),
    tallies: (await db.one(deleteExpiredTallies())).count + (await db.one(deleteUnusedCounts())).count,
    accounts: await enqueueDeletions(ctx),
    previews: await deleteAll(() => deleteExcessPreviews(MAX_PREVIEWS, BATCH_SIZE)),
  }
}

/**
 * Adds a job for each account whose deletion is due, unless one is already running. Returns the number of these
 * accounts.
 */
async function enqueueDeletions({ db, settings, signal }: TaskContext): Promise<number> {
  const options = { ownerId: null, settings }
  let after = 0
  return runInBatches(signal, BATCH_SIZE, async () => {
    const due = await db.any(findDueAccounts(after, BATCH_SIZE, DELETION_MAILBOX_PREFIX))
    after = due.at(-1)?.id ?? after
    if (due.length > 0)
      await enqueueMany(
        db,
        deleteDueAccount,
        due.map(({ id }) => ({ account_id: id })),
        options,
      )
    return { count: due.length }
  })
}
