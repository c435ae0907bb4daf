import http from 'node:http'
import type { Call } from './calls.ts'
import type { Who } from './requests.ts'
import type { StatementCost, Statements } from './statements.ts'

/** Sends calls one at a time to an otherwise idle edge, and counts the cost of each in the database. */

export interface Cost {
  readonly name: string
  readonly ms: readonly number[]
  /** Number of buffers of the median call. Some calls touch more, because they refresh data that the edge caches. */
  readonly buffers: number
  /** Statements of the median call, most expensive first. */
  readonly statements: readonly StatementCost[]
}

export interface Effort {
  /** Number of unmeasured warm-up calls. */
  readonly warmUp: number
  readonly calls: number
  /** Time in ms after which no further call starts. */
  readonly budgetMs: number
}

/** Counts the statements of one call. */
export type StatementCounter = Pick<Statements, 'begin' | 'end'>

/**
 * PostgreSQL plans the first five executions of a prepared statement for their values. Afterwards it may use a generic
 * plan.
 */
export const CALLS_UNTIL_PLANNED = 6

export class CallMeter {
  readonly #port: number
  readonly #tokens: Readonly<Record<Exclude<Who, 'nobody'>, string>>
  readonly #statements: StatementCounter
  readonly #agent = new http.Agent({ keepAlive: true, maxSockets: 1 })

  constructor(
    port: number,
    tokens: Readonly<Record<Exclude<Who, 'nobody'>, string>>,
    statements: StatementCounter,
  ) {
    this.#port = port
    this.#tokens = tokens
    this.#statements = statements
  }

  /** Measures a call. @throws if it is rejected, which means that its arguments are wrong. */
  async measureCost(call: Call, { warmUp, calls, budgetMs }: Effort): Promise<Cost> {
    const all: { ms: number; spent: StatementCost[] }[] = []
    const startedAt = performance.now()
    for (let n = 0; n < warmUp + calls; n++) {
      if (n > 0 && performance.now() - startedAt > budgetMs) break
      if (n > 0 && call.pauseMs !== undefined) await sleep(call.pauseMs)
      await this.#statements.begin()
      all.push({ ms: await this.#send(call), spent: await this.#statements.end() })
    }
    // If the call was too slow for all repetitions, use those that ran.
    const measured = all.slice(Math.min(warmUp, all.length - 1))
    const bySize = measured.map(({ spent }) => spent).sort((a, b) => sumBuffers(a) - sumBuffers(b))
    const middle = bySize[bySize.length >> 1]!
    return {
      name: call.name,
      ms: measured.map(({ ms }) => ms),
      buffers: sumBuffers(middle),
      statements: middle,
    }
  }

  close(): void {
    this.#agent.destroy()
  }

  /** Returns the time in ms until the complete answer, or until the first frame of a stream. */
  #send({ name, path, who, headers }: Call): Promise<number> {
    const authorization = who === 'nobody' ? {} : { authorization: `Bearer ${this.#tokens[who]}` }
    return new Promise((resolve, reject) => {
      const startedAt = performance.now()
      const request = http.request({
        host: '127.0.0.1',
        port: this.#port,
        path,
        agent: this.#agent,
        headers: { prefer: 'respond-async', ...authorization, ...headers },
      })
      request.on('error', reject).on('response', (answer) => {
        const isStream = answer.headers['content-type']?.startsWith('text/event-stream') === true
        let text = ''
        answer.on('error', reject).on('data', (chunk: Buffer) => {
          if (isStream || answer.statusCode! >= 400) text += chunk
          if (isStream && /^data: .*\n\n/m.test(text)) {
            resolve(performance.now() - startedAt)
            request.destroy()
          }
        })
        answer.on('end', () => {
          if (answer.statusCode! < 400) return resolve(performance.now() - startedAt)
          reject(new Error(`GET ${name} (${path}) answers ${answer.statusCode}: ${text}`))
        })
      })
      request.end()
    })
  }
}

const sumBuffers = (spent: readonly StatementCost[]): number =>
  spent.reduce((total, { buffers }) => total + buffers, 0)
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
