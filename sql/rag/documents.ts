import { z } from 'zod'
import { type Query, sql } from '../db.ts'
import { LIST_BY_TAG_CONDITION, LIST_CONDITION, type ListFilters } from '../documents/documents.ts'
import type { ReadStatement } from '../reads/reader.ts'

/** Document collections: their filters and the documents to index. */

/** Filter that selects which of the owner's documents belong to a collection. A null field matches any document. */
export const Selection = z.strictObject({
  tag: z.string().nullable(),
  kind: z.string().nullable(),
  ids: z.array(z.int()).nullable(),
  search: z.string().nullable(),
})
export type Selection = z.output<typeof Selection>

/** Metadata that a request adds to files or documents. */
export const Metadata = z.record(z.string(), z.unknown())
export type Metadata = z.output<typeof Metadata>

/**
 * Sets the filter and the metadata of the owner's document collection with a name; creates the collection if needed. The
 * id is null if a file collection or another owner has the name.
 */
export const openDocumentCollection = (
  name: string,
  owner: number | null,
  selection: Selection,
  metadata: Metadata,
): Query<{ id: number | null; created: boolean }> =>
  // The outer join matches only a collection that existed before, because a statement does not see the rows that a
  // function called by it inserts.
  sql.type(z.object({ id: z.number().nullable(), created: z.boolean() }))`
    select opened.id, c.id is null as created
    from rag_open_documents(${name}, ${owner}::int, ${JSON.stringify(selection)}::jsonb,
      ${JSON.stringify(metadata)}::jsonb) opened(id)
    left join rag_collection c on c.id = opened.id`

const DocumentCollection = z.object({
  name: z.string(),
  owner_id: z.number().nullable(),
  selection: Selection,
  document_metadata: Metadata,
})

/** Returns the name, owner, filter and metadata of a document collection; no row if it is deleted. */
export const findDocumentCollection = (id: number): Query<z.output<typeof DocumentCollection>> =>
  sql.type(DocumentCollection)`
    select name, owner_id, selection, document_metadata from rag_collection where id = ${id} and deleted_at is null and selection is not null`

const AffectedCollection = z.object({ id: z.number(), name: z.string() })

/**
 * Returns the document collections that a change to these documents may affect. Call it in the transaction of the
 * change.
 */
export const listAffectedCollections = (
  owner: number | null,
  documents: readonly number[],
): Query<z.output<typeof AffectedCollection>> =>
  sql.type(
    AffectedCollection,
  )`select id, name from rag_affected_collections(${owner}::int, ${sql.array(documents, 'int8')})`

/** A document to index. `digest` (hex) covers the title and the storage times of the pages; null if it has no pages. */
export const SelectedDocument = z.object({
  id: z.number(),
  title: z.string(),
  digest: z.string().nullable(),
})
export type SelectedDocument = z.output<typeof SelectedDocument>

const createSelectionStatement = (
  name: string,
  from: string,
  listed: string,
  id: string,
): ReadStatement<[...ListFilters, ids: readonly number[] | null, after: number, max: number]> => ({
  name,
  text: `select coalesce(json_agg(json_build_object('id', s.id, 'title', s.title, 'digest', s.digest) order by s.id), '[]')::text
    from (
      select d.id, d.title, encode(sha256(convert_to(d.title || E'\\n' || pages.times, 'UTF8')), 'hex') as digest
      from ${from} cross join lateral (
        select string_agg(concat(p.page_number, ' ', extract(epoch from p.updated_at)), ',' order by p.page_number) as times
        from document_page p where p.document_id = d.id) pages
      where ${listed} and ($7::bigint[] is null or ${id} = any($7::bigint[])) and ${id} > $8::bigint
      order by ${id} limit $9::int) s`,
})

/**
 * Documents that match a filter, sorted by id after a given id, as a JSON array. `ids` limits the documents; null
 * matches any. The statement reads only the storage times of their pages, so the caller need not read the texts of
 * unchanged documents.
 */
export const readSelectedDocuments = createSelectionStatement(
  'rag_selected',
  'document d',
  LIST_CONDITION,
  'd.id',
)

/** Same as `readSelectedDocuments`, for a filter with tags. */
export const readSelectedTaggedDocuments = createSelectionStatement(
  'rag_selected_tagged',
  'document_tag t join document d on d.id = t.document_id',
  LIST_BY_TAG_CONDITION,
  't.document_id',
)

const PageText = z.object({
  page_number: z.number(),
  text: z.string(),
  /** True if the text is Markdown. */
  is_markdown: z.boolean(),
})

/** Returns the Markdown, or else the texts, of a document's pages after a page number, in order. */
export const listPageTexts = (
  document: number,
  after: number,
  max: number,
): Query<z.output<typeof PageText>> =>
  sql.type(PageText)`
    select page_number, coalesce(markdown, text) as text, markdown is not null as is_markdown from document_page where document_id = ${document} and page_number > ${after}
    order by page_number limit ${max}`
