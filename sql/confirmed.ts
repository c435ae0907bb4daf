import { z } from 'zod'
import { type Query, sql } from './db.ts'
import type { Reader } from './reader.ts'
import type { Reads } from './slow-reads.ts'

/**
 * Reads that a failover cannot undo. After a crash, a primary shows commits that its synchronous standby may lack
 * (https://www.postgresql.org/docs/current/warm-standby.html#SYNCHRONOUS-REPLICATION-HA). A crash also ends all
 * connections, so reads on a new connection count only after a commit of our own. Once that returns, the standby has it
 * and every earlier commit.
 */
export interface Confirmed extends Reads {
  /** Repeats `work` until all its reads ran on one confirmed connection. */
  covering<T>(work: () => Promise<T>): Promise<T>
}

/** Writes an empty WAL record: its commit waits for the synchronous standby, if there is one. */
export const confirmCommits = (): Query<unknown> =>
  sql.type(z.unknown())`select pg_logical_emit_message(true, 'millrace.confirmed', '')`

/** @param confirm runs {@link confirmCommits} and resolves after its commit. */
export function confirmedReads(reader: Reader, confirm: () => Promise<unknown>): Confirmed {
  // Number of the connection whose reads are confirmed.
  let confirmedConnection = 0
  let pendingConfirm: Promise<void> | null = null

  const confirmOnce = (): Promise<void> => {
    const connection = reader.opened
    pendingConfirm ??= confirm()
      .then(() => {
        confirmedConnection = connection
      })
      .finally(() => {
        pendingConfirm = null
      })
    return pendingConfirm
  }

  const covering = async <T>(work: () => Promise<T>): Promise<T> => {
    for (;;) {
      const connection = reader.opened
      while (confirmedConnection !== connection && connection === reader.opened) await confirmOnce()
      const result = await work()
      if (reader.opened === connection) return result
    }
  }
  return {
    covering,
    text: (statement, values) => covering(() => reader.text(statement, values)),
    texts: (statement, values) => covering(() => reader.texts(statement, values)),
  }
}
