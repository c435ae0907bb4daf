import { mapShortage } from '../../sql/error-mapping.ts'

export type WaitResult<T> =
  | { readonly kind: 'answer'; readonly value: T }
  | { readonly kind: 'error'; readonly error: unknown }
  | { readonly kind: 'timeout' }
  | { readonly kind: 'aborted' }

// Grace period of a running request after an abort: below the 2 s after which its thread is killed.
const GRACE_MS = 1000

/**
 * Waits at most `limitMs` for an answer. After an abort it waits another second to learn the outcome of the request. It
 * does not wait if `maybeSent` returns false, because nothing was sent. Never rejects.
 */
export async function waitFor<T>(
  answer: Promise<T>,
  limitMs: number,
  signal: AbortSignal,
  maybeSent: () => boolean = () => true,
): Promise<WaitResult<T>> {
  const done = new AbortController()
  const after = (ms: number, kind: 'timeout' | 'aborted') =>
    new Promise<WaitResult<T>>((resolve) => {
      const timer = setTimeout(() => resolve({ kind }), ms)
      done.signal.addEventListener('abort', () => clearTimeout(timer))
    })
  const aborted = new Promise<WaitResult<T>>((resolve) => {
    const begin = (): void => void after(maybeSent() ? GRACE_MS : 0, 'aborted').then(resolve)
    if (signal.aborted) begin()
    else signal.addEventListener('abort', begin, { signal: done.signal, once: true })
  })
  const answered = answer.then(
    (value): WaitResult<T> => ({ kind: 'answer', value }),
    (error: unknown): WaitResult<T> => ({ kind: 'error', error }),
  )
  try {
    return await Promise.race([answered, after(limitMs, 'timeout'), aborted])
  } finally {
    done.abort()
  }
}

/** Throws `fail('service.short')` if a request failed because this machine is short of something. It was not sent. */
export function throwIfShort(error: unknown): void {
  const failure = mapShortage(error)
  if (failure !== error) throw failure
}

// Matches Node errors from before the request is sent: DNS, routing, connection, certificate.
const UNSENT_ERROR_CODES =
  /^(ECONNREFUSED|ENOTFOUND|EAI_\w+|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|CERT_\w+|DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_\w+|ERR_TLS_CERT_ALTNAME_INVALID|ERR_SSL_\w+)$/

/** Returns the code of a network error. `sent` is false if the error proves that the request was never sent. */
export function describeNetworkError(error: unknown): { code: string; sent: boolean } {
  for (let e = error, depth = 0; e instanceof Error && depth < 4; e = e.cause, depth++) {
    const { code } = e as { code?: unknown }
    if (typeof code === 'string') return { code, sent: !UNSENT_ERROR_CODES.test(code) }
    // Node tried every address of the host, and all failed: report the first error.
    if (e instanceof AggregateError && e.errors.length > 0) return describeNetworkError(e.errors[0])
  }
  return { code: 'no answer', sent: true }
}
