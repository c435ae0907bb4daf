import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { type EmbeddedDatabase, startEmbedded } from '../sql/embedded.ts'
import { migrate } from '../sql/migrate.ts'
import { chosenFiles, inTurns } from './files.ts'
import { PostgresProfile, postmasterOf, profileTable } from './profile.ts'

/**
 * `npm test [-- RING|AREA|FILE…]`: a PostgreSQL of its own with one migrated template, then node:test in a few
 * processes, each of which takes one file after the other. Each file clones the template, so that files share no rows. With `--long` the tests of chance
 * alone, for hours; with `--coverage` the lines of `edge/` and `workers/` that no test reaches. With `TEST_POSTGRES_URL`
 * on that server instead, as its superuser and over its socket.
 */

type TestServer = Pick<EmbeddedDatabase, 'urlFor' | 'stop'>

const TEMPLATE = 'millrace_template'
const MEMORY = '/dev/shm'
const NEEDED_BYTES = 4 * 1024 ** 3
// Files wait as much as they compute.
const PROCESSES = Number(process.env.TEST_PROCESSES ?? 2 * availableParallelism())
const COVERAGE = [
  '--experimental-test-coverage',
  ...['edge', 'workers'].map((room) => `--test-coverage-include=${room}/**/*.ts`),
]
const given = process.argv.slice(2)
const isLong = given.includes('--long') || process.env.TEST_LONG === '1'
const isCoverage = given.includes('--coverage')
const flags = given.filter((word) => word.startsWith('-') && !['--long', '--coverage'].includes(word))
const files = chosenFiles(
  given.filter((word) => !word.startsWith('-')),
  isLong,
)
const seed = process.env.TEST_SEED ?? String(Date.now() % 2 ** 31)

const folder = mkdtempSync(join(fastFolder(), `millrace-test-${randomBytes(3).toString('hex')}-`))
// For root's PostgreSQL, which runs as another user, to pass through.
chmodSync(folder, 0o711)
const external = process.env.TEST_POSTGRES_URL
const database = external === undefined ? await startOwn() : serverAt(external)
let code = 1
try {
  await administrate(`create database ${TEMPLATE}`)
  await migrate(database.urlFor(TEMPLATE))
  const profile = process.env.TEST_PROFILE === '1' ? await profilePostgres() : null
  code = await run(writeEntries())
  if (profile !== null) console.log(profileTable(join(folder, 'profile'), profile.end()))
  console.log(`The seed of chance was ${seed}: TEST_SEED=${seed} gives the same again.`)
} finally {
  await database.stop()
  rmSync(folder, { recursive: true, force: true })
}
process.exit(code)

function startOwn(): Promise<TestServer> {
  return startEmbedded({
    dataDir: join(folder, 'data'),
    ephemeral: true,
    settings: {
      max_connections: '400',
      // Autovacuum would change plans amid the tests of plans, and compute what nobody needs who does not run for hours.
      ...(isLong ? {} : { autovacuum_naptime: '1d' }),
      ...(process.env.TEST_LOG ? { log_statement: 'all' } : {}),
    },
  })
}

/** A server that is running, such as one of another version. */
function serverAt(url: string): TestServer {
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

/** Measures the server while the files run. */
async function profilePostgres(): Promise<PostgresProfile> {
  const admin = new pg.Client({ connectionString: database.urlFor('postgres') })
  await admin.connect()
  const { rows } = await admin.query<{ pid: number }>('select pg_backend_pid() as pid')
  const profile = new PostgresProfile(postmasterOf(rows[0]!.pid))
  await admin.end()
  return profile
}

/**
 * A module for each process of node:test. tsx is not loaded by a flag, which threads would inherit: theirs is the code as it
 * is run in production. What it compiles it keeps outside the run's folder, for the next run. Coverage counts places in one
 * form of a file: there all code is that.
 */
function writeEntries(): string[] {
  const tsx = JSON.stringify(import.meta.resolve('tsx/esm/api'))
  const kept = JSON.stringify(tmpdir())
  const runner = JSON.stringify(new URL('runner.ts', import.meta.url))
  for (const name of ['claims', 'processes', 'profile']) mkdirSync(join(folder, name))
  const lines = [
    ...(isCoverage
      ? []
      : [`process.env.TMPDIR = ${kept}`, `const { register } = await import(${tsx})`, 'register()']),
    `process.env.TMPDIR = ${JSON.stringify(folder)}`,
    `const { runFiles } = await import(${runner})`,
    `await runFiles(${JSON.stringify(inTurns(files))}, ${JSON.stringify(folder)})`,
  ]
  return Array.from({ length: Math.min(PROCESSES, files.length) }, (_, n) => {
    const entry = join(folder, 'processes', `${n + 1}.mjs`)
    writeFileSync(entry, `${lines.join('\n')}\n`)
    return entry
  })
}

function run(entries: readonly string[]): Promise<number> {
  const child = spawn(
    process.execPath,
    [
      '--disable-warning=ExperimentalWarning',
      '--max-semi-space-size=64',
      '--test',
      `--test-concurrency=${PROCESSES}`,
      // Says at its end which tests failed, and how: a log of which only the end is kept shows it.
      `--test-reporter=${import.meta.resolve('./reporter.ts')}`,
      ...(isCoverage ? COVERAGE : []),
      ...flags,
      ...entries,
    ],
    {
      stdio: 'inherit',
      env: {
        ...process.env,
        NODE_ENV: 'test',
        TEST_DATABASE_URL: database.urlFor('postgres'),
        TEST_TEMPLATE: TEMPLATE,
        TMPDIR: folder,
        TEST_SEED: seed,
        ...(isLong ? { TEST_LONG: '1' } : {}),
      },
    },
  )
  const stop = (signal: NodeJS.Signals): void => void child.kill(signal)
  process.on('SIGINT', stop).on('SIGTERM', stop)
  return new Promise((resolve) => child.on('exit', (status) => resolve(status ?? 1)))
}

/**
 * Memory where there is much of it: each test file makes and drops a database of 400 files, and ext4 without a journal
 * looks long for an inode that was not just deleted.
 */
function fastFolder(): string {
  try {
    const { bavail, bsize } = statfsSync(MEMORY)
    if (bavail * bsize > NEEDED_BYTES) return MEMORY
  } catch {
    // Linux alone has it.
  }
  return tmpdir()
}
