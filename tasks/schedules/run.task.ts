import { defineTask, loadLazily } from '../task.ts'
import { MESSAGE_TASK } from './message.ts'

/** Adds the job of a schedule's time, and the message for the next time. */
export const runSchedule = defineTask({
  ...MESSAGE_TASK,
  links: () => [],
  run: loadLazily(() => import('./run.work.ts')),
})
