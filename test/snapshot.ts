import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { startEmbedded } from '../sql/server/embedded/embedded.ts'
import { migrate } from '../sql/server/migrate.ts'
import { computeDigests, makeSnapshot, RELEASES_FOLDER, readVersion, surfaceFileOf } from './releases.ts'
import { launchProcess } from './service.ts'
import { readSurface } from './surface.ts'

/** `npm run snapshot`: writes a snapshot of the current version's data and surface to `test/data/releases`. */

const version = readVersion(new URL('../package.json', import.meta.url))
const dataFolder = mkdtempSync(join(tmpdir(), `millrace-snapshot-${randomBytes(3).toString('hex')}-`))
const database = await startEmbedded({ dataDir: dataFolder, ephemeral: true })
try {
  await migrate(database.url)
  const edge = await launchProcess('edge', database.url)
  try {
    mkdirSync(RELEASES_FOLDER, { recursive: true })
    await makeSnapshot(
      database.url,
      edge.ready.port!,
      fileURLToPath(new URL(`${version}.backup`, RELEASES_FOLDER)),
    )
    const get = async (path: string): Promise<string> =>
      (await fetch(`http://127.0.0.1:${edge.ready.port}${path}`)).text()
    writeFileSync(surfaceFileOf(version), gzipSync(JSON.stringify(await readSurface(get)), { level: 9 }))
  } finally {
    await edge.kill('SIGTERM')
  }
  writeFileSync(
    new URL(`${version}.json`, RELEASES_FOLDER),
    `${JSON.stringify(await computeDigests(), null, 2)}\n`,
  )
} finally {
  await database.stop()
  rmSync(dataFolder, { recursive: true, force: true })
}
