import { z } from 'zod'
import { type Query, sql } from '../db.ts'

/** How the rows of an export are read: in batches, in the order of a key. */

export type Fragment = ReturnType<typeof sql.fragment>

const Row = z.object({ key: z.string(), json: z.string() })
type Row = z.output<typeof Row>

/** Rows of an owner, or of a row of one, after a key: at most `max`. */
export interface Rows {
  /** Before the first key. */
  readonly start: string
  readonly max: number
  readonly after: (of: string, key: string) => Query<Row>
}

/** A file of the export. */
export interface Part {
  readonly file: string
  /** The foreign keys to an account by which its rows are found, as `table.column`. */
  readonly by: readonly string[]
  readonly rows: Rows
  /** Files of rows that belong to these, which are found by the keys of these. */
  readonly below?: readonly { readonly file: string; readonly rows: Rows }[]
}

const BATCH = 500
/** Of rows with texts of up to a megabyte or two each. */
export const LARGE_BATCH = 20
const FIRST_ID = '0'
const FIRST_UUID = '00000000-0000-0000-0000-000000000000'

interface Source {
  readonly from: Fragment
  /** Which rows belong to `of`. */
  readonly where: (of: string) => Fragment
  /** What orders the rows, with its type; unique among those of an owner. */
  readonly key: Fragment
  readonly type: 'bigint' | 'uuid'
  readonly item: Fragment
  readonly max?: number
}

export function rowsOf({ from, where, key, type, item, max = BATCH }: Source): Rows {
  const isId = type === 'bigint'
  return {
    start: isId ? FIRST_ID : FIRST_UUID,
    max,
    after: (of, after) => {
      const given = isId ? sql.fragment`${after}::text::bigint` : sql.fragment`${after}::text::uuid`
      return sql.type(Row)`
        select (${key})::text as key, (${item})::text as json from ${from}
        where ${where(of)} and ${key} > ${given} order by ${key} limit ${max}`
    },
  }
}

/** Audited events in their order, in which their partitions are. */
export function auditOf(where: (of: string) => Fragment, item: Fragment): Rows {
  return {
    start: '-infinity|0',
    max: BATCH,
    after: (of, after) => sql.type(Row)`
      select e.at || '|' || e.id as key, (${item})::text as json from audit_event e
      where ${where(of)}
        and (e.at, e.id) > (split_part(${after}, '|', 1)::timestamptz, split_part(${after}, '|', 2)::bigint)
      order by e.at, e.id limit ${BATCH}`,
  }
}

/** The account whose id a text is. */
export const account = (of: string): Fragment => sql.fragment`${of}::text::int`
