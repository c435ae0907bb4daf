import { randomBytes } from 'node:crypto'
import type { Database } from '../../sql/db.ts'
import { uuidv7 } from '../../sql/ids.ts'
import { insertStoredKey, listStoredKeys, lockStoredKeys, type StoredKey } from '../../sql/system/sealed.ts'
import { withPool } from './command.ts'
import { SecretKeys } from './keys.ts'
import type { Log } from './log.ts'
import { waitForDatabase } from './outage.ts'
import { loadSecretKeys } from './process.ts'
import type { Settings } from './settings/settings.ts'

const KEY_BYTES = 32

const sealUseOf = (id: string): string => `stored_key:${id}`

/** Opens the keys of the settings as {@link openKeys} does; waits for the database. */
export const loadKeys = (settings: Settings, databaseUrl: string, log: Log): Promise<SecretKeys> =>
  waitForDatabase(log, () =>
    withPool(settings, databaseUrl, 'keys', (db) => openKeys(db, loadSecretKeys(settings), log)),
  )

/**
 * Opens the keys of a process: the given ones and those that the database stores. Stores the first one, and another one
 * if the given keys open none.
 *
 * @param secrets SECRET_KEY, then SECRET_KEYS_PREVIOUS
 */
export async function openKeys(
  db: Database,
  secrets: readonly string[],
  log: { warn(message: string): void },
): Promise<SecretKeys> {
  const sealing = new SecretKeys({ secrets, stored: [] })
  const open = (rows: readonly StoredKey[]) =>
    rows.flatMap(({ id, secret }) => sealing.unseal(sealUseOf(id), secret) ?? [])
  const rows = await db.any(listStoredKeys())
  const opened = open(rows)
  if (rows.length > opened.length)
    log.warn(
      'SECRET_KEY and SECRET_KEYS_PREVIOUS do not open all stored keys: see "Lost key" in deploy/operating.md',
    )
  if (opened.length > 0) return new SecretKeys({ secrets, stored: opened })
  const stored = await db.transaction(async (tx) => {
    await tx.run(lockStoredKeys())
    // Another process may have stored one in the meantime.
    const others = open(await tx.any(listStoredKeys()))
    if (others.length > 0) return others
    const [id, key] = [uuidv7(), randomBytes(KEY_BYTES).toString('base64url')]
    await tx.run(insertStoredKey({ id, secret: sealing.seal(sealUseOf(id), key) }))
    return [key]
  })
  return new SecretKeys({ secrets, stored })
}
