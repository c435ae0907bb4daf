import { buildArrayText, buildPageSubquery, type PageValues } from '../reads/lists.ts'
import type { ReadStatement } from '../reads/reader.ts'

/** Reads of collections as public JSON. */

/** The caller of a read. Document collections are visible only to their owner and to callers with `seesAll`. */
export interface Viewer {
  /** The caller's account; null without one, in which case the caller owns nothing. */
  readonly ownerId: number | null
  readonly seesAll: boolean
}
type ViewerValues = [seesAll: boolean, ownerId: number | null]

/** Converts a viewer to statement parameters. */
export const toViewerValues = ({ seesAll, ownerId }: Viewer): ViewerValues => [seesAll, ownerId]

const LIVE_CONDITION = 'c.deleted_at is null and c.version > 0'
// Condition that hides the collections of a deleted account until the purge deletes them.
const OWNER_EXISTS_CONDITION =
  'c.selection is not null and (select a.deleted_at from account a where a.id = c.owner_id) is null'

/** Returns the conditions for collections that a viewer can see. Each condition uses its own index. */
const buildVisibleConditions = (all: string, owner: string): readonly string[] => [
  `${LIVE_CONDITION} and c.selection is null`,
  `${LIVE_CONDITION} and ${OWNER_EXISTS_CONDITION} and ${all}::boolean`,
  `${LIVE_CONDITION} and ${OWNER_EXISTS_CONDITION} and not ${all}::boolean and c.owner_id = ${owner}::int`,
]

/** Condition for a visible collection with the name $1. */
const NAMED_CONDITION = `c.name = $1 and (${buildVisibleConditions('$2', '$3').join(' or ')})`
type NamedCollection = [collection: string, ...ViewerValues]

export const COLLECTION_ORDER = { 'c.name': 'text' } as const

/** Names of the collections that the viewer can see. */
export const readCollections: ReadStatement<[...ViewerValues, ...page: PageValues]> = {
  name: 'rag_collections',
  text: buildArrayText({
    table: 'rag_collection',
    row: 'c',
    parameters: 2,
    where: buildVisibleConditions('$1', '$2'),
    order: COLLECTION_ORDER,
    hasPageNumbers: false,
    direction: 'asc',
    item: 'to_json(c.name)',
  }),
}

/** One collection as public JSON. */
export const readCollection: ReadStatement<NamedCollection> = {
  name: 'rag_collection',
  text: `select json_build_object('name', c.name, 'document_count', c.document_count, 'chunk_count', c.chunk_count,
      'metadata', c.metadata, 'embedding_model', c.embedding_model, 'created_at', iso(c.created_at),
      'updated_at', iso(c.updated_at))::text
    from rag_collection c where ${NAMED_CONDITION}`,
}

export const FILE_ORDER = { 'f.source': 'text' } as const

/** A page of the files of a collection, with their chunk counts. */
export const readFiles: ReadStatement<[...NamedCollection, ...page: PageValues]> = {
  name: 'rag_files',
  text: `select json_build_object('collection_name', c.name, 'files', page.items::json, 'next', page.next,
      'total_files', c.document_count, 'total_chunks', c.chunk_count)::text
    from rag_collection c cross join lateral ${buildPageSubquery({
      table: 'rag_file',
      row: 'f',
      parameters: 3,
      where: 'f.collection_id = c.id and f.build_id is null',
      order: FILE_ORDER,
      hasPageNumbers: false,
      direction: 'asc',
      item: `json_build_object('source', f.source, 'chunks', f.chunk_count)`,
    })} page
    where ${NAMED_CONDITION}`,
}

/** Id, version and embedding model of a collection, with which every search begins. */
export const readCollectionState: ReadStatement<NamedCollection> = {
  name: 'rag_state',
  text: `select json_build_object('id', c.id, 'version', c.version, 'model', c.embedding_model)::text
    from rag_collection c where ${NAMED_CONDITION}`,
}

/** Id of a collection. `of_documents` is true if it has documents instead of files. */
export const readCollectionKind: ReadStatement<NamedCollection> = {
  name: 'rag_kind',
  text: `select json_build_object('id', c.id, 'of_documents', c.selection is not null)::text
    from rag_collection c where ${NAMED_CONDITION}`,
}

/**
 * Chunks for search results, one JSON text each; both parameter lists have equal length. `content` is null if the
 * document was deleted or changed its owner since it was indexed.
 */
export const readChunks: ReadStatement<[files: readonly number[], ordinals: readonly number[]]> = {
  name: 'rag_chunks',
  text: `select json_build_object('file', c.file_id, 'ordinal', c.ordinal,
      'content', case when f.document_id is null or d.id is not null then c.content end,
      'start_offset', c.start_offset, 'end_offset', c.end_offset)::text
    from unnest($1::bigint[], $2::int[]) as wanted(file_id, ordinal)
    join rag_chunk c on c.file_id = wanted.file_id and c.ordinal = wanted.ordinal
    join rag_file f on f.id = c.file_id join rag_collection o on o.id = f.collection_id
    left join document d on d.id = f.document_id and d.deleted_at is null and d.owner_id is not distinct from o.owner_id`,
}

/** Numbers of collections, documents and chunks; `pgvector` is true if the extension is installed. */
export const readRagCounts: ReadStatement<[]> = {
  name: 'rag_counts',
  text: `select json_build_object('collections', count(*), 'documents', coalesce(sum(c.document_count), 0),
      'chunks', coalesce(sum(c.chunk_count), 0),
      'pgvector', (select count(*) > 0 from pg_extension where extname = 'vector'))::text
    from rag_collection c where ${LIVE_CONDITION}`,
}

type ChunkFilter = [files: readonly number[] | null, ordinals: readonly number[] | null]

/**
 * The chunks nearest to a vector (in pgvector's text format), one JSON text each, from pgvector's index. `files` and
 * `ordinals` limit the chunks; null matches any.
 */
export const readNeighbours: ReadStatement<
  [collection: number, model: string, dimensions: number, vector: string, limit: number, ...ChunkFilter]
> = {
  name: 'rag_neighbours',
  text: `select json_build_object('file', file_id, 'ordinal', ordinal, 'score', score)::text
    from rag_neighbours($1::int, $2::text, $3::int, $4::text, $5::int, $6::bigint[], $7::int[])`,
}
