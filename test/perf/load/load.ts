import { type Child, startChild } from '../children.ts'
import { undisturbed, untilQuiet } from '../usage.ts'

/** What a run of the generator does; texts are raw HTTP/1.1. */
export interface LoadOrder {
  readonly port: number
  readonly connections: number
  /** The request; with `ids` what comes before the id. */
  readonly head: string
  readonly tail: string
  /** First and last id to put between head and tail, each once. */
  readonly ids: readonly [number, number] | null
  /** Each request has a body, in which `{id}` stands for its id, signed as the payment provider signs its events. */
  readonly signed: { readonly body: string; readonly secret: string } | null
  readonly status: number
  /** Length that every body must have; null: as its content-length says. */
  readonly bodyBytes: number | null
  readonly warmMs: number
  readonly measureMs: number
  /** Pause of each connection between an answer and its next request. */
  readonly paceMs: number
  readonly serverPids: readonly number[]
  /** Whether nobody else is to be at work: measured once it is quiet, and again when it was not. */
  readonly alone: boolean
  /** PostgreSQL's first process; its backends are found when the measuring begins. */
  readonly postmaster: number | null
}

export interface LoadResult {
  readonly perSecond: number
  readonly p50: number
  readonly p95: number
  readonly p99: number
  /** Requests answered, the ones outside the measured time too. */
  readonly answered: number
  /** CPU time per measured request. */
  readonly cpuMicroseconds: { readonly server: number; readonly postgres: number; readonly generator: number }
  /** Cores that processes beside these kept busy meanwhile. */
  readonly foreignCores: number
  readonly bodyBytes: number
}

export interface Generator {
  /** Runs an order; one that is to be alone again when others disturbed it, answering the least disturbed run. */
  run(order: LoadOrder): Promise<LoadResult>
  stop(): Promise<void>
}

const NO_PIDS: readonly number[] = []

/** What most orders have in common. */
export const ORDINARY = {
  connections: 64,
  tail: '',
  ids: null,
  signed: null,
  status: 200,
  bodyBytes: null,
  warmMs: 300,
  measureMs: 2000,
  paceMs: 0,
  alone: true,
  serverPids: NO_PIDS,
  postmaster: null,
}

/** Starts the load generator in its own process. */
export async function startGenerator(): Promise<Generator> {
  const child: Child = await startChild(new URL('./generator.ts', import.meta.url))
  const once = async (order: LoadOrder): Promise<LoadResult> => {
    const answer = await child.ask<{ result?: LoadResult; error?: string }>(order)
    if (answer.result === undefined) throw new Error(`The load generator failed: ${answer.error}`)
    return answer.result
  }
  return {
    // Ids are used once: such an order can't be measured again.
    run: (order) => {
      if (!order.alone) return once(order)
      return order.ids === null ? undisturbed(() => once(order)) : untilQuiet().then(() => once(order))
    },
    stop: () => child.stop(),
  }
}

/** A request as text, with a JSON body or none. */
export function requestText(method: string, path: string, token: string | null, body?: object): string {
  const authorization = token === null ? '' : `authorization: Bearer ${token}\r\n`
  const json = body === undefined ? '' : JSON.stringify(body)
  const type = body === undefined ? '' : 'content-type: application/json\r\n'
  const length = method === 'GET' ? '' : `content-length: ${Buffer.byteLength(json)}\r\n`
  return `${method} ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: application/json\r\n${authorization}${type}${length}\r\n${json}`
}
