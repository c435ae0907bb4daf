import { backoffMs, bearerOf, type Key, pause, retryAfterMsOf, urlOf } from '../../edge/client/connection.ts'

/** Requests of a worker to the service. */

export interface Connection {
  readonly baseUrl: string
  readonly key?: Key
  readonly fetch?: typeof fetch
}

/** Answer of the service. Status 0 means that none arrived. */
export interface Answer {
  readonly status: number
  readonly json: unknown
  /** Error of a request that failed; null if it succeeded. */
  readonly error: Error | null
  /** Time after which the service allows a retry; null if it names none. */
  readonly retryAfterMs: number | null
}

export interface Call {
  readonly method?: 'POST' | 'DELETE'
  readonly path: string
  /** Body as JSON text. */
  readonly body?: string
  readonly timeoutMs: number
  /** Aborts the request and its retries. */
  readonly signal?: AbortSignal
}

export type Send = (call: Call) => Promise<Answer>

const LONGEST_PAUSE_MS = 15_000
// Statuses of refusals that end by themselves. 5xx and a missing answer are retried as well.
const TRANSIENT: ReadonlySet<number> = new Set([408, 425, 429])

/**
 * Creates the function that sends requests of a worker. It adds no idempotency keys, because claim ids and item numbers
 * make repetitions harmless.
 */
export function createSend(connection: Connection, toError: (response: Response) => Promise<Error>): Send {
  const send = connection.fetch ?? fetch
  return async ({ method = 'POST', path, body, timeoutMs, signal }) => {
    const abort = new AbortController()
    const forward = (): void => abort.abort(signal!.reason)
    const timer = setTimeout(() => abort.abort(new Error(`${path} timed out`)), timeoutMs)
    signal?.addEventListener('abort', forward, { once: true })
    try {
      signal?.throwIfAborted()
      const { baseUrl, key } = connection
      const authorization = key === undefined ? {} : { authorization: await bearerOf(key) }
      const headers = { ...authorization, 'content-type': 'application/json' }
      const response = await send(urlOf(baseUrl, path), {
        method,
        headers,
        body: body ?? null,
        signal: abort.signal,
      })
      return await readAnswer(response, toError)
    } catch (cause) {
      const error = cause instanceof Error ? cause : new Error(String(cause))
      return { status: 0, json: null, error, retryAfterMs: null }
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', forward)
    }
  }
}

async function readAnswer(
  response: Response,
  toError: (response: Response) => Promise<Error>,
): Promise<Answer> {
  const { status } = response
  const retryAfterMs = retryAfterMsOf(response, LONGEST_PAUSE_MS)
  if (!response.ok) return { status, json: null, error: await toError(response), retryAfterMs }
  const text = await response.text()
  return { status, json: text === '' ? null : JSON.parse(text), error: null, retryAfterMs }
}

/** True if the request should be repeated: it had no answer, or one that says nothing about the request itself. */
export const isTransient = ({ status }: Answer): boolean =>
  status === 0 || status >= 500 || TRANSIENT.has(status)

/**
 * Repeats a request until its answer is not transient, or its signal is aborted. Reports each failure, and returns the
 * last answer.
 */
export async function persist(send: Send, call: Call, onError: (error: Error) => void): Promise<Answer> {
  for (let attempt = 0; ; attempt++) {
    const answer = await send(call)
    if (!isTransient(answer) || call.signal?.aborted) return answer
    onError(answer.error!)
    await pause(answer.retryAfterMs ?? backoffMs(attempt, LONGEST_PAUSE_MS), call.signal)
    if (call.signal?.aborted) return answer
  }
}

/** Resolves when the signal is aborted. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
