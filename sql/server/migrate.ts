import { setTimeout } from 'node:timers/promises'
import { Logger, runMigrations } from 'graphile-worker'
import { type Client, connect, createQueuePool } from '../connections/driver.ts'
import { findPoolerProblem } from '../connections/pooler.ts'
import { checkAppRole, grantAppRole } from './app-role.ts'
import { buildIndex, isConcurrent } from './concurrent-index.ts'
import { LOCK_TIMING, type LockTiming, retryUntilLocked } from './lock-retry.ts'
import {
  type AppliedFunctionArea,
  BASELINE_NAME,
  listChangedAreas,
  listMigrationNames,
  MIGRATIONS_FOLDER,
  PRE_BASELINE_NAME,
  readFunctionAreas,
  readMigration,
  SEEDS_NAME,
  SELECT_APPLIED_FUNCTIONS,
} from './migrations.ts'
import { StartError } from './start-error.ts'

const MIGRATION_LOCK_KEY = 7_236_501_144
const LOCK_RETRY_MS = 200

export interface MigrateOptions {
  /** Folder of the migrations that follow the baseline. */
  readonly folder?: URL
  readonly wait?: LockTiming
  /** Receives a line whenever an attempt fails to get a lock. */
  readonly log?: (line: string) => void
  /** Role of edges and workers, to which `migrate` grants access to rows. If undefined, they connect as the owner. */
  readonly appRole?: string | undefined
}

interface MigrationRun extends Required<Omit<MigrateOptions, 'appRole'>> {
  readonly url: string
  readonly client: Client
}

/**
 * Migrates a database forward to the current schema; a rerun changes nothing. Applies graphile-worker's own migrations,
 * the baseline, later migrations, changed functions, and the initial rows of a new database. Then it grants rights to
 * the role of edges and workers. Each migration records its name and runs in one transaction. Processes of the previous
 * version keep working meanwhile.
 *
 * Returns the names of the migrations and function areas that this call applied. Throws a StartError if the database is
 * older than the baseline, or behind a pooler in transaction mode. Also throws one if a lock is unavailable or
 * `appRole` is unsuitable.
 */
export function migrate(url: string, options: MigrateOptions = {}): Promise<readonly string[]> {
  return withLock(url, options, async (run) => {
    const { appRole } = options
    if (appRole !== undefined) await checkAppRole(run.client, appRole)
    const pending = await listPending(run)
    await migrateQueue(run)
    for (const name of pending) if (name !== SEEDS_NAME) await applyMigration(run, name)
    const functions = await applyFunctions(run)
    if (pending.includes(SEEDS_NAME)) await applyMigration(run, SEEDS_NAME)
    if (appRole !== undefined)
      await runInTransaction(run, 'The rights of DATABASE_APP_ROLE', () => grantAppRole(run.client, appRole))
    return pending.includes(BASELINE_NAME) ? pending : [...pending, ...functions]
  })
}

/**
 * Creates the tables of an earlier version in an empty database, for a restore to fill. Omits initial rows and applies
 * only those current functions that fit the tables. `migrate` must run afterwards.
 *
 * @param last the last migration of that version.
 */
export function createEmptySchema(url: string, last: string): Promise<void> {
  return withLock(url, {}, async (run) => {
    await migrateQueue(run)
    for (const name of await listPending(run))
      if (name !== SEEDS_NAME && name <= last) await applyMigration(run, name)
    await run.client.query('insert into migration (name) values ($1)', [SEEDS_NAME])
    await applyCompatibleFunctions(run)
  })
}

async function withLock<T>(
  url: string,
  { folder = MIGRATIONS_FOLDER, wait = LOCK_TIMING, log = () => {} }: MigrateOptions,
  work: (run: MigrationRun) => Promise<T>,
): Promise<T> {
  const applicationName = 'millrace-migrate'
  // A pooler would keep the connection, and with it the lock, long after this process has exited.
  const problem = await findPoolerProblem({ url, directUrl: url, applicationName })
  if (problem !== null) throw new StartError(problem)
  const client = await connect({ url, applicationName })
  try {
    // Disable the timeouts of the role or the database, which are meant for requests. Creating an index may take hours.
    await client.query('set statement_timeout = 0; set lock_timeout = 0')
    await acquireLock(client)
    await client.query(CREATE_RECORD_TABLES)
    return await work({ url, client, folder, wait, log })
  } finally {
    await client.end()
  }
}

async function listPending({ client, folder }: MigrationRun): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>('select name from migration')
  const applied = new Set(rows.map((row) => row.name))
  if (applied.has(PRE_BASELINE_NAME)) throw new StartError(TOO_OLD_MESSAGE)
  return (await listMigrationNames(folder)).filter((name) => !applied.has(name))
}

const TOO_OLD_MESSAGE =
  "A version before 1.0.0 created this database, which can't be migrated: start with an empty one (move DATA_DIR away, or set another DATABASE_URL)"

const CREATE_RECORD_TABLES = `
  create table if not exists migration (name text constraint migration_pkey primary key, applied_at timestamptz not null default now());
  create table if not exists migration_functions (area text constraint migration_functions_pkey primary key, digest text not null)`

/**
 * Waits for the lock of migrations. The second of two concurrent starts then finds nothing to do. Polls, because a
 * waiting statement would hold a snapshot that blocks the concurrent index build of the first start.
 */
async function acquireLock(client: Client): Promise<void> {
  for (;;) {
    const { rows } = await client.query<{ locked: boolean }>('select pg_try_advisory_lock($1) as locked', [
      MIGRATION_LOCK_KEY,
    ])
    if (rows[0]!.locked) return
    await setTimeout(LOCK_RETRY_MS)
  }
}

async function applyMigration(run: MigrationRun, name: string): Promise<void> {
  const { client, folder } = run
  const text = await readMigration(name, folder)
  const concurrent = isConcurrent(text)
  if (concurrent) await buildIndex(client, name, text)
  await runInTransaction(run, `Migration ${name}`, async () => {
    await client.query('insert into migration (name) values ($1)', [name])
    if (!concurrent) await client.query(text)
  })
}

/** Applies changed functions and returns their areas as `functions/AREA`. */
async function applyFunctions(run: MigrationRun): Promise<string[]> {
  const { client } = run
  const changed = await listChangedAreas(
    (await client.query<AppliedFunctionArea>(SELECT_APPLIED_FUNCTIONS)).rows,
  )
  for (const { name, text, digest } of changed)
    await runInTransaction(run, `The functions of ${name}`, async () => {
      await client.query(text)
      await client.query(
        'insert into migration_functions (area, digest) values ($1, $2) on conflict (area) do update set digest = excluded.digest',
        [name, digest],
      )
    })
  return changed.map(({ name }) => `functions/${name}`)
}

/** Skips functions that refer to tables or columns of later migrations; `migrate` applies them all. */
async function applyCompatibleFunctions(run: MigrationRun): Promise<void> {
  const { client } = run
  const files = (await readFunctionAreas()).flatMap((area) => area.files)
  await runInTransaction(run, 'The functions', async () => {
    for (const text of files) {
      await client.query('savepoint before')
      await client.query(text).catch(() => client.query('rollback to savepoint before'))
    }
  })
}

function runInTransaction(run: MigrationRun, subject: string, work: () => Promise<void>): Promise<void> {
  const { client, wait } = run
  return retryUntilLocked(client, subject, run, async () => {
    // Disable body checks, because function bodies may refer to objects that are created later.
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

async function migrateQueue(run: MigrationRun): Promise<void> {
  const { url, client, wait } = run
  const pgPool = createQueuePool({ url, applicationName: 'millrace-migrate', size: 1, onError: () => {} })
  // The setting must apply before graphile-worker runs its first statement.
  pgPool.on('connect', (one) => void one.query(`set lock_timeout = ${wait.waitMs}`).catch(() => {}))
  try {
    await retryUntilLocked(client, "The queue's own migrations", run, () =>
      runMigrations({ pgPool, logger: new Logger(() => () => {}) }),
    )
  } finally {
    await pgPool.end()
  }
}
