import { type Client, connect } from '../../../sql/driver.ts'
import { until } from '../../until.ts'

/**
 * Which statements a server ran for a database, and the shared buffers that each touched, in memory or not: the count of
 * `pg_stat_statements`, which is exact and the same on any machine. It leaves out what planning reads in the catalogs,
 * which depends on what a connection has planned before. A statement counts with the functions that it calls.
 */

/** The settings of a server whose statements are counted. */
export const COUNTING = {
  shared_preload_libraries: 'pg_stat_statements',
  'pg_stat_statements.track_utility': 'off',
}

export interface Spent {
  readonly text: string
  readonly buffers: number
}

const IDLE_MS = 600_000

/** Counts from another database of the server, so that its own statements are not among them. */
export class Statements {
  readonly #client: Client
  readonly #database: string

  private constructor(client: Client, database: string) {
    this.#client = client
    this.#database = database
  }

  /** Those of the database of this URL. */
  static async of(url: string): Promise<Statements> {
    const [, server, name] = /^(.*)\/([^/]+)$/.exec(url)!
    const client = await connect({ url: `${server}/postgres`, applicationName: 'statements' })
    await client.query('create extension if not exists pg_stat_statements')
    const { rows } = await client.query('select oid::text from pg_database where datname = $1', [name])
    return new Statements(client, rows[0]!.oid)
  }

  /** Begins to count once nothing runs any more: the statements of a stream may outlast it. */
  async begin(): Promise<void> {
    await until('nothing runs any more', () => this.#isIdle(), IDLE_MS)
    await this.#client.query('select pg_stat_statements_reset(0, $1::oid, 0)', [this.#database])
  }

  /** What has ended since the beginning and touched anything, the costliest first. */
  async end(): Promise<Spent[]> {
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
