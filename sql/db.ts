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
import type { ConnectionGroup } from './connections/driver.ts'
import { parseServers } from './connections/hosts.ts'
import { createPoolDriver } from './connections/pool-driver.ts'
import { createSemaphore, type WaitLimit } from './connections/semaphore.ts'
import type { SlowStatements } from './connections/slow.ts'
import { mapDatabaseError } from './error-mapping.ts'
import { Failure, fail } from './errors.ts'
import type { ReadStatement, ReadValue } from './reads/reader.ts'

/**
 * Access to PostgreSQL and the only importer of slonik. `sql/<area>.ts` builds queries as values. The caller picks the
 * method for the expected number of rows.
 */
export const sql = slonikSql

/** A query that returns rows of the type `T`. */
export type Query<T> = QuerySqlToken<z.ZodType<T>>

/** Schema for statements whose rows are ignored. */
export const noRows = z.object({}).loose()

/** Row with a JSON text that PostgreSQL built. It is passed on unparsed. */
export const JsonText = z.object({ json: z.string() })

export interface Queries {
  /** Returns the only row. @throws an internal error unless there is exactly one row. */
  one<T>(query: Query<T>): Promise<T>
  maybeOne<T>(query: Query<T>): Promise<T | null>
  any<T>(query: Query<T>): Promise<readonly T[]>
  /** Runs a statement. Returns the number of affected rows. */
  run(query: Query<unknown>): Promise<number>
}

/** Queries inside a transaction. */
export interface Transaction extends Queries {
  /** Runs `effect` after the commit, and never after a rollback. It must not throw. */
  afterCommit(effect: () => void): void
}

const FirstColumnRow = z.record(z.string(), z.string().nullable())

/**
 * Runs a reader's statement in this transaction. Code that holds a connection must not wait for a second one, because
 * such callers can exhaust the connections of a pooler and deadlock.
 */
export async function readWithin<P extends readonly ReadValue[] = []>(
  tx: Queries,
  { name, text }: ReadStatement<P>,
  values: NoInfer<Readonly<P>>,
): Promise<string | null> {
  const row = await tx.maybeOne({ ...sql.prepared(name, FirstColumnRow)``, sql: text, values } as Query<
    z.output<typeof FirstColumnRow>
  >)
  return row === null ? null : (Object.values(row)[0] ?? null)
}

/** Connection counts of a pool. */
export interface PoolUsage {
  readonly active: number
  readonly idle: number
  /** Number of callers that wait for a connection. */
  readonly waiting: number
}

export interface Database extends Queries {
  /**
   * Commits when `work` resolves. Reruns it after serialization failures and deadlocks, so it must have no outside
   * effects.
   */
  transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T>
  close(): Promise<void>
  usage(): PoolUsage
}

export interface DatabaseOptions {
  readonly url: string
  readonly applicationName: string
  /** Maximum number of connections. */
  readonly size: number
  /** True to check each row against its query's schema, in tests and development. */
  readonly validateRows: boolean
  /**
   * True if connections go through a pooler in transaction mode. Poolers refuse timeouts as connection parameters, so
   * each transaction sets its own. Single statements rely on the timeouts of the pooler and of this process.
   */
  readonly pooled?: boolean
  /** Time limit of a statement in this process, in ms. The server gets 90 % of it. Default 30 s. */
  readonly statementMs?: number
  /** Maximum wait for a connection in ms. After it, a query fails with `database.busy`. Default unlimited. */
  readonly waitMs?: number
  /** Group to which the pool adds its connections. */
  readonly connections?: ConnectionGroup
  /** Receives slow statements. */
  readonly slow?: SlowStatements | undefined
}

const STATEMENT_TIMEOUT_MS = 30_000
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 60_000

/**
 * Creates a pool that connects on its first query. Limits: connect 5 s (2 s with several hosts), statement 30 s, idle
 * in transaction 60 s. Queries fail with `database.down` while the server is unreachable, and work again afterwards.
 */
export function createDatabase(options: DatabaseOptions): Database {
  let opened: Promise<DatabasePool> | null = null
  let pool: DatabasePool | null = null
  let isClosed = false
  // Callers wait here, because slonik drops waiting callers when all connections in use die together.
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
  const withPool = <T>(use: (pool: DatabasePool) => Promise<T>): Promise<T> =>
    semaphore.run(async () => {
      // After close(), callers that retry get the same error as in an outage.
      if (isClosed || options.connections?.isRefusing) throw fail('database.down')
      return use(await open())
    })
  const withQueries = <T>(use: (queries: Queries) => Promise<T>): Promise<T> =>
    withPool((pool) => use(createQueries(pool)))
  return {
    one: (query) => withQueries((q) => q.one(query)),
    maybeOne: (query) => withQueries((q) => q.maybeOne(query)),
    any: (query) => withQueries((q) => q.any(query)),
    run: (query) => withQueries((q) => q.run(query)),
    transaction: (work) =>
      withPool((pool) =>
        mapErrors(
          runTransaction(pool, options.pooled ? withTransactionLimits(work, options.statementMs) : work),
        ),
      ),
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
  return waitMs === undefined ? undefined : { waitMs, createError: () => fail('database.busy') }
}

function openPool(options: DatabaseOptions): Promise<DatabasePool> {
  const { url, applicationName, connections, size, pooled, validateRows, slow } = options
  const statementMs = options.statementMs ?? STATEMENT_TIMEOUT_MS
  const limits = pooled
    ? {}
    : { statementMs: serverTimeoutMs(statementMs), idleInTransactionMs: IDLE_IN_TRANSACTION_TIMEOUT_MS }
  return createPool(url, {
    driverFactory: createPoolDriver({
      url,
      applicationName,
      answerMs: statementMs,
      slow,
      ...limits,
      ...(connections && { connections }),
    }),
    // Each attempt tries the next server.
    connectionRetryLimit: parseServers(url).urls.length,
    maxPoolSize: size,
    idleTimeout: 60_000,
    // By default, slonik sends DISCARD ALL on each release, which costs a third of the throughput. There is nothing to
    // discard, because all settings are `set local`.
    resetConnection: () => Promise.resolve(),
    interceptors: validateRows ? [rowValidator] : [],
  })
}

/**
 * The server's limit is lower than the client's, so that a responsive server cancels the statement and the connection
 * survives.
 */
const serverTimeoutMs = (statementMs: number): number => Math.ceil(statementMs * 0.9)

/** Without limits, a process that freezes in a transaction would never release its locks. */
function withTransactionLimits<T>(
  work: (tx: Transaction) => Promise<T>,
  statementMs = STATEMENT_TIMEOUT_MS,
): (tx: Transaction) => Promise<T> {
  return async (tx) => {
    await tx.run(sql.prepared('transaction_limits', noRows)`
      select set_config('statement_timeout', ${String(serverTimeoutMs(statementMs))}, true),
        set_config('idle_in_transaction_session_timeout', ${String(IDLE_IN_TRANSACTION_TIMEOUT_MS)}, true)`)
    return work(tx)
  }
}

/**
 * slonik closes a connection whenever an error passes through it, and a new one costs more than most transactions. A
 * permanent failure is rolled back and leaves the connection usable, so it passes through slonik as a value.
 */
async function runTransaction<T>(pool: DatabasePool, work: (tx: Transaction) => Promise<T>): Promise<T> {
  let effects: (() => void)[] = []
  const outcome = await pool.connect(async (connection): Promise<{ value: T } | { failure: Failure }> => {
    try {
      // Errors stay unmapped inside the transaction, because slonik reruns the work for SQLSTATE class 40.
      const value = await connection.transaction((tx) => {
        effects = []
        return work({
          ...createQueries(tx, passErrorsThrough),
          afterCommit: (effect) => effects.push(effect),
        })
      })
      return { value }
    } catch (error) {
      const failure = mapDatabaseError(error)
      if (failure instanceof Failure && !failure.retryable) return { failure }
      throw error
    }
  })
  if ('failure' in outcome) throw outcome.failure
  for (const effect of effects) effect()
  return outcome.value
}

type ErrorGuard = <T>(promise: Promise<T>) => Promise<T>
const passErrorsThrough: ErrorGuard = (promise) => promise

function createQueries(on: CommonQueryMethods, guard: ErrorGuard = mapErrors): Queries {
  return {
    one: (query) => guard(on.one(query)),
    maybeOne: (query) => guard(on.maybeOne(query)),
    any: (query) => guard(on.any(query)),
    run: async (query) => (await guard(on.query(query))).rowCount ?? 0,
  } as Queries
}

async function mapErrors<T>(promise: Promise<T>): Promise<T> {
  try {
    return await promise
  } catch (error) {
    throw mapDatabaseError(error)
  }
}

const rowValidator: Interceptor = {
  name: 'row-validation',
  transformRow: ({ resultParser }, query, row) => {
    if (resultParser === undefined) return row
    const result = resultParser['~standard'].validate(row)
    if ('then' in result) throw new TypeError('A row schema must not be asynchronous')
    if (result.issues !== undefined) throw new SchemaValidationError(query, row, result.issues)
    return result.value as typeof row
  },
}
