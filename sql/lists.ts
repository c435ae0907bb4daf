/**
 * Lists in pages. A page begins after a cursor, which stays valid while rows come and go, or at a number of rows from the
 * beginning. What a page costs follows its rows: they are found by an index, and only theirs become JSON.
 */

/** What a list counts to: beyond that it says that there are at least as many. Counting all costs as much as there is. */
export const MAX_COUNTED = 10_000

/** The type of a column that orders a list. */
export type KeyType = 'bigint' | 'uuid' | 'date' | 'timestamptz' | 'text' | 'real'

/** The last parameters of a list's statement: a cursor's values as a JSON array or null, rows to skip, rows of a page. */
export type PageValues = [after: string | null, offset: number, size: number]

export interface List {
  readonly table: string
  /** The name of its row in the other parts. */
  readonly row: string
  /** The columns of its primary key; default `id`. */
  readonly id?: readonly string[]
  /** How many parameters the other parts have, $1 to $n; those of the page follow. */
  readonly parameters: number
  /**
   * Which rows it has. Of several conditions no two hold for the same row: each of them finds its
   * rows by an index of its own, as an OR would not.
   */
  readonly where: string | readonly string[]
  /** What orders the rows, together unique: expression -> type. */
  readonly order: Readonly<Record<string, KeyType>>
  readonly direction: 'asc' | 'desc'
  /** Whether each page shows its rows the other way round: the latest messages, the oldest of them first. */
  readonly reversed?: boolean
  /**
   * Whether its pages also have numbers; default true. Then the rows of a page are found again by their keys, so that those
   * before it cost an entry of an index each; otherwise there are none before it.
   */
  readonly numbered?: boolean
  /** A subquery of how many rows there are, where that is kept; by default they are counted to `MAX_COUNTED`. */
  readonly total?: string
  /** Whether `total` may be null, which has them counted. */
  readonly isTotalPartial?: boolean
  /** Further tables that the JSON of a row needs, each with one row at most. */
  readonly join?: string
  /** The JSON of a row. */
  readonly item: string
}

/** A statement for each of several orders, in both directions. */
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

/** A condition for each value of a column, or for the one that is asked for: an index has the rows of each in their order. */
export const byValue = (
  column: string,
  asked: string,
  values: readonly (string | boolean)[],
): readonly string[] =>
  values
    .map((value) => (typeof value === 'string' ? `'${value}'` : String(value)))
    .map((value) => `coalesce(${asked}, ${value}) = ${value} and ${column} = ${value}`)

/** Both of two conditions, for every pair of them: filters of which each value has an index of its own. */
export const everyPair = (some: readonly string[], others: readonly string[]): readonly string[] =>
  some.flatMap((one) => others.map((other) => `(${one}) and (${other})`))

/** From one time on and before another, so that spans that follow each other share no row; null: any. */
export const within = (time: string, from: string, to: string): string =>
  `(${from}::timestamptz is null or ${time} >= ${from}::timestamptz) and (${to}::timestamptz is null or ${time} < ${to}::timestamptz)`

const conditions = (where: List['where']): readonly string[] => (typeof where === 'string' ? [where] : where)

const pageParameters = ({ parameters }: List) => ({
  cursor: `$${parameters + 1}::jsonb`,
  offset: `$${parameters + 2}::int`,
  size: `$${parameters + 3}::int`,
})

// Or it could join whole tables: of one with partitions it knows only while it runs which of them have the rows.
const ONE_BY_ONE = 'offset 0'

/** A subquery of one row: `items`, a JSON array as text, and `next`, the cursor of what follows, or null. */
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
  const bounds = Object.values(order).map((type, place) => `(${cursor} ->> ${place})::${type}`)
  const after = `(${cursor} is null or (${keys.join(', ')}) ${direction === 'asc' ? '>' : '<'} (${bounds.join(', ')}))`
  const found = numbered ? id.map((column) => `${row}.${column} as id_${column}`) : [`${item} as item`]
  const columns = [...found, ...keys.map((key, n) => `${key} as key_${n}`)]
  const places = keys.map((_, n) => `key_${n}`)
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
      : `select * from (${merged}) branch order by ${ordered(places)} ${slice}`
  const sameRow = id.map((column) => `${row}.${column} = ids.id_${column}`).join(' and ')
  return `(
    select concat('[', string_agg(item::text, ',' order by place ${reversed ? 'desc' : 'asc'})
        filter (where place <= ${size}), ']') as items,
      case when count(*) > ${size}
        then max(${cursorOf(places)}) filter (where place = ${size}) end as next
    from (
      select *, row_number() over (order by ${ordered(places)}) as place from (${page}) page
    ) ids
    ${numbered ? `left join lateral (select ${item} as item from ${table} ${row} ${join} where ${sameRow} and place <= ${size} ${ONE_BY_ONE}) shown on true` : ''})`
}

/** A cursor: base64url of a JSON array, which says nothing that the row before it does not show. */
export const cursorOf = (values: readonly string[]): string =>
  `translate(rtrim(encode(convert_to(json_build_array(${values.join(', ')})::text, 'UTF8'), 'base64'), '='), E'+/\\n', '-_')`

/** A subquery of one row: `n`, how many rows a list has, and `exact`, whether that is all of them. */
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
 * A statement that answers `{NAME: [...], total, total_is_exact, page, page_size, next}`. `isWhole`: a condition without which
 * there may be more rows than the list has.
 */
export function listText(name: string, list: List, isWhole = 'true'): string {
  const { offset, size } = pageParameters(list)
  return `
    select concat('{"${name}":', items, ',"total":', n, ',"total_is_exact":', (exact and ${isWhole})::text,
      ',"page":', ${offset} / ${size} + 1, ',"page_size":', ${size}, ',"next":', coalesce('"' || next || '"', 'null'), '}')
    from ${pageOf(list)} page, ${totalOf(list)} total`
}

/** A statement that answers with the cursor of what follows, or nothing, in the first line, and with a JSON array after it. */
export const arrayText = (list: List): string =>
  `select concat(next, E'\\n', items) from ${pageOf(list)} page`
