import { realpath, stat } from 'node:fs/promises'
import { isAbsolute, relative, resolve, sep } from 'node:path'
import { type Failure, fail } from '../../sql/errors.ts'

/** The target of an index request: a folder or file below the root, both without symbolic links in their paths. */
export interface Place {
  readonly root: string
  readonly path: string
  readonly isFolder: boolean
}

/**
 * Resolves a path: relative to the root, or absolute and inside it.
 * @throws fail('rag.path_outside'), fail('rag.path_missing'), fail('rag.path_kind'), fail('rag.path_denied'),
 *   fail('rag.root_missing').
 */
export async function placeOf(root: string, given: string): Promise<Place> {
  if (given.includes('\0')) throw fail('rag.path_missing')
  const base = await realpath(root).catch(() => {
    throw fail('rag.root_missing')
  })
  const wanted = resolve(base, given)
  // Refused before any access, which would reveal what exists outside.
  if (!isWithin(base, wanted) && !isWithin(resolve(root), wanted)) throw fail('rag.path_outside')
  const path = await realpath(wanted).catch((error) => {
    throw refusal(error)
  })
  if (!isWithin(base, path)) throw fail('rag.path_outside')
  const found = await stat(path).catch((error) => {
    throw refusal(error)
  })
  if (!found.isDirectory() && !found.isFile()) throw fail('rag.path_kind')
  return { root: base, path, isFolder: found.isDirectory() }
}

/** Whether a path is the folder or is inside it; for paths without `..`. */
export function isWithin(folder: string, path: string): boolean {
  const way = relative(folder, path)
  return way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way)
}

/** Why a place can't be indexed. */
export function refusal(error: unknown): Failure {
  const { code } = error as NodeJS.ErrnoException
  return code === 'EACCES' || code === 'EPERM' ? fail('rag.path_denied') : fail('rag.path_missing')
}
