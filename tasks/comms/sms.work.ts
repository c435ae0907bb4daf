import { z } from 'zod'
import type { Send } from '../../sql/comms/sends.ts'
import { suppressOptedOut } from '../../sql/comms/suppressions.ts'
import { Failure } from '../../sql/errors.ts'
import type { TaskContext } from '../context.ts'
import { type Comms, OptedOutError } from './ports.ts'
import { type ChannelAdapter, describeUnknown, sendOnce } from './send.ts'
import type { TelephonySettings } from './settings.ts'
import { rejectOptedOutNumber } from './suppression.ts'

interface SmsPayload {
  readonly send_id: string
  readonly to: string
  readonly segments: number
}

interface SmsResult {
  readonly id: string
  readonly sid: string | null
  readonly to: string
  readonly status: string
  readonly segments: number
  readonly message: string
}

/** The text message's details in the ledger. */
const SmsContent = z.strictObject({ to: z.string(), from: z.string().optional(), body: z.string() })

/** Creates the adapter that sends a text message and looks it up at the provider. */
export const createSmsAdapter =
  (comms: Comms, { retryMs }: TelephonySettings) =>
  (row: Send): ChannelAdapter => {
    const message = { id: row.id, ...SmsContent.parse(row.message) }
    return {
      channel: 'sms',
      isIdempotent: false,
      failureCode: 'telephony.failed',
      retryMs,
      submit: (request) => comms.sms(message, request),
      find: (sinceMs, signal) => comms.findSms(message, sinceMs, signal),
      lookupDelaysMs: comms.lookupDelaysMs,
    }
  }

/** Adds the check that the number's owner has not opted out, and remembers it if the provider says so. */
function withSuppression(
  { db }: TaskContext,
  sendId: string,
  number: string,
  adapter: ChannelAdapter,
): ChannelAdapter {
  return {
    ...adapter,
    submit: async (request) => {
      await rejectOptedOutNumber(db, number)
      try {
        return await adapter.submit(request)
      } catch (error) {
        if (error instanceof Failure && error.cause instanceof OptedOutError)
          await db.run(suppressOptedOut(number, sendId))
        throw error
      }
    },
  }
}

/** Runs `comms.sms`. */
export async function run(ctx: TaskContext, { send_id, to, segments }: SmsPayload): Promise<SmsResult> {
  const createAdapter = createSmsAdapter(ctx.providers.comms, ctx.settings.telephony)
  const send = await sendOnce(ctx, send_id, (row) => withSuppression(ctx, send_id, to, createAdapter(row)))
  if (send.status === 'unknown')
    return { id: send.id, sid: null, to, status: 'unknown', segments, message: describeUnknown(send) }
  const message = `The provider accepted the message, in ${segments} ${segments === 1 ? 'part' : 'parts'}`
  return { id: send.id, sid: send.provider_id, to, status: send.provider_status!, segments, message }
}
