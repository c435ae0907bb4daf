import { setTimeout as delay } from 'node:timers/promises'
import type { WorkerMessage } from './messages.ts'

/** Requests of an HTTP worker, which does not know which edge answers. */

export interface Answer {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: the worker checks the answers itself.
  readonly json: any
}

const RETRY_DELAY_MS = 100

export const send = (message: WorkerMessage): void => void process.send?.(message)

/** Records a violation; `text` is a sentence. */
export const recordViolation = (text: string): void =>
  send({ kind: 'violation', text: `${process.env.NAME}: ${text}` })

/** Sends a request once; null without an answer, or if the service is temporarily unable to answer. */
async function ask(path: string, body: object, timeoutMs: number): Promise<Answer | null> {
  try {
    const response = await fetch(`http://127.0.0.1:${process.env.PORT}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${process.env.TOKEN}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(timeoutMs),
    })
    const text = await response.text()
    if (response.status === 503) return null
    return { status: response.status, json: JSON.parse(text === '' ? 'null' : text) }
  } catch {
    return null
  }
}

/**
 * Posts until the answer is 200 or 404, or `isOver`; null if it is over. Records a violation for any other status, and
 * tries again.
 */
export async function post(
  path: string,
  body: object,
  { timeoutMs, isOver }: { readonly timeoutMs: number; isOver(): boolean },
): Promise<Answer | null> {
  while (!isOver()) {
    const answer = await ask(path, body, timeoutMs)
    if (answer?.status === 200 || answer?.status === 404) return answer
    if (answer !== null)
      recordViolation(`POST ${path} answered ${answer.status} ${JSON.stringify(answer.json)}`)
    await delay(RETRY_DELAY_MS)
  }
  return null
}
