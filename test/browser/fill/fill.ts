import type { TestDatabase } from '../../database.ts'

/** A full set of rows for the pages of an area. */

export interface FillInput {
  readonly query: TestDatabase['query']
  /** The account that looks at the pages, which is an admin. */
  readonly accountId: number
}

/**
 * Inserts the rows of an area: 10,000 of each list, with long and empty texts among them. Returns the address of each
 * page with a parameter, by its path in `pages.json`, such as `{ '/chat/:conversation_id': '/chat/12' }`.
 */
export type Fill = (input: FillInput) => Promise<Readonly<Record<string, string>>>
