import { accessSync, constants, mkdirSync, statSync } from 'node:fs'
import path from 'node:path'
import { StartError } from './start-error.ts'

const REASON_BY_CODE: Readonly<Record<string, string>> = {
  ENOTDIR: 'a part of its path is a file',
  EACCES: `the user ${process.getuid?.()} may not write there`,
  EPERM: `the user ${process.getuid?.()} may not write there`,
  EROFS: 'its file system is read-only',
  ENOENT: 'its file system accepts no folders',
  ENOSPC: 'its disk is full',
  ELINK: 'a part of its path is a link to nothing',
}

/**
 * Creates the folder of DATA_DIR and its parents, and checks that it is writable.
 *
 * @throws StartError if it is not.
 */
export function openDataDir(dataDir: string): void {
  const folder = path.resolve(dataDir)
  try {
    makeFolder(path.dirname(folder), 0o777)
    makeFolder(folder, 0o700)
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException
    throw new StartError(
      `DATA_DIR can't be ${folder}: ${REASON_BY_CODE[code] ?? message}. Set a folder to which this user may write.`,
    )
  }
}

/**
 * Creates each folder separately, because Node's recursive mkdir never returns on file systems that refuse every folder
 * with ENOENT, such as /proc.
 */
function makeFolder(folder: string, mode: number): void {
  const found = statSync(folder, { throwIfNoEntry: false })
  if (found?.isDirectory()) return
  if (found !== undefined) throw Object.assign(new Error('not a folder'), { code: 'ENOTDIR' })
  makeFolder(path.dirname(folder), 0o777)
  try {
    mkdirSync(folder, { mode })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    // Either another process created the folder first, or there is a link whose target is missing.
    if (statSync(folder, { throwIfNoEntry: false }) === undefined)
      throw Object.assign(new Error('a link to nothing'), { code: 'ELINK' })
  }
}
