let loaded: Promise<typeof import('twilio/lib/webhooks/webhooks.js')> | null = null

/**
 * True if Twilio signed a request to this URL with these parameters
 * (https://www.twilio.com/docs/usage/security#validating-requests). The first call loads the SDK's validator, but not
 * the rest of the SDK.
 */
export async function isFromTwilio(
  token: string,
  signature: string,
  url: string,
  parameters: Readonly<Record<string, string>>,
): Promise<boolean> {
  loaded ??= import('twilio/lib/webhooks/webhooks.js')
  const { validateRequest } = await loaded
  return validateRequest(token, signature, url, parameters)
}
