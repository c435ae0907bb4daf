import { accessSync, constants, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { openDataDir } from '../../sql/server/data-dir.ts'
import { parseLocation } from '../../tasks/documents/blobs/location.ts'
import { describeError } from '../../tasks/platform/outage.ts'
import type { Settings } from '../../tasks/platform/settings/settings.ts'
import { type Finding, ok, problem } from './findings.ts'

/** Checks the folders that settings name. */

export function checkDataDir({ dataDir }: Settings): Finding {
  return checkFolder('DATA_DIR', `${dataDir} is writable`, () => openDataDir(dataDir))
}

export function checkRagRoot({ rag: { root } }: Settings): Finding {
  const folder = resolve(root)
  return checkFolder('RAG_ROOT', `${root} is readable`, () => {
    if (!statSync(folder).isDirectory()) throw new Error(`${folder} is not a folder`)
    accessSync(folder, constants.R_OK | constants.X_OK)
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
  })
}

/** Returns the folder itself, or its nearest existing parent. */
const findNearestExisting = (folder: string): string =>
  statSync(folder, { throwIfNoEntry: false }) === undefined ? findNearestExisting(dirname(folder)) : folder

function checkFolder(name: string, text: string, check: () => void): Finding {
  try {
    check()
    return ok(name, text)
  } catch (error) {
    return problem(name, describeError(error))
  }
}
