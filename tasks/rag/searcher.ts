import type { Database } from '../../sql/db.ts'
import { fail } from '../../sql/errors.ts'
import { readChunks, readNeighbours, readState, type Viewer, viewedBy } from '../../sql/rag/reads.ts'
import { CollectionVersion, type LiveFile, liveFiles, loadFiles, textOfVector } from '../../sql/rag.ts'
import type { Reader } from '../../sql/reader.ts'
import { queryOf, searchTerms } from './bm25.ts'
import { type Fused, fused } from './fuse.ts'
import { allowedBy, collectionOf, type Loaded, metadataOf } from './loaded.ts'
import type { Hit } from './top.ts'

/** Searches collections that it keeps in memory; when one has a newer version, only the changes are loaded. */

export interface Search {
  readonly collection: string
  readonly viewer: Viewer
  readonly query: string
  readonly topK: number
  /** Values that a result's metadata must have. */
  readonly filter: Readonly<Record<string, unknown>> | null
  /** Null: search by words only. */
  readonly vector: QueryVector | null
}

/** A collection, and who asks for it. */
export type AskedCollection = Pick<Search, 'collection' | 'viewer'>

/** The vector of a query. It is ignored for a collection whose vectors are from another model. */
export interface QueryVector {
  readonly model: string
  readonly floats: Float32Array
}

/** A chunk that was found, as clients see it. */
export interface SearchHit {
  readonly content: string
  readonly metadata: Readonly<Record<string, unknown>>
  /** From 0 to 1. */
  readonly score: number
  /** From 1. */
  readonly rank: number
}

export interface Searcher {
  /** The model of a collection's vectors, or null. @throws fail('rag.missing'), also for one that the viewer can't see. */
  modelOf(asked: AskedCollection): Promise<string | null>
  /** @throws fail('rag.missing'), fail('rag.busy'). */
  search(search: Search): Promise<readonly SearchHit[]>
}

// How many candidates each signal contributes; any more would hardly be among the first 50.
const CANDIDATES = 200
// Of all collections together; the least recently used one is evicted.
const MAX_BYTES = 2 ** 30
const CHUNKS_AT_ONCE = 10_000
const MAX_TRIES = 5

export function createSearcher(db: Database, reader: Reader, maxBytes = MAX_BYTES): Searcher {
  const kept = new Map<number, Loaded>()
  const loading = new Map<number, Promise<Loaded>>()

  const stateOf = async ({ collection, viewer }: AskedCollection): Promise<CollectionVersion> => {
    const text = await reader.text(readState, [collection, ...viewedBy(viewer)])
    if (text === null) throw fail('rag.missing')
    return CollectionVersion.parse(JSON.parse(text))
  }

  const begin = (id: number): Promise<Loaded> => {
    const work = load(db, id, kept.get(id)?.files)
      .then((loaded) => {
        kept.delete(id)
        kept.set(id, loaded)
        evict(kept, maxBytes)
        return loaded
      })
      .finally(() => loading.delete(id))
    loading.set(id, work)
    return work
  }

  const current = async ({ id, version }: CollectionVersion): Promise<Loaded> => {
    const known = kept.get(id)
    if (known !== undefined && known.state.version >= version) {
      // Used last, it is evicted last.
      kept.delete(id)
      kept.set(id, known)
      return known
    }
    // A load under way may have begun before this version existed; one that begins after that has it.
    const under = await loading.get(id)
    return under !== undefined && under.state.version >= version ? under : (loading.get(id) ?? begin(id))
  }

  return {
    modelOf: async (asked) => (await stateOf(asked)).model,
    search: async (search) => {
      for (let tries = 0; tries < MAX_TRIES; tries++) {
        const loaded = await current(await stateOf(search))
        const best = await ranked(reader, loaded, search)
        const hits = best && (await withContents(reader, loaded, best))
        // A swap in between removes the texts of the old version: then the new one is searched.
        if (hits !== null) return hits
      }
      throw fail('rag.busy')
    },
  }
}

function evict(kept: Map<number, Loaded>, maxBytes: number): void {
  let bytes = 0
  for (const loaded of kept.values()) bytes += loaded.bytes
  for (const [id, loaded] of kept) {
    if (bytes <= maxBytes || kept.size === 1) return
    kept.delete(id)
    bytes -= loaded.bytes
  }
}

/** A row for a file, not for a collection without files. */
type Listed = LiveFile & { readonly file: number; readonly chunk_count: number }

/**
 * A consistent state of a collection. Its files are read after their list, so a swap may remove some of them: then the
 * list is read again, and only what is new in it.
 */
async function load(db: Database, id: number, known: Loaded['files'] | undefined): Promise<Loaded> {
  const files = new Map(known)
  const has = ({ file, model, embedded }: Listed): boolean =>
    files.get(file)?.model === (embedded ? model : null)
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const live = await db.any(liveFiles(id))
    const [state] = live
    if (state === undefined) throw fail('rag.missing')
    // Vectors that pgvector has indexed are not needed here.
    const model = state.has_neighbours ? null : state.model
    const listed = live.filter((row): row is Listed => row.file !== null)
    for (const ids of batchesOf(listed.filter((row) => !has(row))))
      for (const file of await db.any(loadFiles(ids, model))) files.set(file.id, file)
    if (listed.every(has))
      return collectionOf(
        state,
        listed.map(({ file }) => files.get(file)!),
      )
  }
  throw fail('rag.busy')
}

function* batchesOf(listed: readonly Listed[]): Generator<number[]> {
  let [batch, chunks]: [number[], number] = [[], 0]
  for (const { file, chunk_count } of listed) {
    batch.push(file)
    chunks += chunk_count
    if (chunks < CHUNKS_AT_ONCE) continue
    yield batch
    ;[batch, chunks] = [[], 0]
  }
  if (batch.length > 0) yield batch
}

/** The best chunks among those that the filter allows. Null when the collection has changed. */
async function ranked(
  reader: Reader,
  loaded: Loaded,
  { query, topK, filter, vector }: Search,
): Promise<readonly Fused[] | null> {
  const { model, dimensions, has_neighbours } = loaded.state
  const allowed = allowedBy(loaded, filter)
  const asked =
    vector !== null && vector.model === model && vector.floats.length === dimensions ? vector : null
  const lexical = searchTerms(loaded.postings, queryOf(query), asked === null ? topK : CANDIDATES, allowed)
  if (asked === null) return fused(lexical, null, topK)
  if (!has_neighbours)
    return fused(lexical, loaded.vectors?.nearest(asked.floats, CANDIDATES, allowed) ?? null, topK)
  const near = await neighbours(reader, loaded, asked, allowed)
  return near && fused(lexical, near, topK)
}

/** The nearest chunks by pgvector's index, or exactly if there is a filter. Null when one is of a newer version. */
async function neighbours(
  reader: Reader,
  { state: { id }, places, firsts }: Loaded,
  { model, floats }: QueryVector,
  allowed: Uint8Array | null,
): Promise<readonly Hit[] | null> {
  const only = allowed === null ? null : places.filter((_, chunk) => allowed[chunk] === 1)
  const texts = await reader.texts(readNeighbours, [
    id,
    model,
    floats.length,
    textOfVector(floats),
    CANDIDATES,
    only === null ? null : only.map(({ file }) => file.id),
    only === null ? null : only.map(({ ordinal }) => ordinal),
  ])
  const hits: Hit[] = []
  for (const text of texts) {
    const { file, ordinal, score } = JSON.parse(text) as { file: number; ordinal: number; score: number }
    const first = firsts.get(file)
    if (first === undefined) return null
    hits.push({ chunk: first + ordinal, score })
  }
  return hits
}

interface ChunkText {
  readonly file: number
  readonly ordinal: number
  /** Null when the document was deleted. */
  readonly content: string | null
  readonly start_offset: number
  readonly end_offset: number
}

/** The results with their texts, without those of deleted documents; null when the collection has changed. */
async function withContents(
  reader: Reader,
  { places }: Loaded,
  hits: readonly Fused[],
): Promise<readonly SearchHit[] | null> {
  const at = hits.map(({ chunk }) => places[chunk]!)
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
