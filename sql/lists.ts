/**
 * Paged lists. A page begins after a cursor, which stays valid while rows come and go, or at an offset. The cost of a
 * page depends on its own rows: an index finds them, and only they become JSON.
 */

/** Maximum count of a list; beyond it the total is a lower bound. Counting every row would take too long. */
export const MAX_COUNTED = 10_000

/** The type of a column that orders a list. */
export type KeyType = 'bigint' | 'uuid' | 'date' | 'timestamptz' | 'text' | 'real'

/**
 * The last parameters of a list's statement: cursor values as a JSON array (null: the first page), rows to skip, rows
 * per page.
 */
export type PageValues = [after: string | null, offset: number, size: number]

export interface List {
  readonly table: string
  /** Alias of the table in the other fields. */
  readonly row: string
  /** The columns of its primary key; default `id`. */
  readonly id?: readonly string[]
  /** Number of parameters in the other fields, $1 to $n; those of the page follow. */
  readonly parameters: number
  /** Conditions for its rows. No row may meet two of them: each uses an index of its own, which an OR would not. */
  readonly where: string | readonly string[]
  /** Sort keys, unique in combination: expression -> type. */
  readonly order: Readonly<Record<string, KeyType>>
  readonly direction: 'asc' | 'desc'
  /** True if each page shows its rows in reverse: the latest messages, the oldest of them first. */
  readonly reversed?: boolean
  /**
   * True if its pages also have numbers, which is the default. The statement then looks up the rows of a page by key,
   * so each skipped row costs only an index entry. Without numbers no rows are skipped.
   */
  readonly numbered?: boolean
  /** A subquery for the number of rows, where that is stored; by default they are counted up to `MAX_COUNTED`. */
  readonly total?: string
  /** True if `total` may be null; the rows are then counted. */
  readonly isTotalPartial?: boolean
  /** Joins for the JSON of a row, each with one row at most. */
  readonly join?: string
  /** The JSON of a row. */
  readonly item: string
}

/** Makes a statement for each of several orders, in both directions. */
export const inOrders = <Column extends string, S>(
  orders: Readonly<Record<Column, List['order']>>,
  make: (column: Column, order: List['order'], direction: List['direction']) => S,
): Readonly<Record<Column, Readonly<Record<List['direction'], S>>>> =>
  Object.fromEntries(
    (Object.entries(orders) as [Column, List['order']][]).map(([column, order]) => [
      column,
      { asc: make(column, order, 'asc'), desc: make(column, order, 'desc') },
    ]),
  ) as Record<Column, Record<List['direction'], S>>

/**
 * Conditions for each value of a column, limited to `asked` unless that is null. An index has the rows of each value in
 * list order.
 */
export const branchByValue = (
  column: string,
  asked: string,
  values: readonly (string | boolean)[],
): readonly string[] =>
  values
    .map((value) => (typeof value === 'string' ? `'${value}'` : String(value)))
    .map((value) => `coalesce(${asked}, ${value}) = ${value} and ${column} = ${value}`)

/** All pairs of two lists of conditions, for filters with an index for each value. */
export const pairConditions = (some: readonly string[], others: readonly string[]): readonly string[] =>
  some.flatMap((one) => others.map((other) => `(${one}) and (${other})`))

/**
 * Condition for times from `from` until before `to`, so that consecutive spans share no row; null leaves a bound open.
 */
export const inTimeSpan = (time: string, from: string, to: string): string =>
  `(${from}::timestamptz is null or ${time} >= ${from}::timestamptz) and (${to}::timestamptz is null or ${time} < ${to}::timestamptz)`

const conditions = (where: List['where']): readonly string[] => (typeof where === 'string' ? [where] : where)

const pageParameters = ({ parameters }: List) => ({
  cursor: `$${parameters + 1}::jsonb`,
  offset: `$${parameters + 2}::int`,
  size: `$${parameters + 3}::int`,
})

// Prevents a join of whole tables: the planner can't know which partitions hold the rows.
const ROW_BY_ROW = 'offset 0'

/** A subquery with one row: `items`, a JSON array as text, and `next`, the cursor of the next page or null. */
export function pageOf(list: List): string {
  const {
    table,
    row,
    id = ['id'],
    where,
    order,
    direction,
    reversed = false,
    numbered = true,
    join = '',
    item,
  } = list
  const { cursor, offset, size } = pageParameters(list)
  const keys = Object.keys(order)
  const ordered = (columns: readonly string[]): string =>
    columns.map((column) => `${column} ${direction}`).join(', ')
  const bounds = Object.values(order).map((type, index) => `(${cursor} ->> ${index})::${type}`)
  const after = `(${cursor} is null or (${keys.join(', ')}) ${direction === 'asc' ? '>' : '<'} (${bounds.join(', ')}))`
  const selected = numbered ? id.map((column) => `${row}.${column} as id_${column}`) : [`${item} as item`]
  const columns = [...selected, ...keys.map((key, n) => `${key} as key_${n}`)]
  const pageKeys = keys.map((_, n) => `key_${n}`)
  const slice = `offset ${offset} limit ${size} + 1`
  const branches = conditions(where).map(
    (condition) =>
      `select ${columns.join(', ')} from ${table} ${row} ${numbered ? '' : join} where (${condition}) and ${after}
        order by ${ordered(keys)}`,
  )
  const merged = branches.map((branch) => `(${branch} limit ${offset} + ${size} + 1)`).join(' union all ')
  const page =
    branches.length === 1
      ? `${branches[0]} ${slice}`
      : `select * from (${merged}) branch order by ${ordered(pageKeys)} ${slice}`
  const sameRow = id.map((column) => `${row}.${column} = ids.id_${column}`).join(' and ')
  return `(
    select concat('[', string_agg(item::text, ',' order by page_row ${reversed ? 'desc' : 'asc'})
        filter (where page_row <= ${size}), ']') as items,
      case when count(*) > ${size}
        then max(${cursorOf(pageKeys)}) filter (where page_row = ${size}) end as next
    from (
      select *, row_number() over (order by ${ordered(pageKeys)}) as page_row from (${page}) page
    ) ids
    ${numbered ? `left join lateral (select ${item} as item from ${table} ${row} ${join} where ${sameRow} and page_row <= ${size} ${ROW_BY_ROW}) shown on true` : ''})`
}

/** SQL for a cursor: base64url of a JSON array. It reveals nothing that the last row of the page does not show. */
export const cursorOf = (values: readonly string[]): string =>
  `translate(rtrim(encode(convert_to(json_build_array(${values.join(', ')})::text, 'UTF8'), 'base64'), '='), E'+/\\n', '-_')`

/** A subquery with one row: `n`, the number of rows, and `exact`, true if those are all. */
function totalOf(list: List): string {
  const { total, isTotalPartial = false } = list
  if (total === undefined) return countOf(list)
  if (!isTotalPartial) return `(select (${total}) as n, true as exact)`
  return `(select coalesce(kept.n, counted.n) as n, kept.n is not null or counted.exact as exact
    from (select (${total}) as n) kept cross join lateral ${countOf(list, 'kept.n is null')} counted)`
}

function countOf({ table, row, where }: List, when = 'true'): string {
  const limit = `limit ${MAX_COUNTED + 1}`
  const branches = conditions(where).map(
    (condition) => `(select from ${table} ${row} where (${condition}) and ${when} ${limit})`,
  )
  return `(select least(count(*), ${MAX_COUNTED}) as n, count(*) <= ${MAX_COUNTED} as exact
    from (select from (${branches.join(' union all ')}) branches ${limit}) matching)`
}

/**
 * A statement that returns `{NAME: [...], total, total_is_exact, page, page_size, next}`. `isWhole` is a condition;
 * while it is false, there may be more rows than the list has.
 */
export function listText(name: string, list: List, isWhole = 'true'): string {
  const { offset, size } = pageParameters(list)
  return `
    select concat('{"${name}":', items, ',"total":', n, ',"total_is_exact":', (exact and ${isWhole})::text,
      ',"page":', ${offset} / ${size} + 1, ',"page_size":', ${size}, ',"next":', coalesce('"' || next || '"', 'null'), '}')
    from ${pageOf(list)} page, ${totalOf(list)} total`
}

/** A statement that returns two parts: a first line with the cursor of the next page (empty on the last page), then a JSON array. */
export const arrayText = (list: List): string =>
  `select concat(next, E'\\n', items) from ${pageOf(list)} page`
