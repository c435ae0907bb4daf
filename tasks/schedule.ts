import type { Queries } from '../sql/db.ts'
import { runScheduleEntry } from '../sql/jobs/schedules.ts'
import { StartError } from '../sql/server/start-error.ts'
import { purgeAccounts } from './accounts/purge.task.ts'
import { scoreSentiment } from './ai/sentiment.task.ts'
import { retagPosts } from './blog/retag.task.ts'
import { settleSends } from './comms/settle.task.ts'
import { computeNextRun } from './cron.ts'
import { collectGarbage } from './documents/collect.task.ts'
import { syncCatalog } from './llm/sync.task.ts'
import { reconcilePayments } from './payments/reconcile.task.ts'
import { purgeCollections } from './rag/purge.task.ts'
import { measureTables } from './system/measure.task.ts'
import { pruneExpired } from './system/prune.task.ts'
import { enforceRetention } from './system/retention.task.ts'
import { buildJobSpecs, type EnqueueOptions, type TaskDefinition } from './task.ts'

/** A task that runs on a schedule, with an empty payload. `match` is a cron expression in UTC. */
export interface CronEntry {
  /** Must never change: under a new name, the task would run once more. */
  readonly identifier: string
  readonly match: string
  readonly task: TaskDefinition<Record<string, never>, unknown>
}

export const scheduleEntries: readonly CronEntry[] = [
  { identifier: 'prune', match: '* * * * *', task: pruneExpired },
  // Not at the full hour, when most scheduled jobs start.
  { identifier: 'collect', match: '17 * * * *', task: collectGarbage },
  { identifier: 'comms-settle', match: '*/5 * * * *', task: settleSends },
  // Only explicit requests pass a payload.
  { identifier: 'llm-sync', match: '41 * * * *', task: syncCatalog as unknown as CronEntry['task'] },
  { identifier: 'ai-sentiment', match: '*/15 * * * *', task: scoreSentiment },
  { identifier: 'payments', match: '*/5 * * * *', task: reconcilePayments },
  // Finishes purges that earlier jobs did not complete.
  { identifier: 'accounts-purge', match: '33 * * * *', task: purgeAccounts },
  { identifier: 'blog-retag', match: '37 * * * *', task: retagPosts },
  { identifier: 'retention', match: '53 * * * *', task: enforceRetention },
  { identifier: 'measure', match: '29 * * * *', task: measureTables },
  { identifier: 'rag-purge', match: '43 * * * *', task: purgeCollections },
]

/**
 * Checks the entries before a process starts. Otherwise a wrong one would stop its queue without a word.
 *
 * @throws StartError that names an entry whose cron expression is invalid or never matches.
 */
export function checkSchedule(
  entries: readonly Pick<CronEntry, 'identifier' | 'match'>[] = scheduleEntries,
): void {
  for (const { identifier, match } of entries)
    try {
      computeNextRun(match, new Date())
    } catch {
      throw new StartError(
        `The schedule entry "${identifier}" can't run at "${match}": write five cron fields in UTC that match some day, such as "*/10 * * * *"`,
      )
    }
}

/**
 * Adds the job of a schedule entry, without an owner. Returns its id, or the id of the job that it joined. Null if the
 * entry is paused, unless `ignorePause` is set.
 */
export async function runEntry(
  db: Queries,
  { identifier, task }: CronEntry,
  { ignorePause, ...options }: Omit<EnqueueOptions, 'ownerId'> & { readonly ignorePause: boolean },
): Promise<string | null> {
  const [job] = buildJobSpecs(task, [{}], { ownerId: null, ...options })
  const added = await db.maybeOne(runScheduleEntry(identifier, job!, ignorePause))
  return added?.job_id ?? null
}
