import {
  type CommonQueryMethods,
  createPool,
  type DatabasePool,
  type Interceptor,
  type QuerySqlToken,
  SchemaValidationError,
  sql as slonikSql,
} from 'slonik'
import { z } from 'zod'
import type { Connections } from './driver.ts'
import { Failure, fail, mapDatabaseError } from './errors.ts'
import { serversOf } from './hosts.ts'
import { createPoolDriver } from './pool-driver.ts'
import type { ReadStatement, ReadValue } from './reader.ts'
import { createSemaphore, type WaitLimit } from './semaphore.ts'
import type { SlowStatements } from './slow.ts'

/**
 * The seam to PostgreSQL and the only importer of slonik. Queries are values (`sql/<area>.ts` makes them);
 * the caller chooses how many rows it expects.
 */
export const sql = slonikSql

/** A query whose rows are `T`. */
export type Query<T> = QuerySqlToken<z.ZodType<T>>

/** For statements whose rows nobody reads. */
export const noRows = z.object({}).loose()

/** One JSON text built by PostgreSQL, passed on as it is. */
export const JsonText = z.object({ json: z.string() })

export interface Queries {
  /** @throws an internal error unless there is exactly one row. */
  one<T>(query: Query<T>): Promise<T>
  maybeOne<T>(query: Query<T>): Promise<T | null>
  any<T>(query: Query<T>): Promise<readonly T[]>
  /** Runs a statement and returns how many rows it touched. */
  run(query: Query<unknown>): Promise<number>
}

/** The queries of a transaction. */
export interface Transaction extends Queries {
  /** Runs `effect` once the transaction is committed, and never if it is not. It must not throw. */
  afterCommit(effect: () => void): void
}

const FirstColumn = z.record(z.string(), z.string().nullable())

/**
 * Runs a reader's statement in this transaction. Code that holds a connection must not wait for another one: behind a
 * pooler, such callers can hold all the connections that there are and deadlock.
 */
export async function readWithin<P extends readonly ReadValue[] = []>(
  tx: Queries,
  { name, text }: ReadStatement<P>,
  values: NoInfer<Readonly<P>>,
): Promise<string | null> {
  const row = await tx.maybeOne({ ...sql.prepared(name, FirstColumn)``, sql: text, values } as Query<
    z.output<typeof FirstColumn>
  >)
  return row === null ? null : (Object.values(row)[0] ?? null)
}

/** The connections of a pool. */
export interface Usage {
  readonly active: number
  readonly idle: number
  /** Callers waiting for a connection. */
  readonly waiting: number
}

export interface Database extends Queries {
  /** Commits when `work` resolves. Serialization failures and deadlocks rerun it: it must have no outside effects. */
  transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T>
  close(): Promise<void>
  usage(): Usage
}

export interface DatabaseOptions {
  readonly url: string
  readonly applicationName: string
  /** The maximum number of connections. */
  readonly size: number
  /** Checks each row against its query's schema: tests and development. */
  readonly validateRows: boolean
  /**
   * Whether a pooler in transaction mode is in between. Poolers refuse timeouts as connection parameters, so each
   * transaction sets its own; timeouts of single statements are left to the pooler.
   */
  readonly pooled?: boolean
  /** How long a statement may take, by the server's clock and by this process's; default 30 s. */
  readonly statementMs?: number
  /** How long a caller waits for a connection before it fails with `database.busy`; default without limit. */
  readonly waitMs?: number
  /** The group of connections that this pool's belong to. */
  readonly connections?: Connections
  /** Gets the end of the WAL after each commit, single statements among them: `sql/wal.ts`. */
  readonly onCommit?: (position: string) => void
  /** Gets statements that take long. */
  readonly slow?: SlowStatements | undefined
}

const STATEMENT_MS = 30_000
const IDLE_MS = 60_000

/**
 * A pool that connects at its first query. Limits: connect 5 s, statement 30 s, idle in transaction 60 s.
 * Queries fail with `database.down` while the server can't be reached, and work again once it can.
 */
export function createDatabase(options: DatabaseOptions): Database {
  let opened: Promise<DatabasePool> | null = null
  let pool: DatabasePool | null = null
  let isClosed = false
  // slonik forgets callers waiting for a connection when those in use die together, so none ever waits inside it.
  const semaphore = createSemaphore(options.size, waitLimitOf(options))
  const open = (): Promise<DatabasePool> => {
    opened ??= openPool(options).then(
      (result) => {
        pool = result
        return result
      },
      (error) => {
        opened = null
        throw mapDatabaseError(error)
      },
    )
    return opened
  }
  const enter = <T>(use: (pool: DatabasePool) => Promise<T>): Promise<T> =>
    semaphore.run(async () => {
      // Who repeats what fails in an outage does so until the process has ended.
      if (isClosed || options.connections?.isRefusing) throw fail('database.down')
      return use(await open())
    })
  const on = <T>(use: (queries: Queries) => Promise<T>): Promise<T> => enter((pool) => use(queries(pool)))
  return {
    one: (query) => on((q) => q.one(query)),
    maybeOne: (query) => on((q) => q.maybeOne(query)),
    any: (query) => on((q) => q.any(query)),
    run: (query) => on((q) => q.run(query)),
    transaction: (work) =>
      enter((pool) => guarded(transact(pool, options.pooled ? limited(work, options.statementMs) : work))),
    close: async () => {
      isClosed = true
      await (await opened?.catch(() => null))?.end()
    },
    usage: () => ({
      active: semaphore.active,
      idle: pool?.state().idleConnections ?? 0,
      waiting: semaphore.waiting,
    }),
  }
}

function waitLimitOf({ waitMs }: DatabaseOptions): WaitLimit | undefined {
  return waitMs === undefined ? undefined : { waitMs, timeout: () => fail('database.busy') }
}

function openPool(options: DatabaseOptions): Promise<DatabasePool> {
  const { url, applicationName, connections, size, pooled, validateRows, onCommit, slow } = options
  const statementMs = options.statementMs ?? STATEMENT_MS
  const limits = pooled ? {} : { statementMs: serverLimit(statementMs), idleInTransactionMs: IDLE_MS }
  return createPool(url, {
    driverFactory: createPoolDriver({
      url,
      applicationName,
      answerMs: statementMs,
      slow,
      ...limits,
      ...(connections && { connections }),
      ...(onCommit && { onCommit }),
    }),
    // Each attempt tries the next server.
    connectionRetryLimit: serversOf(url).urls.length,
    maxPoolSize: size,
    idleTimeout: 60_000,
    // The default sends DISCARD ALL at each release, a third of the throughput; our settings are all `set local`.
    resetConnection: () => Promise.resolve(),
    interceptors: validateRows ? [rowValidation] : [],
  })
}

/** The server's limit is lower than ours: a server that answers ends the statement, and the connection stays. */
const serverLimit = (statementMs: number): number => Math.ceil(statementMs * 0.9)

/** Without limits, a process that freezes in a transaction would never release its locks. */
function limited<T>(
  work: (tx: Transaction) => Promise<T>,
  statementMs = STATEMENT_MS,
): (tx: Transaction) => Promise<T> {
  return async (tx) => {
    await tx.run(sql.prepared('transaction_limits', noRows)`
      select set_config('statement_timeout', ${String(serverLimit(statementMs))}, true),
        set_config('idle_in_transaction_session_timeout', ${String(IDLE_MS)}, true)`)
    return work(tx)
  }
}

/**
 * slonik closes a connection whenever an error passes through it, and a new one costs more than most transactions.
 * After a refusal, which was rolled back, it is still good, so the failure is carried out as a value.
 */
async function transact<T>(pool: DatabasePool, work: (tx: Transaction) => Promise<T>): Promise<T> {
  let effects: (() => void)[] = []
  const end = await pool.connect(async (connection): Promise<{ value: T } | { failure: Failure }> => {
    try {
      // Inside, errors stay slonik's own: it reruns the work for those of class 40.
      const value = await connection.transaction((tx) => {
        effects = []
        return work({ ...queries(tx, passed), afterCommit: (effect) => effects.push(effect) })
      })
      return { value }
    } catch (error) {
      const failure = mapDatabaseError(error)
      if (failure instanceof Failure && !failure.retryable) return { failure }
      throw error
    }
  })
  if ('failure' in end) throw end.failure
  for (const effect of effects) effect()
  return end.value
}

type Guard = <T>(promise: Promise<T>) => Promise<T>
const passed: Guard = (promise) => promise

function queries(on: CommonQueryMethods, guard: Guard = guarded): Queries {
  return {
    one: (query) => guard(on.one(query)),
    maybeOne: (query) => guard(on.maybeOne(query)),
    any: (query) => guard(on.any(query)),
    run: async (query) => (await guard(on.query(query))).rowCount ?? 0,
  } as Queries
}

async function guarded<T>(promise: Promise<T>): Promise<T> {
  try {
    return await promise
  } catch (error) {
    throw mapDatabaseError(error)
  }
}

const rowValidation: Interceptor = {
  name: 'row-validation',
  transformRow: ({ resultParser }, query, row) => {
    if (resultParser === undefined) return row
    const result = resultParser['~standard'].validate(row)
    if ('then' in result) throw new TypeError('A row schema must not be asynchronous')
    if (result.issues !== undefined) throw new SchemaValidationError(query, row, result.issues)
    return result.value as typeof row
  },
}
