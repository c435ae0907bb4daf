import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'

/**
 * Deletes rows older than their retention and creates the next partitions. The next attempt continues where a timed-out
 * one stopped.
 */
export const enforceRetention = defineTask({
  name: 'system.retention',
  queue: 'system',
  pool: 'io',
  actor: () => 'retention',
  whenBusy: 'join',
  payload: z.strictObject({}),
  /** Number of deleted rows by table. For a partitioned table, the number of dropped partitions. */
  result: z.record(z.string(), z.int()),
  run: loadLazily(() => import('./retention.work.ts')),
})
