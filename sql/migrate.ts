import { setTimeout } from 'node:timers/promises'
import { Logger, runMigrations } from 'graphile-worker'
import { checkAppRole, grantAppRole } from './app-role.ts'
import { buildIndex, isConcurrent } from './concurrent-index.ts'
import { type Client, connect, createQueuePool } from './driver.ts'
import { LOCK_WAIT, type LockWait, retryLocks } from './lock-retry.ts'
import {
  APPLIED_FUNCTIONS,
  type AppliedFunctions,
  BASELINE,
  BEFORE_BASELINE,
  changedAreas,
  functionAreas,
  MIGRATIONS,
  migrationNames,
  migrationText,
  SEEDS,
} from './migrations.ts'
import { poolerProblem } from './pooler.ts'
import { StartError } from './start-error.ts'

const LOCK = 7_236_501_144
const LOCK_RETRY_MS = 200

export interface MigrateOptions {
  /** Has the migrations after the baseline. */
  readonly folder?: URL
  readonly wait?: LockWait
  /** Gets a line whenever a lock was waited for in vain. */
  readonly log?: (line: string) => void
  /** The role of edges and workers, which gets rights to rows; default: none, they are the owner. */
  readonly appRole?: string | undefined
}

interface Run extends Required<Omit<MigrateOptions, 'appRole'>> {
  readonly url: string
  readonly client: Client
}

/**
 * Brings a database to the current schema: graphile-worker's own migrations, the baseline, the migrations after it, each
 * in a transaction that records its name first, the functions that have changed, and the initial rows of a new
 * database, which these functions write; then the role of edges and workers gets its rights. Forward only; running it again
 * changes nothing. Processes of the previous version go on
 * meanwhile.
 *
 * @returns the names of what this call applied.
 * @throws StartError when the database was made before there was a baseline, when a lock is not to be had, or behind a pooler
 *   in transaction mode.
 */
export function migrate(url: string, options: MigrateOptions = {}): Promise<readonly string[]> {
  return exclusively(url, options, async (run) => {
    const { appRole } = options
    if (appRole !== undefined) await checkAppRole(run.client, appRole)
    const pending = await pendingOf(run)
    await migrateQueue(run)
    for (const name of pending) if (name !== SEEDS) await applyMigration(run, name)
    const functions = await applyFunctions(run)
    if (pending.includes(SEEDS)) await applyMigration(run, SEEDS)
    if (appRole !== undefined)
      await inTransaction(run, 'The rights of DATABASE_APP_ROLE', () => grantAppRole(run.client, appRole))
    return pending.includes(BASELINE) ? pending : [...pending, ...functions]
  })
}

/**
 * Brings an empty database to the tables of an earlier version, which a restore then fills: without initial rows, and with those
 * functions of this version that fit the tables as they are. `migrate` does the rest.
 *
 * @param last the last migration of that version.
 */
export function migrateEmpty(url: string, last: string): Promise<void> {
  return exclusively(url, {}, async (run) => {
    await migrateQueue(run)
    for (const name of await pendingOf(run))
      if (name !== SEEDS && name <= last) await applyMigration(run, name)
    await run.client.query('insert into migration (name) values ($1)', [SEEDS])
    await applyFitting(run)
  })
}

async function exclusively<T>(
  url: string,
  { folder = MIGRATIONS, wait = LOCK_WAIT, log = () => {} }: MigrateOptions,
  work: (run: Run) => Promise<T>,
): Promise<T> {
  const applicationName = 'millrace-migrate'
  // The lock would stay with a connection of the pooler, long after this process.
  const problem = await poolerProblem({ url, directUrl: url, applicationName })
  if (problem !== null) throw new StartError(problem)
  const client = await connect({ url, applicationName })
  try {
    // Limits that the role or the database has are meant for requests; an index may take hours.
    await client.query('set statement_timeout = 0; set lock_timeout = 0')
    await lock(client)
    await client.query(NOTES)
    return await work({ url, client, folder, wait, log })
  } finally {
    await client.end()
  }
}

async function pendingOf({ client, folder }: Run): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>('select name from migration')
  const applied = new Set(rows.map((row) => row.name))
  if (applied.has(BEFORE_BASELINE)) throw new StartError(TOO_OLD)
  return (await migrationNames(folder)).filter((name) => !applied.has(name))
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

async function applyMigration(run: Run, name: string): Promise<void> {
  const { client, folder } = run
  const text = await migrationText(name, folder)
  const concurrent = isConcurrent(text)
  if (concurrent) await buildIndex(client, name, text)
  await inTransaction(run, `Migration ${name}`, async () => {
    await client.query('insert into migration (name) values ($1)', [name])
    if (!concurrent) await client.query(text)
  })
}

/** Returns the areas whose functions have changed, as `functions/AREA`. */
async function applyFunctions(run: Run): Promise<string[]> {
  const { client } = run
  const changed = await changedAreas((await client.query<AppliedFunctions>(APPLIED_FUNCTIONS)).rows)
  for (const { name, text, digest } of changed)
    await inTransaction(run, `The functions of ${name}`, async () => {
      await client.query(text)
      await client.query(
        'insert into migration_functions (area, digest) values ($1, $2) on conflict (area) do update set digest = excluded.digest',
        [name, digest],
      )
    })
  return changed.map(({ name }) => `functions/${name}`)
}

/** Those that name tables or columns to come are left to `migrate`, which applies all of them. */
async function applyFitting(run: Run): Promise<void> {
  const { client } = run
  const files = (await functionAreas()).flatMap((area) => area.files)
  await inTransaction(run, 'The functions', async () => {
    for (const text of files) {
      await client.query('savepoint before')
      await client.query(text).catch(() => client.query('rollback to savepoint before'))
    }
  })
}

function inTransaction(run: Run, subject: string, work: () => Promise<void>): Promise<void> {
  const { client, wait } = run
  return retryLocks(client, subject, run, async () => {
    // Function bodies may refer to what is created after them.
    await client.query(
      `begin; set local lock_timeout = ${wait.waitMs}; set local check_function_bodies = off`,
    )
    try {
      await work()
      await client.query('commit')
    } catch (error) {
      await client.query('rollback')
      throw new Error(`${subject} could not be applied`, { cause: error })
    }
  })
}

async function migrateQueue(run: Run): Promise<void> {
  const { url, client, wait } = run
  const pgPool = createQueuePool({ url, applicationName: 'millrace-migrate', size: 1, onError: () => {} })
  // Sent before whatever the library sends.
  pgPool.on('connect', (one) => void one.query(`set lock_timeout = ${wait.waitMs}`).catch(() => {}))
  try {
    await retryLocks(client, "The queue's own migrations", run, () =>
      runMigrations({ pgPool, logger: new Logger(() => () => {}) }),
    )
  } finally {
    await pgPool.end()
  }
}
