import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'

const Payload = z.strictObject({ send_id: z.uuid(), to: z.string(), segments: z.int() })

export const SmsResult = z.strictObject({
  /** Id of the message in the ledger. */
  id: z.uuid(),
  sid: z.string().nullable(),
  to: z.string(),
  status: z.string(),
  segments: z.int(),
  message: z.string(),
})

/**
 * Sends a text message. Messages to one number are sent one at a time, so that a lookup at the provider can tell them
 * apart.
 */
export const sendSms = defineTask({
  name: 'comms.sms',
  queue: 'comms',
  pool: 'io',
  actor: ({ to }) => `sms:${to}`,
  links: ({ send_id }) => [{ kind: 'send', id: send_id }],
  settleFunction: 'comms_send_settle',
  timeoutSeconds: 120,
  payload: Payload,
  result: SmsResult,
  run: loadLazily(() => import('./sms.work.ts')),
})
