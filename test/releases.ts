import { createHash } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { listMigrationNames, readMigration, SEEDS_NAME } from '../sql/server/migrations.ts'
import { backUp } from '../tasks/backup/backup.ts'
import { parseSettings } from '../tasks/platform/settings/settings.ts'
import { SECRET } from './service.ts'
import { writeUpgradeData } from './upgrade-data.ts'

/**
 * Snapshots of releases. `VERSION.backup` is the backup of a database with data and waiting jobs. `VERSION.json` has
 * the digests of its baseline and migrations, and `VERSION.surface.json.gz` what it promises. `npm run snapshot` makes all. Tests upgrade each backup to the current
 * version.
 */

export const RELEASES_FOLDER = new URL('./data/releases/', import.meta.url)

/** Returns the versions that have a snapshot, oldest first. */
export const listReleasedVersions = (): string[] =>
  globSync('*.backup', { cwd: fileURLToPath(RELEASES_FOLDER) })
    .map((name) => basename(name, '.backup'))
    .sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))

/** Returns the file with the surface of a release, see `surface.ts`. */
export const surfaceFileOf = (version: string): URL => new URL(`${version}.surface.json.gz`, RELEASES_FOLDER)

/** True if a version needs a snapshot. */
export const needsSnapshot = (version: string): boolean => Number(version.split('.')[0]) >= 1

export const readVersion = (manifest: string | URL): string =>
  (JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version

/**
 * Returns the SHA-256 of the baseline and of each migration, keyed by file name. Comments are not hashed. The SQL must
 * not change, because existing databases depend on it.
 */
export async function computeDigests(): Promise<Record<string, string>> {
  const names = (await listMigrationNames()).filter((name) => name !== SEEDS_NAME)
  const texts = await Promise.all(names.map((name) => readMigration(name)))
  return Object.fromEntries(
    names.map((name, n) => [name, createHash('sha256').update(normalizeSql(texts[n]!)).digest('hex')]),
  )
}

const normalizeSql = (text: string): string => text.replace(/--.*$/gm, '').replace(/\s+/g, ' ').trim()

/** Fills a migrated database through its edge and backs it up to `file`. */
export async function makeSnapshot(url: string, port: number, file: string): Promise<void> {
  await writeUpgradeData(port)
  await backUp(parseSettings({ NODE_ENV: 'test', SECRET_KEY: SECRET }), { url, directUrl: url }, file)
}
