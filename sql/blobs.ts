import { z } from 'zod'
import { noRows, type Query, sql } from './db.ts'

/** Stored bytes: where they are, whose they are, and which nobody needs any more. */

const BlobAt = z.object({
  blob_id: z.number(),
  /** In the words of `BLOB_STORE`. */
  store: z.string(),
  /** The name of the bytes in their store. */
  key: z.string(),
  /** The multipart upload that an object store has under way for them. */
  upload_id: z.string().nullable(),
})
/** Where bytes are. */
export type BlobAt = z.output<typeof BlobAt>

const AT = sql.fragment`b.id as blob_id, b.store, b.key, b.upload_id`

export const blobAt = (id: number): Query<BlobAt> =>
  sql.type(BlobAt)`select ${AT} from blob b where b.id = ${id}`

/** The bytes of a digest, whoever uploaded them. */
export const sealedBlob = (sha256: Buffer): Query<BlobAt> =>
  sql.type(BlobAt)`select ${AT} from blob b where b.sha256 = ${sql.binary(sha256)}`

const Content = z.object({
  blob_id: z.number().nullable(),
  store: z.string().nullable(),
  key: z.string().nullable(),
  upload_id: z.string().nullable(),
  byte_size: z.number(),
  media_type: z.string(),
  title: z.string(),
  sha256: z.string(),
})
export type Content = z.output<typeof Content>

/** A document's bytes as they are served. */
export const documentContent = (id: number, owner: number | null): Query<Content> =>
  sql.prepared('document_content', Content)`
    select ${AT}, d.byte_size, d.media_type, d.title, encode(d.sha256, 'hex') as sha256
    from document d left join blob b on b.sha256 = d.sha256
    where d.id = ${id} and d.owner_id is not distinct from ${owner}::int and d.deleted_at is null`

/** False when the row of the bytes is lost. */
export const hasBlob = (content: Content): content is Content & BlobAt => content.blob_id !== null

// The chunks of the store `postgres`.

const Chunk = z.object({ bytes: z.instanceof(Uint8Array) })

/** One chunk of a blob; no row past its end. */
export const blobChunk = (blobId: number, ordinal: number): Query<{ bytes: Uint8Array }> =>
  sql.prepared('blob_chunk', Chunk)`
    select bytes from blob_chunk where blob_id = ${blobId} and ordinal = ${ordinal}`

export const appendChunk = (blobId: number, ordinal: number, bytes: Buffer): Query<unknown> =>
  sql.prepared('append_chunk', noRows)`
    insert into blob_chunk (blob_id, ordinal, bytes) values (${blobId}, ${ordinal}, ${sql.binary(bytes)})`

/** How many bytes the chunks of a blob have together. */
export const chunkedBytes = (blobId: number): Query<{ bytes: number }> =>
  sql.type(z.object({ bytes: z.number() }))`
    select coalesce(sum(length(bytes)), 0) as bytes from blob_chunk where blob_id = ${blobId}`

export const deleteChunks = (blobId: number): Query<unknown> =>
  sql.type(noRows)`delete from blob_chunk where blob_id = ${blobId}`

// Uploading: a row without a digest, then the bytes, then the digest. What breaks off is found by its row.

export const createBlob = (store = 'postgres'): Query<BlobAt> =>
  sql.prepared('create_blob', BlobAt)`
    insert into blob as b (store) values (${store}) returning ${AT}`

/** Notes the multipart upload of a blob, so that whoever finds the row can end it. */
export const noteUpload = (id: number, uploadId: string): Query<unknown> =>
  sql.type(noRows)`update blob set upload_id = ${uploadId} where id = ${id}`

/** Bytes are sealed, and given up, one at a time per digest; the lock ends with the transaction. */
export const lockDigest = (sha256: Buffer): Query<unknown> =>
  sql.type(noRows)`
    select pg_advisory_xact_lock(hashtextextended('millrace.blob:' || ${sha256.toString('hex')}, 0))`

/** Notes that the bytes of a blob live in another store now, under the same key. */
export const relocateBlob = (id: number, store: string): Query<unknown> =>
  sql.type(noRows)`update blob set store = ${store}, upload_id = null where id = ${id}`

/** Gives an uploaded blob its digest; no row when the same bytes are stored already or the blob is given up. */
export const sealBlob = (id: number, sha256: Buffer, byteSize: number): Query<{ sealed: boolean }> =>
  sql.type(z.object({ sealed: z.boolean() }))`
    update blob set sha256 = ${sql.binary(sha256)}, byte_size = ${byteSize}, upload_id = null
    where id = ${id} and sha256 is null and not deleted
      and not exists (select from blob other where other.sha256 = ${sql.binary(sha256)})
    returning true as sealed`

// Removing: the row is deleted first and deleted last, so that there are never bytes without a row.

/** Gives up a sealed blob whose bytes its store has lost: another one takes its place. */
export const unsealBlob = (id: number): Query<unknown> =>
  sql.type(noRows)`update blob set sha256 = null, deleted = true where id = ${id}`

/**
 * Gives up an upload; false when it has become somebody's. One whose sealing may yet commit is waited for, and one
 * that has no row any more has nobody.
 */
export const markUploadDeleted = (id: number): Query<{ deleted: boolean }> =>
  sql.type(z.object({ deleted: z.boolean() }))`
    with given_up as (update blob set deleted = true where id = ${id} and sha256 is null returning id)
    select exists (select from given_up) or not exists (select from blob where id = ${id}) as deleted`

/** The last step, after its bytes are gone. */
export const deleteBlob = (id: number): Query<unknown> =>
  sql.type(noRows)`delete from blob where id = ${id} and sha256 is null`

// Collecting.

/** The pages of documents that were deleted so long ago; answers of how many. */
export const deletePagesOfDeleted = (graceSeconds: number, batch: number): Query<{ count: number }> =>
  sql.type(z.object({ count: z.number() }))`
    with due as (
      select id from document
      where deleted_at < now() - make_interval(secs => ${graceSeconds}) and collected_at is null
      order by deleted_at limit ${batch} for update skip locked
    ), pages as (delete from document_page where document_id in (select id from due)),
      collected as (update document set collected_at = now() where id in (select id from due) returning 1)
    select count(*)::int as count from collected`

// Needed is what a document has, and what one had that was deleted of late.
const neededFor = (graceSeconds: number) => sql.fragment`
  exists (select from document d where d.sha256 = b.sha256
    and (d.deleted_at is null or d.deleted_at > now() - make_interval(secs => ${graceSeconds})))`

const Looked = z.object({ last: z.number().nullable(), unneeded: z.array(z.number()) })

/** Looks at a batch of sealed blobs behind an id: which is the last, and which are not needed. */
export const unreferencedBlobs = (
  after: number,
  graceSeconds: number,
  batch: number,
): Query<z.output<typeof Looked>> =>
  sql.type(Looked)`
    with looked as (
      select b.id, ${neededFor(graceSeconds)} or b.created_at > now() - make_interval(secs => ${graceSeconds}) as needed
      from (select * from blob where id > ${after} and sha256 is not null order by id limit ${batch}) b
    )
    select max(id) as last, coalesce(json_agg(id order by id) filter (where not needed), '[]') as unneeded from looked`

/** The digest that a blob has now. */
export const blobDigest = (id: number): Query<{ sha256: Uint8Array }> =>
  sql.type(z.object({ sha256: z.instanceof(Uint8Array) }))`
    select sha256 from blob where id = ${id} and sha256 is not null`

/** Gives up a blob that is still not needed; under the lock of its digest, so that no upload counts on it meanwhile. */
export const markUnreferencedDeleted = (id: number, graceSeconds: number): Query<unknown> =>
  sql.type(noRows)`
    update blob b set sha256 = null, deleted = true where id = ${id} and sha256 is not null and not ${neededFor(graceSeconds)}`

/** Blobs behind an id whose bytes are to be removed: given up, or uploads that ended without a word. */
export const abandonedBlobs = (after: number, graceSeconds: number, batch: number): Query<BlobAt> =>
  sql.type(BlobAt)`
    with abandoned as (
      update blob set deleted = true where id in (
        select id from blob where id > ${after} and sha256 is null
          and (deleted or created_at < now() - make_interval(secs => ${graceSeconds}))
        order by id limit ${batch} for update skip locked)
      returning *
    )
    select ${AT} from abandoned b order by b.id`
