import { z } from 'zod'
import { type KeyType, MAX_COUNTED, type PageValues } from '../../sql/lists.ts'
import type { EdgeRequest } from '../http/server.ts'
import { invalid } from './input.ts'
import { type Answer, json } from './route.ts'
import { count, Day, grouped, integer, Moment } from './schemas.ts'
import { textProblems } from './texts.ts'

/** Lists in pages, all in one way: by number, as far as a list counts, and by cursor without an end. */

/** Fields of a list that counts no further than {@link MAX_COUNTED}. */
const Total = {
  total: z.int().meta({ description: `How many there are; at most ${grouped(MAX_COUNTED)}` }),
  total_is_exact: z.boolean().meta({ description: 'false: there are more than `total`' }),
}

export const Next = {
  next: z.string().nullable().meta({ description: 'The `cursor` of the next page; null on the last one' }),
}

const KEYS: Readonly<Record<KeyType, z.ZodType>> = {
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

/** The fields of a list in numbered pages, beside its items. */
export const Paged = { ...Total, page: z.int(), page_size: z.int(), ...Next }

/** What orders a list, as its statement declares it. */
type Order = Readonly<Record<string, KeyType>>

// A title has 300 characters, each of up to 6 bytes in JSON, and base64 makes 4 of 3; a path may be longer.
const MAX_CURSOR = 4000

const NOT_OF_LIST = 'is not a cursor of this list'

/** A query's cursor as the JSON array that a statement takes: the values of what orders the list, in one of its orders. */
export const cursor = (...orders: readonly Order[]) =>
  z
    .string()
    .max(MAX_CURSOR)
    .transform((text, context): string => {
      const values = decoded(text)
      if (orders.some((order) => isCursorOf(order, values))) return JSON.stringify(values)
      context.addIssue({ code: 'custom', message: NOT_OF_LIST })
      return z.NEVER
    })
    .optional()
    .meta({ type: 'string', description: 'Begins after a page: its `next`, unchanged' })

function decoded(text: string): unknown {
  try {
    return JSON.parse(Buffer.from(text, 'base64url').toString())
  } catch {
    return null
  }
}

function isCursorOf(order: Order, values: unknown): boolean {
  const types = Object.values(order)
  return (
    Array.isArray(values) &&
    values.length === types.length &&
    // Within the text of the parameter, these were only base64url.
    textProblems(values, []).length === 0 &&
    types.every((type, n) => KEYS[type].safeParse(values[n]).success)
  )
}

/** The query fields of a list in numbered pages; `limit` and `cursor` are those of every list. */
export const numbered = (order: Order | readonly Order[], { max, fallback }: PageSize) => ({
  page: count({ min: 1, max: MAX_COUNTED + 1, fallback: 1 }).meta({
    description: `Counts from the cursor; reaches ${grouped(MAX_COUNTED)} rows, which are followed by cursor`,
  }),
  // Without a default of its own: whether it was given decides whether `limit` contradicts it.
  page_size: integer({ min: 1, max })
    .optional()
    .meta({ description: `Rows of a page: 1 to ${max}, ${fallback} by default` }),
  limit: integer({ min: 1, max })
    .optional()
    .transform((given) => ({ given, fallback }))
    .meta({ description: 'Another name of `page_size`' }),
  cursor: cursor(...[order].flat()),
})

interface PageSize {
  readonly max: number
  readonly fallback: number
}

/** The query fields of a time that a list is of: half-open, so that spans that follow each other share nothing. */
export const span = (happened: string) => ({
  from: Moment.optional().meta({ description: `${happened} at this time or later` }),
  to: Moment.optional().meta({ description: `${happened} before this time` }),
})

/** A query's `sort`: one of the orders of a list, upwards, or downwards with `-` before it. */
export const sortedBy = <Column extends string>(orders: Readonly<Record<Column, Order>>) =>
  z
    .enum((Object.keys(orders) as Column[]).flatMap((column) => [column, `-${column}`] as const))
    .transform((text): { readonly column: Column; readonly direction: 'asc' | 'desc' } =>
      text.startsWith('-')
        ? { column: text.slice(1) as Column, direction: 'desc' }
        : { column: text as Column, direction: 'asc' },
    )
    .optional()

interface SpanAndSort {
  readonly from?: string | undefined
  readonly to?: string | undefined
  readonly sort?: { readonly column: string } | undefined
}

/**
 * What a query's `from` and `to` need of its `sort`: an order by their own time. In any other one the rows of a time are anywhere, and
 * a page would cost what the whole list does.
 */
export const spanInOrder = (time: string) =>
  [
    ({ from, to, sort }: SpanAndSort): boolean =>
      (from === undefined && to === undefined) || sort === undefined || sort.column === time,
    { error: `must be ${time} or -${time} with \`from\` or \`to\``, path: ['sort'] as string[] },
  ] as const

interface Numbered {
  readonly page: number
  readonly page_size?: number | undefined
  readonly limit: { readonly given: number | undefined; readonly fallback: number }
  readonly cursor?: string | undefined
}

/**
 * What a statement takes of it; `order`: that of the statement, if the list has several.
 * @throws request.invalid for two sizes, a page beyond the rows that page numbers reach, or a cursor of another order.
 */
export function pageValues({ page, page_size, limit, cursor }: Numbered, order?: Order): PageValues {
  const size = limit.given ?? page_size ?? limit.fallback
  if (page_size !== undefined && size !== page_size)
    throw invalid('query', 'limit', 'is another name of `page_size`, which has another value', 'custom')
  if ((page - 1) * size > MAX_COUNTED)
    throw invalid('query', 'page', `reaches ${MAX_COUNTED} rows; follow \`next\` beyond them`, 'too_big')
  return [cursorValues(cursor, order), (page - 1) * size, size]
}

/**
 * What a statement takes of a cursor; `order`: that of the statement, if the list has several.
 * @throws request.invalid for a cursor of another order.
 */
export function cursorValues(cursor: string | undefined, order?: Order): string | null {
  if (cursor !== undefined && order !== undefined && !isCursorOf(order, JSON.parse(cursor)))
    throw invalid('query', 'cursor', NOT_OF_LIST, 'custom')
  return cursor ?? null
}

/**
 * The answer from a text of `arrayText`: an array, with `Link: <…>; rel="next"` (RFC 8288) unless it is the last page.
 * `complete` adds what PostgreSQL does not know.
 */
export function array<T>(
  text: string,
  request: EdgeRequest,
  complete: (items: string) => string = (items) => items,
): Answer<T> {
  const end = text.indexOf('\n')
  const items = complete(text.slice(end + 1))
  if (end === 0) return json<T>(items)
  const query = new URLSearchParams(request.query)
  query.delete('page')
  query.set('cursor', text.slice(0, end))
  return json<T>(items, { headers: [['link', `<${request.path}?${query}>; rel="next"`]] })
}
