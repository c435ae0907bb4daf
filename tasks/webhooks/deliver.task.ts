import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'

/**
 * Sends due deliveries of an endpoint to one host until none is due or the rate limit applies. Workers enqueue this
 * task when a delivery is due.
 */
export const deliver = defineTask({
  name: 'webhooks.deliver',
  queue: 'webhooks',
  pool: 'io',
  actor: ({ endpoint_id, host }) => `webhook:${endpoint_id}:${host}`,
  // A running job checks for new deliveries before it ends, and workers check every second.
  whenBusy: 'join',
  payload: z.strictObject({ endpoint_id: z.int(), host: z.string() }),
  result: z.strictObject({ delivered: z.int(), failed: z.int() }),
  timeoutSeconds: 300,
  run: loadLazily(() => import('./deliver.work.ts')),
})
