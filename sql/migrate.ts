import { readFile } from 'node:fs/promises'
import { Logger, runMigrations } from 'graphile-worker'
import { type Client, connect, createQueuePool } from './driver.ts'
import { MIGRATIONS, migrationNames } from './migrations.ts'

// Two starts at once: the second waits here, then finds nothing to do.
const LOCK = 7_236_501_144

/**
 * Brings a database to the current schema: graphile-worker's own migrations, then `migrations/` in the order of
 * their numbers, each in a transaction that records its number first. Forward only; doing it again changes nothing.
 *
 * @param until applies no migration after this one.
 * @returns the names of the migrations that this call applied.
 */
export async function migrate(url: string, until?: string): Promise<readonly string[]> {
  const client = await connect({ url, applicationName: 'millrace-migrate' })
  try {
    await client.query('select pg_advisory_lock($1)', [LOCK])
    await client.query("set lock_timeout = '10s'")
    await client.query(
      'create table if not exists migration (name text constraint migration_pkey primary key, applied_at timestamptz not null default now())',
    )
    const { rows } = await client.query<{ name: string }>('select name from migration')
    const applied = new Set(rows.map((row) => row.name))
    const names = (await migrationNames()).filter((name) => until === undefined || name <= until)
    const pending = names.filter((name) => !applied.has(name))
    if (pending.length > 0) await migrateQueue(url)
    for (const name of pending) await apply(client, name)
    return pending
  } finally {
    await client.end()
  }
}

async function apply(client: Client, name: string): Promise<void> {
  const text = await readFile(new URL(name, MIGRATIONS), 'utf8')
  await client.query('begin')
  try {
    await client.query('insert into migration (name) values ($1)', [name])
    await client.query(text)
    await client.query('commit')
  } catch (error) {
    await client.query('rollback')
    throw new Error(`Migration ${name} failed`, { cause: error })
  }
}

async function migrateQueue(url: string): Promise<void> {
  const pgPool = createQueuePool({ url, applicationName: 'millrace-migrate', size: 1, onError: () => {} })
  try {
    await runMigrations({ pgPool, logger: new Logger(() => () => {}) })
  } finally {
    await pgPool.end()
  }
}
