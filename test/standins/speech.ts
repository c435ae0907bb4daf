import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after } from 'node:test'

/** A maker of speech that speaks OpenAI's protocol. */
export interface SpeechStandIn {
  readonly url: string
  /** Bodies of the requests so far, with their keys. */
  readonly asked: Readonly<Record<string, unknown>>[]
  /** What a request is answered with. */
  answer: (response: ServerResponse, body: Readonly<Record<string, unknown>>) => void
}

/** Bytes that look like MP3, `size` of them, and differ by `seed`. */
export function sound(size: number, seed = 1): Buffer {
  const bytes = Buffer.alloc(size)
  for (let i = 0, x = seed; i < size; i++) {
    x = (x * 1_103_515_245 + 12_345) % 2_147_483_648
    bytes[i] = x >> 16
  }
  bytes.set([0xff, 0xfb], 0)
  return bytes
}

/** Answers whole. */
export const spoken =
  (bytes: Buffer) =>
  (response: ServerResponse): void => {
    response.writeHead(200, { 'content-type': 'audio/mpeg' }).end(bytes)
  }

export async function speechServer(): Promise<SpeechStandIn> {
  const server = createServer((request, response) => {
    response.on('error', () => {})
    void bodyOf(request).then((body) => {
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
    answer: spoken(sound(5000)),
  }
  return standIn
}

async function bodyOf(request: IncomingMessage): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return JSON.parse(Buffer.concat(chunks).toString() || '{}')
}

/** Speech that comes when it is told to. */
export interface SlowSpeech {
  write(bytes: Buffer): void
  end(): void
  cut(): void
  /** Resolves when it was asked for. */
  readonly begun: Promise<unknown>
}

/** Lets the next request be answered piece by piece. */
export function slowly(server: SpeechStandIn): SlowSpeech {
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
