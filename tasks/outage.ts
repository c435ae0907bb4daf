import { setTimeout as delay } from 'node:timers/promises'
import { Failure, mapDatabaseError } from '../sql/errors.ts'
import type { Log } from './log.ts'

const RETRY_MS = 500
const TOLD_MS = 10_000

/**
 * Tries until the database can be reached, and says in the log every 10 s that it waits.
 * @throws what is no outage, such as a wrong password.
 */
export async function untilReached<T>(
  log: Pick<Log, 'warn' | 'info'>,
  attempt: () => Promise<T>,
): Promise<T> {
  let toldAt = Number.NEGATIVE_INFINITY
  for (;;) {
    try {
      const reached = await attempt()
      if (Number.isFinite(toldAt)) log.info('The database is reached')
      return reached
    } catch (error) {
      const failure = mapDatabaseError(error)
      if (!(failure instanceof Failure) || failure.code !== 'database.down') throw error
      if (performance.now() - toldAt >= TOLD_MS) {
        toldAt = performance.now()
        log.warn(`Waiting for the database: ${reasonOf(error)}`)
      }
      await delay(RETRY_MS)
    }
  }
}

/** In one line; several addresses that were tried come as one error without a text. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join('; ')
  return error instanceof Error ? error.message : String(error)
}
