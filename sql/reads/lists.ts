/**
 * Paged lists. A page begins at an offset, or after a cursor, which stays valid while rows are added or deleted. The
 * cost of a page depends only on its own rows: an index finds them, and no other rows are converted to JSON.
 */

/**
 * Maximum number of rows to count in a list, since counting all would take too long. Beyond it, the total is a lower
 * bound.
 */
export const MAX_COUNTED_ROWS = 10_000

/** The type of a sort key. */
export type KeyType = 'bigint' | 'uuid' | 'date' | 'timestamptz' | 'text' | 'real'

/**
 * The last parameters of a list's statement: cursor values as a JSON array, rows to skip, and rows per page. A null
 * cursor means the first page.
 */
export type PageValues = [after: string | null, offset: number, size: number]

export interface List {
  readonly table: string
  /** Alias of the table, as used in the other fields. */
  readonly row: string
  /** The columns of the table's primary key; default `id`. */
  readonly id?: readonly string[]
  /** Number of parameters in the other fields ($1 to $n). The parameters of the page follow. */
  readonly parameters: number
  /**
   * Conditions that select the rows. No row may meet two of them. Each uses its own index, unlike a single condition
   * with OR.
   */
  readonly where: string | readonly string[]
  /** Maps each sort expression to its type. The combination must be unique. */
  readonly order: Readonly<Record<string, KeyType>>
  readonly direction: 'asc' | 'desc'
  /** True if the rows of each page are shown in reverse order, such as the latest messages with the oldest first. */
  readonly isReversed?: boolean
  /**
   * True (the default) if pages can also be requested by number. The statement then looks up the rows of a page by key,
   * so each skipped row costs only an index entry. If false, rows cannot be skipped.
   */
  readonly hasPageNumbers?: boolean
  /** A subquery for the stored number of rows. If absent, rows are counted up to `MAX_COUNTED_ROWS`. */
  readonly total?: string
  /** True if `total` may be null, in which case the rows are counted. */
  readonly isTotalPartial?: boolean
  /** Joins that the JSON of a row needs. Each must match at most one row. */
  readonly join?: string
  /** SQL expression for the JSON of a row. */
  readonly item: string
}

/** Creates two statements for each sort order, one per direction. */
export const mapOrders = <Column extends string, S>(
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
 * Returns a condition for each value of a column. If `asked` is not null, only the condition for that value matches
 * rows. Each condition uses an index that has the rows of its value in list order.
 */
export const branchByValue = (
  column: string,
  asked: string,
  values: readonly (string | boolean)[],
): readonly string[] =>
  values
    .map((value) => (typeof value === 'string' ? `'${value}'` : String(value)))
    .map((value) => `coalesce(${asked}, ${value}) = ${value} and ${column} = ${value}`)

/** Combines each condition of one list with each of another, for filters that have an index per value. */
export const pairConditions = (some: readonly string[], others: readonly string[]): readonly string[] =>
  some.flatMap((one) => others.map((other) => `(${one}) and (${other})`))

/**
 * Returns a condition for times from `from` (inclusive) to `to` (exclusive), so consecutive spans share no row. A null
 * bound is open.
 */
export const buildTimeSpanCondition = (time: string, from: string, to: string): string =>
  `(${from}::timestamptz is null or ${time} >= ${from}::timestamptz) and (${to}::timestamptz is null or ${time} < ${to}::timestamptz)`

const toConditions = (where: List['where']): readonly string[] =>
  typeof where === 'string' ? [where] : where

const getPageParameters = ({ parameters }: List) => ({
  cursor: `$${parameters + 1}::jsonb`,
  offset: `$${parameters + 2}::int`,
  size: `$${parameters + 3}::int`,
})

// Keeps the planner from joining whole tables, since it cannot know which partitions hold the rows.
const PREVENT_JOIN = 'offset 0'

/** Returns a subquery with one row: `items`, a JSON array as text, and `next`, the cursor of the next page or null. */
export function buildPageSubquery(list: List): string {
  const {
    table,
    row,
    id = ['id'],
    where,
    order,
    direction,
    isReversed = false,
    hasPageNumbers = true,
    join = '',
    item,
  } = list
  const { cursor, offset, size } = getPageParameters(list)
  const keys = Object.keys(order)
  const ordered = (columns: readonly string[]): string =>
    columns.map((column) => `${column} ${direction}`).join(', ')
  const bounds = Object.values(order).map((type, index) => `(${cursor} ->> ${index})::${type}`)
  const after = `(${cursor} is null or (${keys.join(', ')}) ${direction === 'asc' ? '>' : '<'} (${bounds.join(', ')}))`
  const selected = hasPageNumbers
    ? id.map((column) => `${row}.${column} as id_${column}`)
    : [`${item} as item`]
  const columns = [...selected, ...keys.map((key, n) => `${key} as key_${n}`)]
  const pageKeys = keys.map((_, n) => `key_${n}`)
  const slice = `offset ${offset} limit ${size} + 1`
  const branches = toConditions(where).map(
    (condition) =>
      `select ${columns.join(', ')} from ${table} ${row} ${hasPageNumbers ? '' : join} where (${condition}) and ${after}
        order by ${ordered(keys)}`,
  )
  const merged = branches.map((branch) => `(${branch} limit ${offset} + ${size} + 1)`).join(' union all ')
  const page =
    branches.length === 1
      ? `${branches[0]} ${slice}`
      : `select * from (${merged}) branch order by ${ordered(pageKeys)} ${slice}`
  const sameRow = id.map((column) => `${row}.${column} = ids.id_${column}`).join(' and ')
  return `(
    select concat('[', string_agg(item::text, ',' order by page_row ${isReversed ? 'desc' : 'asc'})
        filter (where page_row <= ${size}), ']') as items,
      case when count(*) > ${size}
        then max(${cursorOf(pageKeys)}) filter (where page_row = ${size}) end as next
    from (
      select *, row_number() over (order by ${ordered(pageKeys)}) as page_row from (${page}) page
    ) ids
    ${hasPageNumbers ? `left join lateral (select ${item} as item from ${table} ${row} ${join} where ${sameRow} and page_row <= ${size} ${PREVENT_JOIN}) shown on true` : ''})`
}

/**
 * Returns SQL for a cursor: base64url of a JSON array. It reveals nothing that the last row of the page does not show.
 */
export const cursorOf = (values: readonly string[]): string =>
  `translate(rtrim(encode(convert_to(json_build_array(${values.join(', ')})::text, 'UTF8'), 'base64'), '='), E'+/\\n', '-_')`

/** Returns a subquery with one row: `n`, the number of rows, and `exact`, true if `n` is not just a lower bound. */
function buildTotalSubquery(list: List): string {
  const { total, isTotalPartial = false } = list
  if (total === undefined) return buildCountSubquery(list)
  if (!isTotalPartial) return `(select (${total}) as n, true as exact)`
  return `(select coalesce(kept.n, counted.n) as n, kept.n is not null or counted.exact as exact
    from (select (${total}) as n) kept cross join lateral ${buildCountSubquery(list, 'kept.n is null')} counted)`
}

function buildCountSubquery({ table, row, where }: List, when = 'true'): string {
  const limit = `limit ${MAX_COUNTED_ROWS + 1}`
  const branches = toConditions(where).map(
    (condition) => `(select from ${table} ${row} where (${condition}) and ${when} ${limit})`,
  )
  return `(select least(count(*), ${MAX_COUNTED_ROWS}) as n, count(*) <= ${MAX_COUNTED_ROWS} as exact
    from (select from (${branches.join(' union all ')}) branches ${limit}) matching)`
}

/**
 * Returns a statement that yields `{NAME: [...], total, total_is_exact, page, page_size, next}`. While the condition
 * `isWhole` is false, the total counts as inexact, because more rows may exist than the list can find.
 */
export function buildListText(name: string, list: List, isWhole = 'true'): string {
  const { offset, size } = getPageParameters(list)
  return `
    select concat('{"${name}":', items, ',"total":', n, ',"total_is_exact":', (exact and ${isWhole})::text,
      ',"page":', ${offset} / ${size} + 1, ',"page_size":', ${size}, ',"next":', coalesce('"' || next || '"', 'null'), '}')
    from ${buildPageSubquery(list)} page, ${buildTotalSubquery(list)} total`
}

/**
 * Returns a statement that yields a first line with the cursor of the next page (empty on the last page), then a JSON
 * array.
 */
export const buildArrayText = (list: List): string =>
  `select concat(next, E'\\n', items) from ${buildPageSubquery(list)} page`
