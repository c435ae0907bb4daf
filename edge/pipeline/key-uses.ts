import { touchApiKeys } from '../../sql/api-keys.ts'
import type { Database } from '../../sql/db.ts'

/** When API keys were last used, written once a minute: no request waits for it, and no row is written for each. */
export interface KeyUses {
  add(keyId: string): void
  /** Writes what is not written yet. */
  close(): Promise<void>
}

const EVERY_MS = 60_000

export function createKeyUses(db: Database, onError: (error: unknown) => void): KeyUses {
  let used = new Set<string>()
  const write = async (): Promise<void> => {
    if (used.size === 0) return
    const written = used
    used = new Set()
    try {
      await db.run(touchApiKeys([...written]))
    } catch (error) {
      // With the next ones.
      for (const id of written) used.add(id)
      onError(error)
    }
  }
  const timer = setInterval(write, EVERY_MS).unref()
  return {
    add: (keyId) => void used.add(keyId),
    close: () => {
      clearInterval(timer)
      return write()
    },
  }
}
