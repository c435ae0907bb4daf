import { setTimeout } from 'node:timers/promises'
import { Logger, runMigrations } from 'graphile-worker'
import { buildIndex, isConcurrent } from './concurrent-index.ts'
import { type Client, connect, createQueuePool } from './driver.ts'
import {
  BASELINE,
  BEFORE_BASELINE,
  functionAreas,
  MIGRATIONS,
  migrationNames,
  migrationText,
} from './migrations.ts'
import { StartError } from './start-error.ts'

const LOCK = 7_236_501_144
const LOCK_RETRY_MS = 200

/**
 * Brings a database to the current schema: graphile-worker's own migrations, the baseline, the migrations after it,
 * each in a transaction that records its name first, and then the functions that have changed. Forward only; running it
 * again changes nothing.
 *
 * @param until applies no migration after this one.
 * @param folder has the migrations after the baseline.
 * @returns the names of what this call applied.
 * @throws StartError when the database was made before there was a baseline.
 */
export async function migrate(
  url: string,
  until?: string,
  folder: URL = MIGRATIONS,
): Promise<readonly string[]> {
  const client = await connect({ url, applicationName: 'millrace-migrate' })
  try {
    await lock(client)
    await client.query(NOTES)
    const { rows } = await client.query<{ name: string }>('select name from migration')
    const applied = new Set(rows.map((row) => row.name))
    if (applied.has(BEFORE_BASELINE)) throw new StartError(TOO_OLD)
    const names = (await migrationNames(folder)).filter((name) => until === undefined || name <= until)
    const pending = names.filter((name) => !applied.has(name))
    if (pending.length > 0) await migrateQueue(url)
    for (const name of pending) {
      await applyMigration(client, name, await migrationText(name, folder))
      if (name === BASELINE) await applyFunctions(client)
    }
    return [...pending, ...(await applyFunctions(client))]
  } finally {
    await client.end()
  }
}

const TOO_OLD =
  "The database was made by a version before 1.0.0 and can't be migrated: start with an empty one (move DATA_DIR away, or name another in DATABASE_URL)"

const NOTES = `
  create table if not exists migration (name text constraint migration_pkey primary key, applied_at timestamptz not null default now());
  create table if not exists migration_functions (area text constraint migration_functions_pkey primary key, digest text not null)`

/**
 * Of two concurrent starts, the second waits here, then finds nothing to do. Not in a statement: it would have a snapshot,
 * for which an index that the first one builds concurrently waits.
 */
async function lock(client: Client): Promise<void> {
  for (;;) {
    const { rows } = await client.query<{ locked: boolean }>('select pg_try_advisory_lock($1) as locked', [
      LOCK,
    ])
    if (rows[0]!.locked) return
    await setTimeout(LOCK_RETRY_MS)
  }
}

async function applyMigration(client: Client, name: string, text: string): Promise<void> {
  const concurrent = isConcurrent(text)
  if (concurrent) await buildIndex(client, name, text)
  await inTransaction(client, `Migration ${name} failed`, async () => {
    await client.query('insert into migration (name) values ($1)', [name])
    if (!concurrent) await client.query(text)
  })
}

/** Returns the areas whose functions have changed, as `functions/AREA`. */
async function applyFunctions(client: Client): Promise<string[]> {
  const { rows } = await client.query<{ area: string; digest: string }>(
    'select area, digest from migration_functions',
  )
  const known = new Map(rows.map(({ area, digest }) => [area, digest]))
  const changed = (await functionAreas()).filter(({ name, digest }) => known.get(name) !== digest)
  for (const { name, text, digest } of changed)
    await inTransaction(client, `The functions of ${name} could not be applied`, async () => {
      await client.query(text)
      await client.query(
        'insert into migration_functions (area, digest) values ($1, $2) on conflict (area) do update set digest = excluded.digest',
        [name, digest],
      )
    })
  return changed.map(({ name }) => `functions/${name}`)
}

async function inTransaction(client: Client, failure: string, work: () => Promise<void>): Promise<void> {
  // All that come later wait behind a lock that is waited for. Function bodies may refer to what is created after them.
  await client.query(`begin; set local lock_timeout = '10s'; set local check_function_bodies = off`)
  try {
    await work()
    await client.query('commit')
  } catch (error) {
    await client.query('rollback')
    throw new Error(failure, { cause: error })
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
