import { type ConnectOptions, connectSocket } from './driver.ts'
import { mapDatabaseError } from './errors.ts'
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
  ): Promise<string | null>
  /** The first column of every row. */
  texts<P extends readonly ReadValue[] = []>(
    statement: ReadStatement<P>,
    values: NoInfer<Readonly<P>>,
  ): Promise<readonly string[]>
  close(): Promise<void>
}

// A plan made when its table was small and not analyzed stays cached, and reads the whole table when it has grown,
// until the table is analyzed, which can take minutes. Planning everything again costs a few milliseconds. Behind a
// pooler this reaches one server connection at a time: the one used last.
const REPLAN_MS = 10_000
const REPLAN: WireStatement = { name: 'replan', text: 'discard plans' }

/** Opens the connection now; when it breaks, the next read opens another, and an interrupted read is retried once. */
export async function createReader(options: ConnectOptions, replanMs = REPLAN_MS): Promise<Reader> {
  let wire = new Wire(await connectSocket(options))
  let opening: Promise<Wire> | null = null
  let closed = false

  const reopen = (): Promise<Wire> => {
    opening ??= connectSocket(options)
      .then((socket) => {
        wire = new Wire(socket)
        return wire
      })
      .finally(() => {
        opening = null
      })
    return opening
  }

  const rows = <T>(
    statement: WireStatement,
    values: readonly ReadValue[],
    pick: (rows: WireRows) => T,
  ): Promise<T> =>
    (wire.broken ? again(statement, values) : wire.read(statement, values)).then(pick, async (error) => {
      // Reads change nothing: one that a lost connection interrupted is retried on a new one.
      if (closed || (error instanceof WireError && error.severity === 'ERROR')) throw mapDatabaseError(error)
      return again(statement, values).then(pick, (second) => {
        throw mapDatabaseError(second)
      })
    })
  const again = async (statement: WireStatement, values: readonly ReadValue[]): Promise<WireRows> =>
    (wire.broken && !closed ? await reopen() : wire).read(statement, values)

  // Errors are ignored: the next read reports the same.
  const replanning = setInterval(() => wire.broken || wire.read(REPLAN, []).catch(() => {}), replanMs).unref()

  return {
    text: (statement, values) => rows(statement, values, first),
    texts: (statement, values) => rows(statement, values, all),
    close: async () => {
      closed = true
      clearInterval(replanning)
      await opening?.catch(() => null)
      await wire.close()
    },
  }
}

function first(rows: WireRows): string | null {
  return rows[0] ?? null
}

function all(rows: WireRows): readonly string[] {
  return rows.map((row) => row ?? '')
}
