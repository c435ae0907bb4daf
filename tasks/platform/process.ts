import { randomBytes } from 'node:crypto'
import { existsSync, linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findPoolerProblem } from '../../sql/connections/pooler.ts'
import { openDataDir } from '../../sql/server/data-dir.ts'
import { StartError } from '../../sql/server/start-error.ts'
import type { Log } from './log.ts'
import { waitForDatabase } from './outage.ts'
import { hideEnvironment } from './settings/environment.ts'
import { MIN_SECRET_LENGTH, type SecretSettings } from './settings/secrets.ts'
import { parseSettings, type Settings, SettingsError } from './settings/settings.ts'
import { findSettingWarnings, loadEnvFile } from './settings/warnings.ts'
import { START_REFUSED_STATUS } from './supervised.ts'

/** Startup and shutdown of every process: settings, signing key, signals. */

/**
 * glibc malloc settings for worker processes. Many threads start and end there, and each would leave unused memory in a
 * separate arena.
 */
export const WORKER_MALLOC_VARIABLES = { MALLOC_ARENA_MAX: '2', MALLOC_MMAP_THRESHOLD_: '1048576' } as const

/**
 * Reads settings from `.env` and the environment, then hides the environment. Invalid settings end the process with a
 * line per problem.
 */
export function loadSettingsOrExit(): Settings {
  loadEnvFile()
  hideEnvironment()
  try {
    return parseSettings(process.env)
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error
    process.stderr.write(`${error.message}\n`)
    process.exit(START_REFUSED_STATUS)
  }
}

/**
 * Starts a process and first logs setting warnings, unless `npm start` has already logged them for all processes. If
 * the start fails, logs the reason and exits: with {@link START_REFUSED_STATUS} for a StartError, otherwise with 1.
 */
export async function startOrExit(settings: Settings, log: Log, start: () => Promise<void>): Promise<void> {
  if (process.env[ALL_IN_ONE_VARIABLE] === undefined)
    for (const warning of findSettingWarnings(settings)) log.warn(warning)
  try {
    await start()
  } catch (error) {
    if (error instanceof StartError) log.fatal(error.message)
    else log.fatal({ err: error }, 'Startup failed')
    process.exit(error instanceof StartError ? START_REFUSED_STATUS : 1)
  }
}

/** Connection strings of the database. */
export interface DatabaseUrls {
  readonly databaseUrl: string
  /** Bypasses the pooler if `databaseUrl` goes through one. */
  readonly directUrl: string
}

/**
 * Waits until the database accepts connections and returns its connection strings.
 *
 * @throws StartError if no URL is set, the pooler is unsuitable, or the server refuses the connection.
 */
export async function resolveDatabaseUrls(settings: Settings, log: Log): Promise<DatabaseUrls> {
  const { databaseUrl, databaseUrlUnpooled: directUrl, projectName } = settings
  if (databaseUrl === undefined || directUrl === undefined) {
    throw new StartError('DATABASE_URL is not set: `npm start` runs everything with an embedded database')
  }
  const connection = { url: databaseUrl, directUrl, applicationName: `${projectName}-start` }
  const problem = await waitForDatabase(log, () => findPoolerProblem(connection)).catch(
    (error: Error) => `DATABASE_URL can't be used: ${error.message}`,
  )
  if (problem !== null) throw new StartError(problem)
  return { databaseUrl, directUrl }
}

/** The settings from which the keys are loaded. */
export type KeySettings = SecretSettings & Pick<Settings, 'dataDir'>

/**
 * Returns the keys of SECRET_KEY and SECRET_KEYS_PREVIOUS, the current one first.
 *
 * @throws StartError if the stored key is invalid.
 */
export const loadSecretKeys = (settings: KeySettings): readonly string[] => [
  loadSecretKey(settings),
  ...settings.secretKeysPrevious,
]

/**
 * Returns the signing key: the setting, or in development a key that is generated once and stored in `DATA_DIR`.
 *
 * @throws StartError if the stored key is invalid.
 */
export function loadSecretKey(settings: Omit<KeySettings, 'secretKeysPrevious'>): string {
  if (settings.secretKey !== undefined) return settings.secretKey
  const file = secretFileOf(settings)
  if (!existsSync(file)) {
    openDataDir(settings.dataDir)
    generateSecretKey(file)
  }
  const key = readFileSync(file, 'utf8').trim()
  if (key.length < MIN_SECRET_LENGTH)
    throw new StartError(
      `${file} holds no key: delete it to generate a new one; see "Lost key" in deploy/operating.md`,
    )
  return key
}

const secretFileOf = ({ dataDir }: Pick<Settings, 'dataDir'>): string => join(dataDir, 'secret.key')

/** True if there is a key. Otherwise `loadSecretKey` generates it. */
export const hasSecretKey = (settings: Omit<KeySettings, 'secretKeysPrevious'>): boolean =>
  settings.secretKey !== undefined || existsSync(secretFileOf(settings))

/**
 * Generates a signing key and creates its file with a link, so that other processes never see a partial key. If two
 * processes start for the first time concurrently, one uses the other's key.
 */
function generateSecretKey(file: string): void {
  const temporary = `${file}.${process.pid}`
  try {
    writeFileSync(temporary, randomBytes(48).toString('base64url'), { mode: 0o600, flush: true })
    linkSync(temporary, file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    rmSync(temporary, { force: true })
  }
}

// A second signal within this time is ignored. Ctrl-C reaches a process from the terminal, and again a moment later
// from a process manager such as foreman.
const REPEATED_SIGNAL_MS = 2_000

/**
 * Shuts down on SIGTERM or SIGINT. Another signal more than 2 s later exits immediately. An uncaught error exits with
 * status 1, because the state of the process is then unknown.
 */
export function stopOnSignals(
  log: Log,
  limitMs: number,
  stop: () => Promise<void>,
): (reason: string) => void {
  let stoppingSince: number | null = null
  const beginShutdown = (reason: string): void => {
    if (stoppingSince !== null) {
      if (performance.now() - stoppingSince < REPEATED_SIGNAL_MS) return
      log.warn({ reason }, 'Stopping immediately')
      process.exit(1)
    }
    stoppingSince = performance.now()
    log.info({ reason }, 'Stopping')
    setTimeout(() => {
      log.error('Shutdown took too long')
      process.exit(1)
    }, limitMs).unref()
    stop().then(
      () => process.exit(0),
      (error) => {
        log.error({ err: error }, 'Shutdown failed')
        process.exit(1)
      },
    )
  }
  process.on('SIGTERM', () => beginShutdown('SIGTERM'))
  process.on('SIGINT', () => beginShutdown('SIGINT'))
  const exitOnError = (error: unknown): void => {
    log.fatal({ err: error }, 'Uncaught error')
    process.exit(1)
  }
  process.on('uncaughtException', exitOnError)
  process.on('unhandledRejection', exitOnError)
  return beginShutdown
}

/** Environment variable that `npm start` sets for its processes, which all stop when the edge stops. */
export const ALL_IN_ONE_VARIABLE = 'MILLRACE_ALL_IN_ONE'
