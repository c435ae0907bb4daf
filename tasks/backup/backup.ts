import { open, rename, rm, stat } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import {
  beginSnapshot,
  bytesSection,
  databaseSections,
  type Header,
  missingSection,
  type StoredBytes,
  storedBytes,
} from '../../sql/backup/dump.ts'
import { BackupError, frames, MAGIC, type Section } from '../../sql/backup/format.ts'
import { createDatabase } from '../../sql/db.ts'
import { type Client, connect } from '../../sql/driver.ts'
import type { CommandDatabase } from '../command.ts'
import { type Blobs, createBlobs } from '../documents/blobs.ts'
import type { Settings } from '../settings.ts'

/** What a backup contains, and what it does not. */
export interface BackupReport {
  tables: number
  rows: number
  /** Files of a `file:` store. */
  files: number
  /** Files that their store had lost. */
  missing: number
  /** Bytes in buckets, which have backups of their own. */
  elsewhere: { readonly store: string; readonly count: number; readonly bytes: number }[]
}

// Fast, and still compresses text well; images and PDFs do not get smaller anyway.
const GZIP_LEVEL = 3

/**
 * Writes a consistent snapshot of the database and of the files in folders, while the service runs. The file appears
 * under its name once it is complete and on disk.
 *
 * @throws BackupError when the file already exists.
 */
export async function backUp(
  settings: Settings,
  database: CommandDatabase,
  file: string,
): Promise<BackupReport> {
  if (await exists(file)) throw new BackupError(`${file} already exists`)
  const applicationName = `${settings.projectName}-backup`
  const db = createDatabase({
    url: database.url,
    applicationName,
    size: 1,
    validateRows: false,
    pooled: settings.databasePooled,
  })
  const blobs = createBlobs(db, settings)
  const client = await connect({ url: database.directUrl, applicationName })
  const report: BackupReport = { tables: 0, rows: 0, files: 0, missing: 0, elsewhere: [] }
  const part = `${file}.part`
  try {
    await beginSnapshot(client)
    const target = await open(part, 'wx', 0o600)
    try {
      await target.appendFile(MAGIC)
      const gzip = createGzip({ level: GZIP_LEVEL })
      await pipeline(frames(sections(client, blobs, report)), gzip, async (chunks) => {
        for await (const chunk of chunks) await target.appendFile(chunk as Buffer)
      })
      await target.sync()
    } finally {
      await target.close()
    }
    await rename(part, file)
    return report
  } catch (error) {
    await rm(part, { force: true })
    throw error
  } finally {
    await client.end()
    await blobs.close()
    await db.close()
  }
}

async function* sections(
  client: Client,
  blobs: Blobs,
  report: BackupReport,
): AsyncGenerator<Section<Header>> {
  for await (const section of databaseSections(client)) {
    if (section.header.kind === 'table') {
      report.tables++
      report.rows += section.header.rows
    }
    yield section
  }
  for (const blob of await storedBytes(client, 'file:%')) {
    // The collector may have removed it since the snapshot, when nothing referenced it any more.
    const found = await blobs.exists(atOf(blob), blob.byte_size)
    report[found ? 'files' : 'missing']++
    yield found ? bytesSection(blob, blobs.read(atOf(blob), 0, blob.byte_size)) : missingSection(blob)
  }
  const byStore = Map.groupBy(await storedBytes(client, 's3://%'), ({ store }) => store)
  for (const [store, all] of byStore)
    report.elsewhere.push({
      store,
      count: all.length,
      bytes: all.reduce((sum, { byte_size }) => sum + byte_size, 0),
    })
}

export const atOf = ({ blob_id, store, key }: StoredBytes) => ({ blob_id, store, key, upload_id: null })

async function exists(file: string): Promise<boolean> {
  return stat(file).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return false
      throw error
    },
  )
}
