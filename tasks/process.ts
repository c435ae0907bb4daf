import { randomBytes } from 'node:crypto'
import { existsSync, linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openDataDir } from '../sql/data-dir.ts'
import { poolerProblem } from '../sql/pooler.ts'
import { StartError } from '../sql/start-error.ts'
import { hideEnvironment } from './environment.ts'
import type { Log } from './log.ts'
import { untilReached } from './outage.ts'
import { loadEnvFile, settingWarnings } from './setting-warnings.ts'
import { parse, SECRET_LENGTH, type Settings, SettingsError } from './settings.ts'
import { START_REFUSED } from './supervised.ts'

/** What every process does at its entry point: settings, secret, signals. */

/**
 * Settings of glibc's malloc for worker processes: many threads come and go, and each would leave its memory in its own
 * arena.
 */
export const WORKER_MALLOC = { MALLOC_ARENA_MAX: '2', MALLOC_MMAP_THRESHOLD_: '1048576' } as const

/** Settings from the environment, which is hidden from then on, and `.env`; invalid ones end the process with a line per problem. */
export function settingsOrExit(): Settings {
  loadEnvFile()
  hideEnvironment()
  try {
    return parse(process.env)
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error
    process.stderr.write(`${error.message}\n`)
    process.exit(START_REFUSED)
  }
}

/**
 * Logs warnings of settings, once for all processes of `npm start`, and starts a process. If that fails, the log says why, and the
 * process exits: with {@link START_REFUSED} for a StartError, and else with 1.
 */
export async function startOrExit(settings: Settings, log: Log, start: () => Promise<void>): Promise<void> {
  if (process.env[ALL_IN_ONE] === undefined)
    for (const warning of settingWarnings(settings)) log.warn(warning)
  try {
    await start()
  } catch (error) {
    if (error instanceof StartError) log.fatal(error.message)
    else log.fatal({ err: error }, 'Startup failed')
    process.exit(error instanceof StartError ? START_REFUSED : 1)
  }
}

/** Where the database is. */
export interface DatabaseUrls {
  readonly databaseUrl: string
  /** A direct connection, when the other one goes through a pooler. */
  readonly directUrl: string
}

/**
 * The URLs of the database, once it can be reached.
 *
 * @throws StartError when there is none, behind an unsuitable pooler, or when the server refuses us.
 */
export async function databaseOf(settings: Settings, log: Log): Promise<DatabaseUrls> {
  const { databaseUrl, databaseUrlUnpooled: directUrl, projectName } = settings
  if (databaseUrl === undefined || directUrl === undefined) {
    throw new StartError('DATABASE_URL is not set: `npm start` runs everything with an embedded database')
  }
  const ways = { url: databaseUrl, directUrl, applicationName: `${projectName}-start` }
  const problem = await untilReached(log, () => poolerProblem(ways)).catch(
    (error: Error) => `DATABASE_URL can't be used: ${error.message}`,
  )
  if (problem !== null) throw new StartError(problem)
  return { databaseUrl, directUrl }
}

/**
 * The signing key: the setting, or in development one that is made once and kept in `DATA_DIR`.
 *
 * @throws StartError when it can't be kept there, or what is kept is none.
 */
export function secretKeyOf(settings: Settings): string {
  if (settings.secretKey !== undefined) return settings.secretKey
  const file = join(settings.dataDir, 'secret.key')
  if (!existsSync(file)) {
    openDataDir(settings.dataDir)
    makeSecretKey(file)
  }
  const key = readFileSync(file, 'utf8').trim()
  if (key.length < SECRET_LENGTH)
    throw new StartError(
      `${file} holds no key: delete it, and another one is made, under which all sign in again`,
    )
  return key
}

/** Linking makes the file appear with all of its content, and only once: of two first starts, the second reads what the first wrote. */
function makeSecretKey(file: string): void {
  const mine = `${file}.${process.pid}`
  try {
    writeFileSync(mine, randomBytes(48).toString('base64url'), { mode: 0o600, flush: true })
    linkSync(mine, file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    rmSync(mine, { force: true })
  }
}

// Ctrl-C reaches a process from its terminal, and a moment later through its manager, such as foreman.
const REPEATED_MS = 2_000

/**
 * Stops in order on SIGTERM and SIGINT, at once on another one more than 2 s later. An uncaught error ends the process
 * with status 1: its state is unknown, and a restart repairs it.
 */
export function stopOnSignals(
  log: Log,
  limitMs: number,
  stop: () => Promise<void>,
): (reason: string) => void {
  let stoppingSince: number | null = null
  const begin = (reason: string): void => {
    if (stoppingSince !== null) {
      if (performance.now() - stoppingSince < REPEATED_MS) return
      log.warn({ reason }, 'Stopping at once')
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
  process.on('SIGTERM', () => begin('SIGTERM'))
  process.on('SIGINT', () => begin('SIGINT'))
  const die = (error: unknown): void => {
    log.fatal({ err: error }, 'Uncaught error')
    process.exit(1)
  }
  process.on('uncaughtException', die)
  process.on('unhandledRejection', die)
  return begin
}

/** Tells an edge that all other processes stop when it does. */
export const ALL_IN_ONE = 'MILLRACE_ALL_IN_ONE'
