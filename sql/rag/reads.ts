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

/**
 * State of a collection and the terms of texts in each of its dictionaries, with which every search begins: `texts` has
 * an array for each text, and that an object for each dictionary.
 */
export const readCollectionState: ReadStatement<[...NamedCollection, texts: readonly string[]]> = {
  name: 'rag_state',
  text: `select json_build_object('id', c.id, 'version', c.version, 'model', c.embedding_model, 'dimensions', c.dimensions,
      'has_neighbours', c.has_neighbours, 'chunk_count', c.chunk_count, 'term_count', c.term_count, 'texts', (
        select coalesce(json_agg((select coalesce(json_agg(analyzed), '[]')
          from (select unnest(c.dictionaries)::regdictionary as dictionary offset 0) d, rag_terms(content, dictionary) analyzed)
          order by n), '[]')
        from unnest($4::text[]) with ordinality given (content, n)))::text
    from rag_collection c where ${NAMED_CONDITION}`,
}

/**
 * The live files of a collection that have several chunks, its version, and the number of all its files with chunks. In
 * base64, `lengths` has the number of terms of each file, after a 0. `chunks` has pairs: the number of a chunk, and the index
 * of its file in `lengths`. All have 4 bytes.
 */
export const readChunkFiles: ReadStatement<[collection: number]> = {
  name: 'rag_chunk_files',
  text: `with file as materialized (
      select id, term_count, row_number() over (order by id)::int as n from rag_file
      where collection_id = $1::int and build_id is null and chunk_count > 1)
    select json_build_object('version', c.version,
      'file_count', (select count(*) from rag_file where collection_id = $1::int and build_id is null and chunk_count > 0),
      'lengths', (select encode(int4send(0) || coalesce(string_agg(int4send(term_count), '' order by n), ''), 'base64') from file),
      'chunks', (select coalesce(encode(string_agg(int4send(number) || int4send(n), ''), 'base64'), '')
        from rag_chunk k join file f on f.id = k.file_id where k.collection_id = $1::int))::text
    from rag_collection c where c.id = $1::int and c.deleted_at is null`,
}

/** Postings of terms, one text `TERM BLOCK POSTINGS` for each block, the postings in base64. */
export const readPostings: ReadStatement<[collection: number, terms: readonly number[]]> = {
  name: 'rag_postings',
  text: `select concat(term, ' ', block, ' ', encode(postings, 'base64'))
    from rag_posting where collection_id = $1::int and term = any($2::int[])`,
}

/**
 * Terms of chunks, a JSON array for each term. It has the term, the number of all chunks that contain it, and the given
 * chunks that contain it, once for each occurrence.
 */
export const readChunkTerms: ReadStatement<[collection: number, numbers: readonly number[]]> = {
  name: 'rag_chunk_terms',
  text: `select json_build_array(term, (select sum(octet_length(postings) / 4) from rag_posting p
      where p.collection_id = $1::int and p.term = found.term), numbers)::text
    from (select term, array_agg(number) as numbers from rag_chunk, unnest(terms) term
      where collection_id = $1::int and number = any($2::int[]) group by term) found`,
}

/** Chunks, among the given ones, that contain one of the sequences of terms for each phrase. */
export const readPhraseChunks: ReadStatement<
  [collection: number, numbers: readonly number[], phrases: string]
> = {
  name: 'rag_phrase_chunks',
  text: `select number::text from rag_chunk c
      cross join lateral (select concat(',', array_to_string(terms, ','), ',')) joined (sequence)
    where collection_id = $1::int and number = any($2::int[]) and not exists (
      select from json_array_elements($3::json) phrase where not exists (
        select from json_array_elements_text(phrase) alternative where strpos(sequence, alternative) > 0))`,
}

// The document `d` of a file `f` of a collection `o`. There is none if it was deleted or has another owner.
const DOCUMENT_JOIN =
  'left join document d on d.id = f.document_id and d.deleted_at is null and d.owner_id is not distinct from o.owner_id'
const FOUND_CONDITION = '(f.document_id is null or d.id is not null)'

/**
 * Live chunks of a collection whose metadata match predicates: their numbers in base64, 4 bytes each. The first predicate
 * (in jsonpath) reads only metadata of files. A null predicate matches any.
 */
export const readFilteredChunks: ReadStatement<
  [collection: number, ofFile: string | null, ofChunk: string | null, variables: string]
> = {
  name: 'rag_filtered_chunks',
  text: `select coalesce(encode(string_agg(int4send(c.number), ''), 'base64'), '')
    from (
      -- Builds the metadata of a file once, not for each of its chunks.
      select f.id, rag_file_metadata(f, d) as metadata from rag_collection o
        join rag_file f on f.collection_id = o.id ${DOCUMENT_JOIN}
      where o.id = $1::int and f.build_id is null and ${FOUND_CONDITION} offset 0) file
    join rag_chunk c on c.file_id = file.id
    where ($2::jsonpath is null or jsonb_path_match(file.metadata, $2::jsonpath, $4::jsonb, true))
      and ($3::jsonpath is null
        or jsonb_path_match(file.metadata || rag_chunk_metadata(c), $3::jsonpath, $4::jsonb, true))`,
}

/** Id of a collection. `of_documents` is true if it has documents instead of files. */
export const readCollectionKind: ReadStatement<NamedCollection> = {
  name: 'rag_kind',
  text: `select json_build_object('id', c.id, 'of_documents', c.selection is not null)::text
    from rag_collection c where ${NAMED_CONDITION}`,
}

/**
 * Chunks for search results, one JSON text each. `content` is null if the document was deleted or changed its owner since
 * it was indexed. No row if the collection has another version.
 */
export const readChunks: ReadStatement<[collection: number, version: number, numbers: readonly number[]]> = {
  name: 'rag_chunks',
  text: `select json_build_object('number', c.number,
      'content', case when ${FOUND_CONDITION} then c.content end,
      'metadata', rag_file_metadata(f, d) || rag_chunk_metadata(c)
        || jsonb_build_object('start_offset', c.start_offset, 'end_offset', c.end_offset))::text
    from rag_collection o join rag_chunk c on c.collection_id = o.id join rag_file f on f.id = c.file_id ${DOCUMENT_JOIN}
    where o.id = $1::int and o.version = $2::bigint and c.number = any($3::int[])`,
}

/** Numbers of collections, documents and chunks; `pgvector` is true if the extension is installed. */
export const readRagCounts: ReadStatement<[]> = {
  name: 'rag_counts',
  text: `select json_build_object('collections', count(*), 'documents', coalesce(sum(c.document_count), 0),
      'chunks', coalesce(sum(c.chunk_count), 0),
      'pgvector', (select count(*) > 0 from pg_extension where extname = 'vector'))::text
    from rag_collection c where ${LIVE_CONDITION}`,
}

/**
 * The chunks nearest to a vector (in pgvector's text format), one JSON text each, from pgvector's index. `numbers` limits
 * the chunks; null matches any.
 */
export const readNeighbours: ReadStatement<
  [
    collection: number,
    model: string,
    dimensions: number,
    vector: string,
    limit: number,
    numbers: readonly number[] | null,
  ]
> = {
  name: 'rag_neighbours',
  text: `select json_build_object('chunk', number, 'score', score)::text
    from rag_neighbours($1::int, $2::text, $3::int, $4::text, $5::int, $6::int[])`,
}
