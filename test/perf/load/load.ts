import { type Child, startChild } from '../children.ts'
import { measureUndisturbed, untilQuiet } from '../usage.ts'

/** The parameters of a generator run; texts are raw HTTP/1.1. */
export interface LoadOrder {
  readonly port: number
  readonly connections: number
  /** The request; with `ids`, the part before the id. */
  readonly head: string
  readonly tail: string
  /** First and last id to insert between head and tail, each used once; null for none. */
  readonly ids: readonly [number, number] | null
  /** A body in which `{id}` stands for the id, signed as the payment provider signs its events; null for none. */
  readonly signed: { readonly body: string; readonly secret: string } | null
  readonly status: number
  /** Required length of every body; null to accept any content-length. */
  readonly bodyBytes: number | null
  readonly warmMs: number
  readonly measureMs: number
  /** Pause of each connection between an answer and its next request. */
  readonly paceMs: number
  readonly serverPids: readonly number[]
  /** True to measure only on a quiet machine, and to repeat disturbed runs. */
  readonly alone: boolean
  /** PostgreSQL's first process, whose backends are listed when the measurement starts; null to skip them. */
  readonly postmaster: number | null
}

export interface LoadResult {
  readonly perSecond: number
  readonly p50: number
  readonly p95: number
  readonly p99: number
  /** Answered requests, including those outside the measured time. */
  readonly answered: number
  /** CPU time per measured request. */
  readonly cpuMicroseconds: { readonly server: number; readonly postgres: number; readonly generator: number }
  /** Cores that other processes used meanwhile. */
  readonly foreignCores: number
  readonly bodyBytes: number
}

export interface Generator {
  /** Runs an order. With `alone`, repeats it if other processes disturbed it, and returns the least disturbed run. */
  run(order: LoadOrder): Promise<LoadResult>
  stop(): Promise<void>
}

const NO_PIDS: readonly number[] = []

/** Defaults of most orders. */
export const DEFAULTS = {
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
    // An order with ids cannot be repeated, because each id is used once.
    run: (order) => {
      if (!order.alone) return once(order)
      return order.ids === null ? measureUndisturbed(() => once(order)) : untilQuiet().then(() => once(order))
    },
    stop: () => child.stop(),
  }
}

/** The text of a request, with a JSON body or none. */
export function requestText(method: string, path: string, token: string | null, body?: object): string {
  const authorization = token === null ? '' : `authorization: Bearer ${token}\r\n`
  const json = body === undefined ? '' : JSON.stringify(body)
  const type = body === undefined ? '' : 'content-type: application/json\r\n'
  const length = method === 'GET' ? '' : `content-length: ${Buffer.byteLength(json)}\r\n`
  return `${method} ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: application/json\r\n${authorization}${type}${length}\r\n${json}`
}
