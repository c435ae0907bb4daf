import { type Client, connect } from '../../sql/connections/driver.ts'
import { createDatabase } from '../../sql/db.ts'
import { deleteUnsealedBlobs, relocateBlob, relocateUnsealedBlobs } from '../../sql/documents/blobs.ts'
import type { SectionHeader } from '../../sql/server/backup/dump.ts'
import { BackupError, readSections } from '../../sql/server/backup/format.ts'
import {
  beginLoad,
  clearDatabase,
  deliverAvailableJobs,
  endLoad,
  isEmptyDatabase,
  loadSection,
  readToEnd,
} from '../../sql/server/backup/load.ts'
import { createEmptySchema, migrate } from '../../sql/server/migrate.ts'
import { listMigrationNames } from '../../sql/server/migrations.ts'
import { createBlobs } from '../documents/blobs/blobs.ts'
import type { CommandDatabase } from '../platform/command.ts'
import type { Settings } from '../platform/settings/settings.ts'
import { blobLocationOf } from './backup.ts'

export interface RestoreReport {
  readonly createdAt: string
  readonly tables: number
  readonly rows: number
  readonly files: number
  readonly missing: number
}

/**
 * Reads a whole backup and returns its header. @throws BackupError if it is incomplete, damaged or from a newer
 * version.
 */
export async function verifyBackup(file: string): Promise<SectionHeader & { readonly kind: 'backup' }> {
  let first: SectionHeader | null = null
  for await (const { header, data } of readSections<SectionHeader>(file)) {
    await readToEnd(data)
    first ??= header
  }
  if (first?.kind !== 'backup') throw new BackupError('The backup is damaged or incomplete')
  const known = new Set(await listMigrationNames())
  const newer = first.migrations.filter((name) => !known.has(name))
  if (newer.length > 0)
    throw new BackupError(`The backup is from a newer version; unknown migrations: ${newer.join(', ')}`)
  return first
}

/**
 * Verifies a whole backup, then restores it into an empty database. Writes files of `file:` stores to `BLOB_STORE`.
 * Empties the database after a failure.
 *
 * @throws BackupError if the backup is invalid or the database is not empty.
 */
export async function restore(
  settings: Settings,
  database: CommandDatabase,
  file: string,
): Promise<RestoreReport> {
  const { createdAt, migrations } = await verifyBackup(file)
  const client = await connect({
    url: database.directUrl,
    applicationName: `${settings.projectName}-restore`,
  })
  try {
    if (!(await isEmptyDatabase(client)))
      throw new BackupError('The database is not empty; restore into a new database')
    try {
      await createEmptySchema(database.directUrl, migrations.at(-1)!)
      const report = await loadBackup(settings, database, client, file)
      await migrate(database.directUrl, { appRole: settings.databaseAppRole })
      await deliverAvailableJobs(client)
      return { createdAt, ...report }
    } catch (error) {
      await client.query('rollback')
      await clearDatabase(client)
      throw error
    }
  } finally {
    await client.end()
  }
}

async function loadBackup(
  settings: Settings,
  database: CommandDatabase,
  client: Client,
  file: string,
): Promise<Omit<RestoreReport, 'createdAt'>> {
  const report = { tables: 0, rows: 0, files: 0, missing: 0 }
  const applicationName = `${settings.projectName}-restore`
  const db = createDatabase({
    url: database.url,
    applicationName,
    size: 2,
    validateRows: false,
    pooled: settings.databasePooled,
  })
  const blobs = createBlobs(db, settings)
  const { store } = settings.blobs
  const held = await beginLoad(client)
  let loading = true
  const finish = async (): Promise<void> => {
    if (loading) await endLoad(client, held)
    loading = false
  }
  try {
    for await (const section of readSections<SectionHeader>(file)) {
      const { header, data } = section
      if (header.kind === 'table' || header.kind === 'sequences') {
        report.rows += await loadSection(client, section)
        if (header.kind === 'table' && header.part === 0) report.tables++
        continue
      }
      if (header.kind === 'bytes') {
        // A backup contains all tables before the files, so the rows of this file exist.
        await finish()
        await blobs.put({ ...blobLocationOf(header.blob), store }, data)
        await db.run(relocateBlob(header.blob.blob_id, store))
        report.files++
        continue
      }
      if (header.kind === 'missing') report.missing++
      await readToEnd(data)
    }
    await finish()
    await db.run(relocateUnsealedBlobs(store))
    await db.run(deleteUnsealedBlobs())
    return report
  } finally {
    await blobs.close()
    await db.close()
  }
}
