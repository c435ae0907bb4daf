import { fail } from './errors.ts'
import { createReader, type Reader, type ReaderOptions } from './reader.ts'
import { createSlots } from './slots.ts'

/** Kinds of reads whose cost grows with the amount of data. */
export type ReadKind = 'list' | 'search' | 'statistics'

/** Read access of handlers. */
export type Reads = Pick<Reader, 'text' | 'texts'>

/**
 * Reads that may be slow: a few connections, each with one read at a time. Reads by key share another connection, so
 * they never wait for slow ones. Callers with the fewest reads in progress come first; one connection is reserved for
 * callers that have none.
 */
export interface SlowReads {
  /**
   * Returns the reads of a caller, an account id or any other number. A read that exceeds the limit of its kind fails
   * with `database.too_slow`. One that gets no connection within that limit fails with `database.busy`.
   */
  readsFor(caller: number, kind: ReadKind): Reads
  /** Runs `work` with one of the connections; `limit` is that of its kind. */
  run<T>(
    caller: number,
    kind: ReadKind,
    work: (reader: Reader, limit: { readonly limitMs: number }) => Promise<T>,
  ): Promise<T>
  close(): Promise<void>
}

export interface SlowReadOptions extends Omit<ReaderOptions, 'answerMs'> {
  /** Time limit of each kind of read, in ms. */
  readonly limits: Readonly<Record<ReadKind, number>>
}

/**
 * Excludes the one reserved for callers without reads. On two cores, 2 connections serve a list of 20 posts 2,500 times
 * a second, and 4 serve it 3,700 times.
 */
export const CONNECTIONS = 4
// Time beyond the limit for the server to cancel a statement itself, so that the connection survives.
const ANSWER_MS = 1_000

/** Opens connections on demand. */
export function createSlowReads(options: SlowReadOptions): SlowReads {
  const { limits } = options
  const answerMs = Math.max(...Object.values(limits)) + ANSWER_MS
  const slots = createSlots(CONNECTIONS)
  const readers: Reader[] = []
  const idle: Reader[] = []

  const connect = (): Reader => {
    const reader = createReader({ ...options, answerMs })
    readers.push(reader)
    return reader
  }
  const run: SlowReads['run'] = async (caller, kind, work) => {
    const limitMs = limits[kind]
    if ((await slots.reserve(caller, 1, limitMs)) === 0) throw fail('database.busy')
    const reader = idle.pop() ?? connect()
    try {
      return await work(reader, { limitMs })
    } finally {
      idle.push(reader)
      slots.release(caller, 1)
    }
  }
  return {
    readsFor: (caller, kind) => ({
      text: (statement, values) =>
        run(caller, kind, (reader, limit) => reader.text(statement, values, limit)),
      texts: (statement, values) =>
        run(caller, kind, (reader, limit) => reader.texts(statement, values, limit)),
    }),
    run,
    close: async () => {
      await slots.close()
      await Promise.all(readers.map((reader) => reader.close()))
    },
  }
}
