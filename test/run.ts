import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { globSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { startEmbedded } from '../sql/embedded.ts'
import { migrate } from '../sql/migrate.ts'

/**
 * `npm test [-- FILE…]`: a PostgreSQL of its own with one migrated template, then node:test over the files. Each
 * test file clones the template, so files share nothing and run in parallel.
 */

const TEMPLATE = 'millrace_template'
const files = process.argv.slice(2).filter((argument) => !argument.startsWith('-'))
const flags = process.argv.slice(2).filter((argument) => argument.startsWith('-'))

const dataDir = mkdtempSync(join(tmpdir(), `millrace-test-${randomBytes(3).toString('hex')}-`))
const database = await startEmbedded({
  dataDir,
  ephemeral: true,
  settings: { max_connections: '400', ...(process.env.TEST_LOG ? { log_statement: 'all' } : {}) },
})
let code = 1
try {
  const admin = new pg.Client({ connectionString: database.urlFor('postgres') })
  await admin.connect()
  await admin.query(`create database ${TEMPLATE}`)
  await admin.end()
  await migrate(database.urlFor(TEMPLATE))
  code = await run()
} finally {
  await database.stop()
  rmSync(dataDir, { recursive: true, force: true })
}
process.exit(code)

function run(): Promise<number> {
  const chosen = files.length > 0 ? files : globSync('test/{sql,tasks,edge,workers,flow}/**/*.test.ts').sort()
  const child = spawn(
    process.execPath,
    [
      '--disable-warning=ExperimentalWarning',
      '--import',
      'tsx',
      '--test',
      '--test-timeout=120000',
      // Files wait more than they compute; by default two cores would run one at a time.
      '--test-concurrency=2',
      // Says at its end which tests failed, and how: a log of which only the end is kept shows it.
      ...(flags.some((flag) => flag.startsWith('--test-reporter')) ? [] : ['--test-reporter=spec']),
      ...flags,
      ...chosen,
    ],
    {
      stdio: 'inherit',
      env: {
        ...process.env,
        NODE_ENV: 'test',
        TEST_DATABASE_URL: database.urlFor('postgres'),
        TEST_TEMPLATE: TEMPLATE,
      },
    },
  )
  const stop = (signal: NodeJS.Signals): void => void child.kill(signal)
  process.on('SIGINT', stop).on('SIGTERM', stop)
  return new Promise((resolve) => child.on('exit', (status) => resolve(status ?? 1)))
}
