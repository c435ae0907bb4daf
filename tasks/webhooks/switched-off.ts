import { z } from 'zod'
import { defineTask, lazily } from '../task.ts'

/** Mails an account that its webhook endpoint was disabled. */
export const switchedOffMail = defineTask({
  name: 'accounts.webhook_switched_off',
  queue: 'accounts',
  pool: 'io',
  payload: z.strictObject({ endpoint_id: z.int() }),
  result: z.strictObject({}),
  tries: 8,
  timeoutSeconds: 60,
  run: lazily(() => import('./switched-off-run.ts')),
})
