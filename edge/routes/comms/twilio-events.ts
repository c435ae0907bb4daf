import type { SendEvent } from '../../../sql/comms/sends.ts'
import { fail } from '../../../sql/errors.ts'

/** Converts Twilio's status callbacks about text messages and calls. */

// https://www.twilio.com/docs/messaging/api/message-resource#message-status-values and
// https://www.twilio.com/docs/voice/api/call-resource#call-status-values. A call counts as delivered once it was
// answered, which `completed` implies.
const STATUSES: Readonly<Record<string, SendEvent['status']>> = {
  ...{
    accepted: 'sent',
    queued: 'sent',
    sending: 'sent',
    sent: 'sent',
    delivered: 'delivered',
    read: 'delivered',
  },
  undelivered: 'failed',
  failed: 'failed',
  canceled: 'failed',
  initiated: 'sent',
  ringing: 'sent',
  'in-progress': 'sent',
  completed: 'delivered',
  busy: 'failed',
  'no-answer': 'failed',
}

/** Converts a callback's parameters and the send id in its URL; null if they have no known status. */
export function convertTwilioEvent(
  parameters: Readonly<Record<string, string | undefined>>,
  sendId: string | null,
): SendEvent | null {
  const { MessageSid, CallSid, MessageStatus, CallStatus, ErrorCode } = parameters
  const providerId = MessageSid ?? CallSid
  const providerStatus = MessageStatus ?? CallStatus
  if (providerId === undefined || providerStatus === undefined) return null
  const status = Object.hasOwn(STATUSES, providerStatus) ? STATUSES[providerStatus] : undefined
  if (status === undefined) return null
  const channel = MessageSid === undefined ? 'call' : 'sms'
  const common = { channel, providerId, sendId, status, providerStatus } as const
  if (status !== 'failed') return { ...common, errorCode: null, detail: null }
  const reason = ErrorCode === undefined ? providerStatus : `${providerStatus} (error ${ErrorCode})`
  const { code, detail } = fail('telephony.undelivered', { reason })
  return { ...common, errorCode: code, detail }
}
