import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'

/** Stand-in for a model provider that speaks OpenAI's wire protocol and follows a script. */

/** Script of the answer to a request. */
export interface Script {
  /** HTTP status of an answer that has `body`. By default, the status is 200 and the answer follows the script. */
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
  /** Pieces of the answer's text. They are strings for most providers. */
  readonly pieces?: readonly unknown[]
  /** Delays in ms before the first piece, and between two pieces. */
  readonly firstMs?: number
  readonly betweenMs?: number
  /** Usage at the end of the answer; null leaves it out. */
  readonly usage?: object | null
  /** Breaks the answer off after `after` pieces. */
  readonly breaks?: { readonly after: number; readonly does: 'hang' | 'cut' | 'end' | 'garbage' | 'error' }
  /** Writes the output in chunks of this many bytes. */
  readonly bytesEach?: number
  /** Deltas of other kinds, which come before the pieces. */
  readonly aside?: readonly object[]
  /** More fields of the message of a whole answer. */
  readonly message?: object
  readonly finish?: string | null
  /** Parts of a body that is sent as it is, in place of all of the above, with a pause of `betweenMs` between two. */
  readonly raw?: readonly string[]
  /** Breaks the answer off after the finish reason, in place of the usage. */
  readonly breaksAtEnd?: 'hang' | 'cut' | 'error'
}

export interface ModelRequest {
  readonly path: string
  readonly authorization: string
  readonly body: {
    readonly model: string
    readonly stream?: boolean
    readonly messages: readonly { readonly role: string; readonly content: string }[]
    readonly [field: string]: unknown
  }
}

export interface ModelStandIn {
  readonly url: string
  readonly asked: ModelRequest[]
  script: (asked: ModelRequest) => Script
  /** Number of requests whose client is connected and whose answer is not finished. */
  readonly open: number
  stop(): Promise<void>
}

export const USAGE = { prompt_tokens: 12, completion_tokens: 5, total_tokens: 17 }

export async function startModelServer(): Promise<ModelStandIn> {
  const sockets = new Set<Socket>()
  const asked: ModelRequest[] = []
  let open = 0
  const server = createServer(async (request, response) => {
    open++
    response.on('close', () => open--)
    try {
      const one = await parseRequest(request)
      asked.push(one)
      await sendAnswer(response, one, standIn.script(one))
    } catch {
      response.destroy()
    }
  })
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('error', () => {}).on('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const standIn: ModelStandIn = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    asked,
    script: () => ({}),
    get open() {
      return open
    },
    stop: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return standIn
}

async function parseRequest(request: IncomingMessage): Promise<ModelRequest> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return {
    path: request.url!,
    authorization: request.headers.authorization ?? '',
    body: JSON.parse(Buffer.concat(chunks).toString()),
  }
}

async function sendAnswer(response: ServerResponse, asked: ModelRequest, script: Script): Promise<void> {
  const { status = 200, headers = {}, pieces = ['Hello', ' there'], firstMs = 0 } = script
  if (status !== 200) {
    const body = script.body ?? { error: { message: 'secret words of the provider', type: 'x', code: null } }
    response
      .writeHead(status, { 'content-type': 'application/json', ...headers })
      .end(typeof body === 'string' ? body : JSON.stringify(body))
    return
  }
  if (script.raw !== undefined) return sendRaw(response, script, script.raw)
  if (asked.body.stream === true) return streamAnswer(response, asked, script, pieces)
  if (firstMs > 0) await delay(firstMs)
  const does = script.breaks?.does
  if (does === 'hang') return
  if (does === 'cut') return void response.destroy()
  response.writeHead(200, { 'content-type': 'application/json', ...headers })
  if (does === 'garbage') return void response.end('<html>')
  const { finish = 'stop' } = script
  const content = pieces.every((piece) => typeof piece === 'string') ? pieces.join('') : pieces.flat()
  const choice = {
    index: 0,
    message: { role: 'assistant', content, ...script.message },
    finish_reason: finish,
  }
  const usage = script.usage === undefined ? USAGE : script.usage
  const { model } = asked.body
  response.end(
    JSON.stringify({
      ...RESPONSE_FIELDS,
      object: 'chat.completion',
      model,
      choices: [choice],
      ...(usage && { usage }),
    }),
  )
}

const RESPONSE_FIELDS = { id: 'chatcmpl-1', created: 1_700_000_000 }

async function streamAnswer(
  response: ServerResponse,
  { body: { model } }: ModelRequest,
  script: Script,
  pieces: readonly unknown[],
): Promise<void> {
  const { firstMs = 0, betweenMs = 0, aside = [], finish = 'stop' } = script
  const chunk = (choices: object[], more: object = {}): string =>
    `data: ${JSON.stringify({ ...RESPONSE_FIELDS, object: 'chat.completion.chunk', model, choices, ...more })}\n\n`
  const delta = (given: object, reason: string | null = null): string =>
    chunk([{ index: 0, delta: given, finish_reason: reason }])
  const write = (text: string): Promise<void> => writeBytes(response, Buffer.from(text), script.bytesEach)

  response.writeHead(200, { 'content-type': 'text/event-stream', ...script.headers })
  response.flushHeaders()
  if (firstMs > 0) await delay(firstMs)
  await write(delta({ role: 'assistant', content: '' }))
  for (const given of aside) await write(delta(given))
  for (const [n, content] of pieces.entries()) {
    if (n > 0 && betweenMs > 0) await delay(betweenMs)
    if (response.destroyed) return
    if (script.breaks?.after === n) return breakOff(response, script.breaks.does)
    await write(delta({ content }))
  }
  if (script.breaks !== undefined) return breakOff(response, script.breaks.does)
  if (finish !== null) await write(delta({}, finish))
  if (script.breaksAtEnd !== undefined) return breakOff(response, script.breaksAtEnd)
  const usage = script.usage === undefined ? USAGE : script.usage
  if (usage !== null) await write(chunk([], { usage }))
  response.end('data: [DONE]\n\n')
}

async function sendRaw(
  response: ServerResponse,
  { headers, betweenMs = 0 }: Script,
  parts: readonly string[],
): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream', ...headers })
  for (const [n, part] of parts.entries()) {
    if (n > 0) await delay(betweenMs)
    response.write(part)
  }
  response.end()
}

function breakOff(response: ServerResponse, does: NonNullable<Script['breaks']>['does']): void {
  // After 20 ms, the client has received the data written so far.
  if (does === 'cut') setTimeout(() => response.destroy(), 20)
  else if (does === 'end') response.end()
  else if (does === 'garbage') response.end('data: {"choices": [\n\n')
  else if (does === 'error')
    response.end('data: {"error": {"message": "secret words of the provider", "code": 500}}\n\n')
}

async function writeBytes(response: ServerResponse, bytes: Buffer, each = bytes.length): Promise<void> {
  for (let at = 0; at < bytes.length; at += each) {
    response.write(bytes.subarray(at, at + each))
    // Waits a turn, so that each chunk becomes a separate packet.
    if (each < bytes.length) await new Promise((resolve) => setImmediate(resolve))
  }
}
