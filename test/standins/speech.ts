import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after } from 'node:test'

/** Stand-in for a text-to-speech provider that speaks OpenAI's protocol. */
export interface SpeechStandIn {
  readonly url: string
  /** Requests so far, each with its body's fields, its key and its path. */
  readonly asked: Readonly<Record<string, unknown>>[]
  /** Answers a request. */
  answer: (response: ServerResponse, body: Readonly<Record<string, unknown>>) => void
}

/** Returns `size` pseudo-random bytes that begin like an MP3 frame. `seed` varies them. */
export function createAudio(size: number, seed = 1): Buffer {
  const bytes = Buffer.alloc(size)
  for (let i = 0, x = seed; i < size; i++) {
    x = (x * 1_103_515_245 + 12_345) % 2_147_483_648
    bytes[i] = x >> 16
  }
  bytes.set([0xff, 0xfb], 0)
  return bytes
}

/** Returns a function that answers with the complete audio. */
export const answerWithAudio =
  (bytes: Buffer) =>
  (response: ServerResponse): void => {
    response.writeHead(200, { 'content-type': 'audio/mpeg' }).end(bytes)
  }

export async function startSpeechServer(): Promise<SpeechStandIn> {
  const server = createServer((request, response) => {
    response.on('error', () => {})
    void readBody(request).then((body) => {
      standIn.asked.push({ ...body, authorization: request.headers.authorization, path: request.url })
      standIn.answer(response, body)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  after(() => {
    server.closeAllConnections()
    server.close()
  })
  const standIn: SpeechStandIn = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    asked: [],
    answer: answerWithAudio(createAudio(5000)),
  }
  return standIn
}

async function readBody(request: IncomingMessage): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return JSON.parse(Buffer.concat(chunks).toString() || '{}')
}

/** Answer that the test sends in pieces. */
export interface SlowSpeech {
  write(bytes: Buffer): void
  end(): void
  cut(): void
  /** Resolves when the request arrives. */
  readonly begun: Promise<unknown>
}

/** Lets the test send the answers of the server. */
export function answerSlowly(server: SpeechStandIn): SlowSpeech {
  const begun = Promise.withResolvers<ServerResponse>()
  server.answer = (response) => {
    response.writeHead(200, { 'content-type': 'audio/mpeg' }).flushHeaders()
    begun.resolve(response)
  }
  const on = (act: (response: ServerResponse) => void) => void begun.promise.then(act)
  return {
    begun: begun.promise,
    write: (bytes) => on((response) => response.write(bytes)),
    end: () => on((response) => response.end()),
    cut: () => on((response) => response.destroy()),
  }
}
