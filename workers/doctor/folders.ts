import { accessSync, constants, statfsSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, resolve } from 'node:path'
import { openDataDir } from '../../sql/server/data-dir.ts'
import { parseLocation } from '../../tasks/documents/blobs/location.ts'
import { describeError } from '../../tasks/platform/outage.ts'
import type { Settings } from '../../tasks/platform/settings/settings.ts'
import { type Finding, note, ok, problem } from './findings.ts'

/** Checks the folders that settings name, and the one of temporary files. */

// Less than this fails soon: PostgreSQL stops if it can't create a WAL file of 16 MiB.
const FULL_BYTES = 64 * 1024 ** 2
// The embedded PostgreSQL may write this much WAL between two checkpoints (its `max_wal_size`).
const LOW_BYTES = 1024 ** 3

export function checkDataDir({ dataDir }: Settings): Finding {
  return checkFolder('DATA_DIR', `${dataDir} is writable`, () => {
    openDataDir(dataDir)
    return dataDir
  })
}

/** Checks the folder of unfinished uploads and of the files of tools. */
export function checkTemporaryFolder(): Finding {
  return checkFolder('TMPDIR', `${tmpdir()} is writable`, () => {
    accessSync(tmpdir(), constants.R_OK | constants.W_OK | constants.X_OK)
    return tmpdir()
  })
}

export function checkRagRoot({ rag: { root } }: Settings): Finding {
  const folder = resolve(root)
  return checkFolder('RAG_ROOT', `${root} is readable`, () => {
    if (!statSync(folder).isDirectory()) throw new Error(`${folder} is not a folder`)
    accessSync(folder, constants.R_OK | constants.X_OK)
    return null
  })
}

/** Checks the folder of stored files, or its nearest existing parent; null if files are not stored in a folder. */
export function checkBlobFolder({ blobs: { store } }: Settings): Finding | null {
  const location = parseLocation(store)
  if (location?.kind !== 'files') return null
  return checkFolder('files', `${store} is writable`, () => {
    const folder = findNearestExisting(resolve(location.folder))
    if (!statSync(folder).isDirectory()) throw new Error(`${folder} is not a folder`)
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK)
    return folder
  })
}

/** Returns the folder itself, or its nearest existing parent. */
const findNearestExisting = (folder: string): string =>
  statSync(folder, { throwIfNoEntry: false }) === undefined ? findNearestExisting(dirname(folder)) : folder

/** Runs a check that throws, or returns the folder that needs free space if the service writes there. */
function checkFolder(name: string, text: string, check: () => string | null): Finding {
  try {
    const written = check()
    if (written === null) return ok(name, text)
    const { bavail, bsize } = statfsSync(written)
    return judgeSpace(name, text, bavail * bsize)
  } catch (error) {
    return problem(name, describeError(error))
  }
}

/** Judges the free space of a folder that the service writes. */
export function judgeSpace(name: string, text: string, freeBytes: number): Finding {
  const space = `${text}, but its disk has only ${Math.floor(freeBytes / 1024 ** 2)} MiB free`
  if (freeBytes < FULL_BYTES) return problem(name, space)
  return freeBytes < LOW_BYTES ? note(name, space) : ok(name, text)
}
