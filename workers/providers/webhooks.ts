import type http from 'node:http'
import type { Settings } from '../../tasks/settings.ts'
import type { PostWebhook, WebhookPosted } from '../../tasks/webhooks/ports.ts'
import { webhookUrlProblem } from '../../tasks/webhooks/url.ts'
import { startCall } from './call.ts'
import { createLookup } from './names.ts'
import { networkError, waitFor } from './wait.ts'

/** Sending webhooks, to public addresses only. */

// Of an answer, as much is kept as shows what went wrong.
const KEPT_BYTES = 1024
// A receiver may keep its side open for ever.
const IDLE_MS = 5000
const HEADERS = { 'content-type': 'application/json', 'user-agent': 'Millrace-Webhooks/1' }

/**
 * Posts to URLs of callers. The agents check each address that a name resolves to when they connect, so that a name that
 * changes in between reaches nothing else; a redirect is not followed.
 */
export function createWebhookPoster({ webhooks }: Pick<Settings, 'webhooks'>): PostWebhook {
  const { allowed, timeoutMs } = webhooks
  let loading: Promise<Senders> | null = null

  return async (request, signal) => {
    loading ??= createSenders(allowed)
    const senders = await loading
    const startedAt = performance.now()
    // The settings may have changed since it was accepted.
    const problem = webhookUrlProblem(request.url, webhooks)
    if (problem !== null) return { ms: 0, status: null, body: null, error: `The URL ${problem}` }
    const end = startCall({ provider: 'webhook', what: 'deliver', url: request.url })
    const ended = new AbortController()
    const waited = await waitFor(post(request, senders, ended.signal), timeoutMs, signal)
    ended.abort()
    const ms = Math.round(performance.now() - startedAt)
    if (waited.kind === 'answer') {
      end()
      return { ms, ...waited.value, error: null }
    }
    const error = waited.kind === 'error' ? waited.error : new DOMException(waited.kind, 'TimeoutError')
    end(error)
    const said =
      waited.kind === 'late'
        ? `No answer within ${timeoutMs / 1000} s`
        : waited.kind === 'aborted'
          ? 'The attempt was cut short'
          : reasonOf(waited.error)
    return { ms, status: null, body: null, error: said }
  }
}

interface Sender {
  readonly request: typeof http.request
  readonly agent: http.Agent
}
type Senders = Readonly<Record<'http:' | 'https:', Sender>>

/** By the first webhook: with node:http Node loads its fetch, which takes each thread 25 ms of CPU. */
async function createSenders(allowed: readonly string[]): Promise<Senders> {
  const [http, https, filtering] = await Promise.all([
    import('node:http'),
    import('node:https'),
    import('request-filtering-agent'),
  ])
  const options = {
    allowIPAddressList: [...allowed],
    allowMetaIPAddress: false,
    // No limit for each host: accounts that have endpoints at one would wait for each other. What bounds all connections is
    // that a process sends to 2048 endpoints at once (its slots), 50 of them one account's, and to each 8 deliveries.
    keepAlive: true,
    // Who permits addresses of an own network may have own names, too.
    lookup: createLookup(allowed.length > 0),
    // Of a connection without a request.
    timeout: IDLE_MS,
  }
  return {
    'http:': { request: http.request, agent: new filtering.RequestFilteringHttpAgent(options) },
    'https:': { request: https.request, agent: new filtering.RequestFilteringHttpsAgent(options) },
  }
}

function post(
  { url, headers, body }: Parameters<PostWebhook>[0],
  senders: Senders,
  signal: AbortSignal,
): Promise<Pick<WebhookPosted, 'status' | 'body'>> {
  const { request, agent } = senders[new URL(url).protocol as keyof Senders]
  return new Promise((resolve, reject) => {
    const sent = request(url, {
      method: 'POST',
      agent,
      headers: { ...HEADERS, ...headers, 'content-length': Buffer.byteLength(body) },
      signal,
    })
    sent.on('error', reject).on('response', (response) => {
      const chunks: Buffer[] = []
      let length = 0
      const done = (): void =>
        resolve({
          status: response.statusCode ?? 0,
          body: Buffer.concat(chunks).subarray(0, KEPT_BYTES).toString().replaceAll('\0', ''),
        })
      response.on('error', done).on('end', done)
      response.on('data', (chunk: Buffer) => {
        if (length < KEPT_BYTES) chunks.push(chunk)
        length += chunk.length
        if (length < KEPT_BYTES) return
        done()
        response.destroy()
      })
    })
    sent.end(body)
  })
}

/** Why a request failed, in words that say nothing of this machine's network. */
function reasonOf(error: unknown): string {
  if (error instanceof Error && / is not allowed\./.test(error.message))
    return 'The address is private, and not allowed'
  const { code } = networkError(error)
  return `The connection failed (${code})`
}
