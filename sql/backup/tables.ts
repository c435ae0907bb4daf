import type { Client } from '../driver.ts'

/** A table as a backup holds it. */
export interface Table {
  readonly name: string
  /** The columns that are stored; generated ones follow from them. */
  readonly columns: readonly string[]
  /** The primary key: rows are in its order, so that the same rows give the same bytes. */
  readonly key: readonly string[]
  /** The first month of a table that has partitions. */
  readonly since: string | null
}

// The leases of workers that run elsewhere, and what the migrations themselves write.
const LEFT_OUT = ['worker_lease', 'migration', 'migration_functions']

export async function tablesOf(client: Client): Promise<Table[]> {
  const { rows } = await client.query<Table>(
    `select relname as name,
       array(select attname::text from pg_attribute where attrelid = c.oid and attnum > 0 and not attisdropped
         and attgenerated = '' order by attnum) as columns,
       array(select attname::text from pg_index join unnest(indkey) with ordinality k (num, place) on true
         join pg_attribute on attrelid = indrelid and attnum = num
         where indrelid = c.oid and indisprimary order by place) as key,
       (select to_date(min(right(inhrelid::regclass::text, 7)), 'YYYY_MM')::text from pg_inherits
         where inhparent = c.oid and inhrelid::regclass::text ~ '_\\d{4}_\\d\\d$') as since
     from pg_class c where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and relname <> all($1)
       and not exists (select from pg_depend where classid = 'pg_class'::regclass and objid = c.oid and deptype = 'e')
     order by relname collate "C"`,
    [LEFT_OUT],
  )
  return rows
}

// Some MB when compressed.
const PART_BYTES = 32 * 1024 * 1024

/**
 * The statements that copy a table, in the order of its key: one, or of a large table several, each of as many rows as have
 * some 32 MiB on average.
 */
export async function copyOutStatements(client: Client, table: Table): Promise<string[]> {
  const { name, columns, key } = table
  const order = key.length === 0 ? '' : ` order by ${quoted(key)}`
  const starts = key.length === 0 ? [] : await partStarts(client, table)
  const tuple = (values: readonly string[]) =>
    `(${values.map((value) => client.escapeLiteral(value)).join(', ')})`
  return [undefined, ...starts].map((start, n) => {
    const bounds = [
      ...(start === undefined ? [] : [`(${quoted(key)}) >= ${tuple(start)}`]),
      ...(starts[n] === undefined ? [] : [`(${quoted(key)}) < ${tuple(starts[n])}`]),
    ]
    const where = bounds.length === 0 ? '' : ` where ${bounds.join(' and ')}`
    return `copy (select ${quoted(columns)} from public.${quoted([name])}${where}${order}) to stdout`
  })
}

/** The keys at which the parts of a table begin, after the first one. */
async function partStarts(client: Client, { name, key }: Table): Promise<string[][]> {
  const { rows: sizes } = await client.query<{ bytes: number }>(
    `select (pg_table_size($1::regclass) + coalesce((select sum(pg_table_size(inhrelid)) from pg_inherits
       where inhparent = $1::regclass), 0))::float8 as bytes`,
    [quoted([name])],
  )
  const parts = Math.ceil(sizes[0]!.bytes / PART_BYTES)
  if (parts <= 1) return []
  const { rows } = await client.query<{ start: string[] }>(
    `select array[${key.map((column) => `${quoted([column])}::text`).join(', ')}] as start from (
       select ${quoted(key)}, row_number() over (order by ${quoted(key)}) as place,
         ceil(count(*) over () / $1::float8)::bigint as size from public.${quoted([name])}) placed
     where place > 1 and (place - 1) % size = 0 order by place`,
    [parts],
  )
  return rows.map(({ start }) => start)
}

export function copyInStatement({ name, columns }: Table): string {
  return `copy public.${quoted([name])} (${quoted(columns)}) from stdin`
}

export function quoted(names: readonly string[]): string {
  return names.map((name) => `"${name.replaceAll('"', '""')}"`).join(', ')
}
