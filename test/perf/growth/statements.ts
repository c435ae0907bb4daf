import { type Client, connect } from '../../../sql/connections/driver.ts'
import { until } from '../../until.ts'

/**
 * Reads from `pg_stat_statements` which statements ran in a database and how many shared buffers each touched. The
 * counts are exact and equal on any machine. They include the functions that a statement calls. They exclude catalog
 * reads of the planner, which depend on earlier plans of the connection.
 */

/** PostgreSQL settings that count statements. */
export const COUNTING_SETTINGS = { shared_preload_libraries: 'pg_stat_statements' }

export interface StatementCost {
  readonly text: string
  readonly buffers: number
}

const IDLE_TIMEOUT_MS = 600_000
const MAX_LISTED = 40

/** Counts the statements of one database. Connects to another database, so that its own statements are not counted. */
export class Statements {
  readonly #client: Client
  readonly #database: string

  private constructor(client: Client, database: string) {
    this.#client = client
    this.#database = database
  }

  /** Creates a counter for the database with this URL. */
  static async of(url: string): Promise<Statements> {
    const [, server, name] = /^(.*)\/([^/]+)$/.exec(url)!
    const client = await connect({ url: `${server}/postgres`, applicationName: 'statements' })
    await client.query('create extension if not exists pg_stat_statements')
    const { rows } = await client.query('select oid::text from pg_database where datname = $1', [name])
    return new Statements(client, rows[0]!.oid)
  }

  /** Starts to count. */
  async reset(): Promise<void> {
    await this.#client.query('select pg_stat_statements_reset(0, $1::oid, 0)', [this.#database])
  }

  /** Runs work, and returns the number of statements meanwhile. */
  async count(work: () => Promise<unknown>): Promise<number> {
    await this.reset()
    await work()
    const { rows } = await this.#client.query(
      'select coalesce(sum(calls), 0)::int as calls from pg_stat_statements where dbid = $1::oid',
      [this.#database],
    )
    return rows[0]!.calls
  }

  /** Returns the statements since the reset with their calls, most frequent first. */
  async list(): Promise<readonly unknown[]> {
    const { rows } = await this.#client.query(
      `select calls::int, left(regexp_replace(query, '\\s+', ' ', 'g'), 160) as query from pg_stat_statements
       where dbid = $1::oid order by calls desc limit ${MAX_LISTED}`,
      [this.#database],
    )
    return rows
  }

  /** Waits until no statement is running, because a stream's statements may outlast it, and starts to count. */
  async begin(): Promise<void> {
    await until('no statement is running', () => this.#isIdle(), IDLE_TIMEOUT_MS)
    await this.reset()
  }

  /** Returns the statements since `begin` that touched buffers, most expensive first. */
  async end(): Promise<StatementCost[]> {
    const { rows } = await this.#client.query(
      `select query as text, (shared_blks_hit + shared_blks_read)::float8 as buffers from pg_stat_statements
       where dbid = $1::oid and shared_blks_hit + shared_blks_read > 0 order by 2 desc`,
      [this.#database],
    )
    return rows
  }

  async close(): Promise<void> {
    await this.#client.end()
  }

  async #isIdle(): Promise<boolean> {
    const { rowCount } = await this.#client.query(
      `select from pg_stat_activity where datid = $1::oid and state <> 'idle' and backend_type = 'client backend' limit 1`,
      [this.#database],
    )
    return rowCount === 0
  }
}
