import createFetchClient, { type Client } from 'openapi-fetch'
import {
  type ClientOptions,
  createSender,
  createStreams,
  JobError,
  RequestError,
  type Streams,
  type Transport,
  toRequestError,
  urlOf,
} from '../../edge/client/connection.ts'
import type { components, paths } from './api.ts'
import { startWork } from './work.ts'
import type { Tasks, Worker, WorkOptions } from './work-types.ts'

/**
 * Client for every operation of Millrace's API reference, based on `openapi-fetch`. Adds an API key, safe retries and
 * streams that resume.
 */

export type { ClientOptions, Frame, JobState, Problem, StreamOptions } from '../../edge/client/connection.ts'
export * from './work-types.ts'
export type { components, paths }
export { JobError, RequestError }
export type Schemas = components['schemas']

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

export type Millrace = Client<paths> &
  Streams & {
    readonly documents: {
      /** Stores a file. @throws {RequestError} if the file is rejected. */
      upload(file: Blob, options?: UploadOptions): Promise<Schemas['Document']>
    }
    /** Starts a worker that claims jobs of a queue and runs its tasks until it is stopped. */
    work(queue: string, tasks: Tasks, options?: WorkOptions): Worker
  }

export function createClient(options: ClientOptions): Millrace {
  const send = createSender(options)
  const client = createFetchClient<paths>({
    baseUrl: options.baseUrl,
    fetch: (request) => send(() => request.clone()),
  })

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

  return Object.assign(client, createStreams(options.baseUrl, send), { documents: { upload }, work })
}

const textOf = (value: unknown): string => (Array.isArray(value) ? value.join(',') : String(value))

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
