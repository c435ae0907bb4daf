import { type Child, startChild } from '../children.ts'
import { measureUndisturbed, waitUntilQuiet } from '../usage.ts'

/** Parameters of a generator run. Texts are raw HTTP/1.1. */
export interface LoadOrder {
  readonly port: number
  readonly connections: number
  /** Start of the request, up to the id if there are `ids`. */
  readonly head: string
  readonly tail: string
  /** First and last id to insert between `head` and `tail`, each of which is used once; null for none. */
  readonly ids: readonly [number, number] | null
  /**
   * A body in which `{id}` stands for the id, and the secret that signs the body as the payment provider does; null for
   * none.
   */
  readonly signed: { readonly body: string; readonly secret: string } | null
  readonly status: number
  /** Required length of every body; null accepts any content-length. */
  readonly bodyBytes: number | null
  readonly warmMs: number
  readonly measureMs: number
  /** Pause in ms between an answer and the next request of its connection. */
  readonly pauseMs: number
  readonly serverPids: readonly number[]
  /** True to measure only on a quiet machine and to repeat disturbed runs. */
  readonly needsQuiet: boolean
  /** PostgreSQL's first process, whose backends are listed when the measurement starts; null to skip them. */
  readonly postmaster: number | null
}

export interface LoadResult {
  readonly perSecond: number
  readonly p50: number
  readonly p95: number
  readonly p99: number
  /** Number of answered requests, including those outside the measured time. */
  readonly answered: number
  /** CPU time per measured request, in microseconds. */
  readonly cpuMicroseconds: { readonly server: number; readonly postgres: number; readonly generator: number }
  /** Number of cores that other processes used during the run. */
  readonly foreignCores: number
  readonly bodyBytes: number
}

export interface Generator {
  /**
   * Runs an order. With `needsQuiet`, waits for a quiet machine. If the order has no ids, also repeats a disturbed run
   * and returns the least disturbed one.
   */
  run(order: LoadOrder): Promise<LoadResult>
  stop(): Promise<void>
}

const NO_PIDS: readonly number[] = []

/** Defaults for most orders. */
export const ORDER_DEFAULTS = {
  connections: 64,
  tail: '',
  ids: null,
  signed: null,
  status: 200,
  bodyBytes: null,
  warmMs: 300,
  measureMs: Number(process.env.BENCH_LOAD_MS ?? 2000),
  pauseMs: 0,
  needsQuiet: true,
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
      if (!order.needsQuiet) return once(order)
      return order.ids === null
        ? measureUndisturbed(() => once(order))
        : waitUntilQuiet().then(() => once(order))
    },
    stop: () => child.stop(),
  }
}

/** Returns the text of a request, with a JSON body if given. */
export function formatRequest(method: string, path: string, token: string | null, body?: object): string {
  const authorization = token === null ? '' : `authorization: Bearer ${token}\r\n`
  const json = body === undefined ? '' : JSON.stringify(body)
  const type = body === undefined ? '' : 'content-type: application/json\r\n'
  const length = method === 'GET' ? '' : `content-length: ${Buffer.byteLength(json)}\r\n`
  return `${method} ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: application/json\r\n${authorization}${type}${length}\r\n${json}`
}
