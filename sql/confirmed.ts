import { z } from 'zod'
import { type Query, sql } from './db.ts'
import type { Reader } from './reader.ts'
import type { Reads } from './slow-reads.ts'

/**
 * Reads that a failover takes nothing back from. After a crash a primary shows what had been committed without its
 * synchronous standby
 * (https://www.postgresql.org/docs/current/warm-standby.html#SYNCHRONOUS-REPLICATION-HA), and a crash ends all connections: so
 * what a new connection sees counts only after a commit of our own, which the standby has once it returns, and with it all
 * that was committed before.
 */
export interface Confirmed extends Reads {
  /** Repeats work that reads, until none of its reads was the first of a connection. */
  covering<T>(work: () => Promise<T>): Promise<T>
}

/** Writes a record of nothing into the log: its commit waits for the synchronous standby, if there is one. */
export const confirmCommits = (): Query<unknown> =>
  sql.type(z.unknown())`select pg_logical_emit_message(true, 'millrace.confirmed', '')`

/** @param confirm resolves when {@link confirmCommits} is committed. */
export function confirmedReads(reader: Reader, confirm: () => Promise<unknown>): Confirmed {
  // The connection, by its number, whose sight is confirmed.
  let confirmed = 0
  let confirming: Promise<void> | null = null

  const confirmOnce = (): Promise<void> => {
    const connection = reader.opened
    confirming ??= confirm()
      .then(() => {
        confirmed = connection
      })
      .finally(() => {
        confirming = null
      })
    return confirming
  }

  const covering = async <T>(work: () => Promise<T>): Promise<T> => {
    for (;;) {
      const connection = reader.opened
      while (confirmed !== connection && connection === reader.opened) await confirmOnce()
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
