import { z } from 'zod'
import type { Send } from '../../sql/comms/sends.ts'
import type { TaskContext } from '../context.ts'
import type { Comms } from './ports.ts'
import { type ChannelAdapter, describeUnknown, sendOnce } from './send.ts'
import type { TelephonySettings } from './settings.ts'

interface CallPayload {
  readonly send_id: string
  readonly to: string
}

interface CallResult {
  readonly id: string
  readonly sid: string | null
  readonly to: string
  readonly status: string
  readonly message: string
}

/** The call's details in the ledger. */
const CallContent = z.strictObject({ to: z.string(), script_url: z.string(), timeout: z.int().optional() })

/** Creates the adapter that places a call and looks it up at the provider. */
export const createCallAdapter =
  (comms: Comms, { retryMs }: TelephonySettings) =>
  (row: Send): ChannelAdapter => {
    const { to, script_url: scriptUrl, timeout } = CallContent.parse(row.message)
    const message = { id: row.id, to, scriptUrl, ...(timeout === undefined ? {} : { timeout }) }
    return {
      channel: 'call',
      isIdempotent: false,
      failureCode: 'telephony.failed',
      retryMs,
      submit: (request) => comms.call(message, request),
      find: (sinceMs, signal) => comms.findCall(message, sinceMs, signal),
      lookupDelaysMs: comms.lookupDelaysMs,
    }
  }

/** Runs `comms.call`. */
export async function run(ctx: TaskContext, { send_id, to }: CallPayload): Promise<CallResult> {
  const send = await sendOnce(ctx, send_id, createCallAdapter(ctx.providers.comms, ctx.settings.telephony))
  if (send.status === 'unknown')
    return { id: send.id, sid: null, to, status: 'unknown', message: describeUnknown(send) }
  return {
    id: send.id,
    sid: send.provider_id,
    to,
    status: send.provider_status!,
    message: 'The provider accepted the call',
  }
}
