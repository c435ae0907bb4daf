/** Data of one version of a collection. */
export interface Versioned {
  readonly version: number
  /** The size in memory. */
  readonly bytes: number
}

/** Loads the data of a collection; `known` has those of an earlier version. */
export type LoadVersion<T extends Versioned> = (id: number, known: T | undefined) => Promise<T>

/** Holds data of collections in memory, until the collection has a new version or others need the space. */
export class VersionCache<T extends Versioned> {
  readonly #load: LoadVersion<T>
  readonly #maxBytes: number
  readonly #loaded = new Map<number, T>()
  readonly #loading = new Map<number, Promise<T>>()

  /** @param maxBytes limit for all collections; above it, the least recently used ones are evicted. */
  constructor(load: LoadVersion<T>, maxBytes: number) {
    this.#load = load
    this.#maxBytes = maxBytes
  }

  /** Returns the data of a collection in this version or a later one. @throws what the load throws. */
  async get(id: number, version: number): Promise<T> {
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

  #startLoad(id: number): Promise<T> {
    const promise = this.#load(id, this.#loaded.get(id))
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
    let sum = 0
    for (const { bytes } of this.#loaded.values()) sum += bytes
    for (const [id, { bytes }] of this.#loaded) {
      if (sum <= this.#maxBytes || this.#loaded.size === 1) return
      this.#loaded.delete(id)
      sum -= bytes
    }
  }
}
