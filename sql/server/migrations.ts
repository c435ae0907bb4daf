import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'

/**
 * The SQL of the schema, by area. `AREA/tables.sql` is the baseline, and `AREA/seeds.sql` has the initial rows.
 * `AREA/functions/` has one file per function, with its triggers; a change to one reapplies the whole area. Changes to
 * tables after 1.0.0 go to `migrations/`, in files named `NNNNNN-name.sql`.
 */

/** The areas with tables, in the order of their foreign keys. */
const TABLE_AREAS = [
  'common',
  'search',
  'accounts',
  'limits',
  'audit',
  'idempotency',
  'jobs',
  'schedules',
  'orgs',
  'documents',
  'blog',
  'comms',
  'payments',
  'llm',
  'ai',
  'voice',
  'rag',
  'system',
  'keys',
  'webhooks',
  'quotas',
  'budgets',
  'worker-queues',
] as const

/** The areas with initial rows. */
const SEED_AREAS = ['ai', 'audit', 'llm'] as const

/** Name under which a database records that all `tables.sql` were applied. */
export const BASELINE_NAME = '000000-baseline'

/** Name under which a database records that the initial rows were added. */
export const SEEDS_NAME = '000000-seeds'

/** A migration that only databases older than the baseline have applied. Such databases cannot be migrated. */
export const PRE_BASELINE_NAME = '000001-accounts.sql'

/** All functions of one area. */
export interface FunctionArea {
  readonly name: string
  readonly text: string
  /** The text of each file, in the order of application. */
  readonly files: readonly string[]
  /** SHA-256 of `text` in hexadecimal, which reveals a changed function. */
  readonly digest: string
}

const resolveUrl = (path: string): URL => new URL(path, import.meta.url)

/** Folder of the migrations that follow the baseline. */
export const MIGRATIONS_FOLDER = resolveUrl('../migrations/')

/** Returns the names of the baseline, the initial rows and all migrations, in numeric order. */
export async function listMigrationNames(folder: URL = MIGRATIONS_FOLDER): Promise<string[]> {
  const numbered = (await listSqlFiles(folder)).filter((name) => /^\d{6}-[a-z0-9-]+\.sql$/.test(name))
  return [BASELINE_NAME, SEEDS_NAME, ...numbered]
}

/** Reads the SQL of a named migration. */
export async function readMigration(name: string, folder: URL = MIGRATIONS_FOLDER): Promise<string> {
  if (name === BASELINE_NAME) return readFiles(TABLE_AREAS, 'tables.sql')
  if (name === SEEDS_NAME) return readFiles(SEED_AREAS, 'seeds.sql')
  return readFile(new URL(name, folder), 'utf8')
}

/** A function area and its digest, as recorded in a database. */
export interface AppliedFunctionArea {
  readonly area: string
  readonly digest: string
}

export const SELECT_APPLIED_FUNCTIONS = 'select area, digest from migration_functions'

/** Returns the areas whose functions differ from the applied ones. */
export async function listChangedAreas(
  applied: readonly AppliedFunctionArea[],
): Promise<readonly FunctionArea[]> {
  const known = new Map(applied.map(({ area, digest }) => [area, digest]))
  return (await readFunctionAreas()).filter(({ name, digest }) => known.get(name) !== digest)
}

/**
 * Reads the functions of all areas. Apply them with check_function_bodies off, since function bodies may refer to
 * objects that are created later.
 */
export async function readFunctionAreas(): Promise<readonly FunctionArea[]> {
  const entries = await readdir(resolveUrl('../'), { withFileTypes: true })
  const names = entries.flatMap((entry) => (entry.isDirectory() ? [entry.name] : [])).sort()
  const areas = await Promise.all(
    names.map(async (name) => {
      const files = await readFunctions(resolveUrl(`../${name}/functions/`))
      const text = files.join('\n')
      return { name, text, files, digest: createHash('sha256').update(text).digest('hex') }
    }),
  )
  return areas.filter(({ files }) => files.length > 0)
}

const readFiles = async (areas: readonly string[], file: string): Promise<string> => {
  const texts = areas.map((area) => readFile(resolveUrl(`../${area}/${file}`), 'utf8'))
  return (await Promise.all(texts)).join('\n')
}

// `settings.sql` configures the other functions of its area, so it comes last.
async function readFunctions(folder: URL): Promise<string[]> {
  const names = await listSqlFiles(folder)
  const last = (name: string): number => Number(name === 'settings.sql')
  names.sort((a, b) => last(a) - last(b))
  return Promise.all(names.map((name) => readFile(new URL(name, folder), 'utf8')))
}

async function listSqlFiles(folder: URL): Promise<string[]> {
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  return names.filter((name) => name.endsWith('.sql')).sort()
}
