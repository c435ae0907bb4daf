import { setTimeout as delay } from 'node:timers/promises'
import { mapDatabaseError } from '../../sql/error-mapping.ts'
import { Failure } from '../../sql/errors.ts'

// When a connection is opened, `database.busy` means that the server has no free connection slot.
const TRANSIENT_CODES: ReadonlySet<string> = new Set(['database.down', 'database.busy'])
const RETRY_INTERVAL_MS = 500
const LOG_INTERVAL_MS = 10_000

/**
 * Retries until the database accepts a connection. Logs every 10 s that it is still waiting.
 *
 * @throws other errors, such as a wrong password.
 */
export async function waitForDatabase<T>(
  log: { warn(line: string): void; info(line: string): void },
  attempt: () => Promise<T>,
): Promise<T> {
  let loggedAt = Number.NEGATIVE_INFINITY
  for (;;) {
    try {
      const result = await attempt()
      if (Number.isFinite(loggedAt)) log.info('Connected to the database')
      return result
    } catch (error) {
      const failure = mapDatabaseError(error)
      if (!(failure instanceof Failure) || !TRANSIENT_CODES.has(failure.code)) throw error
      if (performance.now() - loggedAt >= LOG_INTERVAL_MS) {
        loggedAt = performance.now()
        log.warn(`Waiting for the database: ${describeError(error)}`)
      }
      await delay(RETRY_INTERVAL_MS)
    }
  }
}

/**
 * Describes an error and its causes in one line. Includes the errors of an AggregateError: if pg tried several
 * addresses, it throws one without a message of its own.
 */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const inner = error instanceof AggregateError ? error.errors : [error.cause ?? []].flat()
  return [error.message, ...inner.map(describeError)].filter(Boolean).join(': ')
}
