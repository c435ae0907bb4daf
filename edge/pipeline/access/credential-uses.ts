import { recordSessionUse, type UsedSession } from '../../../sql/accounts/sessions.ts'
import type { Database } from '../../../sql/db.ts'
import { recordKeyUse } from '../../../sql/keys/api-keys.ts'
import { storePeriodically } from '../../../tasks/platform/periodic.ts'

/**
 * Records the last use of API keys and sessions, and where a session was used from. Uses are written once a minute, so
 * that requests neither wait nor write a row each.
 */
export interface CredentialUses {
  recordKey(keyId: string): void
  /** Calls `from` only for the first use since the last write, because reading every address costs too much. */
  recordSession(sessionId: string, from: () => Omit<UsedSession, 'id'>): void
  /** Writes all pending uses. */
  close(): Promise<void>
}

const WRITE_INTERVAL_MS = 60_000

export function createCredentialUses(db: Database, onError: (error: unknown) => void): CredentialUses {
  const keys = createUseBatch<string>((some) => db.run(recordKeyUse(some.map(([id]) => id))), onError)
  const sessions = createUseBatch<Omit<UsedSession, 'id'>>(
    (some) => db.run(recordSessionUse(some.map(([id, from]) => ({ id, ...from })))),
    onError,
  )
  const write = async (): Promise<void> => {
    await keys.write()
    await sessions.write()
  }
  const close = storePeriodically(WRITE_INTERVAL_MS, write, onError)
  return {
    recordKey: (keyId) => keys.add(keyId, () => keyId),
    recordSession: (sessionId, from) => sessions.add(sessionId, from),
    close,
  }
}

/** Collects uses by id until the next write, and keeps only the first use of each id. */
function createUseBatch<T>(
  store: (used: readonly (readonly [id: string, use: T])[]) => Promise<unknown>,
  onError: (error: unknown) => void,
) {
  let used = new Map<string, T>()
  return {
    add: (id: string, use: () => T): void => {
      if (!used.has(id)) used.set(id, use())
    },
    write: async (): Promise<void> => {
      if (used.size === 0) return
      const written = used
      used = new Map()
      try {
        await store([...written])
      } catch (error) {
        // Retry these uses with the next write.
        used = new Map([...written, ...used])
        onError(error)
      }
    },
  }
}
