import type { Stripe } from 'stripe'
import { type Failure, fail } from '../../../sql/errors.ts'
import { createLazy } from '../../../tasks/platform/lazy.ts'
import type { Settings } from '../../../tasks/platform/settings/settings.ts'
import { parseRetryAfter } from '../breaker.ts'
import { recordCall } from '../call.ts'

/** Sends requests through Stripe's SDK (https://docs.stripe.com/api). The job decides about retries. */

export type { Stripe }

/** Sends a request named `what`. @throws a failure of payments */
export type CallStripe = <T>(
  what: string,
  signal: AbortSignal,
  work: (stripe: Stripe) => Promise<T>,
) => Promise<T>

/** Creates the caller of a configured account; the first call loads the SDK. */
export function createCall(settings: Settings['payments'], timeoutMs: number): CallStripe {
  const stripe = createLazy(() => connectStripe(settings, timeoutMs))
  return async (what, signal, work) => {
    if (settings.secretKey === undefined) throw fail('payment.not_configured')
    const client = await stripe()
    const request = recordCall({ provider: 'stripe', operation: what, url: settings.apiBaseUrl }, () =>
      work(client),
    )
    return rejectOnAbort(signal, request).catch((error) => {
      throw signal.aborted ? error : toFailure(error)
    })
  }
}

async function connectStripe(settings: Settings['payments'], timeout: number): Promise<Stripe> {
  const { Stripe } = await import('stripe')
  const { hostname, port, protocol } = new URL(settings.apiBaseUrl)
  return new Stripe(settings.secretKey!, {
    host: hostname,
    ...(port === '' ? {} : { port }),
    protocol: protocol === 'http:' ? 'http' : 'https',
    timeout,
    maxNetworkRetries: 0,
    telemetry: false,
  })
}

/** Rejects on abort. The request itself continues: it can't be recalled. */
async function rejectOnAbort<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  signal.throwIfAborted()
  const finished = new AbortController()
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { signal: finished.signal })
  })
  try {
    return await Promise.race([work, aborted])
  } finally {
    finished.abort()
  }
}

// Messages reach payers and callers. Stripe masks keys in them; we mask anything that looks like a key, too.
const KEY_LIKE_PATTERN = /\b[sr]k_[a-z]*_?[\w*]+/g
const MAX_MESSAGE_LENGTH = 500

/** Converts an error of the SDK (https://docs.stripe.com/error-handling); returns an unknown error unchanged. */
function toFailure(error: unknown): unknown {
  const { type, message, userMessage, statusCode, headers } = error as Partial<Stripe.errors.StripeError>
  const text = (typeof userMessage === 'string' && userMessage !== '' ? userMessage : (message ?? ''))
    .replace(KEY_LIKE_PATTERN, '***')
    .slice(0, MAX_MESSAGE_LENGTH)
  const retryAfter = parseRetryAfter(headers?.['retry-after'])
  const callFailed = (reason: string): Failure =>
    fail('payment.failed', { reason }, { cause: error, ...(retryAfter === null ? {} : { retryAfter }) })
  switch (type as string | undefined) {
    case 'StripeCardError':
      return fail('payment.declined', { reason: text }, { cause: error })
    case 'StripeInvalidRequestError':
      return fail('payment.rejected', { reason: text }, { cause: error })
    case 'StripeAuthenticationError':
      return fail('payment.key', { reason: 'it is invalid or revoked' }, { cause: error })
    case 'StripePermissionError':
      return fail('payment.key', { reason: 'it lacks a permission' }, { cause: error })
    case 'StripeRateLimitError':
      return callFailed('too many requests')
    case 'StripeConnectionError':
      return callFailed('no answer')
    // An earlier, different request used the same key, and its outcome is unknown.
    case 'StripeIdempotencyError':
    case 'StripeAPIError':
      return callFailed(statusCode === undefined ? 'no answer' : `status ${statusCode}`)
    default:
      return error
  }
}
