import { randomUUID } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { type Accept, type HttpStandIn, type Mode, type ReceivedRequest, startHttpStandIn } from './http.ts'

/** Stand-in for Resend: the domain part of its REST API, and signed events. */
export interface ResendStandIn extends HttpStandIn {
  readonly domains: ResendDomain[]
  /** Requests so far, as `METHOD /path`. */
  readonly asked: string[]
  mode: (asked: ReceivedRequest) => Mode
  /** Number of domains on a page of the domain list. */
  pageSize: number
}

export interface ResendDomain {
  readonly id: string
  readonly name: string
  status: string
  readonly region: string
  readonly created_at: string
}

export const KEY = 're_hunter2_key'
export const WEBHOOK_SECRET = `whsec_${Buffer.from('a secret of its webhooks').toString('base64')}`

/** Returns a mail event for these recipients. `id` is the service's id of the send, which the Message-ID contains. */
export function createMailEvent(
  type: string,
  {
    id,
    to = 'ada@example.com',
    emailId = randomUUID(),
    ...more
  }: MailFacts & Readonly<Record<string, unknown>> = {},
): object {
  const at = '2026-02-22T23:41:12.126Z'
  const headers = id === undefined ? {} : { headers: [{ name: 'Message-ID', value: `<${id}@example.com>` }] }
  const common = {
    created_at: at,
    email_id: emailId,
    from: 'service@example.com',
    to: [to].flat(),
    subject: 'Hello',
  }
  return {
    type,
    created_at: at,
    data: { ...common, message_id: `<0100${emailId}@email.amazonses.com>`, ...headers, ...more },
  }
}

interface MailFacts {
  readonly id?: string
  readonly to?: string | readonly string[]
  readonly emailId?: string
}

/**
 * Returns an event with Svix's signature, which Resend uses
 * (https://docs.svix.com/receiving/verifying-payloads/how-manual).
 */
export function createSignedEvent(
  event: object,
  { secret = WEBHOOK_SECRET, at = Date.now(), id = `msg_${randomUUID()}` } = {},
): { body: string; headers: Record<string, string> } {
  const body = JSON.stringify(event)
  const time = new Date(at)
  const headers = {
    'content-type': 'application/json',
    'svix-id': id,
    'svix-timestamp': String(Math.floor(at / 1000)),
    'svix-signature': new Webhook(secret).sign(id, time, body),
  }
  return { body, headers }
}

export async function startResend(): Promise<ResendStandIn> {
  const domains: ResendDomain[] = []
  const server = await startHttpStandIn((asked) => {
    standIn.asked.push(`${asked.method} ${asked.path}`)
    if (asked.headers.authorization !== `Bearer ${KEY}`)
      return createRejection(401, 'invalid_api_key', 'API key is invalid')
    return { mode: standIn.mode(asked), take: () => answerRequest(domains, standIn.pageSize, asked) }
  })
  const more = { domains, asked: [], mode: (): Mode => 'take', pageSize: 100 }
  const standIn: ResendStandIn = Object.assign(server, more)
  return standIn
}

/** Resend's answer to a key that may only send mail. */
export const SEND_ONLY_KEY_ERROR: Mode = {
  status: 401,
  body: {
    statusCode: 401,
    message: 'This API key is restricted to only send emails',
    name: 'restricted_api_key',
  },
}

export const createResendDomain = (name: string, status = 'verified'): ResendDomain => ({
  id: randomUUID(),
  name,
  status,
  region: 'us-east-1',
  created_at: '2026-01-02T03:04:05.678Z',
})

function createRejection(statusCode: number, name: string, message: string): { mode: Mode; take: Accept } {
  return {
    mode: { status: statusCode, body: { statusCode, name, message } },
    take: () => ({ status: statusCode, body: {} }),
  }
}

function answerRequest(
  domains: ResendDomain[],
  pageSize: number,
  { method, path, query, body }: ReceivedRequest,
): ReturnType<Accept> {
  const [, , id, action] = path.split('/')
  const found = domains.find((domain) => domain.id === id)
  if (id === undefined && method === 'GET')
    return { status: 200, body: listDomains(domains, pageSize, query) }
  if (id === undefined && method === 'POST')
    return createDomain(domains, JSON.parse(body) as { name: string })
  if (found === undefined)
    return { status: 404, body: { statusCode: 404, name: 'not_found', message: 'Domain not found' } }
  if (action === 'verify') {
    found.status = 'pending'
    return { status: 200, body: { object: 'domain', id } }
  }
  return { status: 200, body: { object: 'domain', ...found, records: DNS_RECORDS } }
}

function listDomains(domains: readonly ResendDomain[], pageSize: number, query: URLSearchParams): object {
  const start = query.has('after') ? domains.findIndex(({ id }) => id === query.get('after')) + 1 : 0
  const data = domains.slice(start, start + pageSize)
  return { object: 'list', has_more: start + pageSize < domains.length, data }
}

function createDomain(
  domains: ResendDomain[],
  { name, region }: { name: string; region?: string },
): ReturnType<Accept> {
  if (domains.some((domain) => domain.name === name))
    return {
      status: 403,
      body: {
        statusCode: 403,
        name: 'validation_error',
        message: `The ${name} domain has been registered already.`,
      },
    }
  const domain = { ...createResendDomain(name, 'not_started'), ...(region === undefined ? {} : { region }) }
  domains.push(domain)
  return { status: 201, body: { ...domain, records: DNS_RECORDS, dns_provider: 'Unidentified' } }
}

const DNS_RECORDS = [
  {
    record: 'SPF',
    name: 'send',
    type: 'MX',
    ttl: 'Auto',
    status: 'not_started',
    value: 'feedback-smtp.us-east-1.amazonses.com',
    priority: 10,
  },
  { record: 'DKIM', name: 'resend._domainkey', type: 'TXT', ttl: 60, status: 'not_started', value: 'p=MIGf' },
]
