import { arrayText, type PageValues, pageOf } from '../lists.ts'
import type { ReadStatement } from '../reader.ts'

/** What the edge reads of collections: JSON as clients see it. */

const SEEN = 'c.deleted_at is null and c.version > 0'

export const COLLECTION_ORDER = { 'c.name': 'text' } as const

/** Names of the collections. */
export const readCollections: ReadStatement<PageValues> = {
  name: 'rag_collections',
  text: arrayText({
    table: 'rag_collection',
    row: 'c',
    parameters: 0,
    where: SEEN,
    order: COLLECTION_ORDER,
    numbered: false,
    direction: 'asc',
    item: 'to_json(c.name)',
  }),
}

/** One collection as clients see it. */
export const readCollection: ReadStatement<[name: string]> = {
  name: 'rag_collection',
  text: `select json_build_object('name', c.name, 'document_count', c.document_count, 'chunk_count', c.chunk_count,
      'metadata', c.metadata, 'embedding_model', c.embedding_model, 'created_at', iso(c.created_at),
      'updated_at', iso(c.updated_at))::text
    from rag_collection c where c.name = $1 and ${SEEN}`,
}

export const FILE_ORDER = { 'f.source': 'text' } as const

/** A page of the files of a collection with their numbers of chunks. */
export const readFiles: ReadStatement<[collection: string, ...page: PageValues]> = {
  name: 'rag_files',
  text: `select json_build_object('collection_name', c.name, 'files', page.items::json, 'next', page.next,
      'total_files', c.document_count, 'total_chunks', c.chunk_count)::text
    from rag_collection c cross join lateral ${pageOf({
      table: 'rag_file',
      row: 'f',
      parameters: 1,
      where: 'f.collection_id = c.id and f.build_id is null',
      order: FILE_ORDER,
      numbered: false,
      direction: 'asc',
      item: `json_build_object('source', f.source, 'chunks', f.chunk_count)`,
    })} page
    where c.name = $1 and ${SEEN}`,
}

/** What a search needs to know first. */
export const readState: ReadStatement<[collection: string]> = {
  name: 'rag_state',
  text: `select json_build_object('id', c.id, 'version', c.version, 'model', c.embedding_model)::text
    from rag_collection c where c.name = $1 and ${SEEN}`,
}

/** Chunks as results show them, one JSON text each; both lists are of equal length. */
export const readChunks: ReadStatement<[files: readonly number[], ordinals: readonly number[]]> = {
  name: 'rag_chunks',
  text: `select json_build_object('file', c.file_id, 'ordinal', c.ordinal, 'content', c.content,
      'start_offset', c.start_offset, 'end_offset', c.end_offset)::text
    from unnest($1::bigint[], $2::int[]) as wanted(file_id, ordinal)
    join rag_chunk c on c.file_id = wanted.file_id and c.ordinal = wanted.ordinal`,
}

/** How many collections and chunks there are. */
export const readRagCounts: ReadStatement<[]> = {
  name: 'rag_counts',
  text: `select json_build_object('collections', count(*), 'documents', coalesce(sum(c.document_count), 0),
      'chunks', coalesce(sum(c.chunk_count), 0),
      'pgvector', (select count(*) > 0 from pg_extension where extname = 'vector'))::text
    from rag_collection c where ${SEEN}`,
}

type Only = [files: readonly number[] | null, ordinals: readonly number[] | null]

/**
 * The chunks nearest to a vector, which is given as text, by the index of pgvector, one JSON text each. Only chunks of
 * `files` and `ordinals` are returned; null: any.
 */
export const readNeighbours: ReadStatement<
  [collection: number, model: string, dimensions: number, vector: string, limit: number, ...Only]
> = {
  name: 'rag_neighbours',
  text: `select json_build_object('file', file_id, 'ordinal', ordinal, 'score', score)::text
    from rag_neighbours($1::int, $2::text, $3::int, $4::text, $5::int, $6::bigint[], $7::int[])`,
}
