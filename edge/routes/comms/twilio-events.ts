import type { SendEvent } from '../../../sql/comms/sends.ts'
import { fail } from '../../../sql/errors.ts'
import { OPTED_OUT_CODE } from '../../../tasks/comms/ports.ts'

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

/** True if a callback reports that a text message failed because the owner of the number has opted out. */
export const isOptOut = ({ MessageSid, ErrorCode }: Readonly<Record<string, string | undefined>>): boolean =>
  MessageSid !== undefined && ErrorCode === String(OPTED_OUT_CODE)

// The words that end an opt-out (https://help.twilio.com/articles/223134027). With Advanced Opt-Out, which allows other
// words, `OptOutType` has the meaning.
const OPT_IN_WORDS: ReadonlySet<string | undefined> = new Set(['START', 'UNSTOP', 'YES'])

/** True if parameters are those of a text message that a person has sent, not of a status callback. */
export const isIncomingMessage = ({
  SmsStatus,
  MessageStatus,
}: Readonly<Record<string, string | undefined>>): boolean =>
  SmsStatus === 'received' && MessageStatus === undefined

/** Returns the number whose owner opts in again with an incoming message; null if the message says something else. */
export function findOptIn({
  From,
  OptOutType,
  Body,
}: Readonly<Record<string, string | undefined>>): string | null {
  const optsIn =
    OptOutType === undefined ? OPT_IN_WORDS.has(Body?.trim().toUpperCase()) : OptOutType === 'START'
  return optsIn && From !== undefined ? From : null
}
