let loaded: Promise<typeof import('twilio/lib/webhooks/webhooks.js')> | null = null

/**
 * Whether Twilio has signed a request to a URL with these parameters
 * (https://www.twilio.com/docs/usage/security#validating-requests). The first one loads the SDK's validator, one file of it.
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
