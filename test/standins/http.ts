import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'

/** Runs stand-ins for HTTP providers: a server on a free port, with failure modes. */

/**
 * Reaction of a stand-in to a request. The stand-in accepts the request (`take`), rejects it with a status, or fails
 * before or after accepting it. `hang` never answers, `cut` closes the connection, `error` answers 500, `twice` answers
 * twice, `garbage` answers invalid JSON.
 */
export type Mode =
  | 'take'
  | `${'hang' | 'cut' | 'error'} ${'before' | 'after'}`
  | 'twice'
  | 'garbage'
  | { readonly status: number; readonly body?: unknown; readonly headers?: Readonly<Record<string, string>> }

/** True if a mode never answers. */
export const neverAnswers = (mode: unknown): boolean => typeof mode === 'string' && mode.startsWith('hang')

export interface HttpStandIn {
  readonly url: string
  /** Returns the duration of a request in ms. Half of it passes before the request is accepted, half after. */
  pace: () => number
  /** Delays the answers to accepted requests until this promise resolves; null does not delay them. */
  blockedBy: Promise<unknown> | null
  stop(): Promise<void>
}

export interface ReceivedRequest {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

/** Carries out an accepted request and returns its answer. */
export type Accept = () => { readonly status: number; readonly body: unknown }

/** Starts a server. `decide` chooses the reaction to each request. */
export async function startHttpStandIn(
  decide: (asked: ReceivedRequest) => { mode: Mode; take: Accept },
): Promise<HttpStandIn> {
  const sockets = new Set<Socket>()
  const server = createServer((request, response) => {
    void readRequest(request).then(
      (asked) => sendAnswer(request, response, standIn, () => decide(asked)),
      () => response.destroy(),
    )
  })
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('error', () => {}).on('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const standIn: HttpStandIn = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    pace: () => 0,
    blockedBy: null,
    stop: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return standIn
}

async function readRequest(request: IncomingMessage): Promise<ReceivedRequest> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const { pathname, searchParams } = new URL(request.url!, 'http://stand-in')
  return {
    method: request.method!,
    path: pathname,
    query: searchParams,
    headers: request.headers,
    body: Buffer.concat(chunks).toString(),
  }
}

async function sendAnswer(
  request: IncomingMessage,
  response: ServerResponse,
  standIn: HttpStandIn,
  decide: () => { mode: Mode; take: Accept },
): Promise<void> {
  const paceMs = standIn.pace() / 2
  if (paceMs > 0) await delay(paceMs)
  const { mode, take } = decide()
  const send = (status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): void => {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text)
  }
  const taken = typeof mode === 'object' || mode.endsWith('before') ? null : take()
  if (paceMs > 0) await delay(paceMs)
  await standIn.blockedBy
  if (typeof mode === 'object') send(mode.status, mode.body ?? {}, mode.headers)
  else if (mode.startsWith('cut')) request.socket.destroy()
  else if (mode.startsWith('error')) send(500, { code: 20500, message: 'Internal Server Error', status: 500 })
  else if (mode === 'garbage') send(taken!.status, '<html>')
  else if (!neverAnswers(mode)) send(taken!.status, taken!.body)
  if (mode === 'twice') request.socket.write('HTTP/1.1 201 Created\r\ncontent-length: 2\r\n\r\n{}')
}
