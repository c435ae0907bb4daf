/** The result of waiting for an answer. */
export type Waited<T> =
  | { readonly kind: 'answer'; readonly value: T }
  | { readonly kind: 'error'; readonly error: unknown }
  | { readonly kind: 'late' }
  | { readonly kind: 'aborted' }

// The time that a request under way has left after an abort: below the 2 s after which its thread is killed.
const GRACE_MS = 1000

/**
 * Waits at most `limitMs` for an answer. After an abort it waits only a moment longer, to learn what became of the
 * request, or not at all while `isOut` says that nothing was sent. Never rejects.
 */
export async function waitFor<T>(
  answer: Promise<T>,
  limitMs: number,
  signal: AbortSignal,
  isOut: () => boolean = () => true,
): Promise<Waited<T>> {
  const done = new AbortController()
  const after = (ms: number, kind: 'late' | 'aborted') =>
    new Promise<Waited<T>>((resolve) => {
      const timer = setTimeout(() => resolve({ kind }), ms)
      done.signal.addEventListener('abort', () => clearTimeout(timer))
    })
  const aborted = new Promise<Waited<T>>((resolve) => {
    const begin = (): void => void after(isOut() ? GRACE_MS : 0, 'aborted').then(resolve)
    if (signal.aborted) begin()
    else signal.addEventListener('abort', begin, { signal: done.signal, once: true })
  })
  const answered = answer.then(
    (value): Waited<T> => ({ kind: 'answer', value }),
    (error: unknown): Waited<T> => ({ kind: 'error', error }),
  )
  try {
    return await Promise.race([answered, after(limitMs, 'late'), aborted])
  } finally {
    done.abort()
  }
}

// Errors of Node that occur before a byte of a request is sent: names, routes, connections, certificates.
const BEFORE_SENDING =
  /^(ECONNREFUSED|ENOTFOUND|EAI_\w+|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|CERT_\w+|DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_\w+|ERR_TLS_CERT_ALTNAME_INVALID|ERR_SSL_\w+)$/

/** The code of a network error; `sent` is false if it proves that the request was never sent. */
export function networkError(error: unknown): { code: string; sent: boolean } {
  for (let e = error, depth = 0; e instanceof Error && depth < 4; e = e.cause, depth++) {
    const { code } = e as { code?: unknown }
    if (typeof code === 'string') return { code, sent: !BEFORE_SENDING.test(code) }
    // Node tries every address of a host: all of them failed.
    if (e instanceof AggregateError && e.errors.length > 0) return networkError(e.errors[0])
  }
  return { code: 'no answer', sent: true }
}
