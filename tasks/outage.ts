import { setTimeout as delay } from 'node:timers/promises'
import { Failure, mapDatabaseError } from '../sql/errors.ts'

// `database.busy` is, of a connection, that the server has none to spare.
const PASSING: ReadonlySet<string> = new Set(['database.down', 'database.busy'])
const RETRY_MS = 500
const LOG_INTERVAL_MS = 10_000

/**
 * Tries until the database can be reached and has a connection to spare, and says in the log every 10 s that it waits.
 * @throws what is no outage, such as a wrong password.
 */
export async function untilReached<T>(
  log: { warn(line: string): void; info(line: string): void },
  attempt: () => Promise<T>,
): Promise<T> {
  let loggedAt = Number.NEGATIVE_INFINITY
  for (;;) {
    try {
      const reached = await attempt()
      if (Number.isFinite(loggedAt)) log.info('The database is reached')
      return reached
    } catch (error) {
      const failure = mapDatabaseError(error)
      if (!(failure instanceof Failure) || !PASSING.has(failure.code)) throw error
      if (performance.now() - loggedAt >= LOG_INTERVAL_MS) {
        loggedAt = performance.now()
        log.warn(`Waiting for the database: ${reasonOf(error)}`)
      }
      await delay(RETRY_MS)
    }
  }
}

/** In one line, with what caused it; several addresses that were tried come as one error without a message. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const inner = error instanceof AggregateError ? error.errors : [error.cause ?? []].flat()
  return [error.message, ...inner.map(reasonOf)].filter(Boolean).join(': ')
}
