import { createSlots } from '../connections/slots.ts'
import { fail } from '../errors.ts'
import { createReader, type Reader, type ReaderOptions } from './reader.ts'

/** Kinds of reads whose cost grows with the amount of data. */
export type ReadKind = 'list' | 'search' | 'statistics'

/** The reads that handlers can use. */
export type Reads = Pick<Reader, 'text' | 'texts'>

/**
 * Runs reads that may be slow on a few connections, each with one read at a time. Reads by key use another connection,
 * so they never wait for slow ones. Callers with the fewest reads in progress come first. One connection is reserved
 * for callers that have none.
 */
export interface SlowReads {
  /**
   * Returns reads for a caller, identified by its account id or any other number. A read that exceeds the time limit of
   * its kind fails with `database.too_slow`. A read that gets no connection within that limit fails with
   * `database.busy`.
   */
  readsFor(caller: number, kind: ReadKind): Reads
  /** Runs `work` with one of the connections and the time limit of its kind. */
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
 * Number of connections, not counting the one that is reserved for callers without reads. On two cores, 2 connections
 * serve a list of 20 posts 2,500 times a second, and 4 serve it 3,700 times.
 */
export const CONNECTION_COUNT = 4
// Extra time in which the server cancels a statement that exceeds its limit. The connection then survives.
const CANCEL_GRACE_MS = 1_000

/** Creates slow reads whose connections open on demand. */
export function createSlowReads(options: SlowReadOptions): SlowReads {
  const { limits } = options
  const answerMs = Math.max(...Object.values(limits)) + CANCEL_GRACE_MS
  const slots = createSlots(CONNECTION_COUNT)
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
