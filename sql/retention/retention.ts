import { z } from 'zod'
import { type Query, sql } from '../db.ts'

/**
 * Retention of rows. Each growing table is in one of these lists, or is deleted with its parent, or is bounded.
 * `test/sql/retention.test.ts` lists every table with the reason.
 */

/** Names of retention settings, in days; 0 keeps rows forever. */
export type RetentionName =
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

const PruneResult = z.object({ count: z.number(), deleted: z.number() })
/** Result of a batch: `count` rows were processed, and `deleted` of them were deleted. */
export type PruneResult = z.output<typeof PruneResult>

type Fragment = ReturnType<typeof sql.fragment>

/** The condition that selects the rows to prune. */
export interface AgeCondition {
  /** Time column of the rows, which must have an index. */
  readonly timeColumn: string
  readonly where: Fragment
}

/** A table whose old rows are pruned in batches. */
export interface PrunedTable {
  readonly table: string
  readonly keep: RetentionName
  /** Selects the rows to prune. Absent if only `prune` can find them. */
  readonly condition?: AgeCondition
  /** Tables whose rows are deleted together with these rows. */
  readonly cascadedTables?: readonly string[]
  /** Processes at most `max` rows older than `days`. */
  readonly prune: (days: number, max: number) => Query<PruneResult>
}

/** Tables whose old monthly partitions are dropped. */
export const PARTITIONED_TABLES = [{ table: 'audit_event', keep: 'audit' }] as const

const PartitionChanges = z.object({ made: z.number(), dropped: z.number() })

/** Creates the next monthly partitions of a table and drops those that ended `days` ago; 0 days drops none. */
export const maintainPartitions = (table: string, days: number): Query<z.output<typeof PartitionChanges>> =>
  sql.type(PartitionChanges)`select made, dropped from partitions_maintain(${table}::regclass, ${days})`

/** Returns a table whose rows are pruned by the column `at`, which must have an index. */
const definePrunedTable = (
  table: string,
  keep: RetentionName,
  at: string,
  {
    where = sql.fragment`true`,
    cascadedTables = [],
  }: Partial<Pick<AgeCondition, 'where'> & Pick<PrunedTable, 'cascadedTables'>> = {},
): PrunedTable => {
  const [name, time] = [sql.identifier([table]), sql.identifier([at])]
  return {
    table,
    keep,
    condition: { timeColumn: at, where },
    cascadedTables,
    prune: (days, max) => sql.type(PruneResult)`
      with old as (
        delete from ${name} where ctid = any(array(
          select ctid from ${name} where ${time} < now() - make_interval(days => ${days}::int) and ${where}
          order by ${time} limit ${max} for update skip locked))
        returning 1
      )
      select count(*)::int as count, count(*)::int as deleted from old`,
  }
}

export const PRUNED_TABLES: readonly PrunedTable[] = [
  // The retention period starts at the outcome of a message. Long after the request, a scheduled message is still
  // retried and its provider still reports on it. People can copy entries that they need for longer.
  definePrunedTable('comms_send', 'sends', 'settled_at'),
  // Usage that is pruned also disappears from the statistics.
  definePrunedTable('ai_usage', 'usage', 'created_at'),
  definePrunedTable('voice_preview', 'previews', 'used_at', { cascadedTables: ['voice_preview_chunk'] }),
  // Invites are pruned whatever their outcome.
  definePrunedTable('organization_invite', 'invites', 'expires_at'),
  // Pruning a document also removes its links to the documents that it superseded or that superseded it.
  definePrunedTable('document', 'deletedDocuments', 'deleted_at', {
    where: sql.fragment`pruned_at is not null`,
  }),
  // The provider keeps events for 30 days, so older ones cannot arrive again.
  definePrunedTable('payment_event', 'paymentEvents', 'received_at', {
    where: sql.fragment`applied_at is not null`,
  }),
  // Pending deliveries are pruned too; those of disabled endpoints would otherwise wait forever.
  definePrunedTable('webhook_delivery', 'webhooks', 'created_at'),
  // The bytes of exports are garbage-collected later, like those of documents.
  definePrunedTable('account_export', 'exports', 'created_at'),
  {
    table: 'search_word',
    keep: 'searchWords',
    prune: (days, max) =>
      sql.type(PruneResult)`select looked as count, gone as deleted from search_words_sweep(${days}, ${max})`,
  },
]
