import { randomUUID } from 'node:crypto'
import { createTestDatabase, type TestDatabase } from '../database.ts'
import { shareByFiles } from '../services.ts'

/**
 * Returns a database that the files of a process share, one after the other. Use it for tests that read only their own
 * rows. In a small file, creating a separate database would take as much time as the tests.
 */
export const sharedDatabase = shareByFiles(createTestDatabase)

/** Returns an email address that no other file uses. */
export const newAddress = (): string => `${randomUUID()}@example.com`

/** Adds an account that never signs in; returns its id. */
export async function newAccount({ query }: Pick<TestDatabase, 'query'>): Promise<number> {
  const [row] = await query(`insert into account (email, password_hash) values ($1, '') returning id`, [
    newAddress(),
  ])
  return row!.id as number
}
