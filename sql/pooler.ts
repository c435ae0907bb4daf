import { type Client, type ConnectOptions, connect } from './driver.ts'

/**
 * What lies on the way to the server: nothing; a pooler, as far as can be seen in session mode; one in transaction mode; or
 * one that hands the named statements of one client to another.
 */
export type Way = 'direct' | 'sessions' | 'transactions' | 'mixed up'

const STATEMENT = 'millrace_probe'
// Known already, though this client has not prepared it; or not known, though it has.
const MIXED_UP = new Set(['42P05', '26000'])

/**
 * Looks with two connections at most, and no further than that: a pooler in transaction mode that happens to give both of them
 * a server connection of their own passes for one in session mode.
 *
 * @throws what `pg` throws when the server can't be reached.
 */
export async function wayTo(options: ConnectOptions): Promise<Way> {
  const first = await connect(options)
  try {
    const held = await backendOf(first, 'select pg_backend_pid() as pid')
    // A pooler has numbers of its own for its clients.
    if (held === (first as Client & { readonly processID: number | null }).processID) return 'direct'
    return await wayBeside(options, held)
  } catch (error) {
    if (MIXED_UP.has((error as { code?: string }).code ?? '')) return 'mixed up'
    throw error
  } finally {
    await first.end()
  }
}

/** Poolers hand out first what was given back last: this one is given the server connection `held`, unless it is the other's. */
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

/** What a process connects by. */
export interface Ways {
  readonly url: string
  /** For LISTEN and migrations: another one when `url` leads through a pooler. */
  readonly directUrl: string
  readonly applicationName: string
}

/** Why the service would not work over these, in a line for its operator; null when nothing is seen. */
export async function poolerProblem({ url, directUrl, applicationName }: Ways): Promise<string | null> {
  const way = await wayTo({ url, applicationName })
  if (way === 'direct' || way === 'sessions') return null
  if (url === directUrl)
    return 'DATABASE_URL leads through a pooler in transaction mode: DATABASE_URL_UNPOOLED has to name a direct connection'
  if (way === 'mixed up')
    return 'The pooler of DATABASE_URL mixes up prepared statements: PgBouncer needs version 1.21 and max_prepared_statements above 0'
  const direct = await wayTo({ url: directUrl, applicationName })
  if (direct === 'direct' || direct === 'sessions') return null
  return 'DATABASE_URL_UNPOOLED leads through a pooler in transaction mode, where LISTEN hears nothing'
}
