import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createPasswords } from '../../edge/passwords/passwords.ts'
import { connect } from '../../sql/connections/driver.ts'
import { type EmbeddedDatabase, startEmbedded } from '../../sql/server/embedded/embedded.ts'
import { migrate } from '../../sql/server/migrate.ts'
import { WORKER_MALLOC_VARIABLES } from '../../tasks/platform/process.ts'
import { type Child, startChild } from './children.ts'

/** A separate PostgreSQL with full durability, and service processes that use it. */
export interface Stack {
  readonly postgres: string
  /** PostgreSQL's first process, the parent of all backends. */
  readonly postmaster: number
  /** Creates a migrated database, a copy of the same template each time. */
  createDatabase(): Promise<string>
  /** Creates an empty database. */
  createEmptyDatabase(): Promise<string>
  edge(url: string, env?: Readonly<Record<string, string>>): Promise<Child & { readonly port: number }>
  worker(url: string, env?: Readonly<Record<string, string>>): Promise<Child>
  stop(): Promise<void>
  /** Stops the processes, and drops the databases. */
  clear(): Promise<void>
}

/** The secret key of all servers in a benchmark, including the references. */
export const SECRET = 'a secret for benchmarks, long enough to be one'

const TEMPLATE = 'millrace_template'
const EDGE_SCRIPT = new URL('../../edge/main.ts', import.meta.url)
const WORKER_SCRIPT = new URL('../../workers/main.ts', import.meta.url)
// The Procfile has the same flags.
const NODE_FLAGS = ['--experimental-async-context-frame']
const ENVIRONMENT = {
  NODE_ENV: 'production',
  LOG_LEVEL: 'warn',
  SECRET_KEY: SECRET,
  PORT: '0',
  ACCESS_TOKEN_MINUTES: '1440',
  UWS_HTTP_MAX_HEADERS_SIZE: '65536',
  // In the benchmarks, one address reads thousands of streams.
  MAX_STREAMS_PER_ADDRESS: '0',
  MAX_STREAMS_PER_ACCOUNT: '0',
}

/** Starts PostgreSQL in a temporary folder, which `stop` removes. `settings` are added to the shipped ones. */
export async function startStack(settings: Readonly<Record<string, string>> = {}): Promise<Stack> {
  const dataDir = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
  chmodSync(dataDir, 0o755) // When root runs it, PostgreSQL runs as another user, who must traverse this folder.
  const server = await startEmbedded({ dataDir, settings })
  const children: Child[] = []
  const stopChildren = () => Promise.all(children.splice(0).map((child) => child.stop()))
  const stop = async (): Promise<void> => {
    await stopChildren()
    await server.stop()
    rmSync(dataDir, { recursive: true, force: true })
  }
  const start = async (script: URL, url: string, env: Readonly<Record<string, string>>): Promise<Child> => {
    const child = await startChild(script, { ...ENVIRONMENT, DATABASE_URL: url, ...env }, NODE_FLAGS)
    children.push(child)
    return child
  }
  try {
    const identity = await prepare(server)
    let databases = 0
    const clear = async (): Promise<void> => {
      await stopChildren()
      for (; databases > 0; databases--)
        await queryRows(server.urlFor('postgres'), `drop database if exists bench_${databases} with (force)`)
    }
    const create = async (template: string): Promise<string> => {
      const name = `bench_${++databases}`
      await queryRows(server.urlFor('postgres'), `create database ${name} template ${template}`)
      return server.urlFor(name)
    }
    return {
      ...identity,
      createDatabase: () => create(TEMPLATE),
      createEmptyDatabase: () => create('template1'),
      edge: async (url, env = {}) => {
        const child = await start(EDGE_SCRIPT, url, env)
        return { ...child, port: child.ready.port! }
      },
      worker: (url, env = {}) => start(WORKER_SCRIPT, url, { ...WORKER_MALLOC_VARIABLES, ...env }),
      stop,
      clear,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

async function prepare(server: EmbeddedDatabase): Promise<{ postgres: string; postmaster: number }> {
  const admin = server.urlFor('postgres')
  const settings = await queryRows(
    admin,
    `select name, setting from pg_settings where name in ('fsync', 'synchronous_commit', 'full_page_writes')`,
  )
  if (settings.some(({ setting }) => setting !== 'on'))
    throw new Error('PostgreSQL runs without full durability: the figures would be meaningless')
  await queryRows(admin, `create database ${TEMPLATE}`)
  await migrate(server.urlFor(TEMPLATE))
  const [row] = await queryRows(
    admin,
    `select current_setting('server_version') as version, pg_read_file('postmaster.pid', 0, 20) as pid`,
  )
  return { postgres: String(row!.version), postmaster: Number.parseInt(String(row!.pid), 10) }
}

/** Runs one statement on a new connection and returns its rows. */
export async function queryRows(
  url: string,
  text: string,
  values: readonly unknown[] = [],
): Promise<Record<string, unknown>[]> {
  const client = await connect({ url, applicationName: 'bench' })
  try {
    return (await client.query(text, [...values])).rows
  } finally {
    await client.end()
  }
}

/** The password of every account in a benchmark. */
export const PASSWORD = 'correct horse battery'

/** Hashes `PASSWORD` as an edge does. */
export async function hashPassword(): Promise<string> {
  const passwords = createPasswords()
  try {
    return await passwords.hash(PASSWORD)
  } finally {
    await passwords.close()
  }
}

/** A signed-in account and its token. */
export interface SignedIn {
  readonly id: number
  readonly token: string
}

/** Registers an account and signs in. */
export async function signUp(port: number, email = 'bench@example.com'): Promise<SignedIn> {
  const base = `http://127.0.0.1:${port}/api/v1/auth`
  const registered = await fetch(`${base}/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email, password: PASSWORD }),
  })
  if (registered.status !== 200) throw new Error(`register: ${registered.status} ${await registered.text()}`)
  const { id } = (await registered.json()) as { id: number }
  return { id, token: await signIn(port, email) }
}

/** Signs in with `PASSWORD`, and returns the access token. */
export async function signIn(port: number, username: string): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${port}/api/v1/auth/token`, {
    method: 'POST',
    body: new URLSearchParams({ username, password: PASSWORD }),
  })
  if (answer.status !== 200) throw new Error(`token: ${answer.status} ${await answer.text()}`)
  return ((await answer.json()) as { access_token: string }).access_token
}

/** Inserts small text documents directly, and returns the first and last id. */
export async function storeDocuments(
  url: string,
  owner: number,
  count: number,
): Promise<readonly [number, number]> {
  const rows = await queryRows(
    url,
    `with given as (select convert_to('Document number ' || n || E'\\n', 'UTF8') as bytes from generate_series(1, $2::int) n),
      blobs as (insert into blob (sha256, byte_size) select sha256(bytes), length(bytes) from given returning id, sha256),
      chunks as (insert into blob_chunk (blob_id, ordinal, bytes) select b.id, 0, g.bytes from blobs b join given g on sha256(g.bytes) = b.sha256),
      documents as (insert into document (owner_id, title, media_type, byte_size, sha256)
        select $1::int, 'Benchmark', 'text/plain', length(bytes), sha256(bytes) from given returning id)
    select min(id) as first, max(id) as last from documents`,
    [owner, count],
  )
  await queryRows(url, 'vacuum analyze')
  return [Number(rows[0]!.first), Number(rows[0]!.last)]
}
