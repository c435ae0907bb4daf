import { randomBytes } from 'node:crypto'
import type { Database } from '../../sql/db.ts'
import { uuidv7 } from '../../sql/ids.ts'
import { StartError } from '../../sql/server/start-error.ts'
import { insertStoredKey, listStoredKeys, lockStoredKeys, type StoredKey } from '../../sql/system/sealed.ts'
import { withPool } from './command.ts'
import { SecretKeys } from './keys.ts'
import type { Log } from './log.ts'
import { waitForDatabase } from './outage.ts'
import { loadSecretKeys } from './process.ts'
import type { Settings } from './settings/settings.ts'

const KEY_BYTES = 32

const REMEDY = 'add the previous key to SECRET_KEYS_PREVIOUS, or see "Lost key" in deploy/operating.md'

const sealUseOf = (id: string): string => `stored_key:${id}`

/** Opens the keys of the settings as {@link openKeys} does; waits for the database. */
export const loadKeys = (settings: Settings, databaseUrl: string, log: Log): Promise<SecretKeys> =>
  waitForDatabase(log, () =>
    withPool(settings, databaseUrl, 'keys', (db) => openKeys(db, loadSecretKeys(settings), log)),
  )

/**
 * Opens the keys of a process: the given ones and those that the database stores. Stores the first one.
 *
 * @param secrets SECRET_KEY, then SECRET_KEYS_PREVIOUS
 * @throws StartError if there are stored keys and the given ones open none. This process would make tokens that no other
 *   one accepts.
 */
export async function openKeys(
  db: Database,
  secrets: readonly string[],
  log: { warn(message: string): void },
): Promise<SecretKeys> {
  const sealing = new SecretKeys({ secrets, stored: [] })
  const open = (rows: readonly StoredKey[]): string[] | null => {
    if (rows.length === 0) return null
    const opened = rows.flatMap(({ id, secret }) => sealing.unseal(sealUseOf(id), secret) ?? [])
    if (opened.length === 0) throw new StartError(`SECRET_KEY opens no stored key: ${REMEDY}`)
    if (opened.length < rows.length) log.warn(`SECRET_KEY does not open all stored keys: ${REMEDY}`)
    return opened
  }
  const opened = open(await db.any(listStoredKeys()))
  if (opened !== null) return new SecretKeys({ secrets, stored: opened })
  const stored = await db.transaction(async (tx) => {
    await tx.run(lockStoredKeys())
    // Another process may have stored one in the meantime.
    const others = open(await tx.any(listStoredKeys()))
    if (others !== null) return others
    const [id, key] = [uuidv7(), randomBytes(KEY_BYTES).toString('base64url')]
    await tx.run(insertStoredKey({ id, secret: sealing.seal(sealUseOf(id), key) }))
    return [key]
  })
  return new SecretKeys({ secrets, stored })
}
