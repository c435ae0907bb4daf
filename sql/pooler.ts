import { type Client, type ConnectOptions, connect } from './driver.ts'

/**
 * What is between us and the server: nothing; a pooler, apparently in session mode; one in transaction mode; or one
 * that mixes up the named statements of its clients.
 */
export type Way = 'direct' | 'sessions' | 'transactions' | 'mixed up'

const STATEMENT = 'millrace_probe'
// The statement already exists, though this client has not prepared it; or it does not exist, though it has.
const MIXED_UP = new Set(['42P05', '26000'])

/**
 * Probes with two connections at most: a pooler in transaction mode that happens to give each of them its own server
 * connection is taken for one in session mode.
 *
 * @throws what `pg` throws when the server can't be reached.
 */
async function wayTo(options: ConnectOptions): Promise<Way> {
  const first = await connect(options)
  try {
    const held = await backendOf(first, 'select pg_backend_pid() as pid')
    // A pooler gives its clients process ids of its own.
    if (held === (first as Client & { readonly processID: number | null }).processID) return 'direct'
    return await wayBeside(options, held)
  } catch (error) {
    if (MIXED_UP.has((error as { code?: string }).code ?? '')) return 'mixed up'
    throw error
  } finally {
    await first.end()
  }
}

/** Poolers hand out the most recently returned connection first: this client gets `held`, unless the other has it. */
async function wayBeside(options: ConnectOptions, held: number): Promise<Way> {
  const second = await connect(options)
  try {
    await second.query('begin')
    const given = await backendOf(second, 'select pg_backend_pid() as pid, 2 as client')
    await second.query('rollback')
    return given === held ? 'transactions' : 'sessions'
  } finally {
    await second.end()
  }
}

async function backendOf(client: Client, text: string): Promise<number> {
  const { rows } = await client.query<{ pid: number }>({ name: STATEMENT, text })
  return rows[0]!.pid
}

/** The connections that a process uses. */
export interface Ways {
  readonly url: string
  /** For LISTEN and migrations; differs from `url` when that goes through a pooler. */
  readonly directUrl: string
  readonly applicationName: string
}

/** Why the service would not work with these, in one line for its operator; null when no problem is found. */
export async function poolerProblem({ url, directUrl, applicationName }: Ways): Promise<string | null> {
  const way = await wayTo({ url, applicationName })
  if (way === 'direct' || way === 'sessions') return null
  if (url === directUrl)
    return 'DATABASE_URL goes through a pooler in transaction mode: DATABASE_URL_UNPOOLED must name a direct connection'
  if (way === 'mixed up')
    return 'The pooler of DATABASE_URL mixes up prepared statements: PgBouncer needs version 1.21 and max_prepared_statements above 0'
  const direct = await wayTo({ url: directUrl, applicationName })
  if (direct === 'direct' || direct === 'sessions') return null
  return 'DATABASE_URL_UNPOOLED goes through a pooler in transaction mode, where LISTEN receives nothing'
}
