import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { dumpSchema } from '../sql/server/dump.ts'
import { startEmbedded } from '../sql/server/embedded/embedded.ts'
import { migrate } from '../sql/server/migrate.ts'

/**
 * `npm run schema`: creates a database from the tables and functions of all areas, and dumps the result to `sql/schema.sql`.
 */

const dataDir = mkdtempSync(join(tmpdir(), `millrace-schema-${randomBytes(3).toString('hex')}-`))
const database = await startEmbedded({ dataDir, ephemeral: true })
try {
  await migrate(database.url)
  writeFileSync(new URL('../sql/schema.sql', import.meta.url), await dumpSchema(database.url))
} finally {
  await database.stop()
  rmSync(dataDir, { recursive: true, force: true })
}
