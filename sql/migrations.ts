import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'

/**
 * The SQL of the schema. `schema/` is the baseline, one file per area, in numeric order. `seeds/` has the initial rows.
 * `functions/AREA/` has one file per function, with its triggers; a change to one reapplies the whole area. Changes to
 * tables after 1.0.0 go to `migrations/`, in files named `NNNNNN-name.sql`.
 */

/** Name under which a database records that `schema/` was applied. */
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
export const MIGRATIONS_FOLDER = resolveUrl('./migrations/')

/** Returns the names of the baseline, the initial rows and all migrations, in numeric order. */
export async function listMigrationNames(folder: URL = MIGRATIONS_FOLDER): Promise<string[]> {
  const numbered = (await listSqlFiles(folder)).filter((name) => /^\d{6}-[a-z0-9-]+\.sql$/.test(name))
  return [BASELINE_NAME, SEEDS_NAME, ...numbered]
}

/** Reads the SQL of a named migration. */
export async function readMigration(name: string, folder: URL = MIGRATIONS_FOLDER): Promise<string> {
  if (name === BASELINE_NAME) return (await readSqlFiles(resolveUrl('./schema/'))).join('\n')
  if (name === SEEDS_NAME) return (await readSqlFiles(resolveUrl('./seeds/'))).join('\n')
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
  const areas = (await readdir(resolveUrl('./functions/'))).sort()
  return Promise.all(
    areas.map(async (name) => {
      const files = await readSqlFiles(resolveUrl(`./functions/${name}/`))
      const text = files.join('\n')
      return { name, text, files, digest: createHash('sha256').update(text).digest('hex') }
    }),
  )
}

// `settings.sql` configures the other functions of its area, so it comes last.
async function readSqlFiles(folder: URL): Promise<string[]> {
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
