import type { Database } from '../../sql/db.ts'
import { fail } from '../../sql/errors.ts'
import { type FileVectors, floatsOf, listEmbeddedFiles, loadVectors } from '../../sql/rag/vectors.ts'
import { Vectors } from './vectors.ts'
import type { Versioned } from './version-cache.ts'

/**
 * Loads the vectors of collections into memory, for databases without pgvector. If a collection has a new version, loads
 * only the changes.
 */

/** The vectors of one version of a collection. */
export interface LoadedVectors extends Versioned {
  readonly files: ReadonlyMap<number, FileVectors>
  /** Null without vectors. */
  readonly vectors: Vectors | null
}

const FILES_PER_READ = 500
const MAX_TRIES = 5

/**
 * Loads a consistent state of a collection. If a concurrent swap removes listed files, reads the list again and loads
 * only the new files.
 */
export async function loadCollectionVectors(
  db: Database,
  id: number,
  known: LoadedVectors | undefined,
): Promise<LoadedVectors> {
  const files = new Map(known?.files)
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const rows = await db.any(listEmbeddedFiles(id))
    const [state] = rows
    if (state === undefined) throw fail('rag.missing')
    const { version, model, dimensions } = state
    const isLoaded = (file: number): boolean => files.get(file)?.model === model
    const listed = rows.flatMap(({ file }) => file ?? [])
    const missing = listed.filter((file) => !isLoaded(file))
    for (let from = 0; from < missing.length; from += FILES_PER_READ)
      for (const file of await db.any(loadVectors(missing.slice(from, from + FILES_PER_READ), model!)))
        files.set(file.id, file)
    if (!listed.every(isLoaded)) continue
    const live = new Map(listed.map((file) => [file, files.get(file)!]))
    const vectors = dimensions === null ? null : buildVectors([...live.values()], dimensions)
    // The files have copies of the vectors, from which later versions are built.
    return { version, files: live, vectors, bytes: (vectors?.bytes ?? 0) * 2 }
  }
  throw fail('rag.busy')
}

function buildVectors(files: readonly FileVectors[], dimensions: number): Vectors {
  const rows = files
    .filter((file) => file.dimensions === dimensions)
    .flatMap(({ floats: bytes, numbers }) => {
      const floats = floatsOf(bytes)
      return numbers.map((chunk, i) => ({
        chunk,
        floats: floats.subarray(i * dimensions, (i + 1) * dimensions),
      }))
    })
  return new Vectors(dimensions, rows)
}
