import type { Database } from '../../sql/db.ts'
import { fail } from '../../sql/errors.ts'
import { type FileVectors, floatsOf, listEmbeddedFiles, loadVectors } from '../../sql/rag/vectors.ts'
import { Vectors } from './vectors.ts'

/**
 * Holds the vectors of collections in memory, for databases without pgvector. If a collection has a new version, loads
 * only the changes.
 */

/** The vectors of one version of a collection. */
export interface LoadedVectors {
  readonly version: number
  readonly files: ReadonlyMap<number, FileVectors>
  /** Null without vectors. */
  readonly vectors: Vectors | null
}

const FILES_PER_READ = 500
const MAX_TRIES = 5

export class VectorCache {
  readonly #db: Database
  readonly #maxBytes: number
  readonly #loaded = new Map<number, LoadedVectors>()
  readonly #loading = new Map<number, Promise<LoadedVectors>>()

  /** @param maxBytes limit for all collections; above it, the least recently used ones are evicted. */
  constructor(db: Database, maxBytes: number) {
    this.#db = db
    this.#maxBytes = maxBytes
  }

  /** Returns the vectors of a collection in this version or a later one. @throws fail('rag.missing'), fail('rag.busy'). */
  async get(id: number, version: number): Promise<LoadedVectors> {
    const known = this.#loaded.get(id)
    if (known !== undefined && known.version >= version) {
      // Moves the collection to the end of the eviction order.
      this.#loaded.delete(id)
      this.#loaded.set(id, known)
      return known
    }
    // A load in progress may have started before this version; a load that starts later includes it.
    const loaded = await this.#loading.get(id)
    if (loaded !== undefined && loaded.version >= version) return loaded
    return this.#loading.get(id) ?? this.#startLoad(id)
  }

  #startLoad(id: number): Promise<LoadedVectors> {
    const promise = load(this.#db, id, this.#loaded.get(id)?.files)
      .then((loaded) => {
        this.#loaded.delete(id)
        this.#loaded.set(id, loaded)
        this.#evict()
        return loaded
      })
      .finally(() => this.#loading.delete(id))
    this.#loading.set(id, promise)
    return promise
  }

  #evict(): void {
    // The files have copies of the vectors, from which later versions are built.
    const sizeOf = ({ vectors }: LoadedVectors): number => (vectors?.bytes ?? 0) * 2
    let bytes = 0
    for (const loaded of this.#loaded.values()) bytes += sizeOf(loaded)
    for (const [id, loaded] of this.#loaded) {
      if (bytes <= this.#maxBytes || this.#loaded.size === 1) return
      this.#loaded.delete(id)
      bytes -= sizeOf(loaded)
    }
  }
}

/**
 * Loads a consistent state of a collection. If a concurrent swap removes listed files, reads the list again and loads
 * only the new files.
 */
async function load(
  db: Database,
  id: number,
  known: LoadedVectors['files'] | undefined,
): Promise<LoadedVectors> {
  const files = new Map(known)
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
    return {
      version,
      files: live,
      vectors: dimensions === null ? null : buildVectors([...live.values()], dimensions),
    }
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
