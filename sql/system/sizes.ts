import { z } from 'zod'
import { type Query, sql } from '../db.ts'
import type { ReadStatement } from '../reads/reader.ts'
import { PARTITIONED_TABLES, PRUNED_TABLES, type RetentionName } from '../retention/retention.ts'

/** Sizes of tables, their growth, and how much of them can be pruned. */

/** Number of past days for which growth is shown. */
const SHOWN_DAYS = 30
/** Number of days for which daily sizes are kept. */
const HISTORY_DAYS = 400
// Maximum number of old rows to count per table. Beyond it, the number is estimated.
const MAX_COUNTED_ROWS = 1000

const TODAY = sql.fragment`(now() at time zone 'utc')::date`

// Number of rows as the planner estimates it: rows per page at the last analyze, times the current pages. If the number
// of pages is unknown, the statistics counter is used, which is 0 on a standby.
const SIZES = sql.fragment`relation as materialized (
    select coalesce(parent.relname, case nspname when 'graphile_worker' then nspname else c.relname end)::text as name,
      c.relname::text as part, pg_total_relation_size(c.oid) as bytes,
      case when c.relpages > 0 then (c.reltuples::float8 / c.relpages * pg_relation_size(c.oid) / current_setting('block_size')::int)::bigint
        else pg_stat_get_live_tuples(c.oid) end as rows
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
      left join pg_inherits on inhrelid = c.oid left join pg_class parent on parent.oid = inhparent
    where nspname in ('public', 'partitions', 'graphile_worker') and c.relkind in ('r', 'p')
      and not exists (select from pg_depend where classid = 'pg_class'::regclass and objid = c.oid and deptype = 'e')
  ), size as materialized (
    select name, coalesce(sum(rows), 0)::bigint as rows, coalesce(sum(bytes), 0)::bigint as bytes from relation group by name
  )`

/** Stores the current sizes as those of today and returns the number of tables. */
export const storeTableSizes = (): Query<{ count: number }> =>
  sql.type(z.object({ count: z.number() }))`
    with ${SIZES}, measured as (
      insert into table_size (day, name, rows, bytes) select ${TODAY}, name, rows, bytes from size
      on conflict on constraint table_size_pkey do update set rows = excluded.rows, bytes = excluded.bytes
      returning 1
    ), gone as (
      delete from table_size where day < ${TODAY} - ${HISTORY_DAYS}::int
    )
    select count(*)::int as count from measured`

// Time column of each table, and the sort order in which an index finds its oldest row. Omits tables that keep rows for
// a day at most.
const OLDEST_ROW_KEYS: Readonly<Record<string, readonly [time: string, order: string]>> = {
  account: ['created_at', 'id'],
  organization: ['created_at', 'id'],
  organization_invite: ['created_at', 'id'],
  audit_event: ['at', 'at'],
  document: ['created_at', 'id'],
  blob: ['created_at', 'id'],
  blog_post: ['created_at', 'created_at'],
  comms_send: ['created_at', 'settled_at'],
  payment_customer: ['created_at', 'id'],
  payment_event: ['received_at', 'received_at'],
  ai_usage: ['created_at', 'created_at'],
  voice_preview: ['used_at', 'used_at'],
  rag_collection: ['created_at', 'id'],
  rag_file: ['created_at', 'id'],
}

/** Tables with a retention. `readTables` expects their retention days in this order. */
export const RETAINED_TABLES: readonly { readonly table: string; readonly keep: RetentionName }[] = [
  ...PARTITIONED_TABLES,
  ...PRUNED_TABLES.flatMap(({ table, keep, cascadedTables = [] }) =>
    [table, ...cascadedTables].map((name) => ({ table: name, keep })),
  ),
]

const buildRetentionDays = (table: string): string =>
  `($3::float8[])[${RETAINED_TABLES.findIndex((one) => one.table === table) + 1}]`
const buildCutoff = (table: string): string => `now() - ${buildRetentionDays(table)} * interval '1 day'`

// Selects the tables with prunable rows: the table, the table whose age condition decides, and the number of prunable
// rows.
const PRUNABLE_QUERIES = PRUNED_TABLES.flatMap(({ table, condition, cascadedTables = [] }) => {
  if (condition === undefined) return []
  const rows = (cut: string): string =>
    `select from ${table} where ${condition.timeColumn} < ${cut} and ${condition.where.sql} order by ${condition.timeColumn}`
  const found = `(select case when n < ${MAX_COUNTED_ROWS} then n
      else greatest(n, planned_rows(format($q$${rows('%L')}$q$, ${buildCutoff(table)}))) end
    from (select count(*) as n from (${rows(buildCutoff(table))} limit ${MAX_COUNTED_ROWS}) first) counted)`
  const values = [table, ...cascadedTables].map((name) => `('${name}')`).join(', ')
  return [
    `select name, '${table}', rows, null::bigint from (select ${found} as rows) old, (values ${values}) gone (name)`,
  ]
})

// Selects the tables with partitions to drop, and the exact size of those partitions in bytes.
const DROPPABLE_QUERIES = PARTITIONED_TABLES.map(
  ({
    table,
  }) => `select '${table}', '${table}', coalesce(sum(rows), 0)::bigint, coalesce(sum(bytes), 0)::bigint from relation
    where name = '${table}' and part ~ '_\\d{4}_\\d\\d$' and to_date(right(part, 7), 'YYYY_MM') + interval '1 month' <= ${buildCutoff(table)}`,
)

const buildGrowthJson = (days: number): string =>
  `case when p.bytes[${SHOWN_DAYS + 1 - days}] is not null then json_build_object(
    'rows', s.rows - p.rows[${SHOWN_DAYS + 1 - days}], 'bytes', s.bytes - p.bytes[${SHOWN_DAYS + 1 - days}]) end`

/**
 * Every table with its size, growth, oldest day and prunable share, largest first. `settings` and `days` give the
 * retention of each of `tables`; 0 keeps rows forever. `tables` must begin with `RETAINED_TABLES`, in the same order.
 */
export const readTables: ReadStatement<
  [tables: readonly string[], settings: readonly string[], days: readonly number[]]
> = {
  name: 'tables',
  text: `
    with ${SIZES.sql}, past as (
      select s.name, array_agg(t.rows order by ago desc) as rows, array_agg(t.bytes order by ago desc) as bytes
      from size s cross join generate_series(1, ${SHOWN_DAYS}) ago
        left join (select * from table_size where day >= ${TODAY.sql} - ${SHOWN_DAYS} and day < ${TODAY.sql}) t
          on t.name = s.name and t.day = ${TODAY.sql} - ago
      group by s.name
    ), oldest (name, at) as (
      values ${Object.entries(OLDEST_ROW_KEYS)
        .map(
          ([table, [time, order]]) =>
            `('${table}', (select ${time} from ${table} order by ${order} limit 1))`,
        )
        .join(', ')}
    ), old (name, base, rows, bytes) as (
      ${[...DROPPABLE_QUERIES, ...PRUNABLE_QUERIES].join(' union all ')}
    ), free as (
      select s.name, case when o.name = o.base then o.rows else round(s.rows * share)::bigint end as rows,
        coalesce(o.bytes, round(s.bytes * share)::bigint) as bytes
      from old o join size s using (name) join size b on b.name = o.base
        cross join lateral (select o.rows::numeric / greatest(b.rows, o.rows, 1) as share) of_it
    ), kept as (
      select name, setting, nullif(days, 0) as days from unnest($1::text[], $2::text[], $3::float8[]) given (name, setting, days)
    )
    select json_build_object('at', iso(now()), 'bytes', (select sum(bytes)::bigint from size), 'tables', (
      select json_agg(json_build_object('name', s.name, 'rows', s.rows, 'bytes', s.bytes,
        'growth', json_build_object('day', ${buildGrowthJson(1)}, 'week', ${buildGrowthJson(7)}, 'month', ${buildGrowthJson(30)}),
        'bytes_by_day', p.bytes || s.bytes, 'oldest_day', (o.at at time zone 'utc')::date,
        'retention', case when k.setting is not null then json_build_object('setting', k.setting, 'days', k.days,
          'rows', case when k.days is not null then f.rows end, 'bytes', case when k.days is not null then f.bytes end) end)
        order by s.bytes desc, s.name)
      from size s join past p using (name) left join oldest o using (name) left join kept k using (name)
        left join free f using (name)))::text`,
}
