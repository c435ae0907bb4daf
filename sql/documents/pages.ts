import { z } from 'zod'
import { noRows, type Query, sql } from '../db.ts'
import { buildArrayText, type PageValues } from '../reads/lists.ts'
import type { ReadStatement } from '../reads/reader.ts'

/** Pages of documents and the extractions that read them. */

const OWNED_CONDITION =
  'd.id = $1::bigint and d.owner_id is not distinct from $2::int and d.deleted_at is null'

const PAGE_FIELDS = `'page_number', p.page_number, 'status', p.status, 'method', p.method, 'model', p.model, 'detail', p.detail,
  'has_image', p.width is not null, 'width', p.width, 'height', p.height`

export const PAGE_ORDER = { 'p.page_number': 'bigint' } as const

/** A range of the pages of a document, without their texts. Null if the document does not exist. */
export const readPages: ReadStatement<[id: number, owner: number | null, ...page: PageValues]> = {
  name: 'document_pages',
  text: `select (${buildArrayText({
    table: 'document_page',
    row: 'p',
    id: ['document_id', 'page_number'],
    parameters: 2,
    where: 'p.document_id = $1::bigint',
    order: PAGE_ORDER,
    direction: 'asc',
    item: `json_build_object(${PAGE_FIELDS})`,
  })}) from document d where ${OWNED_CONDITION}`,
}

/**
 * The running extraction of a document, or else the next queued one; its `job_id` is null if there is neither. Null if
 * the document does not exist.
 */
export const readExtraction: ReadStatement<[id: number, owner: number | null]> = {
  name: 'document_extraction',
  text: `
    select json_build_object('job_id', coalesce(
      (select job.id from job where job.mailbox = 'document:' || d.id and job.status = 'running' and job.mailbox_limit = 1),
      (select job.id from job where job.mailbox = 'document:' || d.id and job.status in ('scheduled', 'available') order by job.ordinal limit 1)))::text
    from document d where ${OWNED_CONDITION}`,
}

/** One page of a document with its text. */
export const readPage: ReadStatement<[id: number, owner: number | null, number: number]> = {
  name: 'document_page',
  text: `
    select json_build_object(${PAGE_FIELDS}, 'text', p.text)::text
    from document d join document_page p on p.document_id = d.id and p.page_number = $3::int where ${OWNED_CONDITION}`,
}

// A page without structure is its text, line by line.
const MARKDOWN = `coalesce(p.markdown, p.text)`

/** The Markdown of a page, as a JSON string. */
export const readPageMarkdown: ReadStatement<[id: number, owner: number | null, number]> = {
  name: 'document_page_markdown',
  text: `
    select to_json(${MARKDOWN})::text
    from document d join document_page p on p.document_id = d.id and p.page_number = $3::int where ${OWNED_CONDITION}`,
}

export const MarkdownPages = z.array(z.object({ page_number: z.number(), markdown: z.string() }))

/** The Markdown of a document's pages after a page number, in order, as a JSON array. Null if the document does not exist. */
export const readMarkdown: ReadStatement<[id: number, owner: number | null, after: number, max: number]> = {
  name: 'document_markdown',
  text: `
    select coalesce((select json_agg(json_build_object('page_number', p.page_number, 'markdown', ${MARKDOWN}) order by p.page_number)
      from (select p.page_number, p.markdown, p.text from document_page p where p.document_id = d.id and p.page_number > $3::int
        order by p.page_number limit $4::int) p), '[]')::text
    from document d where ${OWNED_CONDITION}`,
}

/**
 * The method and OCR words of a page, and whether it has an image, as JSON. `words` is null unless OCR read the page.
 * Null if the page does not exist.
 */
export const readPageWords: ReadStatement<[id: number, owner: number | null, number: number]> = {
  name: 'document_page_words',
  text: `
    select json_build_object('method', p.method, 'has_image', p.width is not null, 'words', p.placed_words)::text
    from document d join document_page p on p.document_id = d.id and p.page_number = $3::int where ${OWNED_CONDITION}`,
}

const PageImage = z.object({
  image: z.instanceof(Uint8Array).nullable(),
  /** True if the page can be rendered. */
  drawable: z.boolean(),
  etag: z.string(),
})

/** Returns the image of a page; null if none is stored. The ETag stays the same until the page is reread. */
export const findPageImage = (
  id: number,
  owner: number | null,
  page: number,
): Query<z.output<typeof PageImage>> =>
  sql.prepared('page_image', PageImage)`
    select p.image, p.width is not null as drawable, p.job_id || '-' || p.page_number as etag
    from document d join document_page p on p.document_id = d.id and p.page_number = ${page}
    where d.id = ${id} and d.owner_id is not distinct from ${owner}::int and d.deleted_at is null`

// Rendering.

const UnrenderedPage = z.object({ job_id: z.string() })

/** Returns the extraction that read a page if the page's image still has to be rendered, otherwise no row. */
export const findUnrenderedPage = (id: number, page: number): Query<z.output<typeof UnrenderedPage>> =>
  sql.type(UnrenderedPage)`
    select job_id from document_page
    where document_id = ${id} and page_number = ${page} and image is null and width is not null`

export interface RenderedImage {
  readonly png: Uint8Array
  readonly width: number
  readonly height: number
}

/**
 * Stores a rendered image; null means that the page cannot be rendered. Changes nothing if an image is already stored,
 * or if another extraction has reread the page.
 */
export const storePageImage = (
  id: number,
  page: number,
  readBy: string,
  image: RenderedImage | null,
): Query<unknown> =>
  sql.type(noRows)`
    update document_page set image = ${image === null ? null : sql.binary(Buffer.from(image.png))},
      width = ${image?.width ?? null}, height = ${image?.height ?? null}
    where document_id = ${id} and page_number = ${page} and job_id = ${readBy}::uuid and image is null`

// Extraction.

/** `true` if the bytes of a document are stored, otherwise `false`. Null if the document does not exist. */
export const readBytesPresence: ReadStatement<[id: number, owner: number | null]> = {
  name: 'document_has_bytes',
  text: `select (exists (select from blob b where b.sha256 = d.sha256))::text from document d where ${OWNED_CONDITION}`,
}

/**
 * Cancels the running and queued extractions of documents that are about to be deleted; returns the job ids. Locks jobs
 * before documents, as `storePages` does.
 */
export const cancelExtractions = (ids: readonly number[], owner: number | null): Query<{ id: string }> =>
  sql.type(z.object({ id: z.string() }))`
    select job_cancel(array(select job.id from (
      select d.id as document_id, mailbox from document d cross join lateral (values ('document:' || d.id)) m (mailbox)
      where d.id = any(${sql.array(ids, 'int8')}) and d.owner_id is not distinct from ${owner}::int and d.deleted_at is null
        and not d.protected
      order by d.id) documents
    cross join lateral (
      select id from job where mailbox = documents.mailbox and status in ('scheduled', 'available')
      union all
      select id from job where mailbox = documents.mailbox and status = 'running' and mailbox_limit = 1) job)) as id`

/** Returns the documents among `ids` that belong to the owner; `stored` is true if their bytes are stored. */
export const listOwnedDocuments = (
  ids: readonly number[],
  owner: number | null,
): Query<{ id: number; stored: boolean }> =>
  sql.type(z.object({ id: z.number(), stored: z.boolean() }))`
    select id, exists (select from blob b where b.sha256 = d.sha256) as stored from document d
    where id = any(${sql.array(ids, 'int8')}) and owner_id is not distinct from ${owner}::int and deleted_at is null order by id`

const ExtractionSource = z.object({
  blob_id: z.number().nullable(),
  byte_size: z.number(),
  media_type: z.string(),
  owner_id: z.number().nullable(),
  is_nested: z.boolean(),
  attachments_due: z.boolean(),
  sealed_password: z.string().nullable(),
  title: z.string(),
  encoding: z.string().nullable(),
  given_encoding: z.string().nullable(),
})

export type ExtractionSource = z.output<typeof ExtractionSource>

/**
 * Returns the input of an extraction; no row if the document is deleted. `is_nested` is true for an attachment of an
 * attachment.
 */
export const findExtractionSource = (id: number): Query<z.output<typeof ExtractionSource>> =>
  sql.type(ExtractionSource)`
    select b.id as blob_id, d.byte_size, d.media_type, d.owner_id, parent.attached_to_id is not null as is_nested,
      d.attachments_due, d.sealed_password, d.title, d.encoding, d.given_encoding
    from document d
    left join blob b on b.sha256 = d.sha256
    left join document parent on parent.id = d.attached_to_id
    where d.id = ${id} and d.deleted_at is null`

const ExtractedPage = z.object({ page_number: z.number(), settled: z.boolean(), mine: z.boolean() })

/**
 * Returns the pages that earlier runs have stored. `settled` is true if only a forced extraction rereads the page, and
 * `mine` if this job stored it.
 */
export const listExtractedPages = (id: number, jobId: string): Query<z.output<typeof ExtractedPage>> =>
  sql.type(ExtractedPage)`
    select page_number, status = 'read' or given_up as settled, job_id = ${jobId}::uuid as mine
    from document_page where document_id = ${id}`

/** Returns the size of a document's text and Markdown in bytes, without those of the given pages. */
export const countTextBytesExcept = (id: number, pages: readonly number[]): Query<{ bytes: number }> =>
  sql.type(z.object({ bytes: z.int() }))`
    select coalesce(sum(octet_length(text) + coalesce(octet_length(markdown), 0)), 0)::bigint as bytes
    from document_page where document_id = ${id} and page_number <> all(${sql.array(pages, 'int4')})`

/** Stores the password that opened a document, in sealed form. */
export const setPassword = (id: number, sealed: string): Query<unknown> =>
  sql.type(noRows)`update document set sealed_password = ${sealed} where id = ${id} and deleted_at is null`

/** Stores the encoding of a text, and the one that the owner named for it; null if the owner named none. */
export const setEncoding = (id: number, encoding: string, given: string | null): Query<unknown> =>
  sql.type(noRows)`
    update document set encoding = ${encoding}, given_encoding = ${given}
    where id = ${id} and (encoding, given_encoding) is distinct from (${encoding}::text, ${given}::text)`

/** Stores whether a document has attachments that are not stored yet. */
export const setAttachmentsDue = (id: number, due: boolean): Query<unknown> =>
  sql.type(noRows)`
    update document set attachments_due = ${due} where id = ${id} and attachments_due <> ${due}`

/** Sets the page count of a document and deletes pages beyond it. Returns a row if the count has changed. */
export const setPageCount = (id: number, count: number): Query<{ id: number }> =>
  sql.type(z.object({ id: z.number() }))`
    with extra as (delete from document_page where document_id = ${id} and page_number > ${count})
    update document set page_count = ${count} where id = ${id} and page_count is distinct from ${count}
    returning id`

export interface PageRow {
  readonly status: 'read' | 'unread'
  readonly method: 'text_layer' | 'vision' | 'none'
  readonly model: string | null
  readonly detail: string | null
  readonly text: string
  /** The page as Markdown; null or absent if it has no structure. */
  readonly markdown?: string | null
  /** The words that OCR found, with their places; absent if it did not read the page. */
  readonly words?: readonly object[]
  /** The page's image; null if it has none. `png` is null if the first request should render it. */
  readonly image: {
    readonly png: Uint8Array | null
    readonly width: number
    readonly height: number
  } | null
  /** True if only a forced extraction rereads the page. */
  readonly isGivenUp?: boolean
}

export interface NumberedPage extends PageRow {
  readonly number: number
}

const StoreResult = z.object({ stored: z.boolean() })

/**
 * Stores a batch of pages if the attempt is still the current one; otherwise `stored` is false. Call `storeWords` once
 * the whole document is read.
 */
export const storePages = (
  id: number,
  job: { readonly id: string; readonly attempt: number },
  rows: readonly NumberedPage[],
): Query<z.output<typeof StoreResult>> => {
  const column = <T>(pick: (row: NumberedPage) => T): readonly T[] => rows.map(pick)
  // An empty image stands for no image, because slonik accepts no nulls in this array.
  return sql.prepared('store_pages', StoreResult)`
    with fenced as materialized (select job_fence(${job.id}::uuid, ${job.attempt}::int) is true as is_current),
    stored as (
      insert into document_page (document_id, owner_id, page_number, status, method, model, detail, text, markdown,
        search, placed_words, image, width, height, job_id, given_up)
      select ${id}::bigint, (select owner_id from document where id = ${id}::bigint), number, status, method, model, detail, text,
        markdown, search_vector(page_part(text, 0)), words::json, nullif(image, ''), width, height, ${job.id}::uuid, given_up
      from fenced cross join unnest(
        ${sql.array(
          column(({ number }) => number),
          'int4',
        )}, ${toTextColumn(rows, 'status')}, ${toTextColumn(rows, 'method')}, ${toTextColumn(rows, 'model')}, ${toTextColumn(rows, 'detail')},
        ${toTextColumn(rows, 'text')}, ${toTextColumn(rows, 'markdown')}, ${sql.array(
          column(({ words }) => (words === undefined ? null : JSON.stringify(words))),
          'text',
        )}, ${sql.array(
          column(({ image }) => Buffer.from(image?.png ?? [])),
          'bytea',
        )}, ${sql.array(
          column(({ image }) => image?.width ?? null),
          'int4',
        )}, ${sql.array(
          column(({ image }) => image?.height ?? null),
          'int4',
        )}, ${sql.array(
          column(({ isGivenUp = false }) => isGivenUp),
          'bool',
        )}) as page (number, status, method, model, detail, text, markdown, words, image, width, height, given_up)
      where is_current
      on conflict (document_id, page_number) do update set
        status = excluded.status, method = excluded.method, model = excluded.model, detail = excluded.detail,
        text = excluded.text, markdown = excluded.markdown, search = excluded.search, placed_words = excluded.placed_words, image = excluded.image,
        width = excluded.width, height = excluded.height, job_id = excluded.job_id, given_up = excluded.given_up, updated_at = now())
    select is_current as stored from fenced`
}

const toTextColumn = (
  rows: readonly NumberedPage[],
  field: 'status' | 'method' | 'model' | 'detail' | 'text' | 'markdown',
) =>
  sql.array(
    rows.map((row) => row[field] ?? null),
    'text',
  )

/**
 * Indexes the words of pages, for partial and misspelled search terms. One statement stores all words in their order,
 * which prevents deadlocks.
 */
export const storeWords = (id: number, from: number, to: number): Query<unknown> =>
  sql.type(noRows)`
    select search_words_store(array_agg(owner_id), array_agg(search)) from (
      select owner_id, search from document_page where document_id = ${id} and page_number between ${from} and ${to}
      union all
      select owner_id, search from document_page_part
      where document_id = ${id} and page_number between ${from} and ${to}) every`

/** Counts the pages that this job has read, and those that it could not read. */
export const countPages = (id: number, jobId: string): Query<{ read: number; unread: number }> =>
  sql.type(z.object({ read: z.number(), unread: z.number() }))`
    select count(*) filter (where status = 'read')::int as read, count(*) filter (where status = 'unread')::int as unread
    from document_page where document_id = ${id} and job_id = ${jobId}::uuid`
