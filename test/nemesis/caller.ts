import { setTimeout as delay } from 'node:timers/promises'
import { getAwakeMs } from '../awake.ts'
import type { Chance } from '../chance.ts'
import { type Frame, Stream } from '../service.ts'
import type { World } from './world.ts'

/** The final answer of an edge to a request. */
export interface FinalAnswer {
  readonly status: number
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests check stored data, not the types of answers.
  readonly json: any
}

export interface Request {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly json?: unknown
  readonly text?: string
  readonly form?: () => FormData
  readonly headers?: Readonly<Record<string, string>>
  /** Error statuses that a retry may get because an earlier try succeeded. */
  readonly done?: readonly number[]
}

/** Records the requests and answers of all callers. */
export class CallHistory {
  /** Number of requests by area. */
  readonly requests = new Map<string, number>()
  readonly acknowledged = new Map<string, number>()
  /** Number of temporary rejections by status. */
  readonly refused = new Map<string, number>()
  /** Number of ends that HTTP workers reported, by outcome. */
  readonly reported = new Map<string, number>()
  /** Streams that were read to their end. */
  readonly followed: { readonly jobId: string; readonly frames: readonly Frame[] }[] = []
  /** Number of unique words made so far. */
  words = 0
  /** Descriptions of forbidden answers and of requests without an answer. */
  readonly violations: string[] = []

  count(of: Map<string, number>, what: string): void {
    of.set(what, (of.get(what) ?? 0) + 1)
  }
}

// A request waits up to 120 s for its job, and a fault may add to that.
const ANSWER_TIMEOUT_MS = 150_000
const TOTAL_TIMEOUT_MS = 300_000
const RETRY_DELAY_MS = [20, 300] as const
const REPEAT_PROBABILITY = 0.1

/** A client that retries requests at random edges until it gets a final answer. */
export class Caller {
  readonly area: string
  readonly chance: Chance
  readonly world: World
  readonly history: CallHistory
  token = ''
  #keys = 0

  constructor(area: string, world: World, history: CallHistory, chance: Chance) {
    this.area = area
    this.world = world
    this.history = history
    this.chance = chance
  }

  /** Returns a caller of the same area with another token; '' sends no credentials. */
  withToken(token: string): Caller {
    const caller = new Caller(this.area, this.world, this.history, this.chance)
    caller.token = token
    caller.#keys = this.chance.between(1, 1e9)
    return caller
  }

  /** Returns a unique word. */
  createWord(): string {
    return `${this.area}-${++this.history.words}-${this.chance.between(1, 1e12).toString(36)}`
  }

  /**
   * Posts with an idempotency key until the request is acknowledged. Sometimes repeats the request, which must get the
   * same answer.
   */
  async post(path: string, request: Request = {}): Promise<FinalAnswer> {
    const key = `${this.area}-${++this.#keys}-${this.createWord()}`
    const keyed = {
      ...request,
      method: 'POST' as const,
      headers: { ...request.headers, 'idempotency-key': key },
    }
    const first = await this.ask(path, keyed)
    if (!this.chance.isHit(REPEAT_PROBABILITY)) return first
    const again = await this.ask(path, keyed)
    if (again.status !== first.status || again.text !== first.text)
      this.recordViolation(
        `POST ${path} answered ${first.status} ${first.text}, but its retry ${again.status} ${again.text}`,
      )
    return first
  }

  /**
   * Retries a request until it gets a final answer. @throws and records a violation if the answer is an error or too
   * late.
   */
  async ask(path: string, request: Request = {}): Promise<FinalAnswer> {
    const { method = 'GET', done = [] } = request
    const end = getAwakeMs() + TOTAL_TIMEOUT_MS
    for (let tries = 1; ; tries++) {
      if (getAwakeMs() > end)
        throw this.recordViolation(`${method} ${path} had no answer within ${TOTAL_TIMEOUT_MS / 1000} s`)
      const answer = await this.#once(path, request)
      if (answer !== null) {
        const { status, text } = answer
        if (status < 300 || (tries > 1 && done.includes(status))) {
          this.history.count(this.history.acknowledged, this.area)
          return answer
        }
        // The first request with this key is still running, or its edge was killed meanwhile. Both are temporary.
        const isForNow = status === 503 || (status === 409 && text.includes('Idempotency-Key'))
        if (!isForNow)
          throw this.recordViolation(`${method} ${path} answered ${status} ${text} on try ${tries}`)
        this.history.count(this.history.refused, `${status}`)
      }
      await delay(this.chance.between(...RETRY_DELAY_MS))
    }
  }

  /** Opens an event stream; null if that is currently not possible. */
  async open(path: string, lastId: string): Promise<Stream | null> {
    const port = this.pickPort()
    if (port === null) return null
    const abort = new AbortController()
    const timer = setTimeout(() => abort.abort(), ANSWER_TIMEOUT_MS)
    const headers = { ...this.#credentials(), ...(lastId === '' ? {} : { 'last-event-id': lastId }) }
    const url = `http://127.0.0.1:${port}${path}`
    const response = await fetch(url, { headers, signal: abort.signal }).catch(() => null)
    clearTimeout(timer)
    if (response === null) return null
    if (response.status === 200) return new Stream(response, abort)
    const text = await response.text().catch(() => '')
    if (response.status !== 503) throw this.recordViolation(`GET ${path} answered ${response.status} ${text}`)
    return null
  }

  /** Records a violation and returns an error to throw. */
  recordViolation(what: string): Error {
    this.history.violations.push(`${this.area}: ${what}`)
    return new Error(what)
  }

  async #once(
    path: string,
    { method = 'GET', json, text: body, form, headers = {} }: Request,
  ): Promise<FinalAnswer | null> {
    const port = this.pickPort()
    if (port === null) return null
    this.history.count(this.history.requests, this.area)
    const startedAt = getAwakeMs()
    try {
      const response = await fetch(`http://127.0.0.1:${port}${path}`, {
        method,
        headers: {
          ...this.#credentials(),
          ...(json === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(json === undefined ? {} : { body: JSON.stringify(json) }),
        ...(body === undefined ? {} : { body }),
        ...(form === undefined ? {} : { body: form() }),
        signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
      })
      const text = Buffer.from(await response.arrayBuffer()).toString('latin1')
      const isJson = response.headers.get('content-type')?.startsWith('application/json')
      return {
        status: response.status,
        text,
        json: isJson ? JSON.parse(Buffer.from(text, 'latin1').toString()) : null,
      }
    } catch {
      if (getAwakeMs() - startedAt >= ANSWER_TIMEOUT_MS - 1000)
        this.recordViolation(
          `${method} ${path} stayed open for ${ANSWER_TIMEOUT_MS / 1000} s without an answer`,
        )
      return null
    }
  }

  /** Returns the port of a random edge; null if none is up. */
  pickPort(): number | null {
    const ports = this.world.ports()
    return ports.length === 0 ? null : this.chance.pick(ports)
  }

  #credentials(): Record<string, string> {
    return this.token === '' ? {} : { authorization: `Bearer ${this.token}` }
  }
}
