import { z } from 'zod'
import { defineTask, lazily } from '../task.ts'

/**
 * Keeps the ledger of sends true: sends whose job is over without them are closed, the provider is asked again about
 * those that are unknown, and old ones go.
 */
export const settle = defineTask({
  name: 'comms.settle',
  queue: 'comms',
  pool: 'io',
  actor: () => 'comms-settle',
  whenBusy: 'join',
  timeoutSeconds: 600,
  payload: z.strictObject({}),
  result: z.strictObject({ closed: z.int(), found: z.int(), deleted: z.int() }),
  run: lazily(() => import('./settle-run.ts')),
})
