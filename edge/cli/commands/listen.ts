import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { hostname } from 'node:os'
import { buffer } from 'node:stream/consumers'
import { RequestError } from '../../client/connection.ts'
import { parseUrl } from '../api.ts'
import { defineCommand, type Input } from '../command.ts'
import { EVENT_NAMES, EVENT_SCOPES, parseEvent } from '../events.ts'
import { UsageError } from '../io.ts'
import { clean, formatDuration, formatTime } from '../output.ts'

// Less than the 15 s after which the service gives up an attempt.
const FORWARD_TIMEOUT_MS = 14_000
const REQUEST_TIMEOUT_MS = 10_000
/** Headers of one connection, which the next one sets itself. */
const OWN_HEADERS: ReadonlySet<string> = new Set([
  'host',
  'connection',
  'content-length',
  'transfer-encoding',
  'expect',
])

const options = {
  forward: { value: 'URL', about: 'address of your program, such as http://127.0.0.1:3000/hooks' },
  events: { value: 'EVENT,…', about: 'only these; default all' },
  address: { value: 'URL', about: 'address at which the service reaches --port, such as that of a tunnel' },
  port: { value: 'PORT', about: 'port of this command on 127.0.0.1; default a free one' },
}

export const listen = defineCommand({
  args: '',
  about: 'Forwards the webhooks of the account to a program on this machine until Ctrl-C.',
  notes: `Adds an endpoint that ends with this command. Deliveries arrive as the service signs and retries them; the secret
is shown at the start. The service must reach this machine: it runs here, or --address names a tunnel.
Events: ${EVENT_NAMES.join(', ')}.
With --events, a key needs only the scopes of these.`,
  options,
  example: 'webhooks listen --forward http://127.0.0.1:3000/hooks --events job.done,job.failed',
  scopes: ['webhooks:write', ...new Set(Object.values(EVENT_SCOPES))],
  run: async (input) => {
    const { values, io } = input
    if (values.forward === undefined)
      throw new UsageError(`--forward is missing: --forward ${options.forward.value}`)
    const forward = parseUrl('--forward', values.forward, 'http://127.0.0.1:3000/hooks')
    const address =
      values.address === undefined
        ? undefined
        : parseUrl('--address', values.address, 'https://tunnel.example.com')
    if (address !== undefined && values.port === undefined) throw new UsageError('--address needs --port')
    const events = values.events === undefined ? EVENT_NAMES : values.events.split(',').map(parseEvent)
    const path = `/${randomUUID()}`
    const server = createServer((request, response) => {
      if (request.method !== 'POST' || request.url !== path) return void response.writeHead(404).end()
      receive(input, forward, request, response).catch((error: Error) => response.destroy(error))
    })
    const port = await open(server, Number(values.port ?? 0))
    try {
      const url = `${(address ?? `http://127.0.0.1:${port}`).replace(/\/$/, '')}${path}`
      const remove = await addEndpoint(input, url, events, forward)
      if (!io.signal.aborted) await once(io.signal, 'abort')
      await remove()
    } finally {
      server.close()
      server.closeAllConnections()
    }
    return io.signal.reason as number
  },
})

/** Opens the server and returns its port. @throws UsageError if the port cannot be used. */
async function open(server: Server, port: number): Promise<number> {
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw new UsageError('--port must be an integer up to 65535')
  server.listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch (error) {
    throw new UsageError(`--port ${port} can't be used: ${(error as NodeJS.ErrnoException).code}`)
  }
  return (server.address() as AddressInfo).port
}

/** Adds the endpoint and shows its secret. Returns the function that removes it. */
async function addEndpoint(
  { api, out }: Input,
  url: string,
  events: readonly string[],
  forward: string,
): Promise<() => Promise<void>> {
  const description = `npx millrace webhooks listen on ${hostname()}`
  const page = `${api.url.replace(/\/$/, '')}/account/webhooks`
  let added: { readonly id: number; readonly secret: string }
  try {
    // Ctrl-C must not cut this request: the endpoint would remain.
    const signal = AbortSignal.timeout(REQUEST_TIMEOUT_MS)
    added = await api.call('POST', '/api/v1/webhooks', { body: { url, events, description }, signal })
  } catch (error) {
    const isUnreachable =
      error instanceof RequestError && error.problem?.errors?.some(({ loc }) => loc.includes('url'))
    if (isUnreachable)
      out.note(
        `The service may not deliver to ${url}. Open a tunnel to this machine, and name it in --address.`,
      )
    if (!(error instanceof RequestError))
      out.note(`If the service has received the request, its endpoint remains: see ${page}`)
    throw error
  }
  const { id, secret } = added
  if (out.isJson) out.json({ endpoint_id: id, url, secret, events })
  else {
    out.note(`Forwarding ${events.join(', ')} to ${forward}`)
    out.line(`Secret: ${secret}`)
    out.note('Ctrl-C ends this. In another terminal: npx millrace webhooks trigger job.done')
  }
  return async () => {
    try {
      await api.call('DELETE', `/api/v1/webhooks/${id}`, { signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS) })
      out.note('The endpoint is deleted')
    } catch {
      out.note(`The endpoint ${id} was not deleted: see ${page}`)
    }
  }
}

interface Message {
  readonly type: string
  readonly data: { readonly challenge?: string; readonly type?: string | null }
}

/** Returns a message of the service; null for any other body. */
function parseMessage(body: Buffer): Message | null {
  try {
    const message = JSON.parse(body.toString()) as Partial<Message> | null
    return typeof message?.type === 'string' && typeof message.data === 'object' ? (message as Message) : null
  } catch {
    return null
  }
}

/** Answers a challenge, or passes a message on and answers as its receiver does. */
async function receive(
  { io, out }: Input,
  forward: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const body = await buffer(request)
  const message = parseMessage(body)
  if (message === null) return void response.writeHead(400).end('This is no message of Millrace')
  if (message.type === 'webhook.challenge') return void response.end(message.data.challenge)
  const beganAt = io.now()
  const answer = await forwardMessage(forward, request, body)
  const { status, error } = answer
  response.writeHead(status ?? 502, answer.headers).end(answer.body)
  const id = request.headers['webhook-id']
  if (out.isJson) return out.json({ message_id: id, status, error, message })
  const type =
    message.type === 'webhook.test' && message.data.type ? `webhook.test ${message.data.type}` : message.type
  const isOk = status !== null && status >= 200 && status < 300
  const result = out.paint(isOk ? 'green' : 'red', String(status ?? error))
  const shown = clean(`${formatTime(beganAt)}  ${id}  ${type}`)
  out.line(`${shown}  ${result} in ${formatDuration(io.now() - beganAt)}`)
}

interface ForwardedAnswer {
  /** Null if no answer arrived. */
  readonly status: number | null
  readonly error: string | null
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer | string
}

async function forwardMessage(
  forward: string,
  request: IncomingMessage,
  body: Buffer,
): Promise<ForwardedAnswer> {
  const headers = Object.entries(request.headers).flatMap(([name, value]) =>
    typeof value !== 'string' || OWN_HEADERS.has(name) ? [] : [[name, value] as [string, string]],
  )
  try {
    const answer = await fetch(forward, {
      method: 'POST',
      headers,
      body: new Uint8Array(body),
      redirect: 'manual',
      signal: AbortSignal.timeout(FORWARD_TIMEOUT_MS),
    })
    const retryAfter = answer.headers.get('retry-after')
    return {
      status: answer.status,
      error: null,
      headers: retryAfter === null ? {} : { 'retry-after': retryAfter },
      body: Buffer.from(await answer.arrayBuffer()),
    }
  } catch (failure) {
    const { cause, name } = failure as Error
    const error = (cause as NodeJS.ErrnoException | undefined)?.code ?? name
    return { status: null, error, headers: {}, body: `The program did not answer: ${error}` }
  }
}
