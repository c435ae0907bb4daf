import { type Client, connect } from '../connections/driver.ts'
import {
  type AppliedFunctionArea,
  listChangedAreas,
  listMigrationNames,
  SELECT_APPLIED_FUNCTIONS,
} from './migrations.ts'

/** Facts about a database that `npm run doctor` reports. */
export interface DatabaseFacts {
  /** Version in the format of server_version_num, such as 180004. */
  readonly version: number
  readonly address: string
  readonly readOnly: boolean
  /** Minimum lead of the database's clock over the local clock in ms; negative if the database's clock is behind. */
  readonly clockOffsetMs: number
  /**
   * `max` is the number of connections available to ordinary roles. `ofOthers` is the number that other programs use.
   */
  readonly connections: { readonly max: number; readonly ofOthers: number }
  /** True if the role is a superuser. */
  readonly isSuperuser: boolean
  readonly fsync: boolean
  readonly autovacuum: boolean
  /** Version of pgvector; null if the database lacks the extension. */
  readonly vector: string | null
  readonly isVectorInstalled: boolean
  readonly pendingMigrations: readonly string[]
  /** Areas whose functions differ from this version's. Empty before the first migration. */
  readonly changedFunctions: readonly string[]
  /** Number of live workers of the service; null before the first migration. */
  readonly workers: number | null
  /** Queues with queued jobs but no live worker. Excludes worker queues. */
  readonly unservedQueues: readonly string[]
}

const SERVER_QUERY = `select current_setting('server_version_num')::int as version,
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
  to_regclass('migration') is not null as "isMigrated",
  to_regclass('worker_queue') is not null as "hasWorkerQueues"`

// Callers run the workers of worker queues, so these are no concern of the operator. An older schema has no worker queues.
const buildWorkersQuery = (hasWorkerQueues: boolean): string => `
  with alive as (select id, queues from worker_lease where expires_at > now() ${hasWorkerQueues ? 'and queue is null' : ''})
  select (select count(*)::int from alive) as workers,
    (select coalesce(array_agg(queue order by queue), '{}') from (
      select queue from job_count group by queue having sum(queued) > 0
      except select unnest(queues) from alive
      ${hasWorkerQueues ? 'except select name collate "default" from worker_queue' : ''}) unserved) as "unservedQueues"`

interface ServerRow
  extends Pick<
    DatabaseFacts,
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
  readonly hasWorkerQueues: boolean
}

/** Collects the facts. `projectName` is the prefix of Millrace's application names. @throws the connection error. */
export async function inspectDatabase(url: string, projectName: string): Promise<DatabaseFacts> {
  const client = await connect({ url, applicationName: `${projectName}-doctor` })
  try {
    const askedAt = Date.now()
    const { rows } = await client.query<ServerRow>(SERVER_QUERY, [`${projectName}-`])
    const { now_ms: now, max, others, isMigrated, hasWorkerQueues, ...server } = rows[0]!
    return {
      ...server,
      clockOffsetMs: computeClockOffset(now, askedAt, Date.now()),
      connections: { max, ofOthers: others },
      pendingMigrations: await listPendingMigrations(client, isMigrated),
      changedFunctions: isMigrated ? await listOutdatedAreas(client) : [],
      ...(isMigrated ? await readWorkers(client, hasWorkerQueues) : { workers: null, unservedQueues: [] }),
    }
  } finally {
    await client.end()
  }
}

/**
 * Returns the distance in ms of a reported time from the interval in which it was requested. Returns 0 inside the
 * interval, because a late answer alone is no evidence of a wrong clock.
 */
export function computeClockOffset(reported: number, askedAt: number, answeredAt: number): number {
  return reported - Math.min(Math.max(reported, askedAt), answeredAt)
}

async function listPendingMigrations(client: Client, isMigrated: boolean): Promise<string[]> {
  const { rows } = isMigrated
    ? await client.query<{ name: string }>('select name from migration')
    : { rows: [] }
  const applied = new Set(rows.map(({ name }) => name))
  return (await listMigrationNames()).filter((name) => !applied.has(name))
}

async function listOutdatedAreas(client: Client): Promise<string[]> {
  const { rows } = await client.query<AppliedFunctionArea>(SELECT_APPLIED_FUNCTIONS)
  return (await listChangedAreas(rows)).map(({ name }) => name)
}

async function readWorkers(
  client: Client,
  hasWorkerQueues: boolean,
): Promise<Pick<DatabaseFacts, 'workers' | 'unservedQueues'>> {
  const text = buildWorkersQuery(hasWorkerQueues)
  const { rows } = await client.query<{ workers: number; unservedQueues: string[] }>(text)
  return rows[0]!
}
