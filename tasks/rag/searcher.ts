import type { Database } from '../../sql/db.ts'
import { fail } from '../../sql/errors.ts'
import {
  CollectionVersion,
  formatVector,
  type LiveFile,
  listLiveFiles,
  loadFiles,
} from '../../sql/rag/collections.ts'
import {
  readChunks,
  readCollectionState,
  readNeighbours,
  toViewerValues,
  type Viewer,
} from '../../sql/rag/reads.ts'
import type { Reader } from '../../sql/reads/reader.ts'
import { parseQuery, searchTerms } from './bm25.ts'
import { type FusedHit, fuseRanks } from './fuse.ts'
import { buildCollection, filterChunks, type LoadedCollection, metadataOf } from './loaded.ts'
import type { Hit } from './top.ts'

/** Searches collections in memory. When a collection has a new version, loads only the changes. */

export interface Search {
  readonly collection: string
  readonly viewer: Viewer
  readonly query: string
  readonly topK: number
  /** Values that a result's metadata must have; null matches any. */
  readonly filter: Readonly<Record<string, unknown>> | null
  /** Null selects keyword search only. */
  readonly vector: QueryVector | null
}

/** A collection and the caller who requests it. */
export type CollectionRequest = Pick<Search, 'collection' | 'viewer'>

/** Vector of a query. Ignored for collections with vectors of another model. */
export interface QueryVector {
  readonly model: string
  readonly floats: Float32Array
}

/** A result in its public format. */
export interface SearchHit {
  readonly content: string
  readonly metadata: Readonly<Record<string, unknown>>
  /** Score from 0 to 1. */
  readonly score: number
  /** From 1. */
  readonly rank: number
}

export interface Searcher {
  /**
   * Returns the embedding model of a collection; null without vectors.
   *
   * @throws fail('rag.missing') if it is not visible.
   */
  modelOf(asked: CollectionRequest): Promise<string | null>
  /** Returns the best chunks, best first. @throws fail('rag.missing'), fail('rag.busy'). */
  search(search: Search): Promise<readonly SearchHit[]>
}

// Number of candidates from each ranking. Chunks with a lower rank would hardly reach the first 50 results.
const MAX_CANDIDATES = 200
// Limit for all collections in memory; above it, the least recently used ones are evicted.
const MAX_CACHE_BYTES = 2 ** 30
const CHUNKS_PER_READ = 10_000
const MAX_TRIES = 5

export function createSearcher(db: Database, reader: Reader, maxBytes = MAX_CACHE_BYTES): Searcher {
  const cache = new Map<number, LoadedCollection>()
  const loading = new Map<number, Promise<LoadedCollection>>()

  const readVersion = async ({ collection, viewer }: CollectionRequest): Promise<CollectionVersion> => {
    const text = await reader.text(readCollectionState, [collection, ...toViewerValues(viewer)])
    if (text === null) throw fail('rag.missing')
    return CollectionVersion.parse(JSON.parse(text))
  }

  const startLoad = (id: number): Promise<LoadedCollection> => {
    const promise = loadCollection(db, id, cache.get(id)?.files)
      .then((loaded) => {
        cache.delete(id)
        cache.set(id, loaded)
        evictCollections(cache, maxBytes)
        return loaded
      })
      .finally(() => loading.delete(id))
    loading.set(id, promise)
    return promise
  }

  const getCurrent = async ({ id, version }: CollectionVersion): Promise<LoadedCollection> => {
    const known = cache.get(id)
    if (known !== undefined && known.state.version >= version) {
      // Moves the collection to the end of the eviction order.
      cache.delete(id)
      cache.set(id, known)
      return known
    }
    // A load in progress may have started before this version; a load that starts later includes it.
    const loaded = await loading.get(id)
    return loaded !== undefined && loaded.state.version >= version
      ? loaded
      : (loading.get(id) ?? startLoad(id))
  }

  return {
    modelOf: async (asked) => (await readVersion(asked)).model,
    search: async (search) => {
      for (let tries = 0; tries < MAX_TRIES; tries++) {
        const loaded = await getCurrent(await readVersion(search))
        const best = await rankChunks(reader, loaded, search)
        const hits = best && (await readHits(reader, loaded, best))
        // Null means that a concurrent swap removed the texts of this version: search the new one.
        if (hits !== null) return hits
      }
      throw fail('rag.busy')
    },
  }
}

function evictCollections(cache: Map<number, LoadedCollection>, maxBytes: number): void {
  let bytes = 0
  for (const loaded of cache.values()) bytes += loaded.bytes
  for (const [id, loaded] of cache) {
    if (bytes <= maxBytes || cache.size === 1) return
    cache.delete(id)
    bytes -= loaded.bytes
  }
}

/** A row for a file. A collection without files has one row whose `file` is null. */
type ListedFile = LiveFile & { readonly file: number; readonly chunk_count: number }

/**
 * Loads a consistent state of a collection. If a concurrent swap removes listed files, reads the list again and loads
 * only the new files.
 */
async function loadCollection(
  db: Database,
  id: number,
  known: LoadedCollection['files'] | undefined,
): Promise<LoadedCollection> {
  const files = new Map(known)
  const isLoaded = ({ file, model, embedded }: ListedFile): boolean =>
    files.get(file)?.model === (embedded ? model : null)
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const live = await db.any(listLiveFiles(id))
    const [state] = live
    if (state === undefined) throw fail('rag.missing')
    // Do not load vectors that pgvector has indexed, because pgvector searches them.
    const model = state.has_neighbours ? null : state.model
    const listed = live.filter((row): row is ListedFile => row.file !== null)
    for (const ids of groupIntoBatches(listed.filter((row) => !isLoaded(row))))
      for (const file of await db.any(loadFiles(ids, model))) files.set(file.id, file)
    if (listed.every(isLoaded))
      return buildCollection(
        state,
        listed.map(({ file }) => files.get(file)!),
      )
  }
  throw fail('rag.busy')
}

function* groupIntoBatches(listed: readonly ListedFile[]): Generator<number[]> {
  let [batch, chunks]: [number[], number] = [[], 0]
  for (const { file, chunk_count } of listed) {
    batch.push(file)
    chunks += chunk_count
    if (chunks < CHUNKS_PER_READ) continue
    yield batch
    ;[batch, chunks] = [[], 0]
  }
  if (batch.length > 0) yield batch
}

/** Returns the best of the chunks that the filter allows. Null if the collection has changed. */
async function rankChunks(
  reader: Reader,
  loaded: LoadedCollection,
  { query, topK, filter, vector }: Search,
): Promise<readonly FusedHit[] | null> {
  const { model, dimensions, has_neighbours } = loaded.state
  const allowed = filterChunks(loaded, filter)
  const usableVector =
    vector !== null && vector.model === model && vector.floats.length === dimensions ? vector : null
  const lexical = searchTerms(
    loaded.postings,
    parseQuery(query),
    usableVector === null ? topK : MAX_CANDIDATES,
    allowed,
  )
  if (usableVector === null) return fuseRanks(lexical, null, topK)
  if (!has_neighbours)
    return fuseRanks(
      lexical,
      loaded.vectors?.findNearest(usableVector.floats, MAX_CANDIDATES, allowed) ?? null,
      topK,
    )
  const nearest = await findNeighbours(reader, loaded, usableVector, allowed)
  return nearest && fuseRanks(lexical, nearest, topK)
}

/**
 * Finds the nearest chunks with pgvector: by its index, or by an exact search if there is a filter. Null if one of the
 * chunks is not in the loaded version.
 */
async function findNeighbours(
  reader: Reader,
  { state: { id }, positions, firstChunks }: LoadedCollection,
  { model, floats }: QueryVector,
  allowed: Uint8Array | null,
): Promise<readonly Hit[] | null> {
  const candidates = allowed === null ? null : positions.filter((_, chunk) => allowed[chunk] === 1)
  const texts = await reader.texts(readNeighbours, [
    id,
    model,
    floats.length,
    formatVector(floats),
    MAX_CANDIDATES,
    candidates === null ? null : candidates.map(({ file }) => file.id),
    candidates === null ? null : candidates.map(({ ordinal }) => ordinal),
  ])
  const hits: Hit[] = []
  for (const text of texts) {
    const { file, ordinal, score } = JSON.parse(text) as { file: number; ordinal: number; score: number }
    const first = firstChunks.get(file)
    if (first === undefined) return null
    hits.push({ chunk: first + ordinal, score })
  }
  return hits
}

interface ChunkText {
  readonly file: number
  readonly ordinal: number
  /** Null if the document was deleted. */
  readonly content: string | null
  readonly start_offset: number
  readonly end_offset: number
}

/** Adds texts and metadata to hits. Omits chunks of deleted documents. Null if the collection has changed. */
async function readHits(
  reader: Reader,
  { positions }: LoadedCollection,
  hits: readonly FusedHit[],
): Promise<readonly SearchHit[] | null> {
  const at = hits.map(({ chunk }) => positions[chunk]!)
  const texts =
    at.length === 0
      ? []
      : await reader.texts(readChunks, [at.map(({ file }) => file.id), at.map(({ ordinal }) => ordinal)])
  const rows = new Map(
    texts.map((text) => {
      const row = JSON.parse(text) as ChunkText
      return [`${row.file}/${row.ordinal}`, row]
    }),
  )
  if (rows.size < hits.length) return null
  return hits
    .flatMap(({ score, lexical, vector }, i) => {
      const { content, start_offset, end_offset } = rows.get(`${at[i]!.file.id}/${at[i]!.ordinal}`)!
      if (content === null) return []
      const signals = [...(lexical === null ? [] : ['lexical']), ...(vector === null ? [] : ['vector'])]
      const found = { start_offset, end_offset, signals, lexical_rank: lexical, vector_rank: vector }
      const metadata = { ...metadataOf(at[i]!), ...found }
      return [{ content, metadata, score: Math.round(score * 1e6) / 1e6 }]
    })
    .map((hit, i) => ({ ...hit, rank: i + 1 }))
}
