import { z } from 'zod'
import { noRows, type Query, sql } from '../db.ts'

/** Locations of stored bytes, and the removal of unneeded ones. */

const BlobLocation = z.object({
  blob_id: z.number(),
  /** The store, in the format of the setting `BLOB_STORE`. */
  store: z.string(),
  /** Name of the bytes in their store. */
  key: z.string(),
  /** Id of the multipart upload in progress; null if there is none. */
  upload_id: z.string().nullable(),
})
/** Location of stored bytes. */
export type BlobLocation = z.output<typeof BlobLocation>

const LOCATION_COLUMNS = sql.fragment`b.id as blob_id, b.store, b.key, b.upload_id`

export const findBlobLocation = (id: number): Query<BlobLocation> =>
  sql.type(BlobLocation)`select ${LOCATION_COLUMNS} from blob b where b.id = ${id}`

/** Finds a blob by its digest, among the blobs of all owners. */
export const findSealedBlob = (sha256: Buffer): Query<BlobLocation> =>
  sql.type(BlobLocation)`select ${LOCATION_COLUMNS} from blob b where b.sha256 = ${sql.binary(sha256)}`

const DocumentContent = z.object({
  blob_id: z.number().nullable(),
  store: z.string().nullable(),
  key: z.string().nullable(),
  upload_id: z.string().nullable(),
  byte_size: z.number(),
  media_type: z.string(),
  encoding: z.string().nullable(),
  title: z.string(),
  sha256: z.string(),
})
export type DocumentContent = z.output<typeof DocumentContent>

/** Finds the location and metadata of a document's bytes. The location is null if the bytes are not stored. */
export const findDocumentContent = (id: number, owner: number | null): Query<DocumentContent> =>
  sql.prepared('document_content', DocumentContent)`
    select ${LOCATION_COLUMNS}, d.byte_size, d.media_type, d.encoding, d.title, encode(d.sha256, 'hex') as sha256
    from document d left join blob b on b.sha256 = d.sha256
    where d.id = ${id} and d.owner_id is not distinct from ${owner}::int and d.deleted_at is null`

/** Finds the bytes of several documents of an owner, with the document ids. Omits documents that do not exist. */
export const findDocumentContents = (
  ids: readonly number[],
  owner: number | null,
): Query<DocumentContent & { id: number }> =>
  sql.prepared('document_contents', DocumentContent.extend({ id: z.number() }))`
    select d.id, ${LOCATION_COLUMNS}, d.byte_size, d.media_type, d.encoding, d.title, encode(d.sha256, 'hex') as sha256
    from document d left join blob b on b.sha256 = d.sha256
    where d.id = any(${sql.array(ids, 'int8')}) and d.owner_id is not distinct from ${owner}::int and d.deleted_at is null`

/** True if the content has a blob. */
export const hasBlob = <C extends DocumentContent>(content: C): content is C & BlobLocation =>
  content.blob_id !== null

// A chunk of bytes in the store `postgres`.

const ChunkRow = z.object({ bytes: z.instanceof(Uint8Array) })

/** Reads one chunk of a blob. No row past the end of the blob. */
export const readBlobChunk = (blobId: number, ordinal: number): Query<{ bytes: Uint8Array }> =>
  sql.prepared('blob_chunk', ChunkRow)`
    select bytes from blob_chunk where blob_id = ${blobId} and ordinal = ${ordinal}`

export const appendChunk = (blobId: number, ordinal: number, bytes: Buffer): Query<unknown> =>
  sql.prepared('append_chunk', noRows)`
    insert into blob_chunk (blob_id, ordinal, bytes) values (${blobId}, ${ordinal}, ${sql.binary(bytes)})`

/** Sums the sizes of a blob's chunks in bytes. */
export const sumChunkBytes = (blobId: number): Query<{ bytes: number }> =>
  sql.type(z.object({ bytes: z.number() }))`
    select coalesce(sum(length(bytes)), 0) as bytes from blob_chunk where blob_id = ${blobId}`

export const deleteChunks = (blobId: number): Query<unknown> =>
  sql.type(noRows)`delete from blob_chunk where blob_id = ${blobId}`

// An upload creates a row without a digest, stores the bytes, then sets the digest. A row without a digest identifies
// an interrupted upload.

export const createBlob = (store = 'postgres'): Query<BlobLocation> =>
  sql.prepared('create_blob', BlobLocation)`
    insert into blob as b (store) values (${store}) returning ${LOCATION_COLUMNS}`

/** Records the multipart upload of a blob, so that garbage collection can abort it. */
export const recordMultipartUpload = (id: number, uploadId: string): Query<unknown> =>
  sql.type(noRows)`update blob set upload_id = ${uploadId} where id = ${id}`

/**
 * Serializes three steps for the bytes of a digest: sealing, deletion, and creation of documents. Holds the lock until
 * the transaction ends.
 */
export const lockDigest = (sha256: Buffer): Query<unknown> =>
  sql.type(noRows)`
    select pg_advisory_xact_lock(hashtextextended('millrace.blob:' || ${sha256.toString('hex')}, 0))`

/** Records that the bytes of a blob have moved to another store, under the same key. */
export const relocateBlob = (id: number, store: string): Query<unknown> =>
  sql.type(noRows)`update blob set store = ${store}, upload_id = null where id = ${id}`

/**
 * Changes the store of unfinished uploads whose store is a folder. The original service may have finished them since
 * the backup. Under the old store, garbage collection here would delete its files.
 */
export const relocateUnsealedBlobs = (store: string): Query<unknown> =>
  sql.type(noRows)`update blob set store = ${store} where sha256 is null and store like 'file:%'`

/**
 * Deletes the rows of unfinished uploads to buckets, because the original service may still finish them in the same
 * bucket. Uploads that it never finishes stay there.
 */
export const deleteUnsealedBlobs = (): Query<unknown> =>
  sql.type(noRows)`delete from blob where sha256 is null and store like 's3:%'`

/** Gives an uploaded blob its digest. No row if the same bytes are already stored or the blob is marked deleted. */
export const sealBlob = (id: number, sha256: Buffer, byteSize: number): Query<{ sealed: boolean }> =>
  sql.type(z.object({ sealed: z.boolean() }))`
    update blob set sha256 = ${sql.binary(sha256)}, byte_size = ${byteSize}, upload_id = null
    where id = ${id} and sha256 is null and not deleted
      and not exists (select from blob other where other.sha256 = ${sql.binary(sha256)})
    returning true as sealed`

// A removal marks the row as deleted, deletes the bytes, then deletes the row, so that bytes never exist without a row.

/** Marks a sealed blob as deleted because its store has lost the bytes. A new blob replaces it. */
export const unsealBlob = (id: number): Query<unknown> =>
  sql.type(noRows)`update blob set sha256 = null, deleted = true where id = ${id}`

/**
 * Marks an upload as deleted, after waiting for a seal that may still commit. `deleted` is false if the blob was
 * sealed, and true if the row no longer exists.
 */
export const markUploadDeleted = (id: number): Query<{ deleted: boolean }> =>
  sql.type(z.object({ deleted: z.boolean() }))`
    with given_up as (update blob set deleted = true where id = ${id} and sha256 is null returning id)
    select exists (select from given_up) or not exists (select from blob where id = ${id}) as deleted`

/** Deletes the row of a blob. Call it after the bytes are gone. */
export const deleteBlob = (id: number): Query<unknown> =>
  sql.type(noRows)`delete from blob where id = ${id} and sha256 is null`

// Garbage collection.

/** Deletes the pages of documents that left the trash at least `graceSeconds` ago. Returns the number of documents. */
export const deletePagesOfDeletedDocuments = (
  graceSeconds: number,
  batch: number,
): Query<{ count: number }> =>
  sql.type(z.object({ count: z.number() }))`
    with due as (
      select id from document
      where expires_at < now() - make_interval(secs => ${graceSeconds}) and pruned_at is null
      order by expires_at limit ${batch} for update skip locked
    ), pages as (delete from document_page where document_id in (select id from due)),
      collected as (update document set pruned_at = now(), sealed_password = null where id in (select id from due) returning 1)
    select count(*)::int as count from collected`

// Exports need their blob. Documents need theirs until `graceSeconds` after they leave the trash.
const buildNeededCondition = (graceSeconds: number) => sql.fragment`
  (exists (select from document d where d.sha256 = b.sha256
    and (d.expires_at is null or d.expires_at > now() - make_interval(secs => ${graceSeconds})))
  or exists (select from account_export x where x.sha256 = b.sha256))`

const CheckedBatch = z.object({ last: z.number().nullable(), unneeded: z.array(z.number()) })

/**
 * Checks a batch of sealed blobs after an id. Returns the ids of the unneeded blobs and the last id checked, which is
 * null if there are no more.
 */
export const findUnreferencedBlobs = (
  after: number,
  graceSeconds: number,
  batch: number,
): Query<z.output<typeof CheckedBatch>> =>
  sql.type(CheckedBatch)`
    with looked as (
      select b.id, ${buildNeededCondition(graceSeconds)} or b.created_at > now() - make_interval(secs => ${graceSeconds}) as needed
      from (select * from blob where id > ${after} and sha256 is not null order by id limit ${batch}) b
    )
    select max(id) as last, coalesce(json_agg(id order by id) filter (where not needed), '[]') as unneeded from looked`

/** Reads the current digest of a blob. No row if it has none. */
export const readBlobDigest = (id: number): Query<{ sha256: Uint8Array }> =>
  sql.type(z.object({ sha256: z.instanceof(Uint8Array) }))`
    select sha256 from blob where id = ${id} and sha256 is not null`

/**
 * Marks a blob as deleted if it is still unneeded. The caller must hold the lock of its digest, so that no upload
 * relies on it.
 */
export const markBlobDeletedIfUnreferenced = (id: number, graceSeconds: number): Query<unknown> =>
  sql.type(noRows)`
    update blob b set sha256 = null, deleted = true where id = ${id} and sha256 is not null and not ${buildNeededCondition(graceSeconds)}`

/**
 * Marks abandoned uploads as deleted. Returns all blobs after an id that are marked deleted, so that their bytes can be
 * removed.
 */
export const markAbandonedBlobs = (after: number, graceSeconds: number, batch: number): Query<BlobLocation> =>
  sql.type(BlobLocation)`
    with abandoned as (
      update blob set deleted = true where id in (
        select id from blob where id > ${after} and sha256 is null
          and (deleted or created_at < now() - make_interval(secs => ${graceSeconds}))
        order by id limit ${batch} for update skip locked)
      returning *
    )
    select ${LOCATION_COLUMNS} from abandoned b order by b.id`
