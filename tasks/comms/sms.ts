import { z } from 'zod'
import type { Send } from '../../sql/comms.ts'
import { defineTask } from '../task.ts'
import type { Comms } from './outside.ts'
import { type Medium, sendOnce, unknownText } from './send.ts'

/** What a send of the channel keeps in the ledger. */
export const Sms = z.strictObject({ to: z.string(), body: z.string() })

export const SmsResult = z.strictObject({
  sid: z.string().nullable(),
  to: z.string(),
  status: z.string(),
  segments: z.int(),
  message: z.string(),
})

export const smsMedium =
  (comms: Comms) =>
  (row: Send): Medium => {
    const message = Sms.parse(row.message)
    return {
      channel: 'sms',
      repeatable: false,
      failed: 'telephony.failed',
      hand: (request) => comms.sms(message, request),
      find: (sinceMs, signal) => comms.findSms(message, sinceMs, signal),
      looksMs: comms.looksMs,
    }
  }

/** Sends a text message. Those to one number go one after the other, so that a look-up can tell them apart. */
export const sms = defineTask({
  name: 'comms.sms',
  queue: 'comms',
  pool: 'io',
  actor: ({ to }) => `sms:${to}`,
  timeoutSeconds: 120,
  payload: z.strictObject({ send_id: z.uuid(), to: z.string(), segments: z.int() }),
  result: SmsResult,
  run: async (ctx, { send_id, to, segments }) => {
    const send = await sendOnce(ctx, send_id, smsMedium(ctx.providers.comms))
    if (send.status === 'unknown')
      return { sid: null, to, status: 'unknown', segments, message: unknownText(send) }
    const message = `The provider has taken the message, in ${segments} ${segments === 1 ? 'part' : 'parts'}`
    return { sid: send.provider_id, to, status: send.provider_status!, segments, message }
  },
})
