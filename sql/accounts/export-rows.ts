import { z } from 'zod'
import { type Query, sql } from '../db.ts'

/** Reads the rows of an export in batches, ordered by a key. */

export type Fragment = ReturnType<typeof sql.fragment>

const Row = z.object({ key: z.string(), json: z.string() })
type Row = z.output<typeof Row>

/** Reads rows that belong to an owner or a parent row, at most `max` after a key. */
export interface Rows {
  /** Key that sorts before all others. */
  readonly start: string
  readonly max: number
  readonly after: (of: string, key: string) => Query<Row>
}

/** One file of an export. */
export interface Part {
  readonly file: string
  /** Foreign keys to the account that select the rows, as `table.column`. */
  readonly by: readonly string[]
  readonly rows: Rows
  /** Files of child rows, selected by the keys of these rows. */
  readonly below?: readonly { readonly file: string; readonly rows: Rows }[]
}

const BATCH = 500
/** Batch size for rows with texts of up to two megabytes. */
export const LARGE_BATCH = 20
const FIRST_ID = '0'
const FIRST_UUID = '00000000-0000-0000-0000-000000000000'

interface Source {
  readonly from: Fragment
  /** Returns the condition for rows that belong to `of`, the id of an owner or a parent row. */
  readonly where: (of: string) => Fragment
  /** Sort key, unique among the rows of an owner. */
  readonly key: Fragment
  readonly type: 'bigint' | 'uuid'
  readonly item: Fragment
  readonly max?: number
}

export function batchedRows({ from, where, key, type, item, max = BATCH }: Source): Rows {
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

/** Reads audit events by time, the key of their partitions. */
export function auditRows(where: (of: string) => Fragment, item: Fragment): Rows {
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

/** Casts the text of an account id to its column type. */
export const accountId = (of: string): Fragment => sql.fragment`${of}::text::int`
