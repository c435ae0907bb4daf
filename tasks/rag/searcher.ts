import type { Database } from '../../sql/db.ts'
import { fail } from '../../sql/errors.ts'
import {
  CollectionState,
  type LoadedFile,
  liveFiles,
  loadFiles,
  readChunks,
  readNeighbours,
  readState,
  textOfVector,
} from '../../sql/rag.ts'
import type { Reader } from '../../sql/reader.ts'
import { queryOf, searchTerms } from './bm25.ts'
import { type Fused, fused } from './fuse.ts'
import { allowedBy, collectionOf, type Loaded, metadataOf } from './loaded.ts'
import type { Hit } from './top.ts'

/** Searches in collections that it keeps in memory; whose version has grown is read again, as far as it has changed. */

export interface Search {
  readonly collection: string
  readonly query: string
  readonly topK: number
  /** Values that a result's metadata must have. */
  readonly filter: Readonly<Record<string, unknown>> | null
  /** The query as the collection's model sees it; null: its words alone are looked for. */
  readonly vector: Float32Array | null
}

/** A chunk that answers, as clients see it. */
export interface SearchHit {
  readonly content: string
  readonly metadata: Readonly<Record<string, unknown>>
  /** From 0 to 1. */
  readonly score: number
  /** From 1. */
  readonly rank: number
}

export interface Searcher {
  /** The model that the vectors of a collection are of, or null. @throws fail('rag.missing'). */
  modelOf(collection: string): Promise<string | null>
  /** @throws fail('rag.missing'), fail('rag.busy'). */
  search(search: Search): Promise<readonly SearchHit[]>
}

// Each signal's candidates for the other; more would hardly be among the first 50.
const CANDIDATES = 200
// Of all collections together; the one that was asked least recently leaves.
const MOST_BYTES = 2 ** 30
const CHUNKS_AT_ONCE = 10_000
const MOST_TRIES = 5

export function createSearcher(db: Database, reader: Reader, mostBytes = MOST_BYTES): Searcher {
  const kept = new Map<number, Loaded>()
  const loading = new Map<number, Promise<Loaded>>()

  const stateOf = async (collection: string): Promise<CollectionState> => {
    const text = await reader.text(readState, [collection])
    if (text === null) throw fail('rag.missing')
    return CollectionState.parse(JSON.parse(text))
  }

  const current = (state: CollectionState): Promise<Loaded> | Loaded => {
    const known = kept.get(state.id)
    if (known !== undefined && known.version >= state.version) {
      // Asked last, it leaves last.
      kept.delete(state.id)
      kept.set(state.id, known)
      return known
    }
    const under = loading.get(state.id)
    if (under !== undefined) return under
    const work = load(db, state, known)
      .then((loaded) => {
        kept.delete(state.id)
        kept.set(state.id, loaded)
        evict(kept, mostBytes)
        return loaded
      })
      .finally(() => loading.delete(state.id))
    loading.set(state.id, work)
    return work
  }

  return {
    modelOf: async (collection) => (await stateOf(collection)).model,
    search: async (search) => {
      for (let tries = 0; tries < MOST_TRIES; tries++) {
        const state = await stateOf(search.collection)
        const loaded = await current(state)
        const hits = await withContents(reader, loaded, await ranked(reader, state, loaded, search))
        // A swap between the two leaves nothing to show of the old version: then the new one is asked.
        if (hits !== null) return hits
      }
      throw fail('rag.busy')
    },
  }
}

function evict(kept: Map<number, Loaded>, mostBytes: number): void {
  let bytes = 0
  for (const loaded of kept.values()) bytes += loaded.bytes
  for (const [id, loaded] of kept) {
    if (bytes <= mostBytes || kept.size === 1) return
    kept.delete(id)
    bytes -= loaded.bytes
  }
}

async function load(db: Database, state: CollectionState, known: Loaded | undefined): Promise<Loaded> {
  // Vectors that pgvector has an index of are not needed here.
  const model = state.has_neighbours ? null : state.model
  const live = await db.any(liveFiles(state.id, model))
  const files = new Map<number, LoadedFile>()
  const missing: { id: number; chunk_count: number }[] = []
  for (const { id, chunk_count, embedded } of live) {
    const same = known?.model === model ? known.files.get(id) : undefined
    if (same !== undefined && (same.floats !== null) === embedded) files.set(id, same)
    else if (chunk_count > 0) missing.push({ id, chunk_count })
  }
  for (const ids of batchesOf(missing))
    for (const file of await db.any(loadFiles(ids, model))) files.set(file.id, file)
  const order = live.flatMap(({ id }) => files.get(id) ?? [])
  return collectionOf(
    live[0]?.version ?? state.version,
    model,
    order,
    model === null ? null : state.dimensions,
  )
}

function* batchesOf(files: readonly { id: number; chunk_count: number }[]): Generator<number[]> {
  let [batch, chunks]: [number[], number] = [[], 0]
  for (const { id, chunk_count } of files) {
    batch.push(id)
    chunks += chunk_count
    if (chunks < CHUNKS_AT_ONCE) continue
    yield batch
    ;[batch, chunks] = [[], 0]
  }
  if (batch.length > 0) yield batch
}

/** The best chunks: what the filter leaves out was never a candidate. */
async function ranked(
  reader: Reader,
  state: CollectionState,
  loaded: Loaded,
  { query, topK, filter, vector }: Search,
): Promise<readonly Fused[]> {
  const allowed = allowedBy(loaded, filter)
  const asked = vector !== null && vector.length === state.dimensions ? vector : null
  const lexical = searchTerms(loaded.postings, queryOf(query), asked === null ? topK : CANDIDATES, allowed)
  if (asked === null) return fused(lexical, null, topK)
  const near = state.has_neighbours
    ? await neighbours(reader, state, loaded, asked, allowed)
    : loaded.vectors?.nearest(asked, CANDIDATES, allowed)
  return fused(lexical, near ?? null, topK)
}

/** The nearest chunks by the index of pgvector; of those that a filter allows, exactly. */
async function neighbours(
  reader: Reader,
  { id, model, dimensions }: CollectionState,
  { places, firsts }: Loaded,
  vector: Float32Array,
  allowed: Uint8Array | null,
): Promise<readonly Hit[]> {
  const only = allowed === null ? null : places.filter((_, chunk) => allowed[chunk] === 1)
  const texts = await reader.texts(readNeighbours, [
    id,
    model,
    dimensions,
    textOfVector(vector),
    CANDIDATES,
    only === null ? null : only.map(({ file }) => file.id),
    only === null ? null : only.map(({ ordinal }) => ordinal),
  ])
  return texts.flatMap((text) => {
    const { file, ordinal, score } = JSON.parse(text) as { file: number; ordinal: number; score: number }
    const first = firsts.get(file)
    // Of a newer version than the one in memory: the next search has it.
    return first === undefined ? [] : [{ chunk: first + ordinal, score }]
  })
}

/** The results with their texts; null when one of them is no more. */
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
      const row = JSON.parse(text) as {
        file: number
        ordinal: number
        content: string
        start_offset: number
        end_offset: number
      }
      return [`${row.file}/${row.ordinal}`, row]
    }),
  )
  if (rows.size < hits.length) return null
  return hits.map(({ score, lexical, vector }, i) => {
    const row = rows.get(`${at[i]!.file.id}/${at[i]!.ordinal}`)!
    const signals = [...(lexical === null ? [] : ['lexical']), ...(vector === null ? [] : ['vector'])]
    return {
      content: row.content,
      metadata: {
        ...metadataOf(at[i]!),
        start_offset: row.start_offset,
        end_offset: row.end_offset,
        signals,
        lexical_rank: lexical,
        vector_rank: vector,
      },
      score: Math.round(score * 1e6) / 1e6,
      rank: i + 1,
    }
  })
}
