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
  /** True to wait for a service that restarts, as streams do. Default: false. */
  readonly isPatient?: boolean
}

export interface Api extends Streams {
  readonly url: string
  /** Time of the last answer in ms, on the clock of the service; null if it has not said one. */
  readonly answeredAt: number | null
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

// A missing service is reported within a second. Streams and other follows wait for a minute, because services restart.
const RETRIES = 2
const PATIENT_RETRIES = 8

// Other characters are errors of requests, whose text would show the key.
const KEY = /^[\x20-\x7e]+$/

/** @throws UsageError if the URL or the key is invalid. */
export function createApi({ url, key, signal, onLost }: ApiOptions): Api {
  parseUrl('The address of the service', url, 'http://127.0.0.1:8000')
  if (key !== undefined && !KEY.test(key))
    throw new UsageError(
      'The API key must have only printable ASCII characters: check MILLRACE_KEY or --api-key',
    )
  let wasAnswered = false
  let answeredAt: number | null = null
  const options = {
    ...(key === undefined ? {} : { key }),
    fetch: async (input: Parameters<typeof fetch>[0]) => {
      try {
        const response = await fetch(input)
        wasAnswered = true
        answeredAt = Date.parse(response.headers.get('date') ?? '') || null
        return response
      } catch (error) {
        if (wasAnswered && !signal.aborted) onLost()
        wasAnswered = false
        throw error
      }
    },
  }
  const send = createSender({ ...options, retries: RETRIES })
  const sendPatiently = createSender({ ...options, retries: PATIENT_RETRIES })
  return {
    ...createStreams(url, sendPatiently),
    url,
    get answeredAt() {
      return answeredAt
    },
    call: async <T>(
      method: string,
      path: string,
      { query = {}, body, signal: own = signal, isPatient = false }: CallOptions = {},
    ) => {
      const given = Object.entries(query).flatMap(([name, value]) =>
        value === undefined ? [] : [[name, String(value)] as [string, string]],
      )
      const search = given.length === 0 ? '' : `?${new URLSearchParams(given)}`
      const init =
        body === undefined
          ? {}
          : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
      const response = await (isPatient ? sendPatiently : send)(
        () => new Request(urlOf(url, path) + search, { method, signal: own, ...init }),
      )
      if (!response.ok) throw await toRequestError(response)
      if (response.status === 204) return undefined as T
      return (await response.json().catch((error) => {
        // Any other error means that the body was cut.
        throw error instanceof SyntaxError ? new RequestError(response, null) : error
      })) as T
    },
  }
}

/** Returns a URL. Its errors do not show the text, which may have a password. @throws UsageError */
export function parseUrl(name: string, text: string, example: string): string {
  const url = /^https?:\/\//.test(text) ? URL.parse(text) : null
  if (url === null) throw new UsageError(`${name} must be a URL such as ${example}`)
  if (url.username !== '' || url.password !== '')
    throw new UsageError(`${name} must have no user name and no password`)
  return text
}
