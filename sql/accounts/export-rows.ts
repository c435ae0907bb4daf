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

/** Rows of one table, as `r` in all expressions. */
export interface RowSource {
  readonly table: string
  /** Column that refers to the owner or the parent row. */
  readonly of: string
  /** Column that sorts the rows of an owner, and is unique among them. Default `id`. */
  readonly key?: string
  readonly type: 'bigint' | 'uuid' | 'text'
  readonly joins?: Fragment
  /** Condition that a row must also meet. */
  readonly where?: Fragment
  readonly item: Fragment
  /** Maximum number of rows per batch. */
  readonly max?: number
}

const DEFAULT_BATCH_SIZE = 500
const FIRST_KEYS = { bigint: '0', uuid: '00000000-0000-0000-0000-000000000000', text: '' } as const

/** @param ofType type of the column `of`. */
export function createRowReader(
  { table, of: column, key = 'id', type, joins, where, item, max = DEFAULT_BATCH_SIZE }: RowSource,
  ofType: 'int4' | 'int8' | 'uuid',
): RowReader {
  const keyColumn = sql.identifier(['r', key])
  const cast = (text: string, to: string): Fragment =>
    sql.fragment`cast(${text}::text as ${sql.identifier([to])})`
  return {
    start: FIRST_KEYS[type],
    max,
    readAfter: (of, after) => sql.type(Row)`
      select ${keyColumn}::text as key, (${item})::text as json from ${sql.identifier([table])} as r ${joins ?? sql.fragment``}
      where ${sql.identifier(['r', column])} = ${cast(of, ofType)} and ${where ?? sql.fragment`true`}
        and ${keyColumn} > ${cast(after, type === 'bigint' ? 'int8' : type)} order by ${keyColumn} limit ${max}`,
  }
}

/** Creates a reader of audit events, ordered by time, the key of their partitions. */
export function createAuditRowReader(
  column: 'actor_id' | 'account_id',
  where: Fragment,
  item: Fragment,
): RowReader {
  return {
    start: '-infinity|0',
    max: DEFAULT_BATCH_SIZE,
    readAfter: (of, after) => sql.type(Row)`
      select r.at || '|' || r.id as key, (${item})::text as json from audit_event as r
      where ${sql.identifier(['r', column])} = ${of}::text::int and ${where}
        and (r.at, r.id) > (split_part(${after}, '|', 1)::timestamptz, split_part(${after}, '|', 2)::bigint)
      order by r.at, r.id limit ${DEFAULT_BATCH_SIZE}`,
  }
}
