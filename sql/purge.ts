import { z } from 'zod'
import { noRows, type Query, sql } from './db.ts'

/**
 * Deletes the dependent rows of deleted accounts, organizations and collections, one batch per transaction. The deleted
 * row itself goes last. Its foreign keys then delete or clear any rows that were added or locked meanwhile.
 */

/** Rows that refer to a deleted row. */
export interface Dependents {
  /** Name of these rows in progress reports. */
  readonly label: string
  readonly table: string
  readonly by: string
  /** True if the purge keeps the rows and only clears their reference. */
  readonly clears?: boolean
  /** Maps each table with many rows per dependent row to its referring column. */
  readonly children?: Readonly<Record<string, string>>
  /** Maximum number of rows per batch; default {@link PURGE_BATCH}. */
  readonly max?: number
}

/** Maximum number of rows that one transaction deletes, including child rows. */
export const PURGE_BATCH = 500

/** Dependent rows of an account. Jobs come first, so that they stop adding rows to the other tables. */
export const ACCOUNT_DEPENDENTS: readonly Dependents[] = [
  { label: 'jobs', table: 'job', by: 'owner_id', children: { job_event_row: 'job_id' } },
  { label: 'sessions', table: 'session', by: 'account_id', children: { refresh_token: 'session_id' } },
  { label: 'tokens', table: 'account_token', by: 'account_id' },
  { label: 'exports', table: 'account_export', by: 'account_id' },
  { label: 'keys', table: 'api_key', by: 'account_id', children: { api_key_allowance: 'key_id' } },
  { label: 'passkeys', table: 'passkey', by: 'account_id' },
  {
    label: 'webhooks',
    table: 'webhook_endpoint',
    by: 'account_id',
    children: { webhook_delivery: 'endpoint_id', job_callback: 'endpoint_id' },
    max: 20,
  },
  // The batch is small, because a file's chunks are deleted with it and may number thousands.
  {
    label: 'collections',
    table: 'rag_collection',
    by: 'owner_id',
    children: { rag_file: 'collection_id' },
    max: 20,
  },
  {
    label: 'documents',
    table: 'document',
    by: 'owner_id',
    children: { document_page: 'document_id', document_tag: 'document_id' },
  },
  { label: 'transcriptions', table: 'voice_transcription', by: 'owner_id' },
  {
    label: 'conversations',
    table: 'ai_conversation',
    by: 'owner_id',
    children: { ai_message: 'conversation_id' },
  },
  // The batch is small, because each update rebuilds the JSON of a post and makes its editors wait.
  { label: 'posts', table: 'blog_post', by: 'author_id', clears: true, max: 50 },
  { label: 'messages', table: 'comms_send', by: 'owner_id', clears: true },
  { label: 'usage', table: 'ai_usage', by: 'owner_id', clears: true },
  { label: 'organizations', table: 'organization', by: 'created_by', clears: true },
  { label: 'invites', table: 'organization_invite', by: 'invited_by', clears: true },
]

export const ORGANIZATION_DEPENDENTS: readonly Dependents[] = [
  { label: 'invites', table: 'organization_invite', by: 'organization_id' },
  { label: 'members', table: 'organization_member', by: 'organization_id' },
]

export const COLLECTION_DEPENDENTS: readonly Dependents[] = [
  // The batch is small, because a file's vectors are deleted with it.
  { label: 'files', table: 'rag_file', by: 'collection_id', children: { rag_chunk: 'file_id' }, max: 200 },
]

const Count = z.object({ count: z.number() })

/**
 * Deletes or clears a batch of dependent rows. Returns their number, which is 0 once none are left. Skips rows that
 * other transactions have locked.
 */
export const purgeRows = (
  { table, by, clears = false, children = {}, max = PURGE_BATCH }: Dependents,
  id: number,
): Query<{ count: number }> =>
  sql.type(Count)`
    select purge_rows(${table}::regclass, ${by}, ${id}, ${max}::int, ${clears}, ${textArray(Object.keys(children))}::regclass[],
      ${textArray(Object.values(children))}::name[]) as count`

const textArray = (all: readonly string[]) => sql.array([...all], 'text')

const Id = z.object({ id: z.number() })

export const deletedAccounts = (): Query<{ id: number }> =>
  sql.type(Id)`select id from account where deleted_at is not null order by id`

export const deletedOrganizations = (): Query<{ id: number }> =>
  sql.type(Id)`select id from organization where deleted_at is not null order by id`

/** Deletes the row of a deleted account. Call it after its dependent rows are deleted. */
export const removeAccount = (id: number): Query<unknown> =>
  sql.type(noRows)`delete from account where id = ${id} and deleted_at is not null`

export const removeOrganization = (id: number): Query<unknown> =>
  sql.type(noRows)`delete from organization where id = ${id} and deleted_at is not null`
