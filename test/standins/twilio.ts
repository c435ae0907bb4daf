import { createHmac } from 'node:crypto'
import { type Accept, type HttpStandIn, type Mode, type ReceivedRequest, startHttpStandIn } from './http.ts'

/** Stand-in for Twilio: the part of its REST API for text messages and calls. */
export interface TwilioStandIn extends HttpStandIn {
  /** Accepted messages and calls, in order. */
  readonly taken: AcceptedSend[]
  /** Number of requests to send a message or start a call, accepted or not. */
  requests: number
  /** Number of list requests. */
  lists: number
  /** Chooses the reaction to a request that sends or calls. Accepts it by default. */
  mode: (asked: ReceivedRequest) => Mode
  /** Chooses the reaction to a list request. */
  listMode: (asked: ReceivedRequest) => Mode
  /** Posts a status callback to the path of the send's StatusCallback, at the base URL `at`. */
  postStatus(
    at: string,
    taken: AcceptedSend,
    status: string,
    more?: Readonly<Record<string, string>>,
  ): Promise<Response>
}

export interface AcceptedSend {
  readonly sid: string
  readonly kind: 'Messages' | 'Calls'
  readonly to: string
  readonly from: string
  /** Text of a message, or script URL of a call. */
  readonly content: string
  readonly parameters: URLSearchParams
  readonly at: number
}

export const ACCOUNT = `AC${'0123456789abcdef'.repeat(2)}`
export const TOKEN = 'hunter2-token'
export const SENDER = '+14155550100'

/** Returns settings that point the service to this server. */
export const createTwilioEnv = (url: string): Record<string, string> => ({
  TELEPHONY_ACCOUNT_SID: ACCOUNT,
  TELEPHONY_AUTH_TOKEN: TOKEN,
  TELEPHONY_PHONE_NUMBER: SENDER,
  TELEPHONY_API_BASE_URL: url,
})

export async function startTwilio(): Promise<TwilioStandIn> {
  const taken: AcceptedSend[] = []
  const server = await startHttpStandIn((asked) => {
    const kind = /^\/2010-04-01\/Accounts\/(AC\w{32})\/(Messages|Calls)\.json$/.exec(asked.path)
    const authorization = `Basic ${Buffer.from(`${ACCOUNT}:${TOKEN}`).toString('base64')}`
    if (kind === null || kind[1] !== ACCOUNT) return createRejection(404, 20404, 'Not found')
    if (asked.headers.authorization !== authorization) return createRejection(401, 20003, 'Authenticate')
    const resource = kind[2] as AcceptedSend['kind']
    if (asked.method === 'GET') {
      standIn.lists++
      return {
        mode: standIn.listMode(asked),
        take: () => ({ status: 200, body: listSends(taken, resource, asked) }),
      }
    }
    standIn.requests++
    return {
      mode: standIn.mode(asked),
      take: () => ({ status: 201, body: acceptSend(taken, resource, asked) }),
    }
  })
  const standIn: TwilioStandIn = Object.assign(server, {
    taken,
    requests: 0,
    lists: 0,
    mode: (): Mode => 'take',
    listMode: (): Mode => 'take',
    postStatus: (
      at: string,
      one: AcceptedSend,
      status: string,
      more: Readonly<Record<string, string>> = {},
    ) =>
      postCallback(at, one.parameters.get('StatusCallback')!, {
        ...toStatusParameters(one, status),
        ...more,
      }),
  })
  return standIn
}

/** Returns the parameters of a status callback. */
const toStatusParameters = (
  { sid, kind, to, from }: Pick<AcceptedSend, 'sid' | 'kind' | 'to' | 'from'>,
  status: string,
) => ({
  AccountSid: ACCOUNT,
  ApiVersion: '2010-04-01',
  To: to,
  From: from,
  ...(kind === 'Messages'
    ? { MessageSid: sid, SmsSid: sid, MessageStatus: status }
    : { CallSid: sid, CallStatus: status }),
})

/**
 * Returns a status callback with Twilio's signature (https://www.twilio.com/docs/usage/security#validating-requests).
 */
export function createSignedCallback(
  url: string,
  parameters: Readonly<Record<string, string>>,
  token = TOKEN,
): { body: string; headers: Record<string, string> } {
  const text = Object.keys(parameters)
    .sort()
    .reduce((sum, name) => sum + name + parameters[name], url)
  const signature = createHmac('sha1', token).update(text).digest('base64')
  return {
    body: new URLSearchParams(parameters).toString(),
    headers: { 'content-type': 'application/x-www-form-urlencoded', 'x-twilio-signature': signature },
  }
}

function postCallback(
  at: string,
  url: string,
  parameters: Readonly<Record<string, string>>,
): Promise<Response> {
  const { pathname, search } = new URL(url)
  return fetch(`${at}${pathname}${search}`, { method: 'POST', ...createSignedCallback(url, parameters) })
}

function createRejection(status: number, code: number, message: string): { mode: Mode; take: Accept } {
  return {
    mode: {
      status,
      body: { code, message, status, more_info: `https://www.twilio.com/docs/errors/${code}` },
    },
    take: () => ({ status, body: {} }),
  }
}

function acceptSend(taken: AcceptedSend[], kind: AcceptedSend['kind'], { body }: ReceivedRequest): object {
  const parameters = new URLSearchParams(body)
  const content = parameters.get(kind === 'Messages' ? 'Body' : 'Url') ?? ''
  const prefix = kind === 'Messages' ? 'SM' : 'CA'
  const one: AcceptedSend = {
    sid: `${prefix}${String(taken.length + 1).padStart(32, '0')}`,
    kind,
    to: parameters.get('To')!,
    from: parameters.get('From') ?? SENDER,
    content,
    parameters,
    at: Date.now(),
  }
  taken.push(one)
  return resourceOf(one)
}

function listSends(
  taken: readonly AcceptedSend[],
  kind: AcceptedSend['kind'],
  { query, path }: ReceivedRequest,
): object {
  const matches = taken.filter(
    (one) =>
      one.kind === kind &&
      (!query.has('To') || one.to === query.get('To')) &&
      (!query.has('From') || one.from === query.get('From')),
  )
  const size = Number(query.get('PageSize') ?? 50)
  const page = { page: 0, page_size: size, start: 0, end: matches.length, uri: path, first_page_uri: path }
  return {
    ...page,
    next_page_uri: null,
    previous_page_uri: null,
    [kind.toLowerCase()]: matches.reverse().slice(0, size).map(resourceOf),
  }
}

function resourceOf({ sid, kind, to, from, content, at, parameters }: AcceptedSend): object {
  const date = new Date(at).toUTCString().replace('GMT', '+0000')
  const common = {
    sid,
    to,
    from,
    status: 'queued',
    account_sid: ACCOUNT,
    date_created: date,
    date_updated: date,
  }
  if (kind === 'Calls') return { ...common, direction: 'outbound-api', uri: `/Calls/${sid}.json` }
  const messaging_service_sid = parameters.get('MessagingServiceSid')
  return {
    ...common,
    messaging_service_sid,
    body: content,
    date_sent: null,
    num_segments: '1',
    direction: 'outbound-api',
  }
}
