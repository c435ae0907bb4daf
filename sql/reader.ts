import { type ConnectOptions, connectSocket } from './driver.ts'
import { fail, mapDatabaseError } from './errors.ts'
import { Wire, WireError, type WireRows, type WireStatement, type WireValue } from './wire.ts'

export type ReadValue = WireValue

/**
 * A named statement with one text column, mostly JSON that PostgreSQL built. `P` are its parameters $1 to $n in order;
 * their labels document them.
 */
export interface ReadStatement<P extends readonly ReadValue[]> extends WireStatement {
  /** Never set: it holds `P` as a function parameter, so that only statements with these values are assignable. */
  readonly parameters?: (values: P) => void
}

/**
 * Hot reads of a process over one pipelined connection: named statements, JSON passed on unparsed. It serves more reads
 * per second than a pool of four, at a third of the CPU. It never runs a BEGIN.
 */
export interface Reader {
  /** Returns the first column of the first row; null if there is no row or the column is null. */
  text<P extends readonly ReadValue[] = []>(
    statement: ReadStatement<P>,
    values: NoInfer<Readonly<P>>,
    readOptions?: ReadOptions,
  ): Promise<string | null>
  /** Returns the first column of every row; a null becomes an empty string. */
  texts<P extends readonly ReadValue[] = []>(
    statement: ReadStatement<P>,
    values: NoInfer<Readonly<P>>,
    readOptions?: ReadOptions,
  ): Promise<readonly string[]>
  /** Number of connections opened so far, which identifies the current one. */
  readonly connectionCount: number
  close(): Promise<void>
}

export interface ReadOptions {
  /** Time limit of this statement on the server, instead of the connection's. The statement then gets a custom plan. */
  readonly limitMs?: number
  /** The same server runs this statement just before. An error that `check` throws replaces the answer. */
  readonly precheck?: { readonly statement: ReadStatement<[]>; check(text: string | null): void }
}

// A plan cached while its table was small and not analyzed reads the whole table once that has grown. It stays until an
// analyze, which can take minutes to come. Replanning everything costs a few milliseconds. Behind a pooler this reaches
// one server connection at a time, the most recently used.
const REPLAN_MS = 10_000
const REPLAN: WireStatement = { name: 'replan', text: 'discard plans', isAuxiliary: true }
// Applies until the end of the transaction, which is everything under one Sync. A slow statement is planned for its own
// values: the best index depends on them and on current table sizes.
const LIMIT: WireStatement = {
  name: 'limit',
  isAuxiliary: true,
  text: "select set_config('statement_timeout', $1, true), set_config('plan_cache_mode', 'force_custom_plan', true)",
}

export interface ReaderOptions extends ConnectOptions {
  /** Time limit of one batch in ms, after which the connection is closed; default 5 s. */
  readonly answerMs?: number
  /** True behind a pooler in transaction mode, which accepts no limits for the server. */
  readonly pooled?: boolean
}

const ANSWER_MS = 5_000

/**
 * Connects on the first read. After the connection breaks, the next read opens another one, and an interrupted read is
 * retried once.
 */
export function createReader(options: ReaderOptions, replanMs = REPLAN_MS): Reader {
  const { answerMs = ANSWER_MS, pooled, connections } = options
  const open = async (): Promise<Wire> => {
    // Lower than our own limit: a responsive server then cancels the statement, and the connection survives.
    const limits = pooled ? {} : { statementMs: Math.ceil(answerMs * 0.9) }
    return new Wire(await connectSocket({ ...options, ...limits }), answerMs, options.slow)
  }
  let wire = null as Wire | null
  let opening: Promise<Wire> | null = null
  let closed = false
  let openedCount = 0

  const reopen = (): Promise<Wire> => {
    opening ??= open()
      .then((opened) => {
        wire = opened
        openedCount++
        return opened
      })
      .finally(() => {
        opening = null
      })
    return opening
  }

  const runRead: RunRead = (read, pick) => {
    if (connections?.isRefusing) return Promise.reject(fail('database.down'))
    const answer = wire === null || wire.broken ? readOnOpen(read) : read(wire)
    return answer.then(pick, async (error) => {
      // Reads change nothing, so one that a lost connection interrupted is retried on a new one.
      if (closed || (error instanceof WireError && error.severity === 'ERROR')) throw mapDatabaseError(error)
      return readOnOpen(read).then(pick, (second) => {
        throw mapDatabaseError(second)
      })
    })
  }
  const readOnOpen = async <R>(read: Send<R>): Promise<R> =>
    read(wire === null || (wire.broken && !closed) ? await reopen() : wire)

  // Ignore errors: the next read reports the same.
  const replan = (): void => {
    if (wire?.broken === false) wire.read(REPLAN, []).catch(() => {})
  }
  const replanning = setInterval(replan, replanMs).unref()

  return {
    text: (statement, values, readOptions) => runStatement(runRead, statement, values, firstRow, readOptions),
    texts: (statement, values, readOptions) => runStatement(runRead, statement, values, allRows, readOptions),
    get connectionCount() {
      return openedCount
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
type RunRead = <R, T>(read: Send<R>, pick: (rows: R) => T) => Promise<T>

function runStatement<T>(
  runRead: RunRead,
  statement: WireStatement,
  values: readonly ReadValue[],
  pick: (rows: WireRows) => T,
  { limitMs, precheck }: ReadOptions = {},
): Promise<T> {
  const read = createSend(statement, values, limitMs)
  if (precheck === undefined) return runRead(read, pick)
  // Both go out in order under one Sync, and are retried together after the connection breaks.
  const both: Send<[WireRows, WireRows]> = (wire) =>
    Promise.all([wire.read(precheck.statement, []), read(wire)])
  return runRead(both, ([checked, answer]) => {
    precheck.check(firstRow(checked))
    return pick(answer)
  })
}

function createSend(
  statement: WireStatement,
  values: readonly ReadValue[],
  limitMs: number | undefined,
): Send<WireRows> {
  return (wire) => {
    // Both are sent together. A lost connection rejects the statement too, so this error is ignored.
    if (limitMs !== undefined) wire.read(LIMIT, [`${limitMs}ms`]).catch(() => {})
    return wire.read(statement, values)
  }
}

function firstRow(rows: WireRows): string | null {
  return rows[0] ?? null
}

function allRows(rows: WireRows): readonly string[] {
  return rows.map((row) => row ?? '')
}
