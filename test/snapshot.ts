import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startEmbedded } from '../sql/embedded.ts'
import { migrate } from '../sql/migrate.ts'
import { digests, makeSnapshot, RELEASES, versionOf } from './releases.ts'
import { launch } from './service.ts'

/** `npm run snapshot`: writes a snapshot of the current version's data to `test/data/releases`. */

const version = versionOf(new URL('../package.json', import.meta.url))
const dataDir = mkdtempSync(join(tmpdir(), `millrace-snapshot-${randomBytes(3).toString('hex')}-`))
const database = await startEmbedded({ dataDir, ephemeral: true })
try {
  await migrate(database.url)
  const edge = await launch('edge', database.url)
  try {
    mkdirSync(RELEASES, { recursive: true })
    await makeSnapshot(database.url, edge.ready.port!, fileURLToPath(new URL(`${version}.backup`, RELEASES)))
  } finally {
    await edge.kill('SIGTERM')
  }
  writeFileSync(new URL(`${version}.json`, RELEASES), `${JSON.stringify(await digests(), null, 2)}\n`)
} finally {
  await database.stop()
  rmSync(dataDir, { recursive: true, force: true })
}
