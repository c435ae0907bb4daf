import { z } from 'zod'
import { noRows, type Query, sql } from '../db.ts'
import type { BlobLocation } from '../documents/blobs.ts'
import { buildArrayText, type PageValues } from '../reads/lists.ts'
import type { ReadStatement } from '../reads/reader.ts'
import { IS_RETAINED } from './export.ts'

/** Queries about finished exports, and about the data of an export that `export.ts` does not cover. */

const ExportedAccount = z.object({ json: z.string(), documents: z.number() })

/** Reads the account itself and its number of documents. No row if the account is gone. */
export const readExportedAccount = (id: number): Query<z.output<typeof ExportedAccount>> =>
  sql.type(ExportedAccount)`
    select json_build_object('account', account_json(a), 'email_change', (
        select email_change_json(c) from email_change c where c.account_id = a.id and c.expires_at > now()))::text as json,
      (select count(*)::int from document r where r.owner_id = a.id and ${IS_RETAINED}) as documents
    from account a where a.id = ${id} and a.deleted_at is null`

const BlobColumns = {
  blob_id: z.number().nullable(),
  store: z.string().nullable(),
  key: z.string().nullable(),
  upload_id: z.string().nullable(),
  byte_size: z.number(),
}

const ExportedContent = z.object({
  id: z.number(),
  title: z.string(),
  media_type: z.string(),
  ...BlobColumns,
})
type ExportedContent = z.output<typeof ExportedContent>

/** Reads the locations of the bytes of at most `max` documents after an id. */
export const readExportedContents = (owner: number, after: number, max: number): Query<ExportedContent> =>
  sql.type(ExportedContent)`
    select r.id, r.title, r.media_type, r.byte_size, b.id as blob_id, b.store, b.key, b.upload_id
    from document r left join blob b on b.sha256 = r.sha256
    where r.owner_id = ${owner} and ${IS_RETAINED} and r.id > ${after} order by r.id limit ${max}`

/** True if the content has a blob. */
export const isStored = <C extends { readonly blob_id: number | null }>(
  content: C,
): content is C & BlobLocation => content.blob_id !== null

export interface NewExport {
  /** Id of the export's job. */
  readonly id: string
  readonly accountId: number
  readonly sha256: Buffer
  readonly byteSize: number
}

/** Stores a finished export. The caller must seal its blob in the same transaction. */
export const insertExport = (done: NewExport): Query<unknown> =>
  sql.type(noRows)`
    insert into account_export (id, account_id, sha256, byte_size)
    values (${done.id}::uuid, ${done.accountId}, ${sql.binary(done.sha256)}, ${done.byteSize})`

/** Reads the size of the export that a job made. No row if the export is not done. */
export const findExportById = (id: string): Query<{ byte_size: number }> =>
  sql.type(z.object({ byte_size: z.number() }))`select byte_size from account_export where id = ${id}::uuid`

const StoredExport = z.object({ ...BlobColumns, sha256: z.string(), day: z.string() })

// Excludes expired exports, which the pruner may not have deleted yet. With 0 days, exports never expire.
const buildFreshCondition = (days: number) =>
  sql.fragment`(${days} = 0 or x.created_at > now() - make_interval(days => ${days}::int))`

/** Reads the location of the bytes of an account's export. No row if it is older than `days`; 0 means no limit. */
export const findExportContent = (
  id: string,
  owner: number,
  days: number,
): Query<z.output<typeof StoredExport>> =>
  sql.type(StoredExport)`
    select b.id as blob_id, b.store, b.key, b.upload_id, x.byte_size, encode(x.sha256, 'hex') as sha256,
      to_char(x.created_at at time zone 'utc', 'YYYY-MM-DD') as day
    from account_export x left join blob b on b.sha256 = x.sha256
    where x.id = ${id}::uuid and x.account_id = ${owner} and ${buildFreshCondition(days)}`

export const EXPORT_ORDER = { 'x.id': 'uuid' } as const

/** Exports of an account that are at most `days` old, newest first. With 0 days, there is no limit. */
export const readExports: ReadStatement<[account: number, days: number, ...page: PageValues]> = {
  name: 'account_exports',
  text: buildArrayText({
    table: 'account_export',
    row: 'x',
    parameters: 2,
    where: `x.account_id = $1::int and ($2::int = 0 or x.created_at > now() - make_interval(days => $2::int))`,
    order: EXPORT_ORDER,
    hasPageNumbers: false,
    direction: 'desc',
    item: `json_build_object('id', x.id, 'byte_size', x.byte_size, 'created_at', iso(x.created_at),
      'expires_at', iso(case when $2::int > 0 then x.created_at + make_interval(days => $2::int) end))`,
  }),
}
