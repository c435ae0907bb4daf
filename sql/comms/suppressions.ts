import { z } from 'zod'
import { type Query, sql } from '../db.ts'
import { buildArrayText, type PageValues } from '../reads/lists.ts'
import type { ReadStatement } from '../reads/reader.ts'

/** Suppressed mail addresses. Provider events add them (`comms/functions`). */

export const SUPPRESSION_REASONS = ['bounced', 'complained'] as const

const Address = z.object({ address: z.string() })

/** Returns those of the given addresses that are suppressed. Ignores case. */
export const filterSuppressed = (addresses: readonly string[]): Query<{ address: string }> =>
  sql.prepared('comms_suppressed', Address)`
    select address from comms_suppression
    where address = any(array(select lower(given) from unnest(${sql.array(addresses, 'text')}) given)) order by address`

/** Lifts the suppression of an address; no row if the address is not suppressed. */
export const liftSuppression = (address: string): Query<{ address: string }> =>
  sql.type(Address)`delete from comms_suppression where address = lower(${address}) returning address`

export const SUPPRESSION_ORDER = { 's.created_at': 'timestamptz', 's.address': 'text' } as const

export const readSuppressions: ReadStatement<PageValues> = {
  name: 'comms_suppressions',
  text: buildArrayText({
    table: 'comms_suppression',
    row: 's',
    parameters: 0,
    where: 'true',
    order: SUPPRESSION_ORDER,
    hasPageNumbers: false,
    direction: 'desc',
    item: `json_build_object('address', s.address, 'reason', s.reason, 'send_id', s.send_id, 'created_at', iso(s.created_at))`,
  }),
}
