import type { Settings } from '../settings.ts'

/**
 * The header in which mail carries the id of its send. Resend's events repeat custom headers
 * (https://resend.com/docs/dashboard/emails/custom-headers); it may replace the Message-ID, and its relay's answer has no id.
 */
export const SEND_ID_HEADER = 'x-send-id'

/** Where the telephony provider tells what became of messages and calls. */
export const TWILIO_CALLBACK = '/api/v1/comms/webhooks/twilio'

/**
 * The URL for what becomes of a message; null where the provider could not call it: it refuses a message whose URL it cannot
 * reach, such as the default http://127.0.0.1 (https://www.twilio.com/docs/api/errors/21609), and callbacks in the clear
 * could be read. It has the message's id: a callback may come before the answer to the request that sent it.
 */
export function callbackUrl(
  { publicBaseUrl }: Pick<Settings, 'publicBaseUrl'>,
  sendId: string,
): string | null {
  return publicBaseUrl.startsWith('https://') ? `${publicBaseUrl}${TWILIO_CALLBACK}?send_id=${sendId}` : null
}
