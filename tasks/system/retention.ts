import { z } from 'zod'
import { defineTask, lazily } from '../task.ts'

/** Deletes what is older than the settings say, and makes the next partitions. What an attempt does not reach in its time is the next one's. */
export const retention = defineTask({
  name: 'system.retention',
  queue: 'system',
  pool: 'io',
  actor: () => 'retention',
  whenBusy: 'join',
  payload: z.strictObject({}),
  /** How many rows, by table; of a table that has partitions, how many of these. */
  result: z.record(z.string(), z.int()),
  run: lazily(() => import('./retention-run.ts')),
})
