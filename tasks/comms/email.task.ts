import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'

export const EmailResult = z.strictObject({
  id: z.uuid(),
  to: z.array(z.string()),
  status: z.enum(['sent', 'unknown', 'scheduled']),
  message: z.string(),
})

/** Sends an email through the configured mail server. */
export const sendEmail = defineTask({
  name: 'comms.email',
  queue: 'comms',
  pool: 'io',
  settleFunction: 'comms_send_settle',
  // Sending large attachments takes minutes.
  timeoutSeconds: 420,
  payload: z.strictObject({ send_id: z.uuid() }),
  result: EmailResult,
  links: ({ send_id }) => [{ kind: 'send', id: send_id }],
  run: loadLazily(() => import('./email.work.ts')),
})
