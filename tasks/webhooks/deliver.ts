import { z } from 'zod'
import { defineTask, lazily } from '../task.ts'

/** Sends what is due to a webhook endpoint at a host, until nothing is or may be. Workers add it when something is. */
export const deliver = defineTask({
  name: 'webhooks.deliver',
  queue: 'webhooks',
  pool: 'io',
  actor: ({ endpoint_id, host }) => `webhook:${endpoint_id}:${host}`,
  // It looks for more before it ends, and workers look every second.
  whenBusy: 'join',
  payload: z.strictObject({ endpoint_id: z.int(), host: z.string() }),
  result: z.strictObject({ delivered: z.int(), failed: z.int() }),
  timeoutSeconds: 300,
  run: lazily(() => import('./deliver-run.ts')),
})
