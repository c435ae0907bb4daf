import { type Client, connect } from './driver.ts'
import { APPLIED_FUNCTIONS, type AppliedFunctions, changedAreas, migrationNames } from './migrations.ts'

/** What `npm run doctor` asks a database. */
export interface Facts {
  /** As in server_version_num, such as 180004. */
  readonly version: number
  readonly address: string
  readonly readOnly: boolean
  /** How far its clock is ahead of ours, at least. */
  readonly clockOffsetMs: number
  /** How many connections it gives to users that are no superusers, and how many others than ours have. */
  readonly connections: { readonly max: number; readonly ofOthers: number }
  /** True if its role may do anything on the server. */
  readonly isSuperuser: boolean
  readonly fsync: boolean
  readonly autovacuum: boolean
  /** The version of pgvector; null: it is not created here. */
  readonly vector: string | null
  readonly isVectorInstalled: boolean
  readonly pendingMigrations: readonly string[]
  /** The areas whose functions are another version's; none before the first migration. */
  readonly otherFunctions: readonly string[]
  /** How many workers are alive; null before the first migration. */
  readonly workers: number | null
  /** The queues that have waiting jobs and no worker. */
  readonly unserved: readonly string[]
}

const SERVER = `select current_setting('server_version_num')::int as version,
  coalesce(host(inet_server_addr()) || ':' || inet_server_port(), 'a local socket') as address,
  current_setting('transaction_read_only')::boolean as "readOnly",
  (extract(epoch from clock_timestamp()) * 1000)::float8 as now_ms,
  current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int as max,
  (select count(*)::int from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()
    and not starts_with(application_name, $1)) as others,
  current_setting('is_superuser')::boolean as "isSuperuser",
  current_setting('fsync')::boolean as fsync, current_setting('autovacuum')::boolean as autovacuum,
  (select extversion from pg_extension where extname = 'vector') as vector,
  exists (select from pg_available_extensions where name = 'vector') as "isVectorInstalled",
  to_regclass('migration') is not null as "isMigrated"`

const WORKERS = `
  with alive as (select id, queues from worker_lease where expires_at > now())
  select (select count(*)::int from alive) as workers,
    (select coalesce(array_agg(queue order by queue), '{}') from (
      select queue from job_count group by queue having sum(queued) > 0
      except select unnest(queues) from alive) unserved) as unserved`

interface Server
  extends Pick<
    Facts,
    | 'version'
    | 'address'
    | 'readOnly'
    | 'isSuperuser'
    | 'fsync'
    | 'autovacuum'
    | 'vector'
    | 'isVectorInstalled'
  > {
  readonly now_ms: number
  readonly max: number
  readonly others: number
  readonly isMigrated: boolean
}

/** Asks it. `projectName` begins the names of our connections. @throws the connection error */
export async function inspect(url: string, projectName: string): Promise<Facts> {
  const client = await connect({ url, applicationName: `${projectName}-doctor` })
  try {
    const askedAt = Date.now()
    const { rows } = await client.query<Server>(SERVER, [`${projectName}-`])
    const { now_ms: now, max, others, isMigrated, ...server } = rows[0]!
    return {
      ...server,
      clockOffsetMs: offsetOf(now, askedAt, Date.now()),
      connections: { max, ofOthers: others },
      pendingMigrations: await pendingOf(client, isMigrated),
      otherFunctions: isMigrated ? await otherFunctionsOf(client) : [],
      ...(isMigrated ? await workersOf(client) : { workers: null, unserved: [] }),
    }
  } finally {
    await client.end()
  }
}

/** How far a time is from those between which it was reported: an answer that is late says nothing of a clock. */
export function offsetOf(reported: number, askedAt: number, answeredAt: number): number {
  return reported - Math.min(Math.max(reported, askedAt), answeredAt)
}

async function pendingOf(client: Client, isMigrated: boolean): Promise<string[]> {
  const { rows } = isMigrated
    ? await client.query<{ name: string }>('select name from migration')
    : { rows: [] }
  const applied = new Set(rows.map(({ name }) => name))
  return (await migrationNames()).filter((name) => !applied.has(name))
}

async function otherFunctionsOf(client: Client): Promise<string[]> {
  const { rows } = await client.query<AppliedFunctions>(APPLIED_FUNCTIONS)
  return (await changedAreas(rows)).map(({ name }) => name)
}

async function workersOf(client: Client): Promise<Pick<Facts, 'workers' | 'unserved'>> {
  const { rows } = await client.query<{ workers: number; unserved: string[] }>(WORKERS)
  return rows[0]!
}
