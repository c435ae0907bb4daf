import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { stopAfterFile } from './services.ts'
import {
  type Answer,
  createError,
  createStripeAccount,
  dispatch,
  type StripeAccount,
} from './stripe-account.ts'

/**
 * Stand-in that speaks Stripe's wire protocol to the real SDK: form bodies, errors, idempotency keys
 * (https://docs.stripe.com/api/idempotent_requests) and failures.
 */

export const KEY = 'sk_test_standin'

/** Failure of a request. `cut` and `hang-after` fail after the request was executed, which the client cannot know. */
export type Fault =
  | 'declined'
  | 'invalid'
  | 'revoked'
  | 'forbidden'
  | 'busy'
  | 'paused'
  | 'broken'
  | 'garbage'
  | 'refuse'
  | 'hang'
  | 'hang-after'
  | 'cut'

export interface StripeRequest {
  readonly method: string
  readonly path: string
  /** Form fields, or the query of a GET, by the names that the client sent. */
  readonly fields: Readonly<Record<string, string>>
  readonly idempotencyKey: string
  readonly fault: Fault | null
}

export interface StripeStandIn {
  readonly url: string
  readonly account: StripeAccount
  /** Requests so far, in order. */
  readonly asked: StripeRequest[]
  /** Requests for the event list so far. A worker's schedule may send them during any test. */
  readonly eventsAsked: StripeRequest[]
  /** Faults of the next requests, one each; null for a request without a fault. */
  readonly faults: (Fault | null)[]
  /** Faults of the next requests for the event list, which a worker's schedule may send during any test. */
  readonly eventFaults: (Fault | null)[]
  /** Paths that the key has no right to read, as the check of its rights reads them: with the limit 1. */
  readonly forbiddenPaths: Set<string>
  /** Delay of answers in ms. */
  delayMs: number
  /** API keys that the server accepts. */
  readonly keys: Set<string>
  stop(): Promise<void>
}

interface StoredAnswer {
  readonly fingerprint: string
  answer: Answer | null
}

const FAULTS: Readonly<Partial<Record<Fault, Answer>>> = {
  declined: createError(402, 'card_error', 'Your card was declined.', {
    code: 'card_declined',
    decline_code: 'generic_decline',
  }),
  invalid: createError(
    400,
    'invalid_request_error',
    'The price is not available. Contact sk_test_secret123.',
    {
      param: 'price',
    },
  ),
  revoked: createError(401, 'invalid_request_error', 'Expired API Key provided: sk_test_********1234'),
  forbidden: createError(
    403,
    'invalid_request_error',
    'The provided key rk_test_******1234 lacks the permission',
  ),
  busy: createError(429, 'invalid_request_error', 'Too many requests', { code: 'rate_limit' }),
  paused: {
    ...createError(503, 'api_error', 'Under maintenance'),
    headers: { 'retry-after': '120' },
  },
  broken: createError(500, 'api_error', 'An unknown error occurred'),
}

const EMPTY_LIST: Answer = { status: 200, body: { object: 'list', data: [], has_more: false } }

/** Starts a stand-in that stops after the file. Call it at the top of the file, not in a hook. */
export async function startStripe(): Promise<StripeStandIn> {
  const kept = new Map<string, StoredAnswer>()
  const standIn: Omit<StripeStandIn, 'url' | 'stop'> = {
    account: createStripeAccount(),
    asked: [],
    eventsAsked: [],
    faults: [],
    eventFaults: [],
    forbiddenPaths: new Set(),
    delayMs: 0,
    keys: new Set([KEY]),
  }
  const server = createServer((request, response) => {
    void readBody(request).then((body) => serveRequest(standIn, kept, request, response, body))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const stop = async (): Promise<void> => {
    server.closeAllConnections()
    await new Promise<void>((resolve) => server.close(() => resolve()))
  }
  stopAfterFile(stop)
  return Object.assign(standIn, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, stop })
}

async function serveRequest(
  standIn: Omit<StripeStandIn, 'url' | 'stop'>,
  kept: Map<string, StoredAnswer>,
  request: IncomingMessage,
  response: ServerResponse,
  body: string,
): Promise<void> {
  const url = new URL(request.url!, 'http://stripe')
  const fields = Object.fromEntries(new URLSearchParams(request.method === 'GET' ? url.search : body))
  // A worker checks the rights of its key during any test.
  if (request.method === 'GET' && fields.limit === '1') {
    const isKnown = standIn.keys.has(String(request.headers.authorization).replace('Bearer ', ''))
    const permitted = standIn.forbiddenPaths.has(url.pathname) ? FAULTS.forbidden! : EMPTY_LIST
    return sendAnswer(response, isKnown ? permitted : FAULTS.revoked!)
  }
  const idempotencyKey = String(request.headers['idempotency-key'] ?? '')
  const isEvents = url.pathname === '/v1/events'
  const faults = isEvents ? standIn.eventFaults : standIn.faults
  const fault = faults.shift() ?? null
  const asked: StripeRequest = { method: request.method!, path: url.pathname, fields, idempotencyKey, fault }
  ;(isEvents ? standIn.eventsAsked : standIn.asked).push(asked)
  if (fault === 'refuse') return void request.socket.destroy()
  if (fault === 'hang') return
  if (standIn.delayMs > 0) await new Promise((resolve) => setTimeout(resolve, standIn.delayMs))
  if (!standIn.keys.has(String(request.headers.authorization).replace('Bearer ', '')))
    return sendAnswer(
      response,
      createError(401, 'invalid_request_error', 'Invalid API Key provided: sk_test_****bad'),
    )
  if (fault === 'garbage') return void response.end('<html>502 Bad Gateway</html>')
  const answer = (fault === null ? null : FAULTS[fault]) ?? answerOnce(standIn.account, kept, asked)
  if (fault === 'hang-after') return
  if (fault === 'cut') return void request.socket.destroy()
  sendAnswer(response, answer)
}

/** Executes a request once per key. Later requests with that key get the same answer. */
function answerOnce(account: StripeAccount, kept: Map<string, StoredAnswer>, asked: StripeRequest): Answer {
  if (asked.idempotencyKey === '') return dispatch(account, asked)
  const fingerprint = `${asked.path} ${JSON.stringify(asked.fields)}`
  const first = kept.get(asked.idempotencyKey)
  if (first !== undefined && first.fingerprint !== fingerprint)
    return createError(
      400,
      'idempotency_error',
      'Keys for idempotent requests can only be used with the same parameters',
    )
  if (first?.answer) return { ...first.answer, isReplayed: true }
  const answer = dispatch(account, asked)
  kept.set(asked.idempotencyKey, { fingerprint, answer })
  return answer
}

function sendAnswer(
  response: ServerResponse,
  { status, body, isReplayed = false, headers = {} }: Answer,
): void {
  if (response.socket?.destroyed) return
  response.writeHead(status, {
    'content-type': 'application/json',
    'request-id': 'req_standin',
    ...headers,
    ...(isReplayed ? { 'idempotent-replayed': 'true' } : {}),
  })
  response.end(JSON.stringify(body))
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}
