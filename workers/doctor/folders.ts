import { accessSync, constants, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { openDataDir } from '../../sql/data-dir.ts'
import { parseLocation } from '../../tasks/documents/blobs/location.ts'
import { reasonOf } from '../../tasks/outage.ts'
import type { Settings } from '../../tasks/settings.ts'
import { type Finding, ok, problem } from './findings.ts'

/** The folders of the settings. */

export function checkDataDir({ dataDir }: Settings): Finding {
  return found('DATA_DIR', `${dataDir} can be written to`, () => openDataDir(dataDir))
}

export function checkRagRoot({ rag: { root } }: Settings): Finding {
  const folder = resolve(root)
  return found('RAG_ROOT', `${root} can be read`, () => {
    if (!statSync(folder).isDirectory()) throw new Error(`${folder} is not a folder`)
    accessSync(folder, constants.R_OK | constants.X_OK)
  })
}

/** The folder of stored files, or where it will be made; null if they are not in a folder. */
export function checkBlobFolder({ blobs: { store } }: Settings): Finding | null {
  const location = parseLocation(store)
  if (location?.kind !== 'files') return null
  return found('files', `${store} can be written to`, () => {
    const folder = existing(resolve(location.folder))
    if (!statSync(folder).isDirectory()) throw new Error(`${folder} is not a folder`)
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK)
  })
}

/** The folder itself, or the nearest one above it that exists. */
const existing = (folder: string): string =>
  statSync(folder, { throwIfNoEntry: false }) === undefined ? existing(dirname(folder)) : folder

function found(what: string, text: string, check: () => void): Finding {
  try {
    check()
    return ok(what, text)
  } catch (error) {
    return problem(what, reasonOf(error))
  }
}
