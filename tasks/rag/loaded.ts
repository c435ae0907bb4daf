import { type CollectionState, floatsOf, type LoadedFile } from '../../sql/rag/collections.ts'
import { extensionOf } from './formats.ts'
import { Postings } from './postings.ts'
import { type ChunkVector, Vectors } from './vectors.ts'

/** One version of a collection in memory. */
export interface LoadedCollection {
  readonly state: CollectionState
  readonly files: ReadonlyMap<number, LoadedFile>
  readonly postings: Postings
  /** Null if no chunk has a vector, or if pgvector indexes the vectors. */
  readonly vectors: Vectors | null
  /** File and ordinal of each chunk. */
  readonly positions: readonly ChunkPosition[]
  /** First chunk of each file, by file id. */
  readonly firstChunks: ReadonlyMap<number, number>
  /** Estimated size in memory, in bytes. */
  readonly bytes: number
}

export interface ChunkPosition {
  readonly file: LoadedFile
  readonly ordinal: number
}

/** Builds a collection in memory from its files. May share them with an older version of the collection. */
export function buildCollection(state: CollectionState, files: readonly LoadedFile[]): LoadedCollection {
  const positions: ChunkPosition[] = []
  const chunks: Uint32Array[] = []
  const firstChunks = new Map<number, number>()
  for (const file of files) {
    firstChunks.set(file.id, positions.length)
    const terms = uint32sOf(file.terms)
    let at = 0
    for (const [ordinal, length] of file.lengths.entries()) {
      positions.push({ file, ordinal })
      chunks.push(terms.subarray(at, at + length))
      at += length
    }
  }
  const postings = new Postings(chunks)
  const vectors = state.dimensions === null ? null : buildVectors(files, state.dimensions)
  const bytes = postings.terms.length * 16 + positions.length * 200 + (vectors?.bytes ?? 0) * 2
  return {
    state,
    files: new Map(files.map((file) => [file.id, file])),
    postings,
    vectors,
    positions,
    firstChunks,
    bytes,
  }
}

function buildVectors(files: readonly LoadedFile[], dimensions: number): Vectors | null {
  const rows: ChunkVector[] = []
  let first = 0
  for (const file of files) {
    if (file.floats !== null && file.dimensions === dimensions) {
      const floats = floatsOf(file.floats)
      for (let i = 0; i < file.lengths.length; i++)
        rows.push({ chunk: first + i, floats: floats.subarray(i * dimensions, (i + 1) * dimensions) })
    }
    first += file.lengths.length
  }
  return rows.length === 0 ? null : new Vectors(dimensions, rows)
}

// Copies the bytes, because a typed array needs aligned memory.
const uint32sOf = (bytes: Uint8Array): Uint32Array => new Uint32Array(Uint8Array.from(bytes).buffer)

/** Returns the metadata of a result, which `filter_metadata` compares. */
export function metadataOf({
  file,
  ordinal,
}: ChunkPosition): Readonly<Record<string, string | number | null>> {
  const fileName = file.title ?? file.source.slice(file.source.lastIndexOf('/') + 1)
  return {
    source: file.source,
    ...(file.document_id === null ? {} : { document_id: file.document_id }),
    file_name: fileName,
    extension: file.title === null ? extensionOf(fileName) : '',
    format: file.format,
    chunk_index: ordinal,
    start_line: file.start_lines[ordinal]!,
    end_line: file.end_lines[ordinal]!,
    page: file.pages[ordinal] ?? null,
    heading: file.headings[ordinal] ?? null,
  }
}

/** Returns 1 for each chunk whose metadata has these values, 0 for the others; null without a filter. */
export function filterChunks(
  { positions }: LoadedCollection,
  filter: Readonly<Record<string, unknown>> | null,
): Uint8Array | null {
  const conditions = Object.entries(filter ?? {})
  if (conditions.length === 0) return null
  return Uint8Array.from(positions, (position) => {
    const metadata = metadataOf(position)
    return conditions.every(([key, value]) => Object.hasOwn(metadata, key) && metadata[key] === value) ? 1 : 0
  })
}
