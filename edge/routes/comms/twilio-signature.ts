import { createLazy } from '../../../tasks/platform/lazy.ts'

/** Loads the SDK's validator, but not the rest of the SDK. */
export const loadTwilioValidator = createLazy(() => import('twilio/lib/webhooks/webhooks.js'))

/**
 * True if Twilio signed a request to this URL with these parameters
 * (https://www.twilio.com/docs/usage/security#validating-requests).
 */
export async function isFromTwilio(
  token: string,
  signature: string,
  url: string,
  parameters: Readonly<Record<string, string>>,
): Promise<boolean> {
  const { validateRequest } = await loadTwilioValidator()
  return validateRequest(token, signature, url, parameters)
}
