import { open, rename, rm, stat } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import type { Client } from '../../sql/connections/driver.ts'
import { createDatabase } from '../../sql/db.ts'
import {
  createBytesSection,
  createMissingSection,
  dumpDatabaseSections,
  listStoredBytes,
  openSnapshot,
  type SectionSource,
  type StoredBytes,
} from '../../sql/server/backup/dump.ts'
import { BackupError, MAGIC } from '../../sql/server/backup/format.ts'
import { acquireLock } from '../../sql/server/file-lock.ts'
import { type Blobs, createBlobs } from '../documents/blobs/blobs.ts'
import type { CommandDatabase } from '../platform/command.ts'
import type { Settings } from '../platform/settings/settings.ts'
import { compressSections } from './compress.ts'

/** Statistics of a backup. */
export interface BackupReport {
  tables: number
  rows: number
  /** Number of files in the backup, from `file:` stores. */
  files: number
  /** Number of files that no longer exist in their store. */
  missing: number
  /** Files in buckets, which need their own backups. */
  inBuckets: { readonly store: string; readonly count: number; readonly bytes: number }[]
}

// At most 8, so that the database gets enough CPU.
const READER_COUNT = Math.min(Math.max(availableParallelism(), 2), 8)

/**
 * Writes a consistent snapshot of the database and of the files in `file:` stores, while the service runs. The backup
 * gets its final name once it is complete and synced to disk. If an earlier backup was killed, replaces its partial
 * file.
 *
 * @throws BackupError if the file already exists.
 */
export async function backUp(
  settings: Settings,
  database: CommandDatabase,
  file: string,
): Promise<BackupReport> {
  if (await fileExists(file)) throw new BackupError(`${file} already exists`)
  const unlock = acquireLock(
    `${file}.lock`,
    (pid) => new Error(`Another backup is already writing ${file} (pid ${pid})`),
  )
  const part = `${file}.part`
  try {
    const report = await writePartialBackup(settings, database, part)
    await rename(part, file)
    return report
  } catch (error) {
    await rm(part, { force: true })
    throw error
  } finally {
    unlock()
  }
}

async function writePartialBackup(
  settings: Settings,
  database: CommandDatabase,
  part: string,
): Promise<BackupReport> {
  const applicationName = `${settings.projectName}-backup`
  const db = createDatabase({
    url: database.url,
    applicationName,
    size: READER_COUNT,
    validateRows: false,
    pooled: settings.databasePooled,
  })
  const blobs = createBlobs(db, settings)
  const report: BackupReport = { tables: 0, rows: 0, files: 0, missing: 0, inBuckets: [] }
  try {
    const snapshot = await openSnapshot({ url: database.directUrl, applicationName }, READER_COUNT)
    try {
      await writeFile(
        part,
        compressSections(readSourceSections(snapshot.main, blobs, report), snapshot.readers),
      )
    } finally {
      await snapshot.close()
    }
    return report
  } finally {
    await blobs.close()
    await db.close()
  }
}

async function writeFile(name: string, chunks: AsyncIterable<Uint8Array>): Promise<void> {
  const target = await open(name, 'w', 0o600)
  try {
    await target.appendFile(MAGIC)
    for await (const chunk of chunks) await target.appendFile(chunk)
    await target.sync()
  } finally {
    await target.close()
  }
}

async function* readSourceSections(
  client: Client,
  blobs: Blobs,
  report: BackupReport,
): AsyncGenerator<SectionSource> {
  const countRows = (rows: number): void => {
    report.rows += rows
  }
  for await (const section of dumpDatabaseSections(client, countRows)) {
    if (section.header.kind === 'table' && section.header.part === 0) report.tables++
    yield section
  }
  for (const blob of await listStoredBytes(client, 'file:%')) {
    // Garbage collection may have removed an unreferenced file since the snapshot.
    const found = await blobs.exists(blobLocationOf(blob), blob.byte_size)
    report[found ? 'files' : 'missing']++
    yield found
      ? createBytesSection(blob, () => blobs.read(blobLocationOf(blob), 0, blob.byte_size))
      : createMissingSection(blob)
  }
  const byStore = Map.groupBy(await listStoredBytes(client, 's3://%'), ({ store }) => store)
  for (const [store, all] of byStore)
    report.inBuckets.push({
      store,
      count: all.length,
      bytes: all.reduce((sum, { byte_size }) => sum + byte_size, 0),
    })
}

export const blobLocationOf = ({ blob_id, store, key }: StoredBytes) => ({
  blob_id,
  store,
  key,
  upload_id: null,
})

async function fileExists(file: string): Promise<boolean> {
  return stat(file).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return false
      throw error
    },
  )
}
