import { z } from 'zod'
import { JsonText, nothing, type Query, sql } from './db.ts'
import type { ReadStatement } from './reader.ts'

/**
 * Documents, their bytes and pages. An owner is an account id, or null where there is no authentication. No index
 * serves `is not distinct from`: where the owner alone finds the rows, the two cases are spelled out.
 */

// The row holds its own JSON but for what another row says of it.
const DOCUMENT_JSON = `d.fields || ', "superseded_by_id" : '
  || coalesce((select s.id from document s where s.supersedes_id = d.id and s.deleted_at is null)::text, 'null') || '}'`

const OWNED = 'd.id = $1::int and d.owner_id is not distinct from $2::int and d.deleted_at is null'

/** One document as clients see it: $1 id, $2 owner. */
export const readDocument: ReadStatement = {
  name: 'document',
  text: `select ${DOCUMENT_JSON} from document d where ${OWNED}`,
}

/** A page of the list: $1 owner, $2 kind, $3 tag, $4 search, $5 with superseded ones, $6 offset, $7 limit, $8 page. */
export const readDocuments: ReadStatement = {
  name: 'documents',
  text: `
    with found as (
      select d.* from document d
      where (d.owner_id = $1::int or ($1::int is null and d.owner_id is null)) and d.deleted_at is null
        and ($2::text is null or d.kind = $2) and ($3::text is null or d.tags @> array[$3::text])
        and ($5::boolean or not exists (select from document s where s.supersedes_id = d.id and s.deleted_at is null))
        and ($4::text is null
          or to_tsvector('simple', concat_ws(' ', d.title, d.note, array_to_string(d.tags, ' '))) @@ websearch_to_tsquery('simple', $4)
          or exists (select from document_page p where p.document_id = d.id
            and to_tsvector('simple', left(p.text, 500000)) @@ websearch_to_tsquery('simple', $4)))
    )
    select json_build_object(
      'items', (select coalesce(json_agg(item order by n), '[]') from (
        select (${DOCUMENT_JSON})::json as item, row_number() over (order by d.id desc) as n
        from found d order by d.id desc offset $6::int limit $7::int) page),
      'total', (select count(*) from found), 'page', $8::int, 'page_size', $7::int)::text`,
}

const Content = z.object({
  blob_id: z.number().nullable(),
  byte_size: z.number(),
  media_type: z.string(),
  title: z.string(),
  sha256: z.string(),
})
export type Content = z.output<typeof Content>

/** Where a document's bytes are; `blob_id` is null when the store has lost them. */
export const documentContent = (id: number, owner: number | null): Query<Content> =>
  sql.prepared('document_content', Content)`
    select b.id as blob_id, d.byte_size, d.media_type, d.title, encode(d.sha256, 'hex') as sha256
    from document d left join blob b on b.sha256 = d.sha256
    where d.id = ${id} and d.owner_id is not distinct from ${owner}::int and d.deleted_at is null`

const Chunk = z.object({ bytes: z.instanceof(Uint8Array) })

/** One chunk of a blob; no row past its end. */
export const blobChunk = (blobId: number, ordinal: number): Query<{ bytes: Uint8Array }> =>
  sql.prepared('blob_chunk', Chunk)`
    select bytes from blob_chunk where blob_id = ${blobId} and ordinal = ${ordinal}`

// Uploading.

export const createBlob = (): Query<{ id: number }> =>
  sql.prepared('create_blob', z.object({ id: z.number() }))`insert into blob default values returning id`

export const appendChunk = (blobId: number, ordinal: number, bytes: Buffer): Query<unknown> =>
  sql.prepared('append_chunk', nothing)`
    insert into blob_chunk (blob_id, ordinal, bytes) values (${blobId}, ${ordinal}, ${sql.binary(bytes)})`

export const deleteBlob = (id: number): Query<unknown> =>
  sql.type(nothing)`delete from blob where id = ${id} and sha256 is null`

/** Gives an uploaded blob its digest; false when the same bytes are stored already, and this copy is not needed. */
export const sealBlob = (id: number, sha256: Buffer, byteSize: number): Query<{ sealed: boolean }> =>
  sql.type(z.object({ sealed: z.boolean() }))`
    update blob set sha256 = ${sql.binary(sha256)}, byte_size = ${byteSize}
    where id = ${id} and not exists (select from blob other where other.sha256 = ${sql.binary(sha256)})
    returning true as sealed`

/** Bytes are sealed one upload of a digest at a time; the lock ends with the transaction. */
export const lockDigest = (sha256: Buffer): Query<unknown> =>
  sql.type(
    nothing,
  )`select pg_advisory_xact_lock(hashtextextended('millrace.blob:' || ${sha256.toString('hex')}, 0))`

export interface NewDocument {
  readonly ownerId: number | null
  readonly title: string
  readonly kind: string | undefined
  readonly mediaType: string
  readonly byteSize: number
  readonly sha256: Buffer
  readonly documentDate: string | undefined
  readonly source: string | undefined
  readonly channel: string | undefined
  readonly note: string | undefined
}

const Stored = z.object({ id: z.number(), created: z.boolean() })

/** Stores a document unless its owner has one of the same bytes; either way answers which. */
export const insertDocument = (d: NewDocument): Query<z.output<typeof Stored>> =>
  sql.type(Stored)`
    with inserted as (
      insert into document (owner_id, title, kind, media_type, byte_size, sha256, document_date, source, channel, note)
      values (${d.ownerId}, ${d.title}, ${d.kind ?? 'other'}, ${d.mediaType}, ${d.byteSize}, ${sql.binary(d.sha256)},
        ${d.documentDate ?? null}::date, ${d.source ?? 'upload'}, ${d.channel ?? null}, ${d.note ?? null})
      on conflict (owner_id, sha256) where deleted_at is null do nothing
      returning id
    )
    select id, true as created from inserted
    union all
    select id, false from document
    where (owner_id = ${d.ownerId}::int or (${d.ownerId}::int is null and owner_id is null))
      and sha256 = ${sql.binary(d.sha256)} and deleted_at is null
      and not exists (select from inserted)`

/** Soft-deletes; `protected` true means it was refused, no row that there is no such document. */
export const deleteDocument = (id: number, owner: number | null): Query<{ protected: boolean }> =>
  sql.type(z.object({ protected: z.boolean() }))`
    with owned as (
      select id, protected from document
      where id = ${id} and owner_id is not distinct from ${owner}::int and deleted_at is null for update
    ), deleted as (
      update document set deleted_at = now() from owned where document.id = owned.id and not owned.protected
    )
    select protected from owned`

export const deleteAbandonedUploads = (batch: number): Query<{ count: number }> =>
  sql.type(z.object({ count: z.number() }))`
    with abandoned as (
      delete from blob where id in (
        select id from blob where sha256 is null and created_at < now() - interval '1 day' order by created_at limit ${batch})
      returning 1
    )
    select count(*)::int as count from abandoned`

// Pages, as clients see them.

const PAGE_FIELDS = `'page_number', p.page_number, 'status', p.status, 'method', p.method, 'model', p.model, 'detail', p.detail,
  'has_image', p.image is not null, 'width', p.width, 'height', p.height`

/** Every page without its text: $1 id, $2 owner. Null when there is no such document. */
export const readPages: ReadStatement = {
  name: 'document_pages',
  text: `
    select coalesce((select json_agg(json_build_object(${PAGE_FIELDS}) order by p.page_number)
      from document_page p where p.document_id = d.id), '[]')::text
    from document d where ${OWNED}`,
}

/** One page with its text: $1 id, $2 owner, $3 number. */
export const readPage: ReadStatement = {
  name: 'document_page',
  text: `
    select json_build_object(${PAGE_FIELDS}, 'text', p.text)::text
    from document d join document_page p on p.document_id = d.id and p.page_number = $3::int where ${OWNED}`,
}

const PageImage = z.object({ image: z.instanceof(Uint8Array).nullable(), etag: z.string() })

export const pageImage = (
  id: number,
  owner: number | null,
  page: number,
): Query<z.output<typeof PageImage>> =>
  sql.prepared('page_image', PageImage)`
    select p.image, p.job_id || '-' || p.page_number as etag from document d join document_page p on p.document_id = d.id and p.page_number = ${page}
    where d.id = ${id} and d.owner_id is not distinct from ${owner}::int and d.deleted_at is null`

// Extraction.

const Extractable = z.object({ id: z.number(), has_bytes: z.boolean() })

/** The document that a request wants extracted, if the owner has it. */
export const extractableDocument = (id: number, owner: number | null): Query<z.output<typeof Extractable>> =>
  sql.type(Extractable)`
    select d.id, exists (select from blob b where b.sha256 = d.sha256) as has_bytes from document d
    where d.id = ${id} and d.owner_id is not distinct from ${owner}::int and d.deleted_at is null`

const Source = z.object({
  blob_id: z.number().nullable(),
  byte_size: z.number(),
  media_type: z.string(),
  page_count: z.number().nullable(),
})

export const extractionSource = (id: number): Query<z.output<typeof Source>> =>
  sql.type(Source)`
    select b.id as blob_id, d.byte_size, d.media_type, d.page_count
    from document d left join blob b on b.sha256 = d.sha256 where d.id = ${id}`

const Progress = z.object({ page_number: z.number(), status: z.enum(['read', 'unread']), mine: z.boolean() })

/** What earlier runs and attempts have made of a document's pages; `mine` are the ones of this job. */
export const extractedPages = (id: number, jobId: string): Query<z.output<typeof Progress>> =>
  sql.type(Progress)`
    select page_number, status, job_id = ${jobId}::uuid as mine from document_page where document_id = ${id}`

export const setPageCount = (id: number, count: number): Query<unknown> =>
  sql.type(nothing)`
    with extra as (delete from document_page where document_id = ${id} and page_number > ${count}),
      opened as (delete from document_page_try where document_id = ${id} and page_number = 0)
    update document set page_count = ${count} where id = ${id} and page_count is distinct from ${count}`

/** Notes that an attempt takes a page in hand; answers how often attempts of this job have. */
export const tryPage = (id: number, page: number, jobId: string): Query<{ tries: number }> =>
  sql.type(z.object({ tries: z.number() }))`
    insert into document_page_try as t (document_id, page_number, job_id) values (${id}, ${page}, ${jobId}::uuid)
    on conflict (document_id, page_number) do update set
      tries = case when t.job_id = excluded.job_id then t.tries + 1 else 1 end, job_id = excluded.job_id
    returning tries`

export interface PageRow {
  readonly status: 'read' | 'unread'
  readonly method: 'text_layer' | 'vision' | 'none'
  readonly model: string | null
  readonly detail: string | null
  readonly text: string
  readonly image: { readonly png: Uint8Array; readonly width: number; readonly height: number } | null
}

export const storePage = (id: number, page: number, jobId: string, row: PageRow): Query<unknown> =>
  sql.prepared('store_page', nothing)`
    insert into document_page (document_id, page_number, status, method, model, detail, text, image, width, height, job_id)
    values (${id}, ${page}, ${row.status}, ${row.method}, ${row.model}, ${row.detail}, ${row.text},
      ${row.image === null ? null : sql.binary(Buffer.from(row.image.png))}, ${row.image?.width ?? null}, ${row.image?.height ?? null},
      ${jobId}::uuid)
    on conflict (document_id, page_number) do update set
      status = excluded.status, method = excluded.method, model = excluded.model, detail = excluded.detail,
      text = excluded.text, image = excluded.image, width = excluded.width, height = excluded.height,
      job_id = excluded.job_id, updated_at = now()`

/** What this job made of the pages. */
export const countPages = (id: number, jobId: string): Query<{ read: number; unread: number }> =>
  sql.type(z.object({ read: z.number(), unread: z.number() }))`
    select count(*) filter (where status = 'read')::int as read, count(*) filter (where status = 'unread')::int as unread
    from document_page where document_id = ${id} and job_id = ${jobId}::uuid`

export { JsonText }
