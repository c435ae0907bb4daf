import { StartError } from '../../sql/server/start-error.ts'
import { purgeAccounts } from '../accounts/purge.task.ts'
import { scoreSentiment } from '../ai/sentiment.task.ts'
import { retagPosts } from '../blog/retag.task.ts'
import { settleSends } from '../comms/settle.task.ts'
import { collectGarbage } from '../documents/collect.task.ts'
import { syncCatalog } from '../llm/sync.task.ts'
import { reconcilePayments } from '../payments/reconcile.task.ts'
import { purgeCollections } from '../rag/purge.task.ts'
import { measureTables } from '../system/measure.task.ts'
import { pruneExpired } from '../system/prune.task.ts'
import { resealTexts } from '../system/reseal.task.ts'
import { enforceRetention } from '../system/retention.task.ts'
import type { TaskDefinition } from '../task.ts'
import { findNextRun, parseCron } from './cron.ts'

/** A built-in schedule: a task that runs with an empty payload. `match` is a cron expression in UTC. */
export interface ScheduleEntry {
  /** Id of the schedule. Must never change: under a new name, it would be another schedule. */
  readonly identifier: string
  readonly match: string
  readonly task: TaskDefinition<Record<string, never>, unknown>
}

export const scheduleEntries: readonly ScheduleEntry[] = [
  { identifier: 'prune', match: '* * * * *', task: pruneExpired },
  // Not at the full hour, when most scheduled jobs start.
  { identifier: 'collect', match: '17 * * * *', task: collectGarbage },
  { identifier: 'comms-settle', match: '*/5 * * * *', task: settleSends },
  // Only explicit requests pass a payload.
  { identifier: 'llm-sync', match: '41 * * * *', task: syncCatalog as unknown as ScheduleEntry['task'] },
  { identifier: 'ai-sentiment', match: '*/15 * * * *', task: scoreSentiment },
  { identifier: 'payments', match: '*/5 * * * *', task: reconcilePayments },
  // Finishes purges that earlier jobs did not complete.
  { identifier: 'accounts-purge', match: '33 * * * *', task: purgeAccounts },
  { identifier: 'blog-retag', match: '37 * * * *', task: retagPosts },
  { identifier: 'retention', match: '53 * * * *', task: enforceRetention },
  { identifier: 'reseal', match: '*/5 * * * *', task: resealTexts },
  { identifier: 'measure', match: '29 * * * *', task: measureTables },
  { identifier: 'rag-purge', match: '43 * * * *', task: purgeCollections },
]

/**
 * Checks the entries before a process starts. Otherwise a wrong one would never run, without a word.
 *
 * @throws StartError that names an entry whose cron expression is invalid or never matches.
 */
export function checkSchedule(
  entries: readonly Pick<ScheduleEntry, 'identifier' | 'match'>[] = scheduleEntries,
): void {
  for (const { identifier, match } of entries)
    if (!hasRun(match))
      throw new StartError(
        `The schedule entry "${identifier}" can't run at "${match}": write five cron fields in UTC that match some day, such as "*/10 * * * *"`,
      )
}

function hasRun(match: string): boolean {
  try {
    return findNextRun(parseCron(match), 'UTC', 0) !== null
  } catch {
    return false
  }
}
