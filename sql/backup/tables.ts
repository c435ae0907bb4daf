import type { Client } from '../driver.ts'

/** A table as a backup holds it. */
export interface Table {
  readonly name: string
  /** The columns that are stored; generated ones follow from them. */
  readonly columns: readonly string[]
  /** The first month of a table that has partitions. */
  readonly since: string | null
}

// The leases of workers that run elsewhere, and what the migrations themselves write.
const LEFT_OUT = ['worker_lease', 'migration', 'migration_functions']

// Made by `rag_neighbours_prepare` with a reference to vectors that are there already: after all others.
const NEIGHBOURS = '^rag_neighbour_([0-9]+)$'

/** The length of the vectors in a table of pgvector's; null: it is another table. */
export function neighboursLength(name: string): number | null {
  const length = new RegExp(NEIGHBOURS).exec(name)?.[1]
  return length === undefined ? null : Number(length)
}

export async function tablesOf(client: Client): Promise<Table[]> {
  const { rows } = await client.query<Table>(
    `select relname as name,
       array(select attname::text from pg_attribute where attrelid = c.oid and attnum > 0 and not attisdropped
         and attgenerated = '' order by attnum) as columns,
       (select to_date(min(right(inhrelid::regclass::text, 7)), 'YYYY_MM')::text from pg_inherits
         where inhparent = c.oid and inhrelid::regclass::text ~ '_\\d{4}_\\d\\d$') as since
     from pg_class c where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and relname <> all($1)
       and not exists (select from pg_depend where classid = 'pg_class'::regclass and objid = c.oid and deptype = 'e')
     order by relname ~ '${NEIGHBOURS}', relname collate "C"`,
    [LEFT_OUT],
  )
  return rows
}

// Some MB when compressed.
const PART_BYTES = 32 * 1024 * 1024

/**
 * The statements that copy a table in the order in which it is stored, which is the fastest: one, or of a large table
 * several, each of a range of its blocks with some 32 MiB. A table with partitions has the same range of each.
 */
export async function copyOutStatements(client: Client, { name, columns }: Table): Promise<string[]> {
  const { rows } = await client.query<{ bytes: number; blocks: number }>(
    `select sum(pg_table_size(oid))::float8 as bytes,
       max(pg_relation_size(oid) / current_setting('block_size')::int)::float8 as blocks
     from (select $1::regclass as oid union all select inhrelid from pg_inherits where inhparent = $1::regclass) stored`,
    [quoted([name])],
  )
  const { bytes, blocks } = rows[0]!
  const step = Math.max(Math.ceil((blocks * PART_BYTES) / Math.max(bytes, PART_BYTES)), 1)
  const from = `copy (select ${quoted(columns)} from public.${quoted([name])}`
  // The last one has no end: the table grows.
  return Array.from({ length: Math.max(Math.ceil(blocks / step), 1) }, (_, part) => {
    const end = (part + 1) * step < blocks ? ` and ctid < '(${(part + 1) * step},0)'` : ''
    return `${from} where ctid >= '(${part * step},0)'${end}) to stdout`
  })
}

export function copyInStatement({ name, columns }: Table): string {
  return `copy public.${quoted([name])} (${quoted(columns)}) from stdin`
}

export function quoted(names: readonly string[]): string {
  return names.map((name) => `"${name.replaceAll('"', '""')}"`).join(', ')
}
