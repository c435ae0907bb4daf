import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chownSync, closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import pg from 'pg'
import { type Binaries, findBinaries } from '../sql/embedded/binaries.ts'
import { prepareCluster } from '../sql/embedded/cluster.ts'
import { findPlace, type Place, prepareSockets } from '../sql/embedded/place.ts'
import { until } from './until.ts'

/** A primary with a synchronous standby, of the binaries that `npm start` uses: they have no pg_basebackup, so the data is copied. */
export interface Pair {
  readonly primary: Server
  readonly standby: Server
  /** Makes the standby the primary; resolves when it takes writes. */
  promote(): Promise<void>
  stop(): Promise<void>
}

const DATABASE = 'millrace'
const STANDBY = 'standby'

/** One PostgreSQL server that stays dead when it is killed. */
export class Server {
  readonly url: string
  readonly data: string
  readonly #place: Place
  readonly #binaries: Binaries
  readonly #sockets: string
  readonly #port: number
  #child: ChildProcess | null = null

  constructor(place: Place, binaries: Binaries, password: string, port: number) {
    this.#place = place
    this.#binaries = binaries
    this.#sockets = prepareSockets(place.home, place.account)
    this.#port = port
    this.data = place.data
    this.url = `postgresql://postgres:${password}@${encodeURIComponent(this.#sockets)}:${port}/postgres`
  }

  /** Where another server finds this one. */
  get conninfo(): string {
    const { password } = new URL(this.url)
    return `host=${this.#sockets} port=${this.#port} user=postgres password=${password}`
  }

  async start(settings: Readonly<Record<string, string>>): Promise<void> {
    const all = {
      // Killed processes lose nothing that the kernel has.
      fsync: 'off',
      full_page_writes: 'off',
      max_connections: '200',
      listen_addresses: '',
      port: String(this.#port),
      unix_socket_directories: this.#sockets,
      ...settings,
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
    await until('the server answers', () => this.query('select 1').catch(() => null), 60_000)
  }

  async query(text: string, database = 'postgres'): Promise<Record<string, unknown>[]> {
    const client = new pg.Client({ connectionString: this.url.replace(/postgres$/, database) })
    await client.connect()
    try {
      return (await client.query(text)).rows
    } finally {
      await client.end()
    }
  }

  async kill(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child
    if (child === null || child.exitCode !== null || child.signalCode !== null) return
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.kill(signal)
    await ended
  }
}

/** Starts both, with an empty database `millrace`. */
export async function startPair(): Promise<Pair> {
  const root = mkdtempSync('/dev/shm/millrace-pair-')
  const placeOf = (name: string): Place => findPlace(path.join(root, name), true, () => {})
  const [own, other] = [placeOf('primary'), placeOf('standby')]
  const binaries = findBinaries(own)
  const passwordFile = path.join(root, 'password')
  const password = await prepareCluster({ ...own, binaries, passwordFile, ephemeral: true, log: () => {} })
  const primary = new Server(own, binaries, password, 5501)
  const standby = new Server(other, binaries, password, 5502)
  await primary.start({ synchronous_commit: 'on' })
  await primary.query(`create database ${DATABASE}`)
  await copy(primary, standby, other)
  await standby.start({ primary_conninfo: `${primary.conninfo} application_name=${STANDBY}` })
  await primary.query(`alter system set synchronous_standby_names = '${STANDBY}'`)
  await primary.query('select pg_reload_conf()')
  await until('the standby is synchronous', async () => {
    const rows = await primary.query(`select from pg_stat_replication where sync_state = 'sync'`)
    return rows.length > 0
  })
  return {
    primary,
    standby,
    promote: async () => {
      await standby.query('select pg_promote()')
      // It has no standby of its own, and would wait for one with each commit.
      await standby.query('alter system reset synchronous_standby_names')
      await standby.query('select pg_reload_conf()')
    },
    stop: async () => {
      await Promise.all([primary.kill('SIGKILL'), standby.kill('SIGKILL')])
      for (const folder of [root, own.home, other.home]) rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** A base backup (https://www.postgresql.org/docs/current/continuous-archiving.html#BACKUP-LOWLEVEL-BASE-BACKUP). */
async function copy(from: Server, to: Server, { account }: Place): Promise<void> {
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
