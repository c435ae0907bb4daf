import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Webhook } from 'standardwebhooks'
import { buildMessageSchema } from '../../edge/routes/webhooks/events.ts'
import { CHALLENGE_EVENT, DELIVERY_TYPES } from '../../sql/webhooks/webhooks.ts'

/** Webhook receiver that collects requests, and answers them by its `answer` function. */

export interface ReceivedWebhook {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
  /** Parsed body. */
  readonly message: {
    readonly type: string
    readonly timestamp: string
    readonly data: Record<string, unknown>
  }
}

export interface Receiver {
  readonly url: string
  readonly received: ReceivedWebhook[]
  /** True if the receiver echoes challenges and leaves them out of `received`; true by default. */
  echoes: boolean
  /** Answers a request, by default with 204. */
  answer: (response: ServerResponse, request: ReceivedWebhook) => void
  stop(): Promise<void>
}

export async function startReceiver(): Promise<Receiver> {
  const received: ReceivedWebhook[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request
      .on('data', (chunk: Buffer) => chunks.push(chunk))
      .on('end', () => {
        const body = Buffer.concat(chunks).toString()
        const one = { path: request.url!, headers: request.headers, body, message: JSON.parse(body) }
        if (one.message.type === CHALLENGE_EVENT && receiver.echoes)
          return response.end(JSON.stringify({ challenge: one.message.data.challenge }))
        received.push(one)
        receiver.answer(response, one)
      })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const receiver: Receiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    echoes: true,
    answer: (response) => response.writeHead(204).end(),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  return receiver
}

/**
 * Verifies a message with the reference implementation for receivers, and with the schema of the API reference.
 * @throws if another secret signed it, or the schema does not allow it.
 */
export function verifyWebhook(secret: string, { headers, body, message }: ReceivedWebhook): void {
  new Webhook(secret).verify(body, headers as Record<string, string>)
  const type = DELIVERY_TYPES.find((each) => each === message.type)
  if (type === undefined) throw new Error(`Unknown type of message: ${message.type}`)
  buildMessageSchema(type).parse(message)
}

/** Answers with a status and an optional body. */
export const answerWith =
  (status: number, body = ''): Receiver['answer'] =>
  (response) =>
    response.writeHead(status).end(body)
