import type { Client } from '../driver.ts'
import { copyIn } from './copy.ts'
import type { Header } from './dump.ts'
import { BackupError, type Section } from './format.ts'
import { copyInStatement, neighboursLength, quoted, tablesOf } from './tables.ts'

/** Whether a database holds nothing of ours, so that it may be filled. */
export async function isEmpty(client: Client): Promise<boolean> {
  const { rows } = await client.query<{ empty: boolean }>(
    `select not exists (select from pg_class c where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'v', 'm')
       and not exists (select from pg_depend where classid = 'pg_class'::regclass and objid = c.oid and deptype = 'e'))
     and to_regnamespace('graphile_worker') is null as empty`,
  )
  return rows[0]!.empty
}

/** Empties a database again after a failed restore; it was empty before. */
export async function clear(client: Client): Promise<void> {
  await client.query('drop schema if exists graphile_worker cascade')
  await client.query('drop schema if exists partitions cascade')
  await client.query('drop schema public cascade')
  await client.query('create schema public')
}

/** Loads a section into a migrated database, inside one transaction of {@link beginLoad} and {@link endLoad}. */
export async function loadSection(client: Client, { header, data }: Section<Header>): Promise<number> {
  if (header.kind === 'sequences') {
    for (const [name, value] of Object.entries(header.values))
      await client.query('select setval($1::regclass, $2)', [quoted([name]), value])
    await drain(data)
    return 0
  }
  if (header.kind !== 'table') throw new BackupError('The backup is damaged or incomplete')
  if (header.since !== null && header.part === 0)
    await client.query('select partitions_keep($1::regclass, 0, $2)', [quoted([header.name]), header.since])
  const length = neighboursLength(header.name)
  if (length === null || (await takesNeighbours(client, length)))
    return copyIn(client, copyInStatement(header), data)
  await drain(data)
  return 0
}

/** Makes the table of pgvector's for vectors of a length. Without pgvector they are searched in memory. */
async function takesNeighbours(client: Client, length: number): Promise<boolean> {
  const { rows } = await client.query<{ ready: boolean }>('select rag_neighbours_prepare($1) as ready', [
    length,
  ])
  const { ready } = rows[0]!
  if (!ready)
    await client.query('update rag_collection set has_neighbours = false where dimensions = $1', [length])
  return ready
}

interface Held {
  readonly constraints: readonly {
    readonly table: string
    readonly name: string
    readonly definition: string
  }[]
  readonly tables: readonly string[]
}

/**
 * Begins a load: deletes what the migrations put into tables, disables triggers, since their results are in the backup,
 * and drops foreign keys until both their sides are loaded.
 */
export async function beginLoad(client: Client): Promise<Held> {
  await client.query('begin')
  await client.query('set local statement_timeout = 0')
  const { rows: constraints } = await client.query<Held['constraints'][number]>(
    `select conrelid::regclass::text as table, conname as name, pg_get_constraintdef(oid) as definition
     from pg_constraint where contype = 'f' and connamespace = 'public'::regnamespace`,
  )
  const tables = (await tablesOf(client)).map(({ name }) => name)
  for (const { table, name } of constraints)
    await client.query(`alter table ${table} drop constraint ${quoted([name])}`)
  for (const name of tables) await client.query(`alter table ${quoted([name])} disable trigger user`)
  await client.query(`truncate ${quoted(tables)}`)
  return { constraints, tables }
}

/** Ends a load: checks every reference. */
export async function endLoad(client: Client, { constraints, tables }: Held): Promise<void> {
  for (const { table, name, definition } of constraints)
    await client.query(`alter table ${table} add constraint ${quoted([name])} ${definition}`)
  for (const name of tables) await client.query(`alter table ${quoted([name])} enable trigger user`)
  await client.query('commit')
}

/**
 * Sends deliveries for the queued jobs to workers, once the functions are those of the tables. The jobs that were running
 * have no worker any more, and the first one that starts takes them over. What is for later needs a delivery of its own.
 */
export async function sendQueued(client: Client): Promise<void> {
  await client.query(`
    select job_send(array_agg(id), array_agg(last)) from (
      select (array_agg(id order by ordinal))[1] as id, case when run_at > now() then max(ordinal) end as last
      from job where status = 'queued'
      group by mailbox, greatest(run_at, now()), run_at > now(), case when later then ordinal end) firsts`)
}

/** Reads a section to its end, which verifies it; returns its number of bytes. */
export async function drain(data: AsyncIterable<Uint8Array>): Promise<number> {
  let bytes = 0
  for await (const chunk of data) bytes += chunk.length
  return bytes
}
