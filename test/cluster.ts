import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chmodSync, chownSync, closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import pg from 'pg'
import { type Binaries, findBinaries } from '../sql/server/embedded/binaries.ts'
import { prepareCluster } from '../sql/server/embedded/cluster.ts'
import { type ClusterLocation, findLocation, prepareSockets } from '../sql/server/embedded/location.ts'
import { until } from './until.ts'

const DATABASE_NAME = 'millrace'
const STANDBY_NAME = 'standby'

/** A PostgreSQL server from the binaries that `npm start` uses. A killed server stays down until the next `start`. */
export class PostgresServer {
  readonly url: string
  readonly data: string
  readonly #place: ClusterLocation
  readonly #binaries: Binaries
  readonly #sockets: string
  readonly #port: number
  #settings: Readonly<Record<string, string>> = {}
  #child: ChildProcess | null = null

  constructor(place: ClusterLocation, binaries: Binaries, password: string, port: number) {
    this.#place = place
    this.#binaries = binaries
    this.#sockets = prepareSockets(place.home, place.account)
    this.#port = port
    this.data = place.data
    this.url = `postgresql://postgres:${password}@${encodeURIComponent(this.#sockets)}:${port}/${DATABASE_NAME}`
  }

  /** Parameters with which another server connects to this one. */
  get conninfo(): string {
    const { password } = new URL(this.url)
    return `host=${this.#sockets} port=${this.#port} user=postgres password=${password}`
  }

  /**
   * Starts the server and resolves once it accepts connections. Without `settings` it reuses those of the last start.
   */
  async start(settings = this.#settings): Promise<void> {
    this.#settings = settings
    const answers = (): Promise<unknown> => {
      // Restart until it stays up: backends of a killed server may hold its shared memory briefly, and a new server
      // then exits.
      if (!this.#isRunning) this.#spawn()
      return this.query('select 1', [], 'postgres').catch(() => null)
    }
    await until('the server answers', answers, 60_000)
  }

  /** Runs a statement on a new connection and returns its rows. */
  async query(
    text: string,
    values: readonly unknown[] = [],
    database = DATABASE_NAME,
  ): Promise<Record<string, unknown>[]> {
    const client = new pg.Client({ connectionString: this.url.replace(/[^/]+$/, database) })
    // If the server is killed during a statement, the client emits an error in addition to the rejection.
    client.on('error', () => {})
    await client.connect()
    try {
      return (await client.query(text, [...values])).rows
    } finally {
      await client.end()
    }
  }

  async kill(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child
    if (child === null || !this.#isRunning) return
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.kill(signal)
    await ended
  }

  /** Kills the server and deletes its data. */
  async destroy(): Promise<void> {
    await this.kill('SIGQUIT')
    rmSync(this.data, { recursive: true, force: true })
  }

  get #isRunning(): boolean {
    return this.#child !== null && this.#child.exitCode === null && this.#child.signalCode === null
  }

  #spawn(): void {
    const all = {
      // fsync is unnecessary: a killed process loses nothing that the kernel already has.
      fsync: 'off',
      full_page_writes: 'off',
      max_connections: '200',
      // Keep shared memory segments in the data folder, which is removed. Elsewhere a killed server would leave them
      // behind.
      dynamic_shared_memory_type: 'mmap',
      listen_addresses: '',
      port: String(this.#port),
      unix_socket_directories: this.#sockets,
      ...this.#settings,
    }
    const log = openSync(path.join(this.#place.home, 'server.log'), 'a')
    const options = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])
    this.#child = spawn(this.#binaries.postgres, ['-D', this.data, ...options], {
      cwd: '/',
      env: this.#binaries.env,
      stdio: ['ignore', log, log],
      ...this.#place.account,
    })
    closeSync(log)
  }
}

/** A primary and a synchronous standby that can be promoted. A promotion swaps the roles of the two servers. */
export class Cluster {
  readonly #root: string
  readonly #servers: readonly [PostgresServer, PostgresServer]
  readonly #places: readonly [ClusterLocation, ClusterLocation]
  #primary: 0 | 1 = 0

  private constructor(
    root: string,
    servers: readonly [PostgresServer, PostgresServer],
    places: readonly [ClusterLocation, ClusterLocation],
  ) {
    this.#root = root
    this.#servers = servers
    this.#places = places
  }

  /** Starts a primary with an empty database `millrace` in a new subfolder of `folder`. */
  static async start(folder = '/dev/shm'): Promise<Cluster> {
    const root = mkdtempSync(path.join(folder, 'millrace-cluster-'))
    // PostgreSQL runs as another user when the tests run as root, and must traverse this folder.
    chmodSync(root, 0o711)
    const places = ['first', 'second'].map((name) => findLocation(path.join(root, name), true, () => {}))
    const [own, other] = places as [ClusterLocation, ClusterLocation]
    const binaries = findBinaries(own)
    const passwordFile = path.join(root, 'password')
    const password = await prepareCluster({ ...own, binaries, passwordFile, ephemeral: true, log: () => {} })
    const servers = [
      new PostgresServer(own, binaries, password, 5501),
      new PostgresServer(other, binaries, password, 5502),
    ] as const
    const cluster = new Cluster(root, servers, [own, other])
    await cluster.primary.start({ synchronous_commit: 'on' })
    await cluster.primary.query(`create database ${DATABASE_NAME}`, [], 'postgres')
    return cluster
  }

  get primary(): PostgresServer {
    return this.#servers[this.#primary]
  }

  /** The server that is not the primary. It is a standby once attached. */
  get standby(): PostgresServer {
    return this.#servers[this.#primary === 0 ? 1 : 0]
  }

  /** Both connection strings, in an order that is independent of the roles. */
  get urls(): readonly [string, string] {
    return [this.#servers[0].url, this.#servers[1].url]
  }

  /** Rebuilds the other server as a standby. If `isSynchronous`, every commit waits for the standby from then on. */
  async attachStandby(isSynchronous = true): Promise<void> {
    const { primary, standby } = this
    await standby.destroy()
    await copyData(primary, standby, this.#places[this.#primary === 0 ? 1 : 0])
    await standby.start({ primary_conninfo: `${primary.conninfo} application_name=${STANDBY_NAME}` })
    if (isSynchronous) await setSetting(primary, 'synchronous_standby_names', `'${STANDBY_NAME}'`)
    await until('the standby streams from the primary', async () => {
      const state = isSynchronous ? 'sync' : 'async'
      const rows = await primary.query(
        `select from pg_stat_replication where state = 'streaming' and sync_state = '${state}'`,
      )
      return rows.length > 0
    })
  }

  /** Restarts the standby disconnected from its primary. */
  async disconnectStandby(): Promise<void> {
    await this.standby.kill('SIGINT')
    await this.standby.start({})
  }

  /** Promotes the standby and resolves once it accepts writes. The old primary must be dead or unreachable. */
  async promote(): Promise<void> {
    await this.standby.query('select pg_promote()')
    // The new primary has no standby yet, and every commit would wait for one.
    await setSetting(this.standby, 'synchronous_standby_names', `''`)
    this.#primary = this.#primary === 0 ? 1 : 0
  }

  async stop(): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.destroy()))
    for (const folder of [this.#root, ...this.#places.map(({ home }) => home)])
      rmSync(folder, { recursive: true, force: true })
  }
}

async function setSetting(server: PostgresServer, name: string, value: string): Promise<void> {
  await server.query(`alter system set ${name} = ${value}`)
  await server.query('select pg_reload_conf()')
}

/**
 * Copies a server's data as a base backup
 * (https://www.postgresql.org/docs/current/continuous-archiving.html#BACKUP-LOWLEVEL-BASE-BACKUP).
 */
async function copyData(
  from: PostgresServer,
  to: PostgresServer,
  { account }: ClusterLocation,
): Promise<void> {
  const client = new pg.Client({ connectionString: from.url })
  await client.connect()
  await client.query(`select pg_backup_start('standby', true)`)
  execFileSync('cp', ['-a', from.data, to.data])
  const { rows } = await client.query<{ labelfile: string }>('select labelfile from pg_backup_stop(false)')
  await client.end()
  rmSync(path.join(to.data, 'postmaster.pid'), { force: true })
  const files = { backup_label: rows[0]!.labelfile, 'standby.signal': '' }
  for (const [name, text] of Object.entries(files)) {
    const file = path.join(to.data, name)
    writeFileSync(file, text)
    if (account) chownSync(file, account.uid, account.gid)
  }
}

/** Returns one connection string for several servers. It connects to the server that accepts writes. */
export function createMultiHostUrl(urls: readonly string[]): string {
  const [first] = urls.map((url) => new URL(url))
  const hosts = urls.map((url) => new URL(url).host)
  const query = 'target_session_attrs=read-write'
  return `postgresql://${first!.username}:${first!.password}@${hosts.join(',')}${first!.pathname}?${query}`
}
