import type { TestDatabase } from './database.ts'

/** Returns a function that inserts an account without a password and returns its id. */
export function createAccountMaker({ query }: Pick<TestDatabase, 'query'>): () => Promise<number> {
  let count = 0
  return async () => {
    const [row] = await query(`insert into account (email, password_hash) values ($1, '') returning id`, [
      `a${++count}@example.com`,
    ])
    return row!.id as number
  }
}
