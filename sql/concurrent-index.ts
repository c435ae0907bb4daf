import type { Client } from './driver.ts'

/**
 * Migrations that build an index without keeping anybody from writing meanwhile. Such a statement is in no transaction, so
 * what an attempt that failed has left is removed before the next one.
 */

// For migrations/NNNNNN-name.sql.
const MARK = /^-- not in a transaction\n/
const STATEMENT = /^create (?:unique )?index concurrently ([a-z0-9_]+) on /m

/** Whether a migration says that it is in no transaction. */
export const isConcurrent = (text: string): boolean => MARK.test(text)

/**
 * Builds the index of such a migration, unless it is there already.
 * @throws when it is anything but one `create index concurrently`.
 */
export async function buildIndex(client: Client, migration: string, text: string): Promise<void> {
  const index = STATEMENT.exec(text)?.[1]
  if (index === undefined)
    throw new Error(
      `Migration ${migration}: only "create index concurrently NAME on …" can be in no transaction`,
    )
  const { rows } = await client.query<{ valid: boolean }>(
    'select indisvalid as valid from pg_index where indexrelid = to_regclass($1)',
    [index],
  )
  if (rows[0]?.valid) return
  if (rows.length > 0) await client.query(`drop index concurrently ${index}`)
  try {
    // It waits for every transaction that was there before, however long that takes, and nobody waits for it.
    await client.query(text)
  } catch (error) {
    throw new Error(`Migration ${migration} could not be applied`, { cause: error })
  }
}
