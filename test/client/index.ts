import { EventSourceParserStream } from 'eventsource-parser/stream'
import createFetchClient, { type Client } from 'openapi-fetch'
import type { components, paths } from './api.ts'
import { startWork } from './work.ts'
import { backoffMs, bearerOf, type Key, pause, retryAfterMsOf, urlOf } from './work-calls.ts'
import type { Tasks, Worker, WorkOptions } from './work-types.ts'

/**
 * Client for every operation of Millrace's API reference, based on `openapi-fetch`. Adds an API key, safe retries and
 * streams that resume.
 */

export * from './work-types.ts'
export type { components, paths }
export type Schemas = components['schemas']

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
  readonly status: 'queued' | 'running' | 'done' | 'failed' | 'cancelled'
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

/** Fields of an upload other than its file. */
export type UploadFields = Partial<
  Omit<
    NonNullable<paths['/api/v1/documents']['post']['requestBody']>['content']['multipart/form-data'],
    'file'
  >
>

export interface UploadOptions extends UploadFields {
  /** File name of the upload. Default: the name of the `File`. */
  readonly filename?: string
  readonly signal?: AbortSignal
  /** Reports the bytes sent so far and in total. */
  readonly onProgress?: OnProgress
}

export type OnProgress = (progress: { readonly loaded: number; readonly total: number }) => void

export type Millrace = Client<paths> & {
  /**
   * Yields the events of a stream until the server has no more. After a lost connection it resumes after the last
   * event.
   */
  events<T = unknown>(path: string, options?: StreamOptions): AsyncGenerator<Frame<T>, void, undefined>
  readonly jobs: {
    /** Yields the events of a job until it ends. */
    events(jobId: string, options?: StreamOptions): AsyncGenerator<Frame<JobState>, void, undefined>
    /** Returns the result of a job. @throws {JobError} if the job fails or is cancelled. */
    result<T = unknown>(jobId: string, options?: StreamOptions): Promise<T>
  }
  readonly documents: {
    /** Stores a file. @throws {RequestError} if the file is rejected. */
    upload(file: Blob, options?: UploadOptions): Promise<Schemas['Document']>
  }
  /** Starts a worker that claims jobs of a queue and runs its tasks until it is stopped. */
  work(queue: string, tasks: Tasks, options?: WorkOptions): Worker
}

export class RequestError extends Error {
  override readonly name = 'RequestError'
  readonly response: Response
  readonly problem: Schemas['Problem'] | null

  constructor(response: Response, problem: Schemas['Problem'] | null) {
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

export function createClient(options: ClientOptions): Millrace {
  const send = createSender(options)
  const client = createFetchClient<paths>({
    baseUrl: options.baseUrl,
    fetch: (request) => send(() => request.clone()),
  })

  async function* events<T>(
    path: string,
    { signal, lastEventId }: StreamOptions = {},
  ): AsyncGenerator<Frame<T>> {
    let last = lastEventId
    let waitMs = 1000
    for (;;) {
      const headers = {
        accept: 'text/event-stream',
        ...(last === undefined ? {} : { 'last-event-id': last }),
      }
      const response = await send(
        () => new Request(urlOf(options.baseUrl, path), { headers, signal: signal ?? null }),
      )
      if (response.status === 204) return
      if (!response.ok || response.body === null) throw await toRequestError(response)
      const parser = new EventSourceParserStream({ onRetry: (ms) => (waitMs = ms) })
      try {
        for await (const { event = 'message', id = '', data } of response.body
          .pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)
          .pipeThrough(parser)) {
          last = id
          yield { event, id, data: JSON.parse(data) as T }
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

  const jobs: Millrace['jobs'] = {
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

  const upload = async (file: Blob, how: UploadOptions = {}): Promise<Schemas['Document']> => {
    const { filename = 'name' in file ? String(file.name) : 'file', signal, onProgress, ...fields } = how
    const form = new FormData()
    for (const [name, value] of Object.entries(fields)) if (value != null) form.set(name, textOf(value))
    form.set('file', file, filename)
    const make = (): Request =>
      new Request(urlOf(options.baseUrl, '/api/v1/documents'), {
        method: 'POST',
        body: form,
        signal: signal ?? null,
      })
    const watched: Transport | undefined =
      onProgress &&
      (options.fetch === undefined && typeof XMLHttpRequest === 'function'
        ? (request) => sendByXhr(request, form, onProgress)
        : (request) => (options.fetch ?? fetch)(countBytes(request, file.size, onProgress)))
    const response = await send(make, watched)
    if (!response.ok) throw await toRequestError(response)
    return (await response.json()) as Schemas['Document']
  }

  const work: Millrace['work'] = (queue, tasks, how) => startWork(options, toRequestError, queue, tasks, how)

  return Object.assign(client, { events, jobs, documents: { upload }, work })
}

const hasEnded = ({ event, data }: Frame<JobState>): boolean =>
  event === 'status' && ['done', 'failed', 'cancelled'].includes(data.status)

const textOf = (value: unknown): string => (Array.isArray(value) ? value.join(',') : String(value))

// Statuses of requests that the server has not processed, or not yet.
const RETRYABLE: ReadonlySet<number> = new Set([429, 502, 503, 504])
const LONGEST_MS = 30_000

type Transport = (request: Request) => Promise<Response>

/**
 * Creates a function that sends a request with retries. Each POST gets an idempotency key, so that it takes effect
 * once.
 */
function createSender({ key, retries = 4, fetch: given }: ClientOptions) {
  return async (make: () => Request, transport: Transport = given ?? fetch): Promise<Response> => {
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

async function toRequestError(response: Response): Promise<RequestError> {
  const text = await response.text()
  try {
    return new RequestError(response, JSON.parse(text) as Schemas['Problem'])
  } catch {
    return new RequestError(response, null)
  }
}

/** Sends a form with XMLHttpRequest, because `fetch` in browsers reports no upload progress. */
function sendByXhr(request: Request, form: FormData, onProgress: OnProgress): Promise<Response> {
  return new Promise((resolve, reject) => {
    const xhr = new XMLHttpRequest()
    xhr.open(request.method, request.url)
    // Skip the content type, because the form sets its own with a boundary.
    for (const [name, value] of request.headers)
      if (name !== 'content-type') xhr.setRequestHeader(name, value)
    xhr.responseType = 'blob'
    xhr.upload.onprogress = ({ loaded, total }) => onProgress({ loaded, total })
    xhr.onload = () => {
      const lines = xhr
        .getAllResponseHeaders()
        .trim()
        .split(/[\r\n]+/)
      const headers = lines.map((line): [string, string] => {
        const colon = line.indexOf(':')
        return [line.slice(0, colon), line.slice(colon + 1).trim()]
      })
      resolve(new Response(xhr.response as Blob, { status: xhr.status, headers }))
    }
    xhr.onerror = () => reject(new TypeError('The upload received no answer'))
    xhr.onabort = () => reject(request.signal.reason as Error)
    request.signal.addEventListener('abort', () => xhr.abort(), { once: true })
    xhr.send(form)
  })
}

/**
 * Returns a request that reports how many bytes were read from its body. `total` is the file's size, which approximates
 * that of the body.
 */
function countBytes(request: Request, total: number, onProgress: OnProgress): Request {
  let loaded = 0
  const counter = new TransformStream<Uint8Array, Uint8Array>({
    transform: (chunk, controller) => {
      loaded = Math.min(total, loaded + chunk.byteLength)
      onProgress({ loaded, total })
      controller.enqueue(chunk)
    },
  })
  const init = { body: request.body!.pipeThrough(counter), duplex: 'half' }
  return new Request(request, init as RequestInit)
}
