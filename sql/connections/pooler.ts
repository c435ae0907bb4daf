import { type Client, type ConnectOptions, connect } from './driver.ts'

/**
 * - `direct`: no pooler
 * - `session`: a pooler, apparently in session mode
 * - `transaction`: a pooler in transaction mode
 * - `mixed up`: a pooler that confuses the named statements of its clients
 */
export type PoolerMode = 'direct' | 'session' | 'transaction' | 'mixed up'

const PROBE_STATEMENT = 'millrace_probe'
// SQLSTATEs that reveal another client's statements: duplicate_prepared_statement for a name that this client has not
// prepared, invalid_sql_statement_name for one that it has.
const MIXED_UP_CODES = new Set(['42P05', '26000'])

/**
 * Detects the mode with at most two connections. A pooler in transaction mode looks like session mode if it has a
 * separate server connection for each client. Throws the error of `pg` if the server is unreachable.
 */
async function detectMode(options: ConnectOptions): Promise<PoolerMode> {
  const first = await connect(options)
  try {
    const held = await fetchBackendPid(first, 'select pg_backend_pid() as pid')
    // A pooler assigns its own process ids to clients. A client with the process id of the server is thus connected
    // directly.
    if (held === (first as Client & { readonly processID: number | null }).processID) return 'direct'
    return await detectPoolerMode(options, held)
  } catch (error) {
    if (MIXED_UP_CODES.has((error as { code?: string }).code ?? '')) return 'mixed up'
    throw error
  } finally {
    await first.end()
  }
}

/**
 * Detects the mode by a second client. Poolers reuse the most recently returned server connection first. The second
 * client thus gets the server process `held`, unless the first client still holds it.
 */
async function detectPoolerMode(options: ConnectOptions, held: number): Promise<PoolerMode> {
  const second = await connect(options)
  try {
    await second.query('begin')
    const given = await fetchBackendPid(second, 'select pg_backend_pid() as pid, 2 as client')
    await second.query('rollback')
    return given === held ? 'transaction' : 'session'
  } finally {
    await second.end()
  }
}

async function fetchBackendPid(client: Client, text: string): Promise<number> {
  const { rows } = await client.query<{ pid: number }>({ name: PROBE_STATEMENT, text })
  return rows[0]!.pid
}

/** The connection strings that a process uses. */
export interface ConnectionUrls {
  readonly url: string
  /** Used for LISTEN and migrations; differs from `url` behind a pooler. */
  readonly directUrl: string
  readonly applicationName: string
}

/** Returns a one-line description of a problem with these connections for the operator; null if there is none. */
export async function findPoolerProblem({
  url,
  directUrl,
  applicationName,
}: ConnectionUrls): Promise<string | null> {
  const mode = await detectMode({ url, applicationName })
  if (mode === 'direct' || mode === 'session') return null
  if (url === directUrl)
    return 'DATABASE_URL goes through a pooler in transaction mode: DATABASE_URL_UNPOOLED must name a direct connection'
  if (mode === 'mixed up')
    return 'The pooler of DATABASE_URL mixes up prepared statements: PgBouncer needs version 1.21 and max_prepared_statements above 0'
  const direct = await detectMode({ url: directUrl, applicationName })
  if (direct === 'direct' || direct === 'session') return null
  return 'DATABASE_URL_UNPOOLED goes through a pooler in transaction mode, where LISTEN receives nothing'
}
