import type http from 'node:http'
import { createLazy } from '../../tasks/platform/lazy.ts'
import type { Settings } from '../../tasks/platform/settings/settings.ts'
import type { PostWebhook, WebhookResponse } from '../../tasks/webhooks/ports.ts'
import { validateWebhookUrl } from '../../tasks/webhooks/url.ts'
import { parseRetryAfter } from './breaker.ts'
import { startCall } from './call.ts'
import { createLookup } from './dns-lookup.ts'
import { describeNetworkError, throwIfShort, waitFor } from './wait.ts'

/** Delivers webhooks, to public addresses only. */

// Enough of a response to diagnose a failure with.
const MAX_BODY_BYTES = 1024
// Maximum time after the head of an answer for the rest: for a diagnosis, and for the echo of a challenge.
const BODY_MS = 1000
const ECHO_MS = 5000
// Idle connections are closed after this time: a receiver may keep one open forever.
const IDLE_MS = 5000
const HEADERS = { 'content-type': 'application/json', 'user-agent': 'Millrace-Webhooks/1' }

/**
 * Posts to untrusted URLs. The agents check the resolved address when they connect, so that a DNS change after
 * validation reaches no private address. Redirects are not followed.
 */
export function createWebhookPoster({ webhooks }: Pick<Settings, 'webhooks'>): PostWebhook {
  const { allowed, timeoutMs } = webhooks
  const loadSenders = createLazy(() => createSenders(allowed))
  return async (request, signal) => {
    const senders = await loadSenders()
    const startedAt = performance.now()
    // The settings may have changed since the URL was accepted.
    const problem = validateWebhookUrl(request.url, webhooks)
    if (problem !== null) return { ms: 0, status: null, body: null, error: `The URL ${problem}` }
    const end = startCall({ provider: 'webhook', operation: 'deliver', url: request.url })
    const closing = new AbortController()
    const answer: ReceivedAnswer = { head: null, chunks: [], isWhole: false }
    const limitMs = request.limits?.timeoutMs ?? timeoutMs
    const waited = await waitFor(postRequest(request, senders, closing.signal, answer), limitMs, signal)
    closing.abort()
    const ms = Math.round(performance.now() - startedAt)
    // The head decides, whatever became of the body: it may never end, or the connection may break.
    if (answer.head !== null) {
      end()
      const body = decodeBody(answer.chunks, request.limits?.maxBytes)
      const isWhole = request.limits === undefined ? {} : { isWhole: answer.isWhole }
      return { ms, ...answer.head, body, error: null, ...isWhole }
    }
    if (waited.kind === 'error') throwIfShort(waited.error)
    const error = waited.kind === 'error' ? waited.error : new DOMException(waited.kind, 'TimeoutError')
    end(error)
    const reason =
      waited.kind === 'timeout'
        ? `No answer within ${limitMs / 1000} s`
        : waited.kind === 'error'
          ? describeError(waited.error)
          : 'The attempt was cut short'
    return { ms, status: null, body: null, error: reason }
  }
}

interface Sender {
  readonly request: typeof http.request
  readonly agent: http.Agent
}
type Senders = Readonly<Record<'http:' | 'https:', Sender>>

/** Creates the senders on first use: node:http makes Node load its fetch, which costs 25 ms of CPU per thread. */
async function createSenders(allowed: readonly string[]): Promise<Senders> {
  const [http, https, filtering] = await Promise.all([
    import('node:http'),
    import('node:https'),
    import('request-filtering-agent'),
  ])
  const options = {
    allowIPAddressList: [...allowed],
    allowMetaIPAddress: false,
    // No limit per host: accounts with endpoints on the same host would wait for each other. Connections are bounded by the
    // 2048 slots of a process, 50 endpoints per account, and 8 concurrent deliveries per endpoint.
    keepAlive: true,
    // An operator who allows private addresses may have private names, too.
    lookup: createLookup(allowed.length > 0),
    timeout: IDLE_MS,
  }
  return {
    'http:': { request: http.request, agent: new filtering.RequestFilteringHttpAgent(options) },
    'https:': { request: https.request, agent: new filtering.RequestFilteringHttpsAgent(options) },
  }
}

/** The part of an answer that has arrived so far. */
interface ReceivedAnswer {
  head: Pick<WebhookResponse, 'status' | 'retry_after'> | null
  readonly chunks: Buffer[]
  isWhole: boolean
}

/** Sends a request and fills `answer`. Resolves when no more of the body is needed. */
function postRequest(
  { url, headers, body, echo, limits }: Parameters<PostWebhook>[0],
  senders: Senders,
  signal: AbortSignal,
  answer: ReceivedAnswer,
): Promise<void> {
  const { request, agent } = senders[new URL(url).protocol as keyof Senders]
  const maxBytes = limits?.maxBytes ?? MAX_BODY_BYTES
  return new Promise((resolve, reject) => {
    const sent = request(url, {
      method: 'POST',
      agent,
      headers: { ...HEADERS, ...headers, 'content-length': Buffer.byteLength(body) },
      signal,
    })
    sent.on('error', reject).on('response', (response) => {
      const retryAfter = parseRetryAfter(response.headers['retry-after'])
      answer.head = {
        status: response.statusCode ?? 0,
        ...(retryAfter === null ? {} : { retry_after: retryAfter }),
      }
      const isEchoed = (): boolean => echo !== null && decodeBody(answer.chunks).includes(echo)
      const mayEcho = echo !== null && /^2/.test(String(response.statusCode))
      const timer = setTimeout(resolve, limits?.timeoutMs ?? (mayEcho ? ECHO_MS : BODY_MS))
      let length = 0
      const finish = (): void => {
        clearTimeout(timer)
        resolve()
      }
      response.on('error', finish).on('close', finish)
      response.on('end', () => {
        answer.isWhole = response.complete && length <= maxBytes
        finish()
      })
      response.on('data', (chunk: Buffer) => {
        if (length < maxBytes) answer.chunks.push(chunk)
        length += chunk.length
        if (length <= maxBytes && !isEchoed()) return
        finish()
        response.destroy()
      })
    })
    sent.end(body)
  })
}

/** Decodes the beginning of a body. PostgreSQL stores no NUL. */
const decodeBody = (chunks: readonly Buffer[], maxBytes = MAX_BODY_BYTES): string =>
  Buffer.concat(chunks).subarray(0, maxBytes).toString().replaceAll('\0', '')

/** Describes why a request failed, without revealing anything about this machine's network. */
function describeError(error: unknown): string {
  if (error instanceof Error && / is not allowed\./.test(error.message))
    return 'Private addresses are not allowed'
  const { code } = describeNetworkError(error)
  return `The connection failed (${code})`
}
