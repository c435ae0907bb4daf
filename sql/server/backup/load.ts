import type { Client } from '../../connections/driver.ts'
import { copyIn } from './copy.ts'
import type { SectionHeader } from './dump.ts'
import { BackupError, type Section } from './format.ts'
import { buildCopyInStatement, listTables, parseNeighbourDimensions, quoteNames } from './tables.ts'

// New rows must not get ids that rows after the backup had: access tokens, links, clients and providers still know them.
const LOST_IDS = 100_000

/** True if a database has no tables or views of its own, so that a restore may fill it. */
export async function isEmptyDatabase(client: Client): Promise<boolean> {
  const { rows } = await client.query<{ empty: boolean }>(
    `select not exists (select from pg_class c where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'v', 'm')
       and not exists (select from pg_depend where classid = 'pg_class'::regclass and objid = c.oid and deptype = 'e'))
     and to_regnamespace('graphile_worker') is null as empty`,
  )
  return rows[0]!.empty
}

/** Empties a database after a failed restore. Loses nothing, because a restore fills only empty databases. */
export async function clearDatabase(client: Client): Promise<void> {
  await client.query('drop schema if exists graphile_worker cascade')
  await client.query('drop schema if exists partitions cascade')
  await client.query('drop schema public cascade')
  await client.query('create schema public')
}

/**
 * Loads a section into a migrated database, in the transaction from {@link beginLoad} to {@link endLoad}. Returns the
 * number of rows.
 */
export async function loadSection(client: Client, { header, data }: Section<SectionHeader>): Promise<number> {
  if (header.kind === 'sequences') {
    for (const [name, value] of Object.entries(header.values))
      await client.query('select setval($1::regclass, $2)', [quoteNames([name]), value + LOST_IDS])
    await readToEnd(data)
    return 0
  }
  if (header.kind !== 'table') throw new BackupError('The backup is damaged or incomplete')
  if (header.since !== null && header.part === 0)
    await client.query('select partitions_maintain($1::regclass, 0, $2)', [
      quoteNames([header.name]),
      header.since,
    ])
  const length = parseNeighbourDimensions(header.name)
  if (length === null || (await prepareNeighbourTable(client, length)))
    return copyIn(client, buildCopyInStatement(header), data)
  await readToEnd(data)
  return 0
}

/**
 * Creates the pgvector table for vectors of a length. Returns false without pgvector, in which case vectors are
 * searched in memory.
 */
async function prepareNeighbourTable(client: Client, length: number): Promise<boolean> {
  const { rows } = await client.query<{ ready: boolean }>('select rag_neighbours_prepare($1) as ready', [
    length,
  ])
  const { ready } = rows[0]!
  if (!ready)
    await client.query('update rag_collection set has_neighbours = false where dimensions = $1', [length])
  return ready
}

interface LoadState {
  readonly constraints: readonly {
    readonly table: string
    readonly name: string
    readonly definition: string
  }[]
  readonly tables: readonly string[]
}

/**
 * Begins a load. Empties tables that the migrations filled. Disables triggers, whose results are in the backup. Drops
 * foreign keys until both their sides are loaded.
 */
export async function beginLoad(client: Client): Promise<LoadState> {
  await client.query('begin')
  await client.query('set local statement_timeout = 0')
  const { rows: constraints } = await client.query<LoadState['constraints'][number]>(
    `select conrelid::regclass::text as table, conname as name, pg_get_constraintdef(oid) as definition
     from pg_constraint where contype = 'f' and connamespace = 'public'::regnamespace`,
  )
  const tables = (await listTables(client)).map(({ name }) => name)
  for (const { table, name } of constraints)
    await client.query(`alter table ${table} drop constraint ${quoteNames([name])}`)
  for (const name of tables) await client.query(`alter table ${quoteNames([name])} disable trigger user`)
  await client.query(`truncate ${quoteNames(tables)}`)
  return { constraints, tables }
}

/** Ends a load: restores the foreign keys, which checks every reference, and the triggers, then commits. */
export async function endLoad(client: Client, { constraints, tables }: LoadState): Promise<void> {
  for (const { table, name, definition } of constraints)
    await client.query(`alter table ${table} add constraint ${quoteNames([name])} ${definition}`)
  for (const name of tables) await client.query(`alter table ${quoteNames([name])} enable trigger user`)
  await client.query('commit')
}

/**
 * Sends deliveries for the available jobs. Call it once the SQL functions match the tables. Jobs that were running need
 * none, because the first worker that starts rescues them.
 */
export async function deliverAvailableJobs(client: Client): Promise<void> {
  await client.query(`
    select job_deliver(array(
      select distinct on (mailbox) id from job where status = 'available' order by mailbox, ordinal))`)
}

/** Reads a section to its end, which verifies it. Returns its number of bytes. */
export async function readToEnd(data: AsyncIterable<Uint8Array>): Promise<number> {
  let bytes = 0
  for await (const chunk of data) bytes += chunk.length
  return bytes
}
