import type { Client } from '../../connections/driver.ts'

export interface BackupTable {
  readonly name: string
  /** Stored columns. Generated columns are computed from them. */
  readonly columns: readonly string[]
  /** First month of a partitioned table; null if it has no monthly partitions. */
  readonly since: string | null
}

// Excludes leases of workers that run elsewhere, their claims, and tables that the migrations fill.
const EXCLUDED_TABLES = ['worker_lease', 'worker_claim', 'migration', 'migration_functions']

// Names of the tables that `rag_neighbours_prepare` creates. Their rows refer to vectors, so these tables come last.
const NEIGHBOUR_TABLE_PATTERN = '^rag_neighbour_([0-9]+)$'

/** Returns the length of the vectors in a pgvector table, or null for any other table. */
export function parseNeighbourDimensions(name: string): number | null {
  const length = new RegExp(NEIGHBOUR_TABLE_PATTERN).exec(name)?.[1]
  return length === undefined ? null : Number(length)
}

export async function listTables(client: Client): Promise<BackupTable[]> {
  const { rows } = await client.query<BackupTable>(
    `select relname as name,
       array(select attname::text from pg_attribute where attrelid = c.oid and attnum > 0 and not attisdropped
         and attgenerated = '' order by attnum) as columns,
       (select to_date(min(right(inhrelid::regclass::text, 7)), 'YYYY_MM')::text from pg_inherits
         where inhparent = c.oid and inhrelid::regclass::text ~ '_\\d{4}_\\d\\d$') as since
     from pg_class c where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and relname <> all($1)
       and not exists (select from pg_depend where classid = 'pg_class'::regclass and objid = c.oid and deptype = 'e')
     order by relname ~ '${NEIGHBOUR_TABLE_PATTERN}', relname collate "C"`,
    [EXCLUDED_TABLES],
  )
  return rows
}

// Size of a part, which compresses to a few MB.
const PART_BYTES = 32 * 1024 * 1024

/**
 * Returns the statements that copy a table in storage order, which is the fastest. A small table has one statement. A
 * large one has several, each for a range of blocks of about 32 MiB. In a partitioned table, each statement copies the
 * same range of every partition.
 */
export async function buildCopyOutStatements(
  client: Client,
  { name, columns }: BackupTable,
): Promise<string[]> {
  const { rows } = await client.query<{ bytes: number; blocks: number }>(
    `select sum(pg_table_size(oid))::float8 as bytes,
       max(pg_relation_size(oid) / current_setting('block_size')::int)::float8 as blocks
     from (select $1::regclass as oid union all select inhrelid from pg_inherits where inhparent = $1::regclass) stored`,
    [quoteNames([name])],
  )
  const { bytes, blocks } = rows[0]!
  const step = Math.max(Math.ceil((blocks * PART_BYTES) / Math.max(bytes, PART_BYTES)), 1)
  const from = `copy (select ${quoteNames(columns)} from public.${quoteNames([name])}`
  // The last range has no end, because the table may grow.
  return Array.from({ length: Math.max(Math.ceil(blocks / step), 1) }, (_, part) => {
    const end = (part + 1) * step < blocks ? ` and ctid < '(${(part + 1) * step},0)'` : ''
    return `${from} where ctid >= '(${part * step},0)'${end}) to stdout`
  })
}

export function buildCopyInStatement({ name, columns }: BackupTable): string {
  return `copy public.${quoteNames([name])} (${quoteNames(columns)}) from stdin`
}

export function quoteNames(names: readonly string[]): string {
  return names.map((name) => `"${name.replaceAll('"', '""')}"`).join(', ')
}
