import http from 'node:http'
import https from 'node:https'
import type { Settings } from '../../tasks/settings.ts'
import type { PostWebhook, WebhookPosted } from '../../tasks/webhooks/ports.ts'
import { webhookUrlProblem } from '../../tasks/webhooks/url.ts'
import { startCall } from './call.ts'
import { networkError, waitFor } from './wait.ts'

/** Sending webhooks, to public addresses only. */

// Of an answer, as much is kept as shows what went wrong.
const KEPT_BYTES = 1024
const HEADERS = { 'content-type': 'application/json', 'user-agent': 'Millrace-Webhooks/1' }

/**
 * Posts to URLs of callers. The agents check each address that a name resolves to when they connect, so that a name that
 * changes in between reaches nothing else; a redirect is not followed.
 */
export function createWebhookPoster({ webhooks }: Pick<Settings, 'webhooks'>): PostWebhook {
  const { allowed, timeoutMs } = webhooks
  let loading: Promise<Agents> | null = null

  return async (request, signal) => {
    loading ??= createAgents(allowed)
    const agents = await loading
    const startedAt = performance.now()
    // The settings may have changed since it was accepted.
    const problem = webhookUrlProblem(request.url, webhooks)
    if (problem !== null) return { ms: 0, status: null, body: null, error: `The URL ${problem}` }
    const end = startCall({ provider: 'webhook', what: 'deliver', url: request.url })
    const ended = new AbortController()
    const waited = await waitFor(post(request, agents, ended.signal), timeoutMs, signal)
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

type Agents = Readonly<Record<'http:' | 'https:', http.Agent>>

async function createAgents(allowed: readonly string[]): Promise<Agents> {
  const { RequestFilteringHttpAgent, RequestFilteringHttpsAgent } = await import('request-filtering-agent')
  const options = {
    allowIPAddressList: [...allowed],
    allowMetaIPAddress: false,
    keepAlive: true,
    maxSockets: 16,
  }
  return {
    'http:': new RequestFilteringHttpAgent(options),
    'https:': new RequestFilteringHttpsAgent(options),
  }
}

function post(
  { url, headers, body }: Parameters<PostWebhook>[0],
  agents: Agents,
  signal: AbortSignal,
): Promise<Pick<WebhookPosted, 'status' | 'body'>> {
  const { protocol } = new URL(url)
  const { request } = protocol === 'https:' ? https : http
  return new Promise((resolve, reject) => {
    const sent = request(url, {
      method: 'POST',
      agent: agents[protocol as keyof Agents],
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
