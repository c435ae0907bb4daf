import { defineTask, loadLazily } from '../task.ts'
import { ANNOUNCEMENT_TASK } from './announcement.ts'

/**
 * Announces the scheduled posts whose time has come, and adds the job for the next ones. A transaction that schedules
 * posts adds a job for the first time at which any becomes public. The pruner replaces a job that failed or was
 * cancelled.
 */
export const announceScheduled = defineTask({
  ...ANNOUNCEMENT_TASK,
  run: loadLazily(() => import('./announce.work.ts')),
})
