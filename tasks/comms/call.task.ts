import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'

const Payload = z.strictObject({ send_id: z.uuid(), to: z.string() })

export const CallResult = z.strictObject({
  /** Id of the call in the ledger. */
  id: z.uuid(),
  sid: z.string().nullable(),
  to: z.string(),
  status: z.string(),
  message: z.string(),
})

/** Starts a call. Calls to one number start one at a time, so that a lookup at the provider can tell them apart. */
export const placeCall = defineTask({
  name: 'comms.call',
  queue: 'comms',
  pool: 'io',
  actor: ({ to }) => `call:${to}`,
  links: ({ send_id }) => [{ kind: 'send', id: send_id }],
  settleFunction: 'comms_send_settle',
  timeoutSeconds: 120,
  payload: Payload,
  result: CallResult,
  run: loadLazily(() => import('./call.work.ts')),
})
