import { z } from 'zod'
import type { Database } from '../../sql/db.ts'
import { fail } from '../../sql/errors.ts'
import {
  readChunks,
  readChunkTerms,
  readCollectionState,
  readFilteredChunks,
  readNeighbours,
  readPhraseChunks,
  readPostings,
  toViewerValues,
  type Viewer,
} from '../../sql/rag/reads.ts'
import { formatVector } from '../../sql/rag/vectors.ts'
import type { Reader } from '../../sql/reads/reader.ts'
import { type IndexedTerms, searchTerms } from './bm25.ts'
import { type ChunkFiles, decodeIntegers, loadChunkFiles } from './chunk-files.ts'
import { compileFilter, type Filter } from './filter.ts'
import { type FusedHit, fuseRanks } from './fuse.ts'
import { type LoadedVectors, loadCollectionVectors } from './load-vectors.ts'
import { parsePostings } from './postings.ts'
import { buildQuery, splitQuery } from './query.ts'
import type { Hit } from './top.ts'
import { VersionCache } from './version-cache.ts'

/**
 * Searches collections by the index in the database. In memory, it holds the files of the chunks and, without pgvector,
 * the vectors.
 */

export interface Search {
  readonly collection: string
  readonly viewer: Viewer
  readonly query: string
  readonly topK: number
  /** Filter on the metadata of results; null matches any. */
  readonly filter: Filter | null
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
const MAX_CACHE_BYTES = 2 ** 30
// A collection of the maximum size needs 4 MB.
const MAX_CHUNK_FILES_BYTES = 2 ** 26
const MAX_TRIES = 5

const TextTerms = z.object({ terms: z.array(z.int()), common_terms: z.array(z.int()) })

/** Schema of `readCollectionState`. */
const CollectionState = z.object({
  id: z.int(),
  version: z.int(),
  model: z.string().nullable(),
  dimensions: z.int().nullable(),
  has_neighbours: z.boolean(),
  chunk_count: z.int(),
  term_count: z.int(),
  texts: z.array(z.array(TextTerms)),
})
type CollectionState = z.output<typeof CollectionState>

interface Caches {
  readonly vectors: VersionCache<LoadedVectors>
  readonly chunkFiles: VersionCache<ChunkFiles>
}

export function createSearcher(db: Database, reader: Reader, maxBytes = MAX_CACHE_BYTES): Searcher {
  const caches: Caches = {
    vectors: new VersionCache((id, known) => loadCollectionVectors(db, id, known), maxBytes),
    chunkFiles: new VersionCache((id) => loadChunkFiles(reader, id), MAX_CHUNK_FILES_BYTES),
  }

  const readState = async (
    { collection, viewer }: CollectionRequest,
    texts: readonly string[],
  ): Promise<CollectionState> => {
    const text = await reader.text(readCollectionState, [collection, ...toViewerValues(viewer), texts])
    if (text === null) throw fail('rag.missing')
    return CollectionState.parse(JSON.parse(text))
  }

  return {
    modelOf: async (asked) => (await readState(asked, [])).model,
    search: async (search) => {
      for (let tries = 0; tries < MAX_TRIES; tries++) {
        const state = await readState(search, splitQuery(search.query))
        const best = await rankChunks(reader, caches, state, search)
        const hits = best && (await readHits(reader, state, best))
        // A concurrent swap may have changed the index between two reads. Then search the new version.
        if (hits !== null && (hits.length > 0 || (await readState(search, [])).version === state.version))
          return hits
      }
      throw fail('rag.busy')
    },
  }
}

const createIndexedTerms = (
  reader: Reader,
  { id, chunk_count, term_count }: CollectionState,
  files: ChunkFiles,
): IndexedTerms => ({
  chunkCount: chunk_count,
  averageLength: Math.max(1, term_count / Math.max(1, chunk_count)),
  files,
  readPostings: async (terms) =>
    parsePostings(terms.length === 0 ? [] : await reader.texts(readPostings, [id, terms])),
  async readChunkTerms(chunks) {
    const rows = await reader.texts(readChunkTerms, [id, chunks])
    return rows.map((row) => {
      const [term, chunkCount, found] = JSON.parse(row) as [number, number | null, number[]]
      return { term, chunkCount: chunkCount ?? 0, chunks: found }
    })
  },
  async findPhrases(chunks, phrases) {
    const sequences = phrases.map((phrase) => phrase.map((terms) => `,${terms.join(',')},`))
    return (await reader.texts(readPhraseChunks, [id, chunks, JSON.stringify(sequences)])).map(Number)
  },
})

/** Returns the best of the chunks that the filter allows. Null if the collection has changed. */
async function rankChunks(
  reader: Reader,
  caches: Caches,
  state: CollectionState,
  { topK, filter, vector }: Search,
): Promise<readonly FusedHit[] | null> {
  const { id, version, model, dimensions } = state
  const allowed = await readAllowed(reader, id, filter)
  const usable =
    vector !== null && vector.model === model && vector.floats.length === dimensions ? vector : null
  const max = usable === null ? topK : MAX_CANDIDATES
  const files = await caches.chunkFiles.get(id, version)
  if (files.version !== version) return null
  const index = createIndexedTerms(reader, state, files)
  const lexical = await searchTerms(index, buildQuery(state.texts), max, allowed)
  if (usable === null) return fuseRanks(lexical, null, topK)
  if (state.has_neighbours) return fuseRanks(lexical, await readNearest(reader, id, usable, allowed), topK)
  const loaded = await caches.vectors.get(id, version)
  if (loaded.version !== version) return null
  return fuseRanks(lexical, loaded.vectors?.findNearest(usable.floats, max, allowed) ?? null, topK)
}

/** Returns 1 for each chunk whose metadata match; null without a filter. */
async function readAllowed(
  reader: Reader,
  collection: number,
  filter: Search['filter'],
): Promise<Uint8Array | null> {
  const { ofFile, ofChunk, variables } = compileFilter(filter ?? {})
  if (ofFile === null && ofChunk === null) return null
  const text = await reader.text(readFilteredChunks, [collection, ofFile, ofChunk, variables])
  const allowed = decodeIntegers(text!)
  const flags = new Uint8Array(allowed.reduce((bound, chunk) => Math.max(bound, chunk + 1), 0))
  for (const number of allowed) flags[number] = 1
  return flags
}

/** Finds the nearest chunks with pgvector: by its index, or by an exact search if there is a filter. */
async function readNearest(
  reader: Reader,
  collection: number,
  { model, floats }: QueryVector,
  allowed: Uint8Array | null,
): Promise<readonly Hit[]> {
  const numbers = allowed && [...allowed.keys()].filter((chunk) => allowed[chunk] === 1)
  const vector = formatVector(floats)
  const texts = await reader.texts(readNeighbours, [
    collection,
    model,
    floats.length,
    vector,
    MAX_CANDIDATES,
    numbers,
  ])
  return texts.map((text) => JSON.parse(text) as Hit)
}

interface ChunkText {
  readonly number: number
  /** Null if the document was deleted. */
  readonly content: string | null
  readonly metadata: Readonly<Record<string, unknown>>
}

/** Adds texts and metadata to hits. Omits chunks of deleted documents. Null if the collection has changed. */
async function readHits(
  reader: Reader,
  { id, version }: CollectionState,
  hits: readonly FusedHit[],
): Promise<readonly SearchHit[] | null> {
  const texts =
    hits.length === 0 ? [] : await reader.texts(readChunks, [id, version, hits.map(({ chunk }) => chunk)])
  const rows = new Map(texts.map((text) => JSON.parse(text) as ChunkText).map((row) => [row.number, row]))
  if (rows.size < hits.length) return null
  return hits
    .flatMap(({ chunk, score, lexical, vector }) => {
      const { content, metadata } = rows.get(chunk)!
      if (content === null) return []
      const signals = [...(lexical === null ? [] : ['lexical']), ...(vector === null ? [] : ['vector'])]
      const found = { signals, lexical_rank: lexical, vector_rank: vector }
      return [{ content, metadata: { ...metadata, ...found }, score: Math.round(score * 1e6) / 1e6 }]
    })
    .map((hit, i) => ({ ...hit, rank: i + 1 }))
}
