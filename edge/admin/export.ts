import { createWriteStream } from 'node:fs'
import { rm, stat } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { findCredentialsByEmail } from '../../sql/accounts/accounts.ts'
import type { Database } from '../../sql/db.ts'
import { generateExportFiles } from '../../tasks/accounts/export.work.ts'
import { type BlobSettings, createBlobs } from '../../tasks/documents/blobs/blobs.ts'
import { createArchive } from '../../tasks/formats/archive.ts'
import { UsageError } from '../../tasks/platform/command.ts'

/**
 * Writes all data of an account, with its files, into a new zip archive. It needs no worker and starts no job, so it is
 * safe in the copy of a service that must not send or charge anything.
 *
 * @throws UsageError if there is no such account, or the file exists.
 */
export async function exportToFile(
  db: Database,
  email: string,
  file: string,
  settings: BlobSettings,
): Promise<string[]> {
  const account = await db.maybeOne(findCredentialsByEmail(email))
  if (account === null) throw new UsageError(`No account with the address ${email}`)
  const blobs = createBlobs(db, settings)
  const context = { db, blobs, signal: new AbortController().signal, reportProgress: () => {} }
  const output = createWriteStream(file, { flags: 'wx', mode: 0o600, flush: true })
  try {
    await pipeline(createArchive(generateExportFiles(context, account.id)), output)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw new UsageError(`${file} exists already`)
    await rm(file, { force: true })
    throw error
  } finally {
    await blobs.close()
  }
  return [`Exported ${email} to ${file}: ${(await stat(file)).size} bytes`]
}
