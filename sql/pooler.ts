import { type Client, type ConnectOptions, connect } from './driver.ts'

/**
 * `direct`: no pooler; `session`: a pooler, apparently in session mode; `transaction`: a pooler in transaction mode.
 * `mixed up`: a pooler that confuses the named statements of its clients.
 */
export type PoolerMode = 'direct' | 'session' | 'transaction' | 'mixed up'

const STATEMENT = 'millrace_probe'
// duplicate_prepared_statement, although this client has not prepared it; invalid_sql_statement_name, although it has.
const MIXED_UP = new Set(['42P05', '26000'])

/**
 * Probes with at most two connections. A pooler in transaction mode that gives each its own server connection looks
 * like session mode. Throws the error of `pg` if the server is unreachable.
 */
async function detectMode(options: ConnectOptions): Promise<PoolerMode> {
  const first = await connect(options)
  try {
    const held = await fetchBackendPid(first, 'select pg_backend_pid() as pid')
    // Poolers give their clients process ids of their own.
    if (held === (first as Client & { readonly processID: number | null }).processID) return 'direct'
    return await detectPoolerMode(options, held)
  } catch (error) {
    if (MIXED_UP.has((error as { code?: string }).code ?? '')) return 'mixed up'
    throw error
  } finally {
    await first.end()
  }
}

/**
 * Poolers hand out the most recently returned connection first: this client gets `held`, unless the first client still
 * has it.
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
  const { rows } = await client.query<{ pid: number }>({ name: STATEMENT, text })
  return rows[0]!.pid
}

/** The connection strings of a process. */
export interface ConnectionUrls {
  readonly url: string
  /** For LISTEN and migrations; differs from `url` behind a pooler. */
  readonly directUrl: string
  readonly applicationName: string
}

/** Returns the problem with these connections in one line for the operator; null if none is found. */
export async function poolerProblem({
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
