import { type Client, type ConnectOptions, connect } from '../../connections/driver.ts'
import { copyOut } from './copy.ts'
import { type BackupTable, buildCopyOutStatements, listTables } from './tables.ts'

/** Header of a section of a backup. */
export type SectionHeader =
  | {
      readonly kind: 'backup'
      readonly createdAt: string
      /** Migrations of the database. A restore applies them before it fills the tables. */
      readonly migrations: readonly string[]
    }
  /** Number of the part. A large table has several parts, numbered from 0. */
  | (BackupTable & { readonly kind: 'table'; readonly part: number })
  | { readonly kind: 'sequences'; readonly values: Readonly<Record<string, number>> }
  | { readonly kind: 'bytes'; readonly blob: StoredBytes }
  | { readonly kind: 'missing'; readonly blob: StoredBytes }

/** Location of bytes that are stored outside the database. */
export interface StoredBytes {
  readonly blob_id: number
  readonly store: string
  readonly key: string
  readonly byte_size: number
}

/** A section to read on any connection of the {@link Snapshot}. */
export interface SectionSource {
  readonly header: SectionHeader
  read(client: Client): AsyncIterable<Uint8Array>
}

async function* yieldNoData(): AsyncGenerator<Uint8Array> {}

/** Connections that share one snapshot of the database for any length of time, without blocking other connections. */
export interface Snapshot {
  /** Connection for queries about the content. */
  readonly main: Client
  /** Connections for reading sections, one at a time on each. */
  readonly readers: readonly Client[]
  close(): Promise<void>
}

/** Opens connections and takes a snapshot. @param readers number of sections to read at a time. */
export async function openSnapshot(options: ConnectOptions, readers: number): Promise<Snapshot> {
  const clients: Client[] = []
  const close = async (): Promise<void> => {
    await Promise.all(clients.map((client) => client.end()))
  }
  const begin = async (): Promise<Client> => {
    const client = await connect(options)
    clients.push(client)
    await client.query('begin isolation level repeatable read read only')
    return client
  }
  try {
    const main = await begin()
    const { rows } = await main.query<{ id: string }>('select pg_export_snapshot() as id')
    for (let n = 0; n < readers; n++)
      await (await begin()).query(`set transaction snapshot ${main.escapeLiteral(rows[0]!.id)}`)
    for (const client of clients)
      await client.query('set local statement_timeout = 0; set local idle_in_transaction_session_timeout = 0')
    return { main, readers: clients.slice(1), close }
  } catch (error) {
    await close()
    throw error
  }
}

/** Yields the sections of the database itself. @param onRows receives each table section's number of rows. */
export async function* dumpDatabaseSections(
  client: Client,
  onRows: (rows: number) => void,
): AsyncGenerator<SectionSource> {
  const { rows } = await client.query<{ at: string; migrations: string[] }>(
    `select to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as at, array(select name from migration order by name) as migrations`,
  )
  const { at, migrations } = rows[0]!
  yield { header: { kind: 'backup', createdAt: at, migrations }, read: yieldNoData }
  for (const table of await listTables(client))
    for (const [part, statement] of (await buildCopyOutStatements(client, table)).entries())
      yield {
        header: { kind: 'table', ...table, part },
        read: (reader) => copyOut(reader, statement, onRows),
      }
  // Sequences are outside the snapshot. They are read after it was taken, so their values exceed every id in it.
  const { rows: sequences } = await client.query<{ name: string; value: string }>(
    `select sequencename as name, last_value as value from pg_sequences where schemaname = 'public' and last_value is not null`,
  )
  const values = Object.fromEntries(sequences.map(({ name, value }) => [name, Number(value)]))
  yield { header: { kind: 'sequences', values }, read: yieldNoData }
}

/** Returns the sealed bytes whose `blob.store` matches the pattern `like`, ordered by id. */
export async function listStoredBytes(client: Client, like: string): Promise<StoredBytes[]> {
  const { rows } = await client.query<StoredBytes>(
    `select id as blob_id, store, key, byte_size::float8 as byte_size from blob
     where store like $1 and sha256 is not null order by id`,
    [like],
  )
  return rows
}

/** Creates the section for stored bytes. @param read reads the bytes from their store. */
export const createBytesSection = (
  blob: StoredBytes,
  read: () => AsyncIterable<Uint8Array>,
): SectionSource => ({
  header: { kind: 'bytes', blob },
  read,
})

export const createMissingSection = (blob: StoredBytes): SectionSource => ({
  header: { kind: 'missing', blob },
  read: yieldNoData,
})
