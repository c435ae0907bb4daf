import { z } from 'zod'
import { type Query, sql } from '../db.ts'

/** Reads the rows of an export in batches, ordered by a key. */

export type Fragment = ReturnType<typeof sql.fragment>

const Row = z.object({ key: z.string(), json: z.string() })
type Row = z.output<typeof Row>

/** Reads rows that belong to an owner or a parent row, at most `max` after a key. */
export interface RowReader {
  /** Key that sorts before all others. */
  readonly start: string
  readonly max: number
  readonly readAfter: (of: string, key: string) => Query<Row>
}

/** One file of an export. */
export interface ExportPart {
  readonly file: string
  /** Foreign keys to the account that select the rows, as `table.column`. */
  readonly foreignKeys: readonly string[]
  readonly rows: RowReader
  /** Files of child rows, selected by the keys of these rows. */
  readonly childFiles?: readonly { readonly file: string; readonly rows: RowReader }[]
}

const DEFAULT_BATCH_SIZE = 500
/** Batch size for rows with texts of up to two megabytes. */
export const LARGE_ROW_BATCH_SIZE = 20
const FIRST_ID = '0'
const FIRST_UUID = '00000000-0000-0000-0000-000000000000'

interface RowSource {
  readonly from: Fragment
  /** Returns the condition for rows that belong to `of`, the id of an owner or a parent row. */
  readonly where: (of: string) => Fragment
  /** Sort key, unique among the rows of an owner. */
  readonly key: Fragment
  readonly type: 'bigint' | 'uuid'
  readonly item: Fragment
  readonly max?: number
}

export function createRowReader({
  from,
  where,
  key,
  type,
  item,
  max = DEFAULT_BATCH_SIZE,
}: RowSource): RowReader {
  const isId = type === 'bigint'
  return {
    start: isId ? FIRST_ID : FIRST_UUID,
    max,
    readAfter: (of, after) => {
      const given = isId ? sql.fragment`${after}::text::bigint` : sql.fragment`${after}::text::uuid`
      return sql.type(Row)`
        select (${key})::text as key, (${item})::text as json from ${from}
        where ${where(of)} and ${key} > ${given} order by ${key} limit ${max}`
    },
  }
}

/** Creates a reader of audit events, ordered by time, the key of their partitions. */
export function createAuditRowReader(where: (of: string) => Fragment, item: Fragment): RowReader {
  return {
    start: '-infinity|0',
    max: DEFAULT_BATCH_SIZE,
    readAfter: (of, after) => sql.type(Row)`
      select e.at || '|' || e.id as key, (${item})::text as json from audit_event e
      where ${where(of)}
        and (e.at, e.id) > (split_part(${after}, '|', 1)::timestamptz, split_part(${after}, '|', 2)::bigint)
      order by e.at, e.id limit ${DEFAULT_BATCH_SIZE}`,
  }
}

/** Casts the text of an account id to its column type. */
export const castAccountId = (of: string): Fragment => sql.fragment`${of}::text::int`
