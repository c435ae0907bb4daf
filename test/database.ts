import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { createDatabase, type Database } from '../sql/db.ts'
import { stopAfterFile } from './services.ts'
import { until } from './until.ts'

/** A database of this test file alone, cloned from the migrated template. */
export interface TestDatabase {
  readonly url: string
  readonly db: Database
  /** Runs text and answers rows: for looking at what the code under test left behind. */
  query(text: string, values?: readonly unknown[]): Promise<Record<string, unknown>[]>
}

/** Clones the template; called in a file or a test (not in a hook); dropped after the file. */
export async function testDatabase(): Promise<TestDatabase> {
  const base = process.env.TEST_DATABASE_URL
  if (base === undefined) throw new Error('No test database: run the file through `npm test -- FILE`')
  const name = `test_${randomBytes(6).toString('hex')}`
  await administrate(base, `create database ${name} template ${process.env.TEST_TEMPLATE} strategy file_copy`)
  const url = base.replace(/\/postgres($|\?)/, `/${name}$1`)
  const db = createDatabase({ url, applicationName: 'test', size: 8, validateRows: true })
  const pool = new pg.Pool({ connectionString: url, max: 2 })
  pool.on('error', () => {})
  stopAfterFile(async () => {
    await Promise.all([pool.end(), db.close()])
    await administrate(base, `drop database ${name} with (force)`)
  })
  return { url, db, query: async (text, values = []) => (await pool.query(text, [...values])).rows }
}

/**
 * Vacuums and analyzes until every page counts as visible to all: what an index answers alone, plans count on. One run
 * is not enough while anyone has a snapshot of before, such as autovacuum that analyzes another table.
 */
export async function vacuumAnalyze(query: TestDatabase['query']): Promise<void> {
  await until('every page is visible to all', async () => {
    await query('vacuum analyze')
    const hidden =
      await query(`select from pg_class where relnamespace in ('public'::regnamespace, 'partitions'::regnamespace)
      and relkind = 'r' and relallvisible < relpages limit 1`)
    return hidden.length === 0
  })
}

/** A database with nothing in it, not even the schema; dropped after the file. Answers its URL. */
export async function emptyDatabase(): Promise<string> {
  const base = process.env.TEST_DATABASE_URL!
  const name = `test_${randomBytes(6).toString('hex')}`
  await administrate(base, `create database ${name} template template0`)
  stopAfterFile(() => administrate(base, `drop database ${name} with (force)`))
  return base.replace(/\/postgres($|\?)/, `/${name}$1`)
}

async function administrate(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}
