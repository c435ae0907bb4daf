import { after, describe, test } from 'node:test'
import { connect } from '../../sql/connections/driver.ts'
import { PARTITIONED_TABLES, PRUNED_TABLES } from '../../sql/retention/retention.ts'
import { createTestDatabase, vacuumAnalyze } from '../database.ts'
import { assertListed, findLine } from '../listed.ts'
import { assertWriteByIndex } from './plans-help.ts'

/** Every table has a retention setting, or a reason why it does not grow forever. */

const { url, query } = await createTestDatabase()

/** Tables that need no retention setting, grouped by the reason. */
const REASONS: Readonly<Record<string, readonly string[]>> = {
  'pruned soon': [
    'job',
    'job_event_row',
    'job_log',
    'job_dependency',
    'start_rate',
    'refresh_token',
    'session',
    'account_token',
    'email_change',
    'login_failure',
    'passkey_challenge',
    'oidc_login',
    'request_limit',
    'webhook_rate',
    'idempotency_key',
    'blog_upload',
    'blog_preview',
    'blog_upload_chunk',
  ],
  'people are few, and delete their accounts and organizations': [
    'account',
    'organization',
    'organization_member',
  ],
  'there is one for each SECRET_KEY that was lost': ['stored_key'],
  'a quota bounds them; pruning deletes those that have expired': ['api_key', 'api_key_allowance'],
  'a quota bounds them; the purge of an account deletes them': ['schedule', 'worker_queue', 'worker_task'],
  'a claim takes it, or the deletion of its queue': ['worker_delivery'],
  'the next renewals of its lease delete it': ['worker_claim'],
  'an account has one at most': ['account_totp'],
  'an account has one of each kind at most': ['account_quota'],
  'an account has at most 20': ['passkey'],
  'an account has one of each issuer at most': ['oidc_identity'],
  'a quota bounds them; pruning deletes those that were deleted': ['webhook_endpoint'],
  'the end of its job takes it along': ['job_callback'],
  'its owner deletes it, or the account': [
    'document',
    'document_page',
    'document_page_part',
    'document_tag',
    'ai_conversation',
    'ai_message',
    'ai_text',
    'ai_sentiment',
    'voice_transcription',
    'blog_post',
    'blog_tag',
    'blog_post_tag',
    'blog_post_part',
    'blog_redirect',
    'blog_revision',
    'rag_collection',
    'rag_file',
    'rag_chunk',
    'rag_posting',
    'rag_vector',
  ],
  'documents.collect deletes it with the last document that has it': ['blob', 'blob_chunk'],
  'a preview takes it along': ['voice_preview_chunk'],
  'the end of a transcription, or its deletion, takes it along': ['voice_transcription_piece'],
  'an admin lifts them': ['comms_suppression'],
  'an admin deletes them': ['comms_template'],
  'payments are kept': [
    'payment_customer',
    'payment_transaction',
    'payment_reference',
    'payment_subscription',
    'payment_dispute',
  ],
  'sums of other tables, which go with their rows': [
    'job_count',
    'blog_post_count',
    'comms_send_count',
    'document_sum',
    'document_tag_count',
    'payment_sum',
    'payment_subscription_count',
    'ai_usage_sum',
    'ai_key_sum',
    'ai_sentiment_sum',
    'ai_conversation_count',
    'webhook_pending_sum',
  ],
  'system.prune deletes the spans that no window shows; a row for each task and outcome stays': ['job_tally'],
  'a row for each table and day, for 400 days': ['table_size'],
  'an account or API key takes it along': ['ai_budget'],
  'the end of the job deletes it': ['ai_budget_hold'],
  configuration: [
    'queue_control',
    'ai_agent',
    'voice_settings',
    'llm_vendor',
    'llm_model',
    'llm_price',
    'llm_list',
    'llm_current',
  ],
  'a row, or one for each process, function or migration': [
    'worker_counter',
    'setting',
    'search_pass',
    'payment_key',
    'payment_reconciliation',
    'payment_ignored_event',
    'worker_lease',
    'migration',
    'migration_functions',
  ],
}

test('every table has a retention setting, or a reason not to', async () => {
  const tables =
    await query(`select relname as name from pg_class c where relnamespace = 'public'::regnamespace
    and relkind in ('r', 'p') and not exists (select from pg_depend where classid = 'pg_class'::regclass and objid = c.oid and deptype = 'e')`)
  const known = [
    ...[...PARTITIONED_TABLES, ...PRUNED_TABLES].map(({ table }) => table),
    ...Object.values(REASONS).flat(),
  ]
  assertListed(
    tables.map(({ name }) => name),
    [...new Set(known)],
    [
      `${findLine('sql/retention/retention.ts', 'export const PRUNED_TABLES')} (rows that expire)`,
      `${findLine('test/sql/retention.test.ts', 'const REASONS')} (a reason to keep them)`,
    ],
  )
})

describe('old rows are found by an index', async () => {
  const times = `now() - n * interval '13 hours'`
  await query(`insert into organization (name, slug) values ('N', 'n')`)
  await query(`insert into account (email, password_hash) values ('a@example.com', 'x')`)
  await query(
    `insert into webhook_endpoint (secret, account_id, url, host, events) select 'aaaaaaaa.AAAA', id, 'https://example.com/', 'example.com', '{job.done}' from account`,
  )
  for (const rows of [
    `comms_send (id, channel, job_id, recipients, status, requested_at, settled_at, created_at)
     select gen_random_uuid(), 'email', gen_random_uuid(), '{x}', 'sent', ${times}, ${times}, ${times}`,
    `ai_usage (user_id, action, vendor, model, input_tokens, output_tokens, estimated, success, created_at)
     select 'u', 'chat', 'v', 'm', 1, 1, false, true, ${times}`,
    `voice_preview (digest, provider, model, voice, speed, text, used_at) select sha256(n::text::bytea), 'p', 'm', 'v', 1, 't', ${times}`,
    `organization_invite (organization_id, email, role, status, expires_at)
     select (select id from organization), 'i' || n || '@example.com', 'member', 'revoked', ${times}`,
    `document (title, media_type, byte_size, sha256, deleted_at, expires_at, pruned_at)
     select 't', 't', 1, sha256(n::text::bytea), ${times}, ${times}, now()`,
    `document (title, media_type, byte_size, sha256, tags) select 'live', 't', 1, sha256(('live' || n)::bytea), '{a}'`,
    `webhook_delivery (endpoint_id, type, body, created_at)
     select (select id from webhook_endpoint), 't', '{}', ${times}`,
    `account_export (id, account_id, sha256, byte_size, created_at)
     select gen_random_uuid(), (select id from account), sha256(n::text::bytea), 1, ${times}`,
    `payment_event (id, type, created_at, received_at, applied_at) select n, 'x', now(), ${times}, now()`,
  ])
    await query(`insert into ${rows} from generate_series(1, 1500) n`)
  await query(`insert into voice_preview_chunk (digest, generation, ordinal, start, bytes)
    select digest, gen_random_uuid(), 0, 0, 'x' from voice_preview`)
  await query(`insert into document_page (document_id, page_number, status, method, job_id)
    select id, 1, 'read', 'none', gen_random_uuid() from document`)
  await vacuumAnalyze(query)
  const client = await connect({ url, applicationName: 'plans' })
  after(() => client.end())
  // search-words.test.ts covers the pruning of `search_word`.
  for (const { table, prune: sweep } of PRUNED_TABLES.filter(({ table }) => table !== 'search_word'))
    test(table, () => assertWriteByIndex(client, () => sweep(700, 10)))
})
