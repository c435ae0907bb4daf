import { readdirSync, readFileSync } from 'node:fs'
import { connect } from '../../../sql/driver.ts'

/** Fills a database with a share of a big one, by SQL alone: the files of `seed/`, in the order of their names. */

const FOLDER = new URL('./seed/', import.meta.url)

// Nothing is lost that could not be seeded again, and indexes of big tables are built in memory.
const SETTINGS = `set synchronous_commit = off; set maintenance_work_mem = '512MB'; set work_mem = '128MB'`

/**
 * @param url a migrated database in which the first three accounts have registered: the admin, the big owner and the small one.
 * @param share how much, in percent: at 100 a million documents.
 * @param done called after each file.
 */
export async function seed(
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
    // What autovacuum would do in time: visibility, statistics, and the pending entries of GIN indexes.
    await client.query('vacuum (analyze)')
  } finally {
    await client.end()
  }
}
