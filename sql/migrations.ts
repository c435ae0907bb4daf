import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'

/**
 * The SQL of the schema. `schema/` is the baseline, one file per area, in the order of their numbers; `seeds/` has the
 * initial rows of its tables. `functions/AREA/` has one file per function, with its triggers; all of an area are
 * applied whenever one changes. Changes to tables after 1.0.0 will be in `migrations/`, named `NNNNNN-name.sql`.
 */

/** The name under which a database records that it was made from `schema/`. */
export const BASELINE = '000000-baseline'

/** The name of the initial rows of a new database. */
export const SEEDS = '000000-seeds'

/** The migration that made databases before there was a baseline; those can't be migrated. */
export const BEFORE_BASELINE = '000001-accounts.sql'

/** All functions of an area. */
export interface FunctionArea {
  readonly name: string
  readonly text: string
  /** The same by files, in order. */
  readonly files: readonly string[]
  /** The digest of `text`, in hexadecimal: differs when a function has changed. */
  readonly digest: string
}

const at = (path: string): URL => new URL(path, import.meta.url)

/** Where the migrations after the baseline are. */
export const MIGRATIONS = at('./migrations/')

/** The names of the baseline, of the initial rows and of all migrations, in the order of their numbers. */
export async function migrationNames(folder: URL = MIGRATIONS): Promise<string[]> {
  const later = (await filesOf(folder)).filter((name) => /^\d{6}-[a-z0-9-]+\.sql$/.test(name))
  return [BASELINE, SEEDS, ...later]
}

/** The SQL of one of them. */
export async function migrationText(name: string, folder: URL = MIGRATIONS): Promise<string> {
  if (name === BASELINE) return (await textsOf(at('./schema/'))).join('\n')
  if (name === SEEDS) return (await textsOf(at('./seeds/'))).join('\n')
  return readFile(new URL(name, folder), 'utf8')
}

/** What a database says of its functions. */
export interface AppliedFunctions {
  readonly area: string
  readonly digest: string
}

export const APPLIED_FUNCTIONS = 'select area, digest from migration_functions'

/** The areas whose functions are not those that a database has. */
export async function changedAreas(applied: readonly AppliedFunctions[]): Promise<readonly FunctionArea[]> {
  const known = new Map(applied.map(({ area, digest }) => [area, digest]))
  return (await functionAreas()).filter(({ name, digest }) => known.get(name) !== digest)
}

/** The functions of all areas. Bodies may refer to what comes later, so they must be applied without being checked. */
export async function functionAreas(): Promise<readonly FunctionArea[]> {
  const areas = (await readdir(at('./functions/'))).sort()
  return Promise.all(
    areas.map(async (name) => {
      const files = await textsOf(at(`./functions/${name}/`))
      const text = files.join('\n')
      return { name, text, files, digest: createHash('sha256').update(text).digest('hex') }
    }),
  )
}

// `settings.sql` configures the functions of its area, so it comes after them.
async function textsOf(folder: URL): Promise<string[]> {
  const names = await filesOf(folder)
  const last = (name: string): number => Number(name === 'settings.sql')
  names.sort((a, b) => last(a) - last(b))
  return Promise.all(names.map((name) => readFile(new URL(name, folder), 'utf8')))
}

async function filesOf(folder: URL): Promise<string[]> {
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  return names.filter((name) => name.endsWith('.sql')).sort()
}
