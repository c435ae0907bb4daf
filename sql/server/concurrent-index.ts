import type { Client } from '../connections/driver.ts'

/**
 * Migrations that build an index without blocking writers. They run outside a transaction, so the next attempt first
 * removes the remains of a failed one.
 */

// Patterns for the text of a migration.
const NO_TRANSACTION_MARKER = /^-- not in a transaction\n/
const CREATE_INDEX_PATTERN = /^create (?:unique )?index concurrently ([a-z0-9_]+) on /m

/** True if a migration is marked to run outside a transaction. */
export const isConcurrent = (text: string): boolean => NO_TRANSACTION_MARKER.test(text)

/**
 * Builds the index of a concurrent migration, unless a valid one exists.
 * @throws if the migration is anything but one `create index concurrently`.
 */
export async function buildIndex(client: Client, migration: string, text: string): Promise<void> {
  const index = CREATE_INDEX_PATTERN.exec(text)?.[1]
  if (index === undefined)
    throw new Error(
      `Migration ${migration}: only "create index concurrently NAME on …" may run outside a transaction`,
    )
  const { rows } = await client.query<{ valid: boolean }>(
    'select indisvalid as valid from pg_index where indexrelid = to_regclass($1)',
    [index],
  )
  if (rows[0]?.valid) return
  if (rows.length > 0) await client.query(`drop index concurrently ${index}`)
  try {
    // The statement waits for every earlier transaction, however long that takes, without blocking others.
    await client.query(text)
  } catch (error) {
    throw new Error(`Migration ${migration} could not be applied`, { cause: error })
  }
}
