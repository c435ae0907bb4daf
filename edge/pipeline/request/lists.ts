import { z } from 'zod'
import { type KeyType, MAX_COUNTED_ROWS, type PageValues } from '../../../sql/reads/lists.ts'
import type { EdgeRequest } from '../../http/server.ts'
import { type Answer, answerJson } from '../route.ts'
import { failInvalidField, findTextProblems } from './input.ts'
import { count, Day, formatNumber, integer, Moment } from './schemas.ts'

/** Paginates all lists by page number up to the counted maximum, and by cursor beyond it. */

/** Fields of a list that counts up to {@link MAX_COUNTED_ROWS} rows. */
const TotalField = {
  total: z.int().meta({ description: `Number of rows; at most ${formatNumber(MAX_COUNTED_ROWS)}` }),
  total_is_exact: z.boolean().meta({ description: 'false if there are more than `total`' }),
}

export const NextField = {
  next: z.string().nullable().meta({ description: 'The `cursor` of the next page; null on the last page' }),
}

const KEY_SCHEMAS: Readonly<Record<KeyType, z.ZodType>> = {
  bigint: z.int(),
  uuid: z.uuid(),
  date: Day,
  timestamptz: Moment,
  text: z.string(),
  real: z.number().refine((value) => {
    const stored = Math.fround(value)
    return Number.isFinite(stored) && (stored !== 0 || value === 0)
  }),
}

/** Fields that a numbered list has besides its items. */
export const PageFields = { ...TotalField, page: z.int(), page_size: z.int(), ...NextField }

/** Sort key of a list: its columns, with the types that the statement declares. */
type SortKey = Readonly<Record<string, KeyType>>

// A title of 300 characters, with up to 6 bytes each in JSON, takes 2400 characters of base64. The rest is room for the
// paths of files.
const MAX_CURSOR_LENGTH = 4000

const WRONG_CURSOR_MESSAGE = 'is not a cursor of this list'

/**
 * Returns the schema of a cursor for one of the list's orders. It decodes to a JSON array of the statement's sort key
 * values.
 */
export const buildCursorSchema = (...orders: readonly SortKey[]) =>
  z
    .string()
    .max(MAX_CURSOR_LENGTH)
    .transform((text, context): string => {
      const values = decodeCursor(text)
      if (orders.some((order) => isCursorOf(order, values))) return JSON.stringify(values)
      context.addIssue({ code: 'custom', message: WRONG_CURSOR_MESSAGE })
      return z.NEVER
    })
    .optional()
    .meta({ type: 'string', description: 'Starts after the page whose `next` this is' })

function decodeCursor(text: string): unknown {
  try {
    return JSON.parse(Buffer.from(text, 'base64url').toString())
  } catch {
    return null
  }
}

function isCursorOf(order: SortKey, values: unknown): boolean {
  const types = Object.values(order)
  return (
    Array.isArray(values) &&
    values.length === types.length &&
    // The schema of the parameter has checked only that it is base64url.
    findTextProblems(values, []).length === 0 &&
    types.every((type, n) => KEY_SCHEMAS[type].safeParse(values[n]).success)
  )
}

/**
 * Returns the schema of up to `max` different ids in a query, separated by commas or repeated. It accepts any text, so
 * that an id of another form gets the same response as an unknown one.
 */
export const buildIdsSchema = (max: number) =>
  z
    .array(z.string())
    .transform((texts) => [
      ...new Set(
        texts
          .join()
          .toLowerCase()
          .split(',')
          .filter((id) => id !== ''),
      ),
    ])
    .refine((ids) => ids.length <= max, `must not have more than ${formatNumber(max)} ids`)

/** Returns the query fields of a numbered list, including `limit` and `cursor`, which every list has. */
export const buildPageQueryFields = (order: SortKey | readonly SortKey[], { max, fallback }: PageSize) => ({
  page: count({ min: 1, max: MAX_COUNTED_ROWS + 1, fallback: 1 }).meta({
    description: `Counts from the cursor. Page numbers reach ${formatNumber(MAX_COUNTED_ROWS)} rows; use the cursor beyond them`,
  }),
  // A default would make an absent `page_size` contradict `limit`.
  page_size: integer({ min: 1, max })
    .optional()
    .meta({ description: `Rows per page: 1 to ${max}, default ${fallback}` }),
  limit: integer({ min: 1, max })
    .optional()
    .transform((given) => ({ given, fallback }))
    .meta({ description: 'Alias of `page_size`' }),
  cursor: buildCursorSchema(...[order].flat()),
})

interface PageSize {
  readonly max: number
  readonly fallback: number
}

/** Returns the query fields of a half-open time range. Adjacent ranges do not overlap. */
export const buildTimeRangeFields = (happened: string) => ({
  from: Moment.optional().meta({ description: `${happened} at this time or later` }),
  to: Moment.optional().meta({ description: `${happened} before this time` }),
})

/** Returns the schema of `sort`, which is a column of the list. A leading `-` means descending. */
export const buildSortSchema = <Column extends string>(orders: Readonly<Record<Column, SortKey>>) =>
  z
    .enum((Object.keys(orders) as Column[]).flatMap((column) => [column, `-${column}`] as const))
    .transform((text): { readonly column: Column; readonly direction: 'asc' | 'desc' } =>
      text.startsWith('-')
        ? { column: text.slice(1) as Column, direction: 'desc' }
        : { column: text as Column, direction: 'asc' },
    )
    .optional()

interface TimeRangeAndSort {
  readonly from?: string | undefined
  readonly to?: string | undefined
  readonly sort?: { readonly column: string } | undefined
}

/**
 * Returns arguments of `refine` that allow `from` and `to` only with a sort by the same time. Any other order scatters
 * the rows of a range, and a page would cost as much as the whole list.
 */
export const buildTimeRangeRule = (time: string) =>
  [
    ({ from, to, sort }: TimeRangeAndSort): boolean =>
      (from === undefined && to === undefined) || sort === undefined || sort.column === time,
    { error: `must be ${time} or -${time} with \`from\` or \`to\``, path: ['sort'] as string[] },
  ] as const

interface PageQuery {
  readonly page: number
  readonly page_size?: number | undefined
  readonly limit: { readonly given: number | undefined; readonly fallback: number }
  readonly cursor?: string | undefined
}

/**
 * Returns the statement's values for a page of a numbered list. A list with several sort keys passes the current one as
 * `order`. Throws request.invalid for two different sizes, a page beyond the counted rows, or a cursor of another
 * order.
 */
export function buildPageValues({ page, page_size, limit, cursor }: PageQuery, order?: SortKey): PageValues {
  const size = limit.given ?? page_size ?? limit.fallback
  if (page_size !== undefined && size !== page_size)
    throw failInvalidField('query', 'limit', 'is an alias of `page_size`, but their values differ', 'custom')
  if ((page - 1) * size > MAX_COUNTED_ROWS)
    throw failInvalidField(
      'query',
      'page',
      `reaches ${MAX_COUNTED_ROWS} rows; follow \`next\` beyond them`,
      'too_big',
    )
  return [buildCursorValues(cursor, order), (page - 1) * size, size]
}

/**
 * Returns the statement's value for a cursor; null without one. A list with several sort keys passes the current one as
 * `order`. Throws request.invalid for a cursor of another order.
 */
export function buildCursorValues(cursor: string | undefined, order?: SortKey): string | null {
  if (cursor !== undefined && order !== undefined && !isCursorOf(order, JSON.parse(cursor)))
    throw failInvalidField('query', 'cursor', WRONG_CURSOR_MESSAGE, 'custom')
  return cursor ?? null
}

/**
 * Answers with the JSON array in the output of `arrayText`. Unless it is the last page, adds `Link: <…>; rel="next"`
 * (RFC 8288). `complete` adds data that is not in PostgreSQL to the array.
 */
export function answerArray<T>(
  text: string,
  request: EdgeRequest,
  complete: (items: string) => string = (items) => items,
): Answer<T> {
  const end = text.indexOf('\n')
  const items = complete(text.slice(end + 1))
  if (end === 0) return answerJson<T>(items)
  const query = new URLSearchParams(request.query)
  query.delete('page')
  query.set('cursor', text.slice(0, end))
  return answerJson<T>(items, { headers: [['link', `<${request.path}?${query}>; rel="next"`]] })
}
