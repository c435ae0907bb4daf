import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'

/** Notifies an account by mail that its webhook endpoint, or one of the service, was disabled. */
export const mailDisabledEndpoint = defineTask({
  name: 'accounts.webhook_disabled',
  queue: 'accounts',
  pool: 'io',
  payload: z.strictObject({ endpoint_id: z.int(), account_id: z.int() }),
  result: z.strictObject({}),
  tries: 8,
  timeoutSeconds: 60,
  run: loadLazily(() => import('./disabled-endpoint.work.ts')),
})
