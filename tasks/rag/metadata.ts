/** Metadata that requests add to files and documents. */

/** Keys of `rag_chunk_metadata`. */
export const CHUNK_KEYS: ReadonlySet<string> = new Set([
  'chunk_index',
  'start_line',
  'end_line',
  'page',
  'heading',
])
/** Keys of all results, which requests cannot set. */
export const RESERVED_KEYS: ReadonlySet<string> = new Set([
  ...CHUNK_KEYS,
  ...['source', 'file_name', 'format', 'extension', 'document_id', 'start_offset', 'end_offset'],
  ...['signals', 'lexical_rank', 'vector_rank', 'score', 'rank', 'content'],
])
/** Keys of documents' own fields, which a request for documents cannot set. */
export const DOCUMENT_KEYS: ReadonlySet<string> = new Set([
  'title',
  'kind',
  'tags',
  'document_date',
  'received_at',
  'document_source',
  'channel',
])

/** Maximum size of a file's metadata as JSON. */
export const MAX_METADATA_BYTES = 4096

/** Returns the parts of a request that are not empty, so that stored requests stay short. */
export const omitEmpty = (parts: Readonly<Record<string, object>>): object =>
  Object.fromEntries(Object.entries(parts).filter(([, part]) => Object.keys(part).length > 0))
