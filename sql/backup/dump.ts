import type { Client } from '../driver.ts'
import { copyOut } from './copy.ts'
import type { Section } from './format.ts'
import { copyOutStatement, type Table, tablesOf } from './tables.ts'

/** The header of a section of a backup, by its kind. */
export type Header =
  | {
      readonly kind: 'backup'
      readonly createdAt: string
      /** The migrations of its database, which a restore applies before it fills the tables. */
      readonly migrations: readonly string[]
    }
  | (Table & { readonly kind: 'table'; readonly rows: number })
  | { readonly kind: 'sequences'; readonly values: Readonly<Record<string, number>> }
  | { readonly kind: 'bytes'; readonly blob: StoredBytes }
  | { readonly kind: 'missing'; readonly blob: StoredBytes }

/** Bytes that are stored outside the database. */
export interface StoredBytes {
  readonly blob_id: number
  readonly store: string
  readonly key: string
  readonly byte_size: number
}

async function* nothing(): AsyncGenerator<Uint8Array> {}

/** Begins a transaction that sees one snapshot of the database, however long it takes, and blocks nobody. */
export async function beginSnapshot(client: Client): Promise<void> {
  await client.query('begin isolation level repeatable read read only')
  await client.query('set local statement_timeout = 0')
  await client.query('set local idle_in_transaction_session_timeout = 0')
}

/** The database's own sections, in a transaction of {@link beginSnapshot}. */
export async function* databaseSections(client: Client): AsyncGenerator<Section<Header>> {
  const { rows } = await client.query<{ at: string; migrations: string[] }>(
    `select to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as at, array(select name from migration order by name) as migrations`,
  )
  const { at, migrations } = rows[0]!
  yield { header: { kind: 'backup', createdAt: at, migrations }, data: nothing() }
  for (const table of await tablesOf(client)) {
    const { rows: counted } = await client.query<{ count: number }>(
      `select count(*)::float8 as count from public."${table.name}"`,
    )
    const header = { kind: 'table' as const, ...table, rows: counted[0]!.count }
    yield { header, data: copyOut(client, copyOutStatement(table)) }
  }
  // Sequences belong to no snapshot: read last, they are past every id above.
  const { rows: sequences } = await client.query<{ name: string; value: string }>(
    `select sequencename as name, last_value as value from pg_sequences where schemaname = 'public' and last_value is not null`,
  )
  const values = Object.fromEntries(sequences.map(({ name, value }) => [name, Number(value)]))
  yield { header: { kind: 'sequences', values }, data: nothing() }
}

/** The sealed bytes in a kind of store, ordered by id; `like` is a pattern of `blob.store`. */
export async function storedBytes(client: Client, like: string): Promise<StoredBytes[]> {
  const { rows } = await client.query<StoredBytes>(
    `select id as blob_id, store, key, byte_size::float8 as byte_size from blob
     where store like $1 and sha256 is not null order by id`,
    [like],
  )
  return rows
}

export function bytesSection(blob: StoredBytes, data: AsyncIterable<Uint8Array>): Section<Header> {
  return { header: { kind: 'bytes', blob }, data }
}

export function missingSection(blob: StoredBytes): Section<Header> {
  return { header: { kind: 'missing', blob }, data: nothing() }
}
