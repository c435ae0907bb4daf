import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { EmbeddedDatabase } from '../../sql/server/embedded/embedded.ts'
import { migrate } from '../../sql/server/migrate.ts'
import { StartError } from '../../sql/server/start-error.ts'
import { formatSetupNotice } from '../../tasks/accounts/tokens.ts'
import { MacKeys } from '../../tasks/platform/keys.ts'
import { createLog, type Log } from '../../tasks/platform/log.ts'
import { findPortProblem } from '../../tasks/platform/port.ts'
import {
  ALL_IN_ONE_VARIABLE,
  type DatabaseUrls,
  loadSecretKey,
  loadSecretKeys,
  loadSettingsOrExit,
  resolveDatabaseUrls,
  startOrExit,
  stopOnSignals,
  WORKER_MALLOC_VARIABLES,
} from '../../tasks/platform/process.ts'
import type { Settings } from '../../tasks/platform/settings/settings.ts'
import { START_REFUSED_STATUS } from '../../tasks/platform/supervised.ts'
import { createSupervisor, type Supervisor } from './supervise.ts'

// Total time to stop, in ms. Children have 8 s of it, and the database stops last.
const STOP_TIMEOUT_MS = 10_000
const CHILD_STOP_TIMEOUT_MS = 8_000
// Time for all children to become ready, in ms. Without a limit, a child that keeps dying would be restarted forever.
const READY_TIMEOUT_MS = 45_000

const USAGE = `Usage: npm start

Runs edges, workers and, unless DATABASE_URL is set, an embedded PostgreSQL on this machine until Ctrl-C.
Settings come from the environment and .env; .env.example lists them all with their defaults:

  HOST=127.0.0.1 PORT=8000   address of the edges
  WEB_CONCURRENCY=1          number of edges
  WORKER_PROCESSES=1         number of workers, with WORKER_THREADS=8 threads each
  DATA_DIR=.data             embedded database, unsent mails, generated key
  DATABASE_URL=              an external PostgreSQL

npm run dev      also restarts processes whose code changes (npm start -- --watch)
npm run doctor   checks the settings and the services that they name
npm run demo     uploads a document and shows its extraction
`

/** Runs the whole service on one machine: database, migrations, then edges and workers as supervised children. */
export async function startAll(args: readonly string[]): Promise<void> {
  const watches = args.length === 1 && args[0] === '--watch'
  if (args.length > 0 && !watches) {
    const isHelp = args[0] === '--help' || args[0] === '-h'
    process[isHelp ? 'stdout' : 'stderr'].write(USAGE)
    process.exit(isHelp ? 0 : START_REFUSED_STATUS)
  }
  const settings = loadSettingsOrExit()
  const log = await createLog(settings.logLevel, 'start')
  await startOrExit(settings, log, () => startService(settings, log, watches))
}

async function startService(settings: Settings, log: Log, watches: boolean): Promise<void> {
  const supervisor = createSupervisor({
    log: (level, data, message) => log[level](data, message),
    awaitsFixes: watches,
  })
  let database: EmbeddedDatabase | null = null
  let isStopping = false
  let stopWatching = (): void => {}
  stopOnSignals(log, STOP_TIMEOUT_MS, async () => {
    isStopping = true
    stopWatching()
    await supervisor.stop()
    await database?.stop()
  })
  try {
    await checkPort(settings)
    if (settings.databaseUrl === undefined) database = await startDatabase(settings, log)
    const urls =
      database === null
        ? await resolveDatabaseUrls(settings, log)
        : { databaseUrl: database.appUrl, directUrl: database.appUrl }
    const migrateDatabase = async (): Promise<void> => {
      const applied = await migrate(database?.url ?? urls.directUrl, {
        log: (line) => log.warn(line),
        appRole: database?.appRole ?? settings.databaseAppRole,
      })
      if (applied.length > 0) log.info({ applied }, 'Migrated the database')
    }
    await migrateDatabase()
    const { port, lacksAdmin } = await startChildren(supervisor, settings, urls)
    printAddress(settings, port, lacksAdmin)
    if (watches) {
      const { watchCode } = await import('./watch.ts')
      const root = fileURLToPath(new URL('../../', import.meta.url))
      stopWatching = watchCode({ root, ...nameChildren(settings), supervisor, migrate: migrateDatabase, log })
      process.stdout.write('Changed code restarts its process. Settings are read only now.\n')
    }
  } catch (error) {
    if (isStopping) return
    await supervisor.stop()
    await database?.stop()
    throw error
  }
}

/**
 * Checks that the port is free if several edges share it. They would otherwise share it with the edges of another
 * service, too.
 *
 * @throws StartError
 */
async function checkPort({ webConcurrency, sharePort, host, port }: Settings): Promise<void> {
  if (webConcurrency === 1 || sharePort) return
  const problem = await findPortProblem(host, port)
  if (problem !== null) throw new StartError(problem)
}

async function startDatabase(settings: Settings, log: Log): Promise<EmbeddedDatabase> {
  const { startEmbedded } = await import('../../sql/server/embedded/embedded.ts')
  return startEmbedded({ dataDir: resolve(settings.dataDir), log: (line) => log.info(line) })
}

/** The message that an edge sends once it is ready. */
interface EdgeReadyMessage {
  readonly port: number
  /** True if no admin account exists yet. */
  readonly lacksAdmin: boolean
}

/** Returns the names of the child processes. */
const nameChildren = ({ webConcurrency, workerProcesses }: Settings) => ({
  edges: Array.from({ length: webConcurrency }, (_, n) => `edge-${n + 1}`),
  workers: Array.from({ length: workerProcesses }, (_, n) => `worker-${n + 1}`),
})

async function startChildren(
  supervisor: Supervisor,
  settings: Settings,
  { databaseUrl, directUrl }: DatabaseUrls,
): Promise<EdgeReadyMessage> {
  const env = {
    DATABASE_URL: databaseUrl,
    DATABASE_URL_UNPOOLED: directUrl,
    SECRET_KEY: loadSecretKey(settings),
    [ALL_IN_ONE_VARIABLE]: '1',
    SHARE_PORT: String(settings.sharePort || settings.webConcurrency > 1),
    // Session cookies plus a long token exceed uWebSockets.js's default of 4096 bytes.
    UWS_HTTP_MAX_HEADERS_SIZE: '65536',
    NODE_COMPILE_CACHE: join(resolve(settings.dataDir), 'compile-cache'),
  }
  const scriptPath = (path: string): string => fileURLToPath(new URL(path, import.meta.url))
  const { edges, workers } = nameChildren(settings)
  for (const name of workers)
    supervisor.start({
      name,
      script: scriptPath('../main.ts'),
      env: { ...WORKER_MALLOC_VARIABLES, ...env },
      stopTimeoutMs: CHILD_STOP_TIMEOUT_MS,
    })
  for (const name of edges)
    supervisor.start({
      name,
      script: scriptPath('../../edge/main.ts'),
      env,
      stopTimeoutMs: CHILD_STOP_TIMEOUT_MS,
    })
  const signal = AbortSignal.timeout(READY_TIMEOUT_MS)
  const timeout = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () =>
      reject(new Error(`A child process was not ready within ${READY_TIMEOUT_MS / 1000} s`)),
    )
  })
  const [first] = await Promise.race([
    Promise.all([...edges, ...workers].map((name) => supervisor.ready(name))),
    timeout,
  ])
  return first as EdgeReadyMessage
}

function printAddress(settings: Settings, port: number, lacksAdmin: boolean): void {
  const url = settings.port === port ? settings.publicBaseUrl : `http://${settings.host}:${port}`
  const open = settings.authLevel === 'none' ? 'everything' : [...settings.openAreas].join(', ') || 'nothing'
  process.stdout.write(
    `Millrace listens on ${url} | monitor: ${url}/monitor | reference: ${url}/docs | open without a credential: ${open}\n`,
  )
  if (lacksAdmin)
    process.stdout.write(`${formatSetupNotice(url, { tokens: new MacKeys(loadSecretKeys(settings)) })}\n`)
}
