import { z } from 'zod'
import { type Query, sql } from '../db.ts'
import type { Reader } from './reader.ts'
import type { Reads } from './slow-reads.ts'

/**
 * Reads that a failover cannot undo. After a crash, a primary shows commits that its synchronous standby may lack
 * (https://www.postgresql.org/docs/current/warm-standby.html#SYNCHRONOUS-REPLICATION-HA). A crash also ends all
 * connections, so reads on a new connection count only after a commit barrier. Once the barrier returns, the standby
 * has its commit and every earlier commit.
 */
export interface DurableReads extends Reads {
  /** Repeats `work` until all its reads ran on one confirmed connection. */
  withDurableReads<T>(work: () => Promise<T>): Promise<T>
}

/** Writes an empty WAL record. Its commit waits for the synchronous standby, if there is one. */
export const writeCommitBarrier = (): Query<unknown> =>
  sql.type(z.unknown())`select pg_logical_emit_message(true, 'millrace.confirmed', '')`

/** Creates durable reads. @param confirm runs {@link writeCommitBarrier} and resolves after its commit. */
export function createDurableReads(reader: Reader, confirm: () => Promise<unknown>): DurableReads {
  // Number of the connection whose reads are confirmed to survive a failover.
  let confirmedConnection = 0
  let pendingConfirm: Promise<void> | null = null

  const confirmOnce = (): Promise<void> => {
    const connection = reader.connectionCount
    pendingConfirm ??= confirm()
      .then(() => {
        confirmedConnection = connection
      })
      .finally(() => {
        pendingConfirm = null
      })
    return pendingConfirm
  }

  const withDurableReads = async <T>(work: () => Promise<T>): Promise<T> => {
    for (;;) {
      const connection = reader.connectionCount
      while (confirmedConnection !== connection && connection === reader.connectionCount) await confirmOnce()
      const result = await work()
      if (reader.connectionCount === connection) return result
    }
  }
  return {
    withDurableReads: withDurableReads,
    text: (statement, values) => withDurableReads(() => reader.text(statement, values)),
    texts: (statement, values) => withDurableReads(() => reader.texts(statement, values)),
  }
}
