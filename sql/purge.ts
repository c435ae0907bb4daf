import { z } from 'zod'
import { noRows, type Query, sql } from './db.ts'

/**
 * Deleting what belongs to something that nobody sees any more, a batch of rows in each transaction. The foreign keys
 * delete or clear what is left when its own row goes, which is what was added or locked meanwhile.
 */

/** Rows that refer to something deleted. */
export interface Belongings {
  /** What they are called where progress is reported. */
  readonly label: string
  readonly table: string
  readonly by: string
  /** Only the reference is cleared. */
  readonly clears?: boolean
  /** Tables that refer to these rows, and may have many rows for each, with their columns. */
  readonly below?: Readonly<Record<string, string>>
  /** The most rows of a batch, if not {@link PURGE_BATCH}. */
  readonly max?: number
}

/** Rows, and rows below them, that one transaction deletes. */
export const PURGE_BATCH = 500

/** What belongs to an account, jobs first: they write no more then. */
export const OF_ACCOUNT: readonly Belongings[] = [
  { label: 'jobs', table: 'job', by: 'owner_id', below: { job_event_row: 'job_id' } },
  { label: 'sessions', table: 'session', by: 'account_id', below: { refresh_token: 'session_id' } },
  { label: 'tokens', table: 'account_token', by: 'account_id' },
  { label: 'exports', table: 'account_export', by: 'account_id' },
  { label: 'keys', table: 'api_key', by: 'account_id', below: { api_key_allowance: 'key_id' } },
  { label: 'passkeys', table: 'passkey', by: 'account_id' },
  {
    label: 'webhooks',
    table: 'webhook_endpoint',
    by: 'account_id',
    below: { webhook_delivery: 'endpoint_id', job_callback: 'endpoint_id' },
    max: 20,
  },
  // The chunks of a document go with it, and may be thousands.
  {
    label: 'collections',
    table: 'rag_collection',
    by: 'owner_id',
    below: { rag_file: 'collection_id' },
    max: 20,
  },
  {
    label: 'documents',
    table: 'document',
    by: 'owner_id',
    below: { document_page: 'document_id', document_tag: 'document_id' },
  },
  { label: 'transcriptions', table: 'voice_transcription', by: 'owner_id' },
  {
    label: 'conversations',
    table: 'ai_conversation',
    by: 'owner_id',
    below: { ai_message: 'conversation_id' },
  },
  // Their JSON is built anew, and editors wait meanwhile.
  { label: 'posts', table: 'blog_post', by: 'author_id', clears: true, max: 50 },
  { label: 'messages', table: 'comms_send', by: 'owner_id', clears: true },
  { label: 'usage', table: 'ai_usage', by: 'owner_id', clears: true },
  { label: 'organizations', table: 'organization', by: 'created_by', clears: true },
  { label: 'invites', table: 'organization_invite', by: 'invited_by', clears: true },
]

export const OF_ORGANIZATION: readonly Belongings[] = [
  { label: 'invites', table: 'organization_invite', by: 'organization_id' },
  { label: 'members', table: 'organization_member', by: 'organization_id' },
]

export const OF_COLLECTION: readonly Belongings[] = [
  // A file's vectors go with it.
  { label: 'files', table: 'rag_file', by: 'collection_id', below: { rag_chunk: 'file_id' }, max: 200 },
]

const Count = z.object({ count: z.number() })

/** Deletes or clears a batch of what belongs to a row; returns how many rows: 0, there are no more. */
export const purgeRows = (
  { table, by, clears = false, below = {}, max = PURGE_BATCH }: Belongings,
  id: number,
): Query<{ count: number }> =>
  sql.type(Count)`
    select purge_rows(${table}::regclass, ${by}, ${id}, ${max}::int, ${clears}, ${names(Object.keys(below))}::regclass[],
      ${names(Object.values(below))}::name[]) as count`

const names = (all: readonly string[]) => sql.array([...all], 'text')

const Id = z.object({ id: z.number() })

export const deletedAccounts = (): Query<{ id: number }> =>
  sql.type(Id)`select id from account where deleted_at is not null order by id`

export const deletedOrganizations = (): Query<{ id: number }> =>
  sql.type(Id)`select id from organization where deleted_at is not null order by id`

/** Deletes the row of a deleted account, after what belongs to it. */
export const removeAccount = (id: number): Query<unknown> =>
  sql.type(noRows)`delete from account where id = ${id} and deleted_at is not null`

export const removeOrganization = (id: number): Query<unknown> =>
  sql.type(noRows)`delete from organization where id = ${id} and deleted_at is not null`
