import {
  createSender,
  createStreams,
  RequestError,
  type Streams,
  toRequestError,
  urlOf,
} from '../client/connection.ts'
import { UsageError } from './io.ts'

/** The service as commands call it. */

export interface CallOptions {
  readonly query?: Readonly<Record<string, string | number | undefined>>
  readonly body?: unknown
  /** Default: the signal of Ctrl-C. */
  readonly signal?: AbortSignal
}

export interface Api extends Streams {
  readonly url: string
  /** Sends a request and returns its answer. @throws RequestError if the service refuses it. */
  call<T>(method: 'GET' | 'POST' | 'DELETE', path: string, options?: CallOptions): Promise<T>
}

export interface ApiOptions {
  readonly url: string
  readonly key: string | undefined
  readonly signal: AbortSignal
  /** Reports that the service no longer answers. */
  readonly onLost: () => void
}

// A missing service is reported within a second. A stream waits for a minute, because services restart.
const RETRIES = 2
const STREAM_RETRIES = 8

/** @throws UsageError if the URL is invalid. */
export function createApi({ url, key, signal, onLost }: ApiOptions): Api {
  if (!/^https?:\/\//.test(url) || !URL.canParse(url))
    throw new UsageError(`The address of the service must be a URL such as http://127.0.0.1:8000, not ${url}`)
  let wasAnswered = false
  const options = {
    ...(key === undefined ? {} : { key }),
    fetch: async (input: Parameters<typeof fetch>[0]) => {
      try {
        const response = await fetch(input)
        wasAnswered = true
        return response
      } catch (error) {
        if (wasAnswered && !signal.aborted) onLost()
        wasAnswered = false
        throw error
      }
    },
  }
  const send = createSender({ ...options, retries: RETRIES })
  const streams = createStreams(url, createSender({ ...options, retries: STREAM_RETRIES }))
  return {
    ...streams,
    url,
    call: async <T>(
      method: string,
      path: string,
      { query = {}, body, signal: own = signal }: CallOptions = {},
    ) => {
      const given = Object.entries(query).flatMap(([name, value]) =>
        value === undefined ? [] : [[name, String(value)] as [string, string]],
      )
      const search = given.length === 0 ? '' : `?${new URLSearchParams(given)}`
      const init =
        body === undefined
          ? {}
          : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
      const response = await send(
        () => new Request(urlOf(url, path) + search, { method, signal: own, ...init }),
      )
      if (!response.ok) throw await toRequestError(response)
      if (response.status === 204) return undefined as T
      return (await response.json().catch(() => {
        throw new RequestError(response, null)
      })) as T
    },
  }
}
