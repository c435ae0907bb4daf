import type { Database } from '../../sql/db.ts'
import {
  type BuiltInSchedule,
  findLostSchedules,
  readTime,
  storeBuiltIns,
} from '../../sql/schedules/schedules.ts'
import { publicNameOf } from '../load-test/on-queues.ts'
import type { JobSettings } from '../task.ts'
import { findNextRun, parseCron } from './cron.ts'
import { scheduleEntries } from './entries.ts'
import { sendMessages } from './message.ts'

// Lost messages that are sent in one transaction.
const MAX_LOST = 1000

/** Returns the built-in schedules, with their first time after `now`. */
export const declareBuiltIns = (now: number): readonly BuiltInSchedule[] =>
  scheduleEntries.map(({ identifier, match, task }) => ({
    id: identifier,
    cron: match,
    task_name: publicNameOf(task),
    queue_type: task.queue,
    next_at: new Date(findNextRun(parseCron(match), 'UTC', now)!).toISOString(),
  }))

/** Stores the built-in schedules and sends the messages of those that are new or changed. Repeatable. */
export async function ensureBuiltIns(
  db: Pick<Database, 'transaction'>,
  settings: JobSettings,
): Promise<void> {
  await db.transaction(async (tx) => {
    const now = Date.parse((await tx.one(readTime())).now)
    await sendMessages(tx, await tx.any(storeBuiltIns(declareBuiltIns(now))), settings)
  })
}

/**
 * Sends the messages of schedules that have lost theirs, and whose time has passed by more than `graceMs`. Returns the
 * schedules.
 */
export function rescueSchedules(
  db: Pick<Database, 'transaction'>,
  settings: JobSettings,
  graceMs: number,
): Promise<readonly string[]> {
  return db.transaction(async (tx) => {
    const lost = await tx.any(findLostSchedules(graceMs, MAX_LOST))
    await sendMessages(tx, lost, settings)
    return lost.map(({ id }) => id)
  })
}
