import { EventSourceParserStream } from 'eventsource-parser/stream'

/**
 * Requests with a key and safe retries, and streams that resume. The command line and the package of `npm run client`
 * share this file, so it also compiles for browsers.
 */

export type Key = string | (() => string | Promise<string>)

export interface ClientOptions {
  /** Base URL of the service, such as `https://mill.example.com`. */
  readonly baseUrl: string
  /** An API key or access token, or a function that returns one before each request. */
  readonly key?: Key
  /** Maximum retries of a request without an answer or with a retryable status. Default 4. */
  readonly retries?: number
  readonly fetch?: typeof fetch
}

/** A server-sent event. */
export interface Frame<T> {
  readonly event: string
  readonly id: string
  readonly data: T
}

/** Data of `status` frames in a job's stream. Other frames have data from the job's task. */
export interface JobState {
  readonly job_id: string
  readonly status: 'waiting' | 'queued' | 'running' | 'done' | 'failed' | 'cancelled'
  readonly label: string
  readonly progress?: { readonly current: number; readonly total: number | null }
  readonly result?: unknown
  readonly error?: { readonly code: string; readonly detail: string }
}

export interface StreamOptions {
  readonly signal?: AbortSignal
  /** Id of the event after which the stream resumes. */
  readonly lastEventId?: string
}

/** Body of an error answer. */
export interface Problem {
  /** Message for people. */
  readonly detail: string
  /** Stable name of the error for programs, such as `request.invalid`. */
  readonly code: string
  readonly errors?: readonly {
    readonly loc: readonly (string | number)[]
    readonly msg: string
    readonly type: string
  }[]
  readonly [field: string]: unknown
}

export class RequestError extends Error {
  override readonly name = 'RequestError'
  readonly response: Response
  readonly problem: Problem | null

  constructor(response: Response, problem: Problem | null) {
    super(problem?.detail ?? `The service answered ${response.status}`)
    this.response = response
    this.problem = problem
  }
}

export class JobError extends Error {
  override readonly name = 'JobError'
  readonly state: JobState

  constructor(state: JobState) {
    super(state.error?.detail ?? `The job was ${state.status}`)
    this.state = state
  }
}

/** The streams of a service. */
export interface Streams {
  /**
   * Yields the events of a stream until the server has no more. After a lost connection it resumes after the last
   * event. It omits the ends of jobs that the server then repeats.
   */
  events<T = unknown>(path: string, options?: StreamOptions): AsyncGenerator<Frame<T>, void, undefined>
  readonly jobs: {
    /** Yields the events of a job until it ends. */
    events(jobId: string, options?: StreamOptions): AsyncGenerator<Frame<JobState>, void, undefined>
    /** Returns the result of a job. @throws {JobError} if the job fails or is cancelled. */
    result<T = unknown>(jobId: string, options?: StreamOptions): Promise<T>
  }
}

/** Creates the streams of a service, which send their requests with `send`. */
export function createStreams(baseUrl: string, send: Sender): Streams {
  async function* events<T>(
    path: string,
    { signal, lastEventId }: StreamOptions = {},
  ): AsyncGenerator<Frame<T>> {
    const endedIds = new Map<string, true>()
    let last = lastEventId
    let waitMs = 1000
    for (;;) {
      const headers = {
        accept: 'text/event-stream',
        ...(last === undefined ? {} : { 'last-event-id': last }),
      }
      const response = await send(
        () => new Request(urlOf(baseUrl, path), { headers, signal: signal ?? null }),
      )
      if (response.status === 204) return
      if (!response.ok || response.body === null) throw await toRequestError(response)
      const parser = new EventSourceParserStream({ onRetry: (ms) => (waitMs = ms) })
      try {
        for await (const { event = 'message', id = '', data } of response.body
          .pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)
          .pipeThrough(parser)) {
          last = id
          const frame = { event, id, data: JSON.parse(data) as T }
          if (!isRepeatedEnd(frame, endedIds)) yield frame
        }
      } catch (error) {
        // Unless the caller aborted or the data is invalid, reconnect and resume after the last event.
        if (signal?.aborted || error instanceof SyntaxError) throw error
      }
      await pause(waitMs, signal)
      signal?.throwIfAborted()
    }
  }

  const jobEvents = (jobId: string, options?: StreamOptions) =>
    events<JobState>(`/api/v1/jobs/${encodeURIComponent(jobId)}/events`, options)

  const jobs: Streams['jobs'] = {
    events: async function* (jobId, options) {
      for await (const frame of jobEvents(jobId, options)) {
        yield frame
        if (hasEnded(frame)) return
      }
    },
    result: async <T>(jobId: string, options?: StreamOptions) => {
      for await (const frame of jobEvents(jobId, options)) {
        if (!hasEnded(frame)) continue
        if (frame.data.status === 'done') return frame.data.result as T
        throw new JobError(frame.data)
      }
      throw new Error(`The stream of job ${jobId} ended before the job`)
    },
  }

  return { events, jobs }
}

const FINAL_STATUSES: ReadonlySet<string> = new Set(['done', 'failed', 'cancelled'])

/** True if a job with this status has ended. */
export const isFinal = (status: string): boolean => FINAL_STATUSES.has(status)

/** True if this frame has the end of a job. */
const hasEnded = ({ event, data }: Frame<JobState>): boolean => event === 'status' && isFinal(data.status)

// Exceeds the ends that a resumed stream of several jobs repeats: those of some seconds.
const MAX_ENDED_IDS = 20_000

/** True for the end of a job in `endedIds`; adds any other. */
function isRepeatedEnd({ event, data }: Frame<unknown>, endedIds: Map<string, true>): boolean {
  const { job_id, status } = (data ?? {}) as Partial<JobState>
  if (event !== 'status' || job_id === undefined || status === undefined || !isFinal(status)) return false
  const isRepeated = endedIds.has(job_id)
  remember(endedIds, job_id, true, MAX_ENDED_IDS)
  return isRepeated
}

/** Makes an entry the newest of a map, and drops the oldest one beyond `most`. */
export function remember<K, V>(entries: Map<K, V>, key: K, value: V, most: number): void {
  entries.delete(key)
  entries.set(key, value)
  if (entries.size > most) entries.delete(entries.keys().next().value!)
}

// Statuses of requests that the server has not processed, or not yet.
const RETRYABLE: ReadonlySet<number> = new Set([429, 502, 503, 504])
const LONGEST_MS = 30_000

export type Transport = (request: Request) => Promise<Response>

/** Sends the requests that `make` creates until one is answered. */
export type Sender = (make: () => Request, transport?: Transport) => Promise<Response>

/**
 * Creates a function that sends a request with retries. Each POST gets an idempotency key, so that it takes effect
 * once.
 */
export function createSender({ key, retries = 4, fetch: given }: Omit<ClientOptions, 'baseUrl'>): Sender {
  return async (make, transport = given ?? fetch) => {
    const idempotencyKey = crypto.randomUUID()
    for (let attempt = 0; ; attempt++) {
      const request = make()
      if (key !== undefined && !request.headers.has('authorization'))
        request.headers.set('authorization', await bearerOf(key))
      if (request.method === 'POST' && !request.headers.has('idempotency-key'))
        request.headers.set('idempotency-key', idempotencyKey)
      const { signal } = request
      let response: Response | null = null
      try {
        response = await transport(request)
      } catch (error) {
        if (signal.aborted || attempt >= retries) throw error
      }
      if (response !== null && (attempt >= retries || !isRetryable(response, attempt))) return response
      await response?.body?.cancel()
      const afterMs = response === null ? null : retryAfterMsOf(response, LONGEST_MS)
      await pause(afterMs ?? backoffMs(attempt, LONGEST_MS), signal)
      signal.throwIfAborted()
    }
  }
}

/**
 * True if the request should be retried. On a retry, 409 means that the first request with the same key is still
 * running.
 */
const isRetryable = ({ status }: Response, attempt: number): boolean =>
  RETRYABLE.has(status) || (status === 409 && attempt > 0)

/** Reads the body of an error answer. */
export async function toRequestError(response: Response): Promise<RequestError> {
  const text = await response.text()
  try {
    return new RequestError(response, JSON.parse(text) as Problem)
  } catch {
    return new RequestError(response, null)
  }
}

export const urlOf = (baseUrl: string, path: string): string => baseUrl.replace(/\/$/, '') + path

/** Returns the `authorization` header of a key. */
export const bearerOf = async (key: Key): Promise<string> =>
  `Bearer ${typeof key === 'string' ? key : await key()}`

/** Returns the time of a `retry-after` header, limited to `mostMs`; null if the answer has none. */
export function retryAfterMsOf(response: Response, mostMs: number): number | null {
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN)
  return seconds >= 0 ? Math.min(seconds * 1000, mostMs) : null
}

/** Pause before the next attempt, with jitter. */
export const backoffMs = (attempt: number, mostMs: number): number =>
  Math.min(250 * 2 ** Math.min(attempt, 10), mostMs) * (0.5 + Math.random() / 2)

/** Waits for a time, or until the signal is aborted. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve()
    const end = (): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    signal?.addEventListener('abort', end, { once: true })
  })
}
