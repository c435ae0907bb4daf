import { z } from 'zod'
import type { Send } from '../../sql/comms.ts'
import { defineTask } from '../task.ts'
import type { Comms } from './outside.ts'
import { type Medium, sendOnce, unknownText } from './send.ts'

/** What a send of the channel keeps in the ledger. */
export const Call = z.strictObject({ to: z.string(), script_url: z.string(), timeout: z.int().optional() })

export const CallResult = z.strictObject({
  sid: z.string().nullable(),
  to: z.string(),
  status: z.string(),
  message: z.string(),
})

export const callMedium =
  (comms: Comms) =>
  (row: Send): Medium => {
    const { to, script_url: scriptUrl, timeout } = Call.parse(row.message)
    const message = { to, scriptUrl, ...(timeout === undefined ? {} : { timeout }) }
    return {
      channel: 'call',
      repeatable: false,
      failed: 'telephony.failed',
      hand: (request) => comms.call(message, request),
      find: (sinceMs, signal) => comms.findCall(message, sinceMs, signal),
      looksMs: comms.looksMs,
    }
  }

/** Starts a call. Calls to one number are started one after the other, so that a look-up can tell them apart. */
export const call = defineTask({
  name: 'comms.call',
  queue: 'comms',
  pool: 'io',
  actor: ({ to }) => `call:${to}`,
  timeoutSeconds: 120,
  payload: z.strictObject({ send_id: z.uuid(), to: z.string() }),
  result: CallResult,
  run: async (ctx, { send_id, to }) => {
    const send = await sendOnce(ctx, send_id, callMedium(ctx.providers.comms))
    if (send.status === 'unknown') return { sid: null, to, status: 'unknown', message: unknownText(send) }
    return {
      sid: send.provider_id,
      to,
      status: send.provider_status!,
      message: 'The provider has taken the call',
    }
  },
})
