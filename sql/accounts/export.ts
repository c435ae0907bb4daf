import { sql } from '../db.ts'
import { createAuditRowReader, createRowReader, type RowReader, type RowSource } from './export-rows.ts'

/**
 * Files of an account's data export, one file of JSON lines per kind of row. Each row names its columns, so that a new
 * column never adds secrets, derived values or other people's data. `test/sql/export.test.ts` checks that every foreign
 * key to an account is exported or excluded for a reason.
 */

/** One file of an export. */
export interface ExportPart {
  readonly file: string
  /** Foreign keys to the account that select the rows, as `table.column`. */
  readonly foreignKeys: readonly string[]
  readonly rows: RowReader
  /** Files of child rows, selected by the keys of these rows. */
  readonly childFiles: readonly { readonly file: string; readonly rows: RowReader }[]
}

interface FileSource extends RowSource {
  readonly file: string
}

interface PartSource extends FileSource {
  readonly childFiles?: readonly FileSource[]
}

// Batch size for rows with texts of up to two megabytes.
const LARGE_ROW_BATCH_SIZE = 20

/** The condition that the document `r` is live or in the trash. */
export const IS_RETAINED = sql.fragment`coalesce(r.expires_at > now(), true)`

const SOURCES: readonly PartSource[] = [
  {
    ...{ file: 'sessions', table: 'session', of: 'account_id', type: 'uuid' },
    item: sql.fragment`json_build_object('id', r.id, 'created_at', iso(r.created_at), 'revoked_at', iso(r.revoked_at),
      'ended_at', iso(r.ended_at), 'address', r.address, 'user_agent', r.user_agent)`,
  },
  {
    ...{ file: 'api-keys', table: 'api_key', of: 'account_id', type: 'uuid' },
    item: sql.fragment`api_key_json(r)`,
  },
  {
    ...{ file: 'passkeys', table: 'passkey', of: 'account_id', type: 'uuid' },
    item: sql.fragment`passkey_json(r)`,
  },
  {
    ...{ file: 'identities', table: 'oidc_identity', of: 'account_id', type: 'uuid' },
    item: sql.fragment`oidc_identity_json(r)`,
  },
  {
    ...{
      file: 'memberships',
      table: 'organization_member',
      of: 'user_id',
      key: 'organization_id',
      type: 'bigint',
    },
    joins: sql.fragment`join organization o on o.id = r.organization_id and o.deleted_at is null`,
    item: sql.fragment`json_build_object('organization_id', o.id, 'name', o.name, 'slug', o.slug, 'role', r.role,
      'joined_at', iso(r.joined_at))`,
  },
  {
    // Excludes the address, which belongs to the invitee.
    ...{ file: 'invites', table: 'organization_invite', of: 'invited_by', type: 'bigint' },
    item: sql.fragment`json_build_object('id', r.id, 'organization_id', r.organization_id, 'role', r.role,
      'status', r.status, 'created_at', iso(r.created_at), 'expires_at', iso(r.expires_at), 'accepted_at', iso(r.accepted_at))`,
  },
  {
    ...{ file: 'documents', table: 'document', of: 'owner_id', type: 'bigint', where: IS_RETAINED },
    item: sql.fragment`r.json::jsonb || jsonb_build_object('deleted_at', iso(r.deleted_at))`,
    childFiles: [
      {
        ...{
          file: 'document-pages',
          table: 'document_page',
          of: 'document_id',
          key: 'page_number',
          type: 'bigint',
        },
        item: sql.fragment`json_build_object('document_id', r.document_id, 'page_number', r.page_number,
          'status', r.status, 'method', r.method, 'model', r.model, 'detail', r.detail, 'text', r.text,
          'markdown', r.markdown)`,
        max: LARGE_ROW_BATCH_SIZE,
      },
    ],
  },
  {
    ...{ file: 'speeches', table: 'voice_preview', of: 'owner_id', key: 'job_id', type: 'uuid' },
    item: sql.fragment`json_build_object('job_id', r.job_id, 'provider', r.provider, 'model', r.model, 'voice', r.voice,
      'speed', r.speed, 'language', r.language, 'text', r.text, 'byte_size', r.byte_size, 'used_at', iso(r.used_at))`,
    max: LARGE_ROW_BATCH_SIZE,
  },
  {
    ...{ file: 'transcriptions', table: 'voice_transcription', of: 'owner_id', type: 'uuid' },
    item: sql.fragment`voice_transcription_json(r)::jsonb
      || jsonb_build_object('prompt', r.prompt, 'text', r.text, 'segments', r.segments)`,
    max: LARGE_ROW_BATCH_SIZE,
  },
  {
    ...{ file: 'collections', table: 'rag_collection', of: 'owner_id', type: 'bigint' },
    where: sql.fragment`r.deleted_at is null`,
    item: sql.fragment`json_build_object('id', r.id, 'name', r.name, 'selection', r.selection, 'metadata', r.metadata,
      'embedding_model', r.embedding_model, 'document_count', r.document_count, 'chunk_count', r.chunk_count,
      'created_at', iso(r.created_at), 'updated_at', iso(r.updated_at))`,
    childFiles: [
      {
        ...{ file: 'collection-files', table: 'rag_file', of: 'collection_id', type: 'bigint' },
        where: sql.fragment`r.build_id is null`,
        item: sql.fragment`json_build_object('collection_id', r.collection_id, 'source', r.source,
          'document_id', r.document_id, 'title', (
            select d.title from document d join rag_collection c on c.owner_id = d.owner_id
            where d.id = r.document_id and d.deleted_at is null and c.id = r.collection_id),
          'metadata', r.metadata, 'format', r.format, 'chunk_count', r.chunk_count)`,
      },
    ],
  },
  {
    ...{ file: 'conversations', table: 'ai_conversation', of: 'owner_id', type: 'uuid' },
    joins: sql.fragment`left join ai_sentiment s on s.conversation_id = r.id`,
    item: sql.fragment`json_build_object('id', r.id, 'title', r.title, 'provider', r.provider, 'model', r.model,
      'message_count', r.message_count, 'created_at', iso(r.created_at), 'updated_at', iso(r.updated_at),
      'sentiment', s.sentiment, 'performance', s.performance, 'score', s.score)`,
    childFiles: [
      {
        ...{ file: 'messages', table: 'ai_message', of: 'conversation_id', key: 'ordinal', type: 'bigint' },
        item: sql.fragment`json_build_object('id', r.id, 'conversation_id', r.conversation_id, 'role', r.role,
          'status', r.status, 'content', r.content, 'parent_id', r.parent_id, 'is_active', r.is_active, 'document_ids', r.document_ids,
          'tool_calls', r.tool_calls, 'tool_results', r.tool_results, 'reasoning', r.reasoning,
          'finish_reason', r.finish_reason, 'provider', r.provider, 'model', r.model, 'error', r.error_detail,
          'created_at', iso(r.created_at))`,
        max: LARGE_ROW_BATCH_SIZE,
      },
    ],
  },
  {
    ...{ file: 'usage', table: 'ai_usage', of: 'owner_id', type: 'bigint' },
    item: sql.fragment`json_build_object('id', r.id, 'action', r.action, 'vendor', r.vendor, 'model', r.model,
      'input_tokens', r.input_tokens, 'cached_tokens', r.cached_tokens, 'output_tokens', r.output_tokens,
      'reasoning_tokens', r.reasoning_tokens, 'audio_seconds', r.audio_seconds, 'cost', r.cost, 'estimated', r.estimated, 'key_id', r.key_id,
      'success', r.success, 'conversation_id', r.conversation_id, 'created_at', iso(r.created_at))`,
  },
  {
    ...{ file: 'posts', table: 'blog_post', of: 'author_id', type: 'bigint' },
    item: sql.fragment`r.fields || ',"tags":' || r.tags || '}'`,
    max: LARGE_ROW_BATCH_SIZE,
  },
  {
    ...{ file: 'post-changes', table: 'blog_revision', of: 'editor_id', type: 'bigint' },
    item: sql.fragment`json_build_object('id', r.id, 'post_id', r.post_id, 'title', r.title, 'change', r.replaced_by,
      'changed_at', iso(r.replaced_at))`,
  },
  {
    ...{ file: 'jobs', table: 'job', of: 'owner_id', key: 'ordinal', type: 'bigint' },
    item: sql.fragment`job_json(r)`,
  },
  {
    ...{ file: 'sends', table: 'comms_send', of: 'owner_id', type: 'uuid' },
    item: sql.fragment`json_build_object('id', r.id, 'channel', r.channel, 'to', r.recipients, 'status', r.status,
      'attachments', r.attachments, 'send_at', iso(r.send_at),
      'provider_id', r.provider_id, 'provider_status', r.provider_status, 'detail', r.detail,
      'created_at', iso(r.created_at), 'requested_at', iso(r.requested_at), 'settled_at', iso(r.settled_at))`,
  },
  {
    ...{ file: 'payment-customer', table: 'payment_customer', of: 'user_id', type: 'bigint' },
    item: sql.fragment`json_build_object('provider_customer_id', r.provider_customer_id, 'created_at', iso(r.created_at))`,
    childFiles: [
      {
        ...{ file: 'transactions', table: 'payment_transaction', of: 'customer_id', type: 'bigint' },
        where: sql.fragment`r.shown`,
        item: sql.fragment`payment_transaction_json(r)`,
      },
      {
        ...{ file: 'subscriptions', table: 'payment_subscription', of: 'customer_id', type: 'bigint' },
        item: sql.fragment`payment_subscription_json(r)`,
      },
      {
        ...{ file: 'disputes', table: 'payment_dispute', of: 'customer_id', type: 'bigint' },
        joins: sql.fragment`left join payment_transaction t on t.id = r.transaction_id`,
        item: sql.fragment`payment_dispute_json(r, t)`,
      },
    ],
  },
  {
    ...{ file: 'worker-queues', table: 'worker_queue', of: 'account_id', key: 'name', type: 'text' },
    item: sql.fragment`worker_queue_json(r)`,
  },
  {
    ...{ file: 'schedules', table: 'schedule', of: 'owner_id', type: 'text' },
    item: sql.fragment`json_build_object('id', r.id, 'name', r.name, 'task_name', r.task_name, 'queue_type', r.queue_type,
      'args', r.args, 'cron', r.cron, 'every_seconds', r.every_seconds, 'time_zone', r.time_zone, 'start_at', iso(r.start_at),
      'end_at', iso(r.end_at), 'overlap', r.overlap, 'catch_up', r.catch_up, 'paused_at', iso(r.paused_at),
      'next_run_at', iso(r.next_at), 'last_run_at', iso(r.last_run_at), 'created_at', iso(r.created_at))`,
  },
  {
    ...{ file: 'webhooks', table: 'webhook_endpoint', of: 'account_id', type: 'bigint' },
    where: sql.fragment`r.deleted_at is null`,
    item: sql.fragment`webhook_endpoint_json(r)`,
    childFiles: [
      {
        ...{ file: 'webhook-deliveries', table: 'webhook_delivery', of: 'endpoint_id', type: 'bigint' },
        item: sql.fragment`webhook_delivery_json(r)::jsonb
          || jsonb_build_object('endpoint_id', r.endpoint_id, 'body', r.body)`,
      },
    ],
  },
]

const toFileName = (name: string): string => `${name}.ndjson`

const toPart = ({ childFiles = [], ...source }: PartSource): ExportPart => ({
  file: toFileName(source.file),
  foreignKeys: [`${source.table}.${source.of}`],
  rows: createRowReader(source, 'int4'),
  childFiles: childFiles.map((child) => ({
    file: toFileName(child.file),
    rows: createRowReader(child, source.type === 'uuid' ? 'uuid' : 'int8'),
  })),
})

const EVENT_FIELDS = sql.fragment`'id', r.id, 'at', iso(r.at), 'kind', r.kind, 'account_id', r.account_id,
  'organization_id', r.organization_id`

// Audit events have no foreign keys. Events of other actors exclude the actor and the client address, which are
// personal data of the actor.
const AUDIT_AS_ACTOR: ExportPart = {
  file: toFileName('audit-done'),
  foreignKeys: [],
  rows: createAuditRowReader(
    'actor_id',
    sql.fragment`true`,
    sql.fragment`json_build_object(${EVENT_FIELDS}, 'address', r.address, 'data',
      case when r.account_id = r.actor_id then r.data else r.data - 'email' - 'address' end)`,
  ),
  childFiles: [],
}
const AUDIT_AS_SUBJECT: ExportPart = {
  file: toFileName('audit-suffered'),
  foreignKeys: [],
  rows: createAuditRowReader(
    'account_id',
    sql.fragment`r.account_id is distinct from r.actor_id`,
    sql.fragment`json_build_object(${EVENT_FIELDS}, 'data', r.data - 'api_key')`,
  ),
  childFiles: [],
}

export const EXPORT_PARTS: readonly ExportPart[] = [...SOURCES.map(toPart), AUDIT_AS_ACTOR, AUDIT_AS_SUBJECT]
