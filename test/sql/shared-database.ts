import { randomUUID } from 'node:crypto'
import { type TestDatabase, testDatabase } from '../database.ts'
import { sharedByFiles } from '../services.ts'

/**
 * A database that the files of a process share, one after the other, for tests that read only their own rows. A copy
 * with its connections costs as much as the tests of a small file.
 */
export const sharedDatabase = sharedByFiles(testDatabase)

/** An e-mail address that no other file uses. */
export const newAddress = (): string => `${randomUUID()}@example.com`

/** Adds an account that never signs in; returns its id. */
export async function newAccount({ query }: Pick<TestDatabase, 'query'>): Promise<number> {
  const [row] = await query(`insert into account (email, password_hash) values ($1, '') returning id`, [
    newAddress(),
  ])
  return row!.id as number
}
