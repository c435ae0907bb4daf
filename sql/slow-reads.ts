import { fail } from './errors.ts'
import { createReader, type Reader, type ReaderOptions } from './reader.ts'
import { createSlots } from './slots.ts'

/** Kinds of reads whose cost depends on how much there is. */
export type ReadKind = 'list' | 'search' | 'statistics'

/** What handlers read with. */
export type Reads = Pick<Reader, 'text' | 'texts'>

/**
 * Reads that may be slow: a few connections, each with one read at a time, so that reads by key, which share another
 * connection, never wait for them. Callers with the fewest reads under way come first, and one connection is kept for a
 * caller who has none.
 */
export interface SlowReads {
  /**
   * The reads of a caller, which is an account or any other number. One that takes longer than its kind may fails with
   * `database.too_slow`; one that gets no connection within that time, with `database.busy`.
   */
  of(caller: number, kind: ReadKind): Reads
  /** Has work read with one of the connections; `how` is the limit of its kind. */
  run<T>(
    caller: number,
    kind: ReadKind,
    work: (reader: Reader, how: { readonly limitMs: number }) => Promise<T>,
  ): Promise<T>
  close(): Promise<void>
}

export interface SlowReadOptions extends Omit<ReaderOptions, 'answerMs'> {
  /** How long the reads of a kind may take, in ms. */
  readonly limits: Readonly<Record<ReadKind, number>>
}

/**
 * Beside one that is kept for a caller who has none. With 2 a list of 20 posts is served 2,500 times a second by two cores,
 * with 4 3,700 times.
 */
export const CONNECTIONS = 4
// A server that answers ends a statement by itself, and the connection stays.
const ANSWER_MS = 1_000

/** Connects when reads come. */
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
    of: (caller, kind) => ({
      text: (statement, values) => run(caller, kind, (one, how) => one.text(statement, values, how)),
      texts: (statement, values) => run(caller, kind, (one, how) => one.texts(statement, values, how)),
    }),
    run,
    close: async () => {
      await slots.close()
      await Promise.all(readers.map((reader) => reader.close()))
    },
  }
}
