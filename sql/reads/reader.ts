import { type ConnectOptions, connectSocket } from '../connections/driver.ts'
import { Wire, WireError, type WireRows, type WireStatement, type WireValue } from '../connections/wire.ts'
import { mapDatabaseError } from '../error-mapping.ts'
import { fail } from '../errors.ts'

export type ReadValue = WireValue

/**
 * A named statement with one text column, mostly JSON that PostgreSQL built. `P` lists its parameters $1 to $n in
 * order; the tuple labels name them.
 */
export interface ReadStatement<P extends readonly ReadValue[]> extends WireStatement {
  /** Never set. Using `P` as a function parameter makes TypeScript reject statements with other parameters. */
  readonly parameters?: (values: P) => void
}

/**
 * Serves the hot reads of a process over one pipelined connection, with named statements and unparsed JSON. It handles
 * more reads per second than a pool of four connections, with a third of the CPU time. It never opens a transaction.
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
  close(): Promise<void>
}

export interface ReadOptions {
  /**
   * Time limit of this statement on the server, which replaces that of the connection. The statement then gets a custom
   * plan.
   */
  readonly limitMs?: number
}

// A plan that was cached for a small, unanalyzed table still scans the whole table after the table has grown. It stays
// cached until the next analyze, which can be minutes away. Replanning everything costs a few milliseconds. Behind a
// pooler, only the most recently used server connection discards its plans.
const REPLAN_INTERVAL_MS = 10_000
const REPLAN_STATEMENT: WireStatement = { name: 'replan', text: 'discard plans', isAuxiliary: true }
// The setting lasts until the end of the transaction, which covers all statements under one Sync. A slow statement is
// planned for its own values, since the best index depends on them and on current table sizes.
const LIMIT_STATEMENT: WireStatement = {
  name: 'limit',
  isAuxiliary: true,
  text: "select set_config('statement_timeout', $1, true), set_config('plan_cache_mode', 'force_custom_plan', true)",
}

export interface ReaderOptions extends ConnectOptions {
  /** Time limit of one batch in ms, default 5 s. A batch that exceeds it closes the connection. */
  readonly answerMs?: number
  /** True behind a pooler in transaction mode, which accepts no server-side limits. */
  readonly pooled?: boolean
}

const DEFAULT_ANSWER_MS = 5_000

/**
 * Creates a reader that connects on the first read. After its connection breaks, the next read opens a new one, and an
 * interrupted read is retried once.
 */
export function createReader(options: ReaderOptions, replanMs = REPLAN_INTERVAL_MS): Reader {
  const { answerMs = DEFAULT_ANSWER_MS, pooled, connections } = options
  let wire = null as Wire | null
  let opening: Promise<Wire> | null = null
  let closed = false
  const open = async (): Promise<Wire> => {
    // The server's limit is lower than the client's, so a responsive server cancels the statement and the connection
    // survives.
    const limits = pooled ? {} : { statementMs: Math.ceil(answerMs * 0.9) }
    wire = new Wire(await connectSocket({ ...options, ...limits }), answerMs, options.slow)
    return wire
  }

  const reopen = (): Promise<Wire> => {
    opening ??= open().finally(() => {
      opening = null
    })
    return opening
  }

  const runRead: RunRead = (read, pick) => {
    if (connections?.isRefusing) return Promise.reject(fail('database.down'))
    const answer = wire === null || wire.isBroken ? readOnOpen(read) : read(wire)
    return answer.then(pick, async (error) => {
      // Reads change nothing, so a read that a lost connection interrupted can be retried on a new connection.
      if (closed || (error instanceof WireError && error.severity === 'ERROR')) throw mapDatabaseError(error)
      return readOnOpen(read).then(pick, (second) => {
        throw mapDatabaseError(second)
      })
    })
  }
  const readOnOpen = async <R>(read: SendRead<R>): Promise<R> =>
    read(wire === null || (wire.isBroken && !closed) ? await reopen() : wire)

  // Errors are ignored, because the next read reports the same problem.
  const replan = (): void => {
    if (wire?.isBroken === false) wire.read(REPLAN_STATEMENT, []).catch(() => {})
  }
  const replanning = setInterval(replan, replanMs).unref()

  return {
    text: (statement, values, readOptions) =>
      runRead(createSendRead(statement, values, readOptions), takeFirstRow),
    texts: (statement, values, readOptions) =>
      runRead(createSendRead(statement, values, readOptions), takeAllRows),
    close: async () => {
      closed = true
      clearInterval(replanning)
      await opening?.catch(() => null)
      await wire?.close()
    },
  }
}

type SendRead<R> = (wire: Wire) => Promise<R>
type RunRead = <R, T>(read: SendRead<R>, pick: (rows: R) => T) => Promise<T>

function createSendRead(
  statement: WireStatement,
  values: readonly ReadValue[],
  { limitMs }: ReadOptions = {},
): SendRead<WireRows> {
  return (wire) => {
    // The limit and the statement are sent together. If the connection is lost, the statement fails as well, so the
    // limit's error is ignored.
    if (limitMs !== undefined) wire.read(LIMIT_STATEMENT, [`${limitMs}ms`]).catch(() => {})
    return wire.read(statement, values)
  }
}

function takeFirstRow(rows: WireRows): string | null {
  return rows[0] ?? null
}

function takeAllRows(rows: WireRows): readonly string[] {
  return rows.map((row) => row ?? '')
}
