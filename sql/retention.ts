import { z } from 'zod'
import { type Query, sql } from './db.ts'

/**
 * How long rows are kept that nobody deletes. Each table that grows with use is in one of these lists, or goes with what it
 * belongs to, or is bounded: `test/sql/retention.test.ts` has every table with its reason.
 */

/** What is kept for a number of days that is a setting; 0: for ever. */
export type Kept =
  | 'audit'
  | 'sends'
  | 'usage'
  | 'previews'
  | 'invites'
  | 'deletedDocuments'
  | 'searchWords'
  | 'paymentEvents'
  | 'webhooks'
  | 'exports'

const Swept = z.object({ count: z.number(), deleted: z.number() })
/** What a batch has dealt with, and how many of these rows it has deleted. */
export type Swept = z.output<typeof Swept>

type Fragment = ReturnType<typeof sql.fragment>

/** Which rows go. */
export interface Old {
  /** The column of their time, which has an index. */
  readonly at: string
  readonly where: Fragment
}

/** A table whose old rows are deleted in batches. */
export interface Sweep {
  readonly table: string
  readonly keep: Kept
  /** Missing where only the sweep itself finds out. */
  readonly old?: Old
  /** Tables whose rows go with them. */
  readonly along?: readonly string[]
  /** Deals with at most `max` rows that are older than `days`. */
  readonly sweep: (days: number, max: number) => Query<Swept>
}

/** Tables whose old months are dropped. */
export const PARTITIONED = [{ table: 'audit_event', keep: 'audit' }] as const

const Months = z.object({ made: z.number(), dropped: z.number() })

/** Makes the next months of a table and drops those that ended `days` ago; 0: none. */
export const keepPartitions = (table: string, days: number): Query<z.output<typeof Months>> =>
  sql.type(Months)`select made, dropped from partitions_keep(${table}::regclass, ${days})`

/** Deletes rows by the time in the column `at`, which has an index. */
const byAge = (
  table: string,
  keep: Kept,
  at: string,
  { where = sql.fragment`true`, along = [] }: Partial<Pick<Old, 'where'> & Pick<Sweep, 'along'>> = {},
): Sweep => {
  const [name, time] = [sql.identifier([table]), sql.identifier([at])]
  return {
    table,
    keep,
    old: { at, where },
    along,
    sweep: (days, max) => sql.type(Swept)`
      with old as (
        delete from ${name} where ctid = any(array(
          select ctid from ${name} where ${time} < now() - make_interval(days => ${days}::int) and ${where}
          order by ${time} limit ${max} for update skip locked))
        returning 1
      )
      select count(*)::int as count, count(*)::int as deleted from old`,
  }
}

export const SWEPT: readonly Sweep[] = [
  // The ledger is a record for people, who can copy what they need for longer. Not from when a message was asked for: one that was
  // scheduled is tried again, and its provider tells of it, long after that.
  byAge('comms_send', 'sends', 'settled_at'),
  // What was used goes from the statistics, too.
  byAge('ai_usage', 'usage', 'created_at'),
  byAge('voice_preview', 'previews', 'used_at', { along: ['voice_preview_chunk'] }),
  // Whatever became of them.
  byAge('organization_invite', 'invites', 'expires_at'),
  // Documents that they superseded, or that supersede them, then say nothing of it any more.
  byAge('document', 'deletedDocuments', 'deleted_at', { where: sql.fragment`collected_at is not null` }),
  // The provider keeps its events for 30 days: after that none of them can arrive again.
  byAge('payment_event', 'paymentEvents', 'received_at', { where: sql.fragment`applied_at is not null` }),
  // Those of endpoints that are off wait for ever otherwise.
  byAge('webhook_delivery', 'webhooks', 'created_at'),
  // Their bytes are collected afterwards, as those of documents are.
  byAge('account_export', 'exports', 'created_at'),
  {
    table: 'search_word',
    keep: 'searchWords',
    sweep: (days, max) =>
      sql.type(Swept)`select looked as count, gone as deleted from search_words_sweep(${days}, ${max})`,
  },
]
