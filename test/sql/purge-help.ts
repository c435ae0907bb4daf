import { after } from 'node:test'
import { type Client, connect } from '../../sql/connections/driver.ts'
import { type DependentRows, PURGE_BATCH } from '../../sql/retention/purge.ts'
import { createTestDatabase, type TestDatabase } from '../database.ts'

/** Creates accounts with many rows, and counts the rows that remain and those that are unlocked. */

/** Number of rows that exceeds a batch. */
export const MORE_THAN_A_BATCH = PURGE_BATCH + 100
/** Number of rows that exceeds a batch of the tables with small batches. */
export const MORE_THAN_A_SMALL_BATCH = 70

// Statements that add $2 rows of each kind to the account $1, some with as many child rows. Tables with small batches
// get $3 rows.
const FILL_STATEMENTS = [
  `insert into job (id, name, queue, owner_id, mailbox, payload, status, max_tries, finished_at)
   select gen_random_uuid(), 'n', 'q', $1, 'n/' || $1, '{}', 'done', 1, now() from generate_series(1, $2) n`,
  `insert into job_event_row (job_id, seq, kind, data) select id, seq, 'k', '{}' from (
     select id from job where owner_id = $1 limit 4) few, generate_series(1, $2) seq`,
  'insert into session (id, account_id) select gen_random_uuid(), $1 from generate_series(1, $2) n',
  `insert into refresh_token (digest, session_id, expires_at, rotated_at)
   select sha256((id::text || n)::bytea), id, now(), now() from (
     select id from session where account_id = $1 limit 2) few, generate_series(1, $2) n`,
  `insert into account_token (id, account_id, kind, digest, expires_at)
   select gen_random_uuid(), $1, 'reset', sha256(($1 || '-' || n)::bytea), now() from generate_series(1, $2) n`,
  `insert into account_export (id, account_id, sha256, byte_size)
   select gen_random_uuid(), $1, sha256(($1 || '*' || n)::bytea), 1 from generate_series(1, $2) n`,
  // Far more keys than an account may have.
  `insert into api_key (id, account_id, name, digest, hint, scopes)
   select gen_random_uuid(), $1, 'n', sha256(($1 || '+' || n)::bytea), 'hint', '{jobs:read}' from generate_series(1, $2) n`,
  `insert into api_key_allowance (key_id, began_at, taken, granted) select id, now(), 1, 1 from api_key where account_id = $1`,
  `insert into passkey (id, account_id, credential_id, public_key, counter, transports, name, is_synced)
   select gen_random_uuid(), $1, sha256(($1 || '~' || n)::bytea), '\\x01', 0, '{}', 'n', false from generate_series(1, $2) n`,
  `insert into oidc_identity (id, account_id, issuer, subject) select gen_random_uuid(), $1, 'i' || n, $1 || '-' || n from generate_series(1, $2) n`,
  `insert into webhook_endpoint (secret, account_id, url, host, events) select 'aaaaaaaa.AAAA', $1, 'https://example.com/', 'example.com', '{job.done}' from generate_series(1, $3) n`,
  `insert into webhook_delivery (endpoint_id, type, body) select id, 't', '{}' from (
     select id from webhook_endpoint where account_id = $1 limit 2) few, generate_series(1, $3) n`,
  `insert into job_callback (job_id, endpoint_id, url, host) select gen_random_uuid(), id, 'https://example.com/', 'example.com' from (
     select id from webhook_endpoint where account_id = $1 limit 2) few, generate_series(1, $3) n`,
  // Every seventh document supersedes the one before it, and every tenth is in the trash.
  `insert into document (owner_id, title, media_type, byte_size, sha256, tags, deleted_at, expires_at)
   select $1, 'T' || n, 'text/plain', 1, sha256(($1 || '/' || n)::bytea), '{tag}', deleted_at, deleted_at + interval '30 days'
   from generate_series(1, $2) n, lateral (select case when n % 10 = 0 then now() end as deleted_at) deleted`,
  'analyze document',
  `update document d set supersedes_id = d.id - 1 where owner_id = $1 and deleted_at is null and id % 7 = 0
     and exists (select from document o where o.id = d.id - 1 and o.owner_id = $1 and o.deleted_at is null)`,
  `insert into document_page (document_id, page_number, status, method, text, job_id)
   select id, n, 'read', 'text_layer', 'Text', gen_random_uuid() from (
     select id from document where owner_id = $1 order by id limit 2) few, generate_series(1, $2) n`,
  // The documents have words, too.
  `insert into search_word (owner_id, word) select $1, 'word' || n
   from generate_series(1, $2 - (select count(*)::int from search_word where owner_id = $1)) n`,
  `insert into schedule (id, owner_id, name, task_name, queue_type, args, every_seconds, time_zone, overlap, catch_up, next_at)
     select $1 || ' has ' || n, $1, 'nightly', 'noop', 'system', '{}', 3600, 'UTC', 'skip', 'none', now() + interval '1 day' from generate_series(1, $2) n`,
  `insert into worker_queue (name, account_id, created_by) select 'of-' || $1 || '-' || n, $1, $1 from generate_series(1, $3) n`,
  `insert into rag_collection (name, owner_id, selection) select $1 || ' has ' || n, $1, '{}' from generate_series(1, $3) n`,
  `insert into rag_file (collection_id, source, document_id, sha256, byte_size, format, analysis, chunk_count, dictionary)
   select id, 'documents/' || n, n, sha256(''), 1, 'document', 1, 0, 'english_stem' from (
     select id from rag_collection where owner_id = $1 limit 2) few, generate_series(1, $3) n`,
  `insert into rag_posting (collection_id, term, block, postings) select id, n, 0, '\\x00000101' from (
     select id from rag_collection where owner_id = $1 limit 2) few, generate_series(1, $3) n`,
  `insert into voice_preview (digest, owner_id, job_id, provider, model, voice, speed, text)
   select sha256(($1 || '/speech/' || n)::bytea), $1, gen_random_uuid(), 'p', 'm', 'v', 1, 't' from generate_series(1, $3) n`,
  `insert into voice_transcription (id, owner_id, document_id, job_id, provider, model)
   select gen_random_uuid(), $1, n, gen_random_uuid(), 'p', 'm' from generate_series(1, $2) n`,
  `insert into ai_conversation (id, user_id, owner_id, title, provider, model)
   select gen_random_uuid(), $1::text, $1, 't', 'p', 'm' from generate_series(1, $2) n`,
  `insert into ai_message (id, conversation_id, role, status, content, settled_at)
   select gen_random_uuid(), id, 'user', 'complete', 'c', now() from (
     select id from ai_conversation where owner_id = $1 limit 2) few, generate_series(1, $2) n`,
  `insert into blog_post (title, slug, author_id, author_name) select 'P', 'p-' || $1 || '-' || n, $1, 'Ann' from generate_series(1, $3) n`,
  `insert into blog_revision (post_id, title, slug, content, tags, updated_at, replaced_by, editor_id, editor_name)
   select (select min(id) from blog_post), 'P', 'p', 'c', '[]', now(), 'update', $1, 'Ann' from generate_series(1, $2) n`,
  `insert into comms_send (id, channel, owner_id, job_id, recipients, message)
   select gen_random_uuid(), 'email', $1, gen_random_uuid(), '{a}', '{}' from generate_series(1, $2) n`,
  `insert into ai_usage (user_id, owner_id, action, vendor, model, input_tokens, output_tokens, estimated, success)
   select $1::text, $1, 'chat', 'v', 'm', 1, 1, false, true from generate_series(1, $2) n`,
  `insert into organization (name, slug, created_by) select 'O', 'o-' || $1 || '-' || n, $1 from generate_series(1, $2) n`,
  `insert into organization_invite (organization_id, email, role, invited_by, expires_at)
   select id, 'i' || n || '.$1@example.com', 'member', $1, now() from organization, generate_series(1, $2) n where slug = 'stays'`,
  `insert into payment_customer (user_id, provider_customer_id) values ($1, 'cus_' || $1)`,
]

export interface PurgeDatabase extends TestDatabase {
  /** Another connection. */
  readonly other: Client
  /** Adds an account with `rows` of each kind, or `fewer` in tables with small batches. */
  account(rows?: number, fewer?: number): Promise<number>
  /** Counts rows; `from` is a table, or a table with a condition. */
  count(from: string): Promise<number>
  /** Counts the rows of a table that no other transaction has locked. */
  countUnlocked(table: string): Promise<number>
}

/** Creates the database of a purge test. Call it at the top of the file, not in a hook. */
export async function createPurgeDatabase(): Promise<PurgeDatabase> {
  const database = await createTestDatabase()
  const { url, query } = database
  const other = await connect({ url, applicationName: 'other' })
  after(() => other.end())
  let accounts = 0
  await query(`insert into organization (name, slug) values ('N', 'stays')`)
  return {
    ...database,
    other,
    account: async (rows = 0, fewer = rows) => {
      const [row] = await query(`insert into account (email, password_hash) values ($1, 'x') returning id`, [
        `a${++accounts}@example.com`,
      ])
      const id = row!.id as number
      for (const text of rows > 0 ? FILL_STATEMENTS : [])
        await query(
          text.replaceAll('$1', String(id)).replaceAll('$2', String(rows)).replaceAll('$3', String(fewer)),
        )
      return id
    },
    count: async (from) => (await query(`select count(*)::int as n from ${from}`))[0]!.n as number,
    countUnlocked: async (table) => {
      const text = `with free as (select from ${table} for update skip locked) select count(*)::int as n from free`
      return (await other.query<{ n: number }>(text)).rows[0]!.n
    },
  }
}

/** Returns the tables from which a batch deletes rows. */
export const tablesOf = ({ table, children = {} }: DependentRows): string[] => [
  table,
  ...Object.keys(children),
]
