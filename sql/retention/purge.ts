import { z } from 'zod'
import { noRows, type Query, sql } from '../db.ts'

/**
 * Deletes the dependent rows of deleted accounts, organizations and collections, one batch per transaction. The deleted
 * row itself goes last. The foreign keys that refer to it then delete or clear any rows that were added or locked
 * meanwhile.
 */

/** Rows that refer to a deleted row. */
export interface DependentRows {
  /** Name of these rows in progress reports. */
  readonly label: string
  readonly table: string
  readonly referenceColumn: string
  /** True if the purge keeps the rows and only clears their reference. */
  readonly clearsReference?: boolean
  /** Maps each table with many rows per dependent row to its referring column. */
  readonly children?: Readonly<Record<string, string>>
  /** Maximum number of rows per batch; default {@link PURGE_BATCH}. */
  readonly max?: number
}

/** Maximum number of rows that one transaction deletes, including child rows. */
export const PURGE_BATCH = 500

/**
 * Dependent rows of an account. Schedules and jobs come first, so that they stop adding rows to the other tables.
 */
export const ACCOUNT_DEPENDENTS: readonly DependentRows[] = [
  { label: 'schedules', table: 'schedule', referenceColumn: 'owner_id' },
  { label: 'jobs', table: 'job', referenceColumn: 'owner_id', children: { job_event_row: 'job_id' } },
  // The batch is small, because the tasks of a queue are deleted with it.
  { label: 'worker queues', table: 'worker_queue', referenceColumn: 'account_id', max: 20 },
  {
    label: 'sessions',
    table: 'session',
    referenceColumn: 'account_id',
    children: { refresh_token: 'session_id' },
  },
  { label: 'tokens', table: 'account_token', referenceColumn: 'account_id' },
  { label: 'exports', table: 'account_export', referenceColumn: 'account_id' },
  {
    label: 'keys',
    table: 'api_key',
    referenceColumn: 'account_id',
    children: { api_key_allowance: 'key_id' },
  },
  { label: 'identities', table: 'oidc_identity', referenceColumn: 'account_id' },
  { label: 'passkeys', table: 'passkey', referenceColumn: 'account_id' },
  {
    label: 'webhooks',
    table: 'webhook_endpoint',
    referenceColumn: 'account_id',
    children: { webhook_delivery: 'endpoint_id', job_callback: 'endpoint_id' },
    max: 20,
  },
  // The batch is small, because a file's chunks are deleted with it and may number thousands.
  {
    label: 'collections',
    table: 'rag_collection',
    referenceColumn: 'owner_id',
    children: { rag_file: 'collection_id', rag_posting: 'collection_id' },
    max: 20,
  },
  {
    label: 'documents',
    table: 'document',
    referenceColumn: 'owner_id',
    children: { document_page: 'document_id', document_tag: 'document_id' },
  },
  { label: 'words', table: 'search_word', referenceColumn: 'owner_id' },
  // The batch is small, because the chunks of a speech are deleted with it.
  { label: 'speeches', table: 'voice_preview', referenceColumn: 'owner_id', max: 10 },
  { label: 'transcriptions', table: 'voice_transcription', referenceColumn: 'owner_id' },
  {
    label: 'conversations',
    table: 'ai_conversation',
    referenceColumn: 'owner_id',
    children: { ai_message: 'conversation_id', ai_text: 'conversation_id' },
  },
  // The batch is small, because each update rebuilds the JSON of a post and makes its editors wait.
  { label: 'posts', table: 'blog_post', referenceColumn: 'author_id', clearsReference: true, max: 50 },
  { label: 'revisions', table: 'blog_revision', referenceColumn: 'editor_id', clearsReference: true },
  { label: 'messages', table: 'comms_send', referenceColumn: 'owner_id', clearsReference: true },
  { label: 'usage', table: 'ai_usage', referenceColumn: 'owner_id', clearsReference: true },
  { label: 'organizations', table: 'organization', referenceColumn: 'created_by', clearsReference: true },
  { label: 'invites', table: 'organization_invite', referenceColumn: 'invited_by', clearsReference: true },
]

export const ORGANIZATION_DEPENDENTS: readonly DependentRows[] = [
  { label: 'worker queues', table: 'worker_queue', referenceColumn: 'organization_id', max: 20 },
  { label: 'invites', table: 'organization_invite', referenceColumn: 'organization_id' },
  { label: 'members', table: 'organization_member', referenceColumn: 'organization_id' },
]

export const COLLECTION_DEPENDENTS: readonly DependentRows[] = [
  // The batch is small, because a file's vectors are deleted with it.
  {
    label: 'files',
    table: 'rag_file',
    referenceColumn: 'collection_id',
    children: { rag_chunk: 'file_id' },
    max: 200,
  },
  { label: 'postings', table: 'rag_posting', referenceColumn: 'collection_id' },
]

const Count = z.object({ count: z.number() })

/**
 * Deletes or clears a batch of dependent rows. Returns their number, which is 0 once none are left. Skips rows that
 * other transactions have locked.
 */
export const purgeRows = (
  { table, referenceColumn, clearsReference = false, children = {}, max = PURGE_BATCH }: DependentRows,
  id: number,
): Query<{ count: number }> =>
  sql.type(Count)`
    select purge_rows(${table}::regclass, ${referenceColumn}, ${id}, ${max}::int, ${clearsReference}, ${toTextArray(Object.keys(children))}::regclass[],
      ${toTextArray(Object.values(children))}::name[]) as count`

const toTextArray = (all: readonly string[]) => sql.array([...all], 'text')

const Id = z.object({ id: z.number() })

export const listDeletedAccounts = (): Query<{ id: number }> =>
  sql.type(Id)`select id from account where deleted_at is not null order by id`

export const listDeletedOrganizations = (): Query<{ id: number }> =>
  sql.type(Id)`select id from organization where deleted_at is not null order by id`

/** Deletes the row of a deleted account. Call it after its dependent rows are deleted. */
export const removeAccount = (id: number): Query<unknown> =>
  sql.type(noRows)`delete from account where id = ${id} and deleted_at is not null`

export const removeOrganization = (id: number): Query<unknown> =>
  sql.type(noRows)`delete from organization where id = ${id} and deleted_at is not null`
