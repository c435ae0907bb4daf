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

export function copyOutStatement({ name, columns, key }: Table): string {
  const order = key.length === 0 ? '' : ` order by ${quoted(key)}`
  return `copy (select ${quoted(columns)} from public.${quoted([name])}${order}) to stdout`
}

export function copyInStatement({ name, columns }: Table): string {
  return `copy public.${quoted([name])} (${quoted(columns)}) from stdin`
}

export function quoted(names: readonly string[]): string {
  return names.map((name) => `"${name.replaceAll('"', '""')}"`).join(', ')
}
