import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'

/** Maintains the ledger of sends: closes sends whose job ended without an outcome, and looks up unknown sends again. */
export const settleSends = defineTask({
  name: 'comms.settle',
  queue: 'comms',
  pool: 'io',
  actor: () => 'comms-settle',
  whenBusy: 'join',
  timeoutSeconds: 600,
  payload: z.strictObject({}),
  result: z.strictObject({ closed: z.int(), found: z.int() }),
  run: loadLazily(() => import('./settle.work.ts')),
})
