import type { Queries } from '../sql/db.ts'
import { runScheduleEntry } from '../sql/schedules.ts'
import { purgeAccounts } from './accounts/purge.ts'
import { sentiment } from './ai/sentiment.ts'
import { retag } from './blog/retag.ts'
import { settle } from './comms/settle.ts'
import { collect } from './documents/collect.ts'
import { sync } from './llm/sync.ts'
import { reconcile } from './payments/reconcile.ts'
import { purge } from './rag/purge.ts'
import { measure } from './system/measure.ts'
import { prune } from './system/prune.ts'
import { retention } from './system/retention.ts'
import { type EnqueueOptions, specsOf, type TaskDefinition } from './task.ts'

/** A task that runs on a schedule, with an empty payload. `match` is a cron expression in UTC. */
export interface CronEntry {
  /** Must never change: under a new name, the task would run once more. */
  readonly identifier: string
  readonly match: string
  readonly task: TaskDefinition<Record<string, never>, unknown>
}

export const schedule: readonly CronEntry[] = [
  { identifier: 'prune', match: '* * * * *', task: prune },
  // Avoids the full hour, when most scheduled jobs start.
  { identifier: 'collect', match: '17 * * * *', task: collect },
  { identifier: 'comms-settle', match: '*/5 * * * *', task: settle },
  // Only explicit requests pass a payload.
  { identifier: 'llm-sync', match: '41 * * * *', task: sync as unknown as CronEntry['task'] },
  { identifier: 'ai-sentiment', match: '*/15 * * * *', task: sentiment },
  { identifier: 'payments', match: '*/5 * * * *', task: reconcile },
  // Finishes purges that an earlier job did not complete.
  { identifier: 'accounts-purge', match: '33 * * * *', task: purgeAccounts },
  { identifier: 'blog-retag', match: '37 * * * *', task: retag },
  { identifier: 'retention', match: '53 * * * *', task: retention },
  { identifier: 'measure', match: '29 * * * *', task: measure },
  { identifier: 'rag-purge', match: '43 * * * *', task: purge },
]

/**
 * Adds the job of an entry, without an owner. Returns its id, or that of the job that it joins. Null if the entry is
 * paused; `ignorePause` runs it anyway.
 */
export async function runEntry(
  db: Queries,
  { identifier, task }: CronEntry,
  { ignorePause, ...options }: Omit<EnqueueOptions, 'ownerId'> & { readonly ignorePause: boolean },
): Promise<string | null> {
  const [job] = specsOf(task, [{}], { ownerId: null, ...options })
  const added = await db.maybeOne(runScheduleEntry(identifier, job!, ignorePause))
  return added?.job_id ?? null
}
