import { touchSessions, type UsedSession } from '../../sql/accounts/sessions.ts'
import { touchApiKeys } from '../../sql/api-keys.ts'
import type { Database } from '../../sql/db.ts'

/**
 * When API keys and sessions were last used, and sessions from where, written once a minute: no request waits for it, and no
 * row is written for each.
 */
export interface Uses {
  key(keyId: string): void
  /** Asks where from only at the first use since the last write: reading the address of each request costs too much. */
  session(sessionId: string, from: () => Omit<UsedSession, 'id'>): void
  /** Writes what is not written yet. */
  close(): Promise<void>
}

const EVERY_MS = 60_000

export function createUses(db: Database, onError: (error: unknown) => void): Uses {
  const keys = batches<string>((some) => db.run(touchApiKeys(some.map(([id]) => id))), onError)
  const sessions = batches<Omit<UsedSession, 'id'>>(
    (some) => db.run(touchSessions(some.map(([id, from]) => ({ id, ...from })))),
    onError,
  )
  const write = async (): Promise<void> => {
    await keys.write()
    await sessions.write()
  }
  const timer = setInterval(write, EVERY_MS).unref()
  return {
    key: (keyId) => keys.add(keyId, () => keyId),
    session: (sessionId, from) => sessions.add(sessionId, from),
    close: () => {
      clearInterval(timer)
      return write()
    },
  }
}

/** What was used since the last write, by id, each with what was known at its first use. */
function batches<T>(
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
        // With the next ones.
        used = new Map([...written, ...used])
        onError(error)
      }
    },
  }
}
