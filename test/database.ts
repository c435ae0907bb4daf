import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { createDatabase, type Database } from '../sql/db.ts'
import { isShared, stopAfterFile } from './services.ts'
import { until } from './until.ts'

/** A database for this test file only, cloned from the migrated template. */
export interface TestDatabase {
  readonly url: string
  readonly db: Database
  /** Runs a statement and returns its rows. Tests use it to inspect what the code under test stored. */
  query(text: string, values?: readonly unknown[]): Promise<Record<string, unknown>[]>
}

/**
 * Clones the template database. The clone is dropped after the test file. Call this in a file or a test, not in a hook.
 */
export async function createTestDatabase(): Promise<TestDatabase> {
  const base = process.env.TEST_DATABASE_URL
  if (base === undefined) throw new Error('No test database: run the file through `npm test -- FILE`')
  const name = createDatabaseName()
  await runAsAdmin(base, `create database ${name} template ${process.env.TEST_TEMPLATE} strategy file_copy`)
  const url = base.replace(/\/postgres($|\?)/, `/${name}$1`)
  const db = createDatabase({ url, applicationName: 'test', size: 8, validateRows: true })
  // With asynchronous commits, a vacuum right after a commit may treat its rows as uncommitted, because hint bits need
  // a flushed commit record. The commit's flush position is tracked per group of 32 transactions, which may include the
  // vacuum's own.
  const pool = new pg.Pool({ connectionString: url, max: 2, options: '-c synchronous_commit=on' })
  pool.on('error', () => {})
  stopAfterFile(async () => {
    await Promise.all([pool.end(), db.close()])
    await runAsAdmin(base, `drop database ${name} with (force)`)
  })
  return { url, db, query: async (text, values = []) => (await pool.query(text, [...values])).rows }
}

/**
 * Vacuums and analyzes all tables with rows until every page is all-visible, which index-only scans in plans need. One
 * run is not enough, because vacuum skips pages that are pinned, for example by a checkpoint. `index_cleanup on` is
 * needed because vacuum by default cleans no index if fewer than 2 % of the pages have dead rows.
 */
export async function vacuumAnalyze(query: TestDatabase['query']): Promise<void> {
  let tables = await findTables(query, `not relispartition and (relkind = 'p' or pg_relation_size(oid) > 0)`)
  await until('all pages are all-visible', async () => {
    await query(`vacuum (analyze, index_cleanup on) ${tables.join(', ')}`)
    tables = await findTables(query, `relkind = 'r' and relallvisible < relpages`)
    return tables.length === 0
  })
}

async function findTables(query: TestDatabase['query'], condition: string): Promise<unknown[]> {
  const rows = await query(`select oid::regclass::text as name from pg_class
    where relnamespace in ('public'::regnamespace, 'partitions'::regnamespace) and relkind in ('r', 'p') and ${condition}`)
  return rows.map(({ name }) => name)
}

/** Resolves when a statement in the file's database waits for a lock. */
export const waitForLock = (query: TestDatabase['query']): Promise<unknown> =>
  until('a statement waits for a lock', async () => {
    const waiting = await query(
      `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    )
    return waiting.length > 0
  })

/** Creates an empty database without the schema and returns its URL. The database is dropped after the test file. */
export async function createEmptyDatabase(): Promise<string> {
  const base = process.env.TEST_DATABASE_URL!
  const name = createDatabaseName()
  await runAsAdmin(base, `create database ${name} template template0`)
  stopAfterFile(() => runAsAdmin(base, `drop database ${name} with (force)`))
  return base.replace(/\/postgres($|\?)/, `/${name}$1`)
}

/** Returns a name for a new database. The name includes the test file's number, which the profile reads. */
const createDatabaseName = (): string =>
  `test_${isShared() ? 'shared' : `f${process.env.TEST_FILE}`}_${randomBytes(6).toString('hex')}`

async function runAsAdmin(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}
