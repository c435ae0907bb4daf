import { readdirSync, readFileSync } from 'node:fs'
import { connect } from '../../../sql/connections/driver.ts'

/**
 * Fills a database with a share of the data of a big one. Runs the SQL files of `seed/` in the order of their names.
 */

const FOLDER = new URL('./seed/', import.meta.url)

// Durability does not matter, because the data can be seeded again. More memory speeds up building indexes of big
// tables.
const SETTINGS = `set synchronous_commit = off; set maintenance_work_mem = '512MB'; set work_mem = '128MB'`

/**
 * Seeds a database.
 *
 * @param url a migrated database with accounts 1 to 3
 * @param share size in percent of a million documents
 * @param done called after each file
 */
export async function seedDatabase(
  url: string,
  share: number,
  done: (file: string, ms: number) => void = () => {},
): Promise<void> {
  const client = await connect({ url, applicationName: 'seed' })
  try {
    await client.query(`${SETTINGS}; set growth.share = '${share}'`)
    for (const file of readdirSync(FOLDER).sort()) {
      const startedAt = performance.now()
      await client.query(readFileSync(new URL(file, FOLDER), 'utf8')).catch((error: Error) => {
        throw new Error(`${file}: ${error.message}`, { cause: error })
      })
      done(file, performance.now() - startedAt)
    }
    // Does autovacuum's work: visibility map, statistics and pending entries of GIN indexes.
    await client.query('vacuum (analyze)')
  } finally {
    await client.end()
  }
}
