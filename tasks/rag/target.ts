import { realpath, stat } from 'node:fs/promises'
import { isAbsolute, relative, resolve, sep } from 'node:path'
import { type Failure, fail } from '../../sql/errors.ts'

/** Target of an index request: the root, or a folder or file below it. Neither path contains symbolic links. */
export interface IndexTarget {
  readonly root: string
  readonly path: string
  readonly isFolder: boolean
}

/**
 * Resolves a path that is absolute or relative to the root. The path must be inside the root.
 *
 * @throws fail('rag.path_outside'), fail('rag.path_missing'), fail('rag.path_kind'), fail('rag.path_denied'),
 * fail('rag.root_missing').
 */
export async function resolveTarget(root: string, requested: string): Promise<IndexTarget> {
  if (requested.includes('\0')) throw fail('rag.path_missing')
  const base = await realpath(root).catch(() => {
    throw fail('rag.root_missing')
  })
  const resolved = resolve(base, requested)
  // Reject the path before any file access, because the access would reveal whether a path outside the root exists.
  if (!isWithin(base, resolved) && !isWithin(resolve(root), resolved)) throw fail('rag.path_outside')
  const path = await realpath(resolved).catch((error) => {
    throw createAccessFailure(error)
  })
  if (!isWithin(base, path)) throw fail('rag.path_outside')
  const found = await stat(path).catch((error) => {
    throw createAccessFailure(error)
  })
  if (!found.isDirectory() && !found.isFile()) throw fail('rag.path_kind')
  return { root: base, path, isFolder: found.isDirectory() }
}

/** True if a path is the folder or is inside it. Both must be normalized. */
export function isWithin(folder: string, path: string): boolean {
  const way = relative(folder, path)
  return way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way)
}

/** Creates the failure for a target that cannot be accessed. */
export function createAccessFailure(error: unknown): Failure {
  const { code } = error as NodeJS.ErrnoException
  return code === 'EACCES' || code === 'EPERM' ? fail('rag.path_denied') : fail('rag.path_missing')
}
