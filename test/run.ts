import { randomBytes } from 'node:crypto'
import { chmodSync, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { type EmbeddedDatabase, startEmbedded } from '../sql/server/embedded/embedded.ts'
import { migrate } from '../sql/server/migrate.ts'
import { interleaveRings, selectFiles } from './files.ts'
import { runFiles, runWithRerun, type TestRun } from './processes.ts'
import { formatProfile, PostgresProfile, readPostmasterPid } from './profile.ts'
import type { Depth } from './runs.ts'

/**
 * `npm test [-- RING|AREA|FILE…]` starts its own PostgreSQL with one migrated template, then node:test in a few
 * processes. Each file clones the template, so that files share no rows. `--changed` runs the files that a change
 * affects. `--depth fixed` and `--depth long` run randomized tests for longer. `--coverage` lists the lines of `edge/`
 * and `workers/` that no test reaches. If `TEST_POSTGRES_URL` is set, tests use that server, as superuser and over its
 * socket. Other options go to node:test.
 */

type TestServer = Pick<EmbeddedDatabase, 'urlFor' | 'stop'>

const TEMPLATE = 'millrace_template'
const MEMORY_FOLDER = '/dev/shm'
const NEEDED_BYTES = 4 * 1024 ** 3
// Test files spend about half of their time waiting, so each CPU gets two processes.
const PROCESSES = Number(process.env.TEST_PROCESSES ?? 2 * availableParallelism())
const COVERAGE_FLAGS = [
  '--experimental-test-coverage',
  ...['edge', 'workers'].map((room) => `--test-coverage-include=${room}/**/*.ts`),
]
const OPTIONS = {
  depth: { type: 'string', default: 'quick' },
  coverage: { type: 'boolean', default: false },
  changed: { type: 'boolean', default: false },
  base: { type: 'string', default: 'HEAD' },
} as const
const { values: options, tokens } = parseArgs({
  options: OPTIONS,
  strict: false,
  allowPositionals: true,
  tokens: true,
})
const names = tokens.flatMap((token) => (token.kind === 'positional' ? [token.value] : []))
const flags = tokens.flatMap((token) =>
  token.kind === 'option' && !(token.name in OPTIONS)
    ? [token.value === undefined ? token.rawName : `${token.rawName}=${token.value}`]
    : [],
)
const depth = options.depth as Depth
const isLong = depth === 'long'
// With a fixed seed, a check of a change can fail only because of that change.
const seed = process.env.TEST_SEED ?? (depth === 'fixed' ? '1' : String(Date.now() % 2 ** 31))
const files = await findRunFiles()

const folder = mkdtempSync(join(chooseFastFolder(), `millrace-test-${randomBytes(3).toString('hex')}-`))
// If root runs the tests, PostgreSQL runs as another user, who must traverse this folder.
chmodSync(folder, 0o711)
const externalUrl = process.env.TEST_POSTGRES_URL
const database = externalUrl === undefined ? await startOwnServer() : useServer(externalUrl)
let code = 1
try {
  await administrate(`create database ${TEMPLATE}`)
  await migrate(database.urlFor(TEMPLATE))
  const profile = process.env.TEST_PROFILE === '1' ? await startPostgresProfile() : null
  code = await run()
  if (profile !== null) console.log(formatProfile(join(folder, 'profile'), profile.end()))
  console.log(`The random seed was ${seed}: TEST_SEED=${seed} repeats it.`)
} finally {
  await database.stop()
  rmSync(folder, { recursive: true, force: true })
}
process.exit(code)

async function findRunFiles(): Promise<string[]> {
  const chosen = selectFiles(names, depth)
  if (!options.changed) return interleaveRings(chosen)
  const { listChangedFiles, findAffectedTests } = await import('./changed.ts')
  const concerned = findAffectedTests(listChangedFiles(options.base as string))
  const found = chosen.filter((file) => concerned.has(file))
  console.log(`The change affects ${found.length} of ${chosen.length} test files`)
  if (found.length === 0) process.exit(0)
  return interleaveRings(found)
}

/** Runs the files. At depth `quick`, failed files are rerun; at other depths a single failure is a finding. */
function run(): Promise<number> {
  const one: TestRun = {
    files,
    folder,
    processes: PROCESSES,
    env: {
      TEST_DATABASE_URL: database.urlFor('postgres'),
      TEST_TEMPLATE: TEMPLATE,
      TEST_SEED: seed,
      TEST_DEPTH: depth,
      // As in production: up to 1000 ids in a query.
      UWS_HTTP_MAX_HEADERS_SIZE: '65536',
    },
    flags: [...(options.coverage ? COVERAGE_FLAGS : []), ...flags],
    // Coverage needs the same positions in every process, so all code runs as in production.
    isCompiled: !options.coverage,
  }
  return depth === 'quick' ? runWithRerun(one) : runFiles(one).then(({ code }) => code)
}

function startOwnServer(): Promise<TestServer> {
  return startEmbedded({
    dataDir: join(folder, 'data'),
    ephemeral: true,
    settings: {
      max_connections: '400',
      // Autovacuum would change plans during tests. Its CPU cost pays off only in runs that take hours.
      ...(isLong ? {} : { autovacuum_naptime: '1d' }),
      ...(process.env.TEST_LOG ? { log_statement: 'all' } : {}),
    },
  })
}

/** Returns a server that is already running, for example of another version. */
function useServer(url: string): TestServer {
  const urlFor = (name: string): string => {
    const found = new URL(url)
    found.pathname = `/${name}`
    return found.href
  }
  return { urlFor, stop: () => administrate(`drop database if exists ${TEMPLATE} with (force)`) }
}

async function administrate(statement: string): Promise<void> {
  const admin = new pg.Client({ connectionString: database.urlFor('postgres') })
  await admin.connect()
  try {
    await admin.query(statement)
  } finally {
    await admin.end()
  }
}

/** Starts measuring the CPU time of the PostgreSQL server. */
async function startPostgresProfile(): Promise<PostgresProfile> {
  const admin = new pg.Client({ connectionString: database.urlFor('postgres') })
  await admin.connect()
  const { rows } = await admin.query<{ pid: number }>('select pg_backend_pid() as pid')
  const profile = new PostgresProfile(readPostmasterPid(rows[0]!.pid))
  await admin.end()
  return profile
}

/**
 * Returns a folder in memory if there is enough space. Each test file creates and drops a database of 400 files. On
 * ext4 without a journal, finding an inode that was not deleted recently takes long.
 */
function chooseFastFolder(): string {
  try {
    const { bavail, bsize } = statfsSync(MEMORY_FOLDER)
    if (bavail * bsize > NEEDED_BYTES) return MEMORY_FOLDER
  } catch {
    // Only Linux has /dev/shm.
  }
  return tmpdir()
}
