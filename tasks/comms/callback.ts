import type { Settings } from '../platform/settings/settings.ts'

/**
 * Email header with the id of the send. Resend repeats custom headers in its events
 * (https://resend.com/docs/dashboard/emails/custom-headers). Other ids do not identify the send: Resend may replace the
 * Message-ID, and its SMTP relay returns no id.
 */
export const SEND_ID_HEADER = 'x-send-id'

/** Path of the telephony provider's status callbacks for messages and calls. */
export const TWILIO_CALLBACK_PATH = '/api/v1/comms/webhooks/twilio'

/**
 * Returns the status callback URL of a message; null if the public base URL is not https. Twilio rejects a message
 * whose callback URL it cannot reach, such as one on http://127.0.0.1, the default
 * (https://www.twilio.com/docs/api/errors/21609). Plain HTTP would also expose the callbacks in transit. The URL
 * contains the id of the send, because a callback may arrive before the response with the provider's id.
 */
export function buildCallbackUrl(
  { publicBaseUrl }: Pick<Settings, 'publicBaseUrl'>,
  sendId: string,
): string | null {
  return publicBaseUrl.startsWith('https://')
    ? `${publicBaseUrl}${TWILIO_CALLBACK_PATH}?send_id=${sendId}`
    : null
}
