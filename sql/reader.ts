import { type ConnectOptions, connectSocket } from './driver.ts'
import { fail, mapDatabaseError } from './errors.ts'
import { Wire, WireError, type WireRows, type WireStatement, type WireValue } from './wire.ts'

export type ReadValue = WireValue

/**
 * A named statement whose result is one text column: JSON that PostgreSQL built, or nothing. `P` are its parameters $1
 * to $n, in order; their labels say what they mean.
 */
export interface ReadStatement<P extends readonly ReadValue[]> extends WireStatement {
  /** Never set: it carries `P` as a function parameter, so that only statements with these values are assignable. */
  readonly parameters?: (values: P) => void
}

/**
 * The hot reads of a process: one pipelined connection, named statements, JSON passed on untouched. One such
 * connection does more reads per second than a pool of four, at a third of the CPU. It never sees a BEGIN.
 */
export interface Reader {
  /** The first column of the first row, or null when there is no row or it is null. */
  text<P extends readonly ReadValue[] = []>(
    statement: ReadStatement<P>,
    values: NoInfer<Readonly<P>>,
    how?: ReadOptions,
  ): Promise<string | null>
  /** The first column of every row. */
  texts<P extends readonly ReadValue[] = []>(
    statement: ReadStatement<P>,
    values: NoInfer<Readonly<P>>,
    how?: ReadOptions,
  ): Promise<readonly string[]>
  /** How many connections it has opened so far: the number of the present one. */
  readonly opened: number
  close(): Promise<void>
}

export interface ReadOptions {
  /** How long the server may take for this statement, in place of the connection's limit; it is planned anew then. */
  readonly limitMs?: number
  /** Is read just before, by the same server, and checked; what `check` throws is thrown in place of the answer. */
  readonly first?: { readonly statement: ReadStatement<[]>; check(text: string | null): void }
}

// A plan made when its table was small and not analyzed stays cached, and reads the whole table when it has grown,
// until the table is analyzed, which can take minutes. Planning everything again costs a few milliseconds. Behind a
// pooler this reaches one server connection at a time: the one used last.
const REPLAN_MS = 10_000
const REPLAN: WireStatement = { name: 'replan', text: 'discard plans', isAside: true }
// Until the end of its transaction, which is what is sent together. What may take long is planned for its own values: which
// index is best depends on them, and on how full the tables are by now.
const LIMIT: WireStatement = {
  name: 'limit',
  isAside: true,
  text: "select set_config('statement_timeout', $1, true), set_config('plan_cache_mode', 'force_custom_plan', true)",
}

export interface ReaderOptions extends ConnectOptions {
  /** How long the server may take for one batch before the connection is closed; default 5 s. */
  readonly answerMs?: number
  /** Whether a pooler in transaction mode is in between; it accepts no limits for the server. */
  readonly pooled?: boolean
}

const ANSWER_MS = 5_000

/** Connects at the first read. When the connection breaks, the next read opens another, and an interrupted read is retried once. */
export function createReader(options: ReaderOptions, replanMs = REPLAN_MS): Reader {
  const { answerMs = ANSWER_MS, pooled, connections } = options
  const open = async (): Promise<Wire> => {
    // The server's limit is lower than ours: a server that answers ends the statement, and the connection stays.
    const limits = pooled ? {} : { statementMs: Math.ceil(answerMs * 0.9) }
    return new Wire(await connectSocket({ ...options, ...limits }), answerMs, options.slow)
  }
  let wire = null as Wire | null
  let opening: Promise<Wire> | null = null
  let closed = false
  let count = 0

  const reopen = (): Promise<Wire> => {
    opening ??= open()
      .then((opened) => {
        wire = opened
        count++
        return opened
      })
      .finally(() => {
        opening = null
      })
    return opening
  }

  const rows: Rows = (read, pick) => {
    if (connections?.isRefusing) return Promise.reject(fail('database.down'))
    const answer = wire === null || wire.broken ? again(read) : read(wire)
    return answer.then(pick, async (error) => {
      // Reads change nothing: one that a lost connection interrupted is retried on a new one.
      if (closed || (error instanceof WireError && error.severity === 'ERROR')) throw mapDatabaseError(error)
      return again(read).then(pick, (second) => {
        throw mapDatabaseError(second)
      })
    })
  }
  const again = async <R>(read: Send<R>): Promise<R> =>
    read(wire === null || (wire.broken && !closed) ? await reopen() : wire)

  // Errors are ignored: the next read reports the same.
  const replan = (): void => {
    if (wire?.broken === false) wire.read(REPLAN, []).catch(() => {})
  }
  const replanning = setInterval(replan, replanMs).unref()

  return {
    text: (statement, values, how) => readWith(rows, statement, values, first, how),
    texts: (statement, values, how) => readWith(rows, statement, values, all, how),
    get opened() {
      return count
    },
    close: async () => {
      closed = true
      clearInterval(replanning)
      await opening?.catch(() => null)
      await wire?.close()
    },
  }
}

type Send<R> = (wire: Wire) => Promise<R>
type Rows = <R, T>(read: Send<R>, pick: (rows: R) => T) => Promise<T>

function readWith<T>(
  rows: Rows,
  statement: WireStatement,
  values: readonly ReadValue[],
  pick: (rows: WireRows) => T,
  { limitMs, first: before }: ReadOptions = {},
): Promise<T> {
  const read = sendOf(statement, values, limitMs)
  if (before === undefined) return rows(read, pick)
  // One after the other under one Sync, and again together when the connection breaks.
  const both: Send<[WireRows, WireRows]> = (wire) =>
    Promise.all([wire.read(before.statement, []), read(wire)])
  return rows(both, ([checked, answer]) => {
    before.check(first(checked))
    return pick(answer)
  })
}

function sendOf(
  statement: WireStatement,
  values: readonly ReadValue[],
  limitMs: number | undefined,
): Send<WireRows> {
  return (wire) => {
    // Both are sent together. Its error is that of the statement.
    if (limitMs !== undefined) wire.read(LIMIT, [`${limitMs}ms`]).catch(() => {})
    return wire.read(statement, values)
  }
}

function first(rows: WireRows): string | null {
  return rows[0] ?? null
}

function all(rows: WireRows): readonly string[] {
  return rows.map((row) => row ?? '')
}
