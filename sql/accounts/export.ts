import { sql } from '../db.ts'
import {
  castAccountId,
  createAuditRowReader,
  createRowReader,
  type ExportPart,
  type Fragment,
  LARGE_ROW_BATCH_SIZE,
  type RowReader,
} from './export-rows.ts'

/**
 * Files of an account's data export, one file of JSON lines per kind of row. Queries name each column, so that a new
 * column never adds secrets, derived values or other people's data. `test/sql/export.test.ts` checks that every foreign
 * key to an account is exported or excluded for a reason.
 */

const SESSIONS: ExportPart = {
  file: 'sessions.ndjson',
  foreignKeys: ['session.account_id'],
  rows: createRowReader({
    from: sql.fragment`session s`,
    where: (of) => sql.fragment`s.account_id = ${castAccountId(of)}`,
    key: sql.fragment`s.id`,
    type: 'uuid',
    item: sql.fragment`json_build_object('id', s.id, 'created_at', iso(s.created_at), 'revoked_at', iso(s.revoked_at),
      'ended_at', iso(s.ended_at), 'address', s.address, 'user_agent', s.user_agent)`,
  }),
}

/** Defines the file with the API keys or passkeys of an account. */
const defineCredentialPart = (file: string, by: string, from: Fragment, item: Fragment): ExportPart => ({
  file,
  foreignKeys: [by],
  rows: createRowReader({
    from,
    where: (of) => sql.fragment`c.account_id = ${castAccountId(of)}`,
    key: sql.fragment`c.id`,
    type: 'uuid',
    item,
  }),
})

const API_KEYS = defineCredentialPart(
  ...(['api-keys.ndjson', 'api_key.account_id'] as const),
  sql.fragment`api_key c`,
  sql.fragment`api_key_json(c)`,
)
const PASSKEYS = defineCredentialPart(
  ...(['passkeys.ndjson', 'passkey.account_id'] as const),
  sql.fragment`passkey c`,
  sql.fragment`passkey_json(c)`,
)

const MEMBERSHIPS: ExportPart = {
  file: 'memberships.ndjson',
  foreignKeys: ['organization_member.user_id'],
  rows: createRowReader({
    from: sql.fragment`organization_member m join organization o on o.id = m.organization_id and o.deleted_at is null`,
    where: (of) => sql.fragment`m.user_id = ${castAccountId(of)}`,
    key: sql.fragment`m.organization_id`,
    type: 'bigint',
    item: sql.fragment`json_build_object('organization_id', o.id, 'name', o.name, 'slug', o.slug, 'role', m.role,
      'joined_at', iso(m.joined_at))`,
  }),
}

const INVITES: ExportPart = {
  file: 'invites.ndjson',
  foreignKeys: ['organization_invite.invited_by'],
  rows: createRowReader({
    from: sql.fragment`organization_invite i`,
    where: (of) => sql.fragment`i.invited_by = ${castAccountId(of)}`,
    key: sql.fragment`i.id`,
    type: 'bigint',
    // Excludes the address, which belongs to the invitee.
    item: sql.fragment`json_build_object('id', i.id, 'organization_id', i.organization_id, 'role', i.role, 'status', i.status,
      'created_at', iso(i.created_at), 'expires_at', iso(i.expires_at), 'accepted_at', iso(i.accepted_at))`,
  }),
}

/** True if the document is live or in the trash. */
export const IS_DOCUMENT_RETAINED = sql.fragment`coalesce(d.expires_at > now(), true)`

const DOCUMENTS: ExportPart = {
  file: 'documents.ndjson',
  foreignKeys: ['document.owner_id'],
  rows: createRowReader({
    from: sql.fragment`document d`,
    where: (of) => sql.fragment`d.owner_id = ${castAccountId(of)} and ${IS_DOCUMENT_RETAINED}`,
    key: sql.fragment`d.id`,
    type: 'bigint',
    item: sql.fragment`d.json::jsonb || jsonb_build_object('deleted_at', iso(d.deleted_at))`,
  }),
  childFiles: [
    {
      file: 'document-pages.ndjson',
      rows: createRowReader({
        from: sql.fragment`document_page p`,
        where: (of) => sql.fragment`p.document_id = ${of}::text::bigint`,
        key: sql.fragment`p.page_number`,
        type: 'bigint',
        item: sql.fragment`json_build_object('document_id', p.document_id, 'page_number', p.page_number, 'status', p.status,
          'method', p.method, 'model', p.model, 'detail', p.detail, 'text', p.text)`,
        max: LARGE_ROW_BATCH_SIZE,
      }),
    },
  ],
}

const TRANSCRIPTIONS: ExportPart = {
  file: 'transcriptions.ndjson',
  foreignKeys: ['voice_transcription.owner_id'],
  rows: createRowReader({
    from: sql.fragment`voice_transcription t`,
    where: (of) => sql.fragment`t.owner_id = ${castAccountId(of)}`,
    key: sql.fragment`t.id`,
    type: 'uuid',
    item: sql.fragment`voice_transcription_json(t)::jsonb
      || jsonb_build_object('prompt', t.prompt, 'text', t.text, 'segments', t.segments)`,
    max: LARGE_ROW_BATCH_SIZE,
  }),
}

const COLLECTIONS: ExportPart = {
  file: 'collections.ndjson',
  foreignKeys: ['rag_collection.owner_id'],
  rows: createRowReader({
    from: sql.fragment`rag_collection c`,
    where: (of) => sql.fragment`c.owner_id = ${castAccountId(of)} and c.deleted_at is null`,
    key: sql.fragment`c.id`,
    type: 'bigint',
    item: sql.fragment`json_build_object('id', c.id, 'name', c.name, 'selection', c.selection, 'metadata', c.metadata,
      'embedding_model', c.embedding_model, 'document_count', c.document_count, 'chunk_count', c.chunk_count,
      'created_at', iso(c.created_at), 'updated_at', iso(c.updated_at))`,
  }),
  childFiles: [
    {
      file: 'collection-files.ndjson',
      rows: createRowReader({
        from: sql.fragment`rag_file f`,
        where: (of) => sql.fragment`f.collection_id = ${of}::text::int and f.build_id is null`,
        key: sql.fragment`f.id`,
        type: 'bigint',
        item: sql.fragment`json_build_object('collection_id', f.collection_id, 'source', f.source,
          'document_id', f.document_id, 'title', f.title, 'format', f.format, 'chunk_count', f.chunk_count)`,
      }),
    },
  ],
}

const CONVERSATIONS: ExportPart = {
  file: 'conversations.ndjson',
  foreignKeys: ['ai_conversation.owner_id'],
  rows: createRowReader({
    from: sql.fragment`ai_conversation c left join ai_sentiment s on s.conversation_id = c.id`,
    where: (of) => sql.fragment`c.owner_id = ${castAccountId(of)}`,
    key: sql.fragment`c.id`,
    type: 'uuid',
    item: sql.fragment`json_build_object('id', c.id, 'title', c.title, 'provider', c.provider, 'model', c.model,
      'message_count', c.message_count, 'created_at', iso(c.created_at), 'updated_at', iso(c.updated_at),
      'sentiment', s.sentiment, 'performance', s.performance, 'score', s.score)`,
  }),
  childFiles: [
    {
      file: 'messages.ndjson',
      rows: createRowReader({
        from: sql.fragment`ai_message m`,
        where: (of) => sql.fragment`m.conversation_id = ${of}::text::uuid`,
        key: sql.fragment`m.ordinal`,
        type: 'bigint',
        item: sql.fragment`json_build_object('id', m.id, 'conversation_id', m.conversation_id, 'role', m.role,
          'status', m.status, 'content', m.content, 'provider', m.provider, 'model', m.model, 'error', m.error_detail,
          'created_at', iso(m.created_at))`,
        max: LARGE_ROW_BATCH_SIZE,
      }),
    },
  ],
}

const USAGE: ExportPart = {
  file: 'usage.ndjson',
  foreignKeys: ['ai_usage.owner_id'],
  rows: createRowReader({
    from: sql.fragment`ai_usage u`,
    where: (of) => sql.fragment`u.owner_id = ${castAccountId(of)}`,
    key: sql.fragment`u.id`,
    type: 'bigint',
    item: sql.fragment`json_build_object('id', u.id, 'action', u.action, 'vendor', u.vendor, 'model', u.model,
      'input_tokens', u.input_tokens, 'output_tokens', u.output_tokens, 'audio_seconds', u.audio_seconds, 'cost', u.cost, 'success', u.success,
      'conversation_id', u.conversation_id, 'created_at', iso(u.created_at))`,
  }),
}

const POSTS: ExportPart = {
  file: 'posts.ndjson',
  foreignKeys: ['blog_post.author_id'],
  rows: createRowReader({
    from: sql.fragment`blog_post p`,
    where: (of) => sql.fragment`p.author_id = ${castAccountId(of)}`,
    key: sql.fragment`p.id`,
    type: 'bigint',
    item: sql.fragment`p.fields || ',"tags":' || p.tags || '}'`,
    max: LARGE_ROW_BATCH_SIZE,
  }),
}

const JOBS: ExportPart = {
  file: 'jobs.ndjson',
  foreignKeys: ['job.owner_id'],
  rows: createRowReader({
    from: sql.fragment`job`,
    where: (of) => sql.fragment`job.owner_id = ${castAccountId(of)}`,
    key: sql.fragment`job.ordinal`,
    type: 'bigint',
    item: sql.fragment`job_json(job)`,
  }),
}

const MESSAGES: ExportPart = {
  file: 'sends.ndjson',
  foreignKeys: ['comms_send.owner_id'],
  rows: createRowReader({
    from: sql.fragment`comms_send s`,
    where: (of) => sql.fragment`s.owner_id = ${castAccountId(of)}`,
    key: sql.fragment`s.id`,
    type: 'uuid',
    item: sql.fragment`json_build_object('id', s.id, 'channel', s.channel, 'to', s.recipients, 'status', s.status,
      'attachments', s.attachments, 'send_at', iso(s.send_at),
      'provider_id', s.provider_id, 'provider_status', s.provider_status, 'detail', s.detail,
      'created_at', iso(s.created_at), 'requested_at', iso(s.requested_at), 'settled_at', iso(s.settled_at))`,
  }),
}

const createCustomerRowReader = (
  from: Fragment,
  row: Fragment,
  item: Fragment,
  more = sql.fragment`true`,
): RowReader =>
  createRowReader({
    from,
    where: (of) => sql.fragment`${row}.customer_id = ${of}::text::bigint and ${more}`,
    key: sql.fragment`${row}.id`,
    type: 'bigint',
    item,
  })

const CUSTOMER: ExportPart = {
  file: 'payment-customer.ndjson',
  foreignKeys: ['payment_customer.user_id'],
  rows: createRowReader({
    from: sql.fragment`payment_customer c`,
    where: (of) => sql.fragment`c.user_id = ${castAccountId(of)}`,
    key: sql.fragment`c.id`,
    type: 'bigint',
    item: sql.fragment`json_build_object('provider_customer_id', c.provider_customer_id, 'created_at', iso(c.created_at))`,
  }),
  childFiles: [
    {
      file: 'transactions.ndjson',
      rows: createCustomerRowReader(
        sql.fragment`payment_transaction t`,
        sql.fragment`t`,
        sql.fragment`payment_transaction_json(t)`,
        sql.fragment`t.shown`,
      ),
    },
    {
      file: 'subscriptions.ndjson',
      rows: createCustomerRowReader(
        sql.fragment`payment_subscription s`,
        sql.fragment`s`,
        sql.fragment`payment_subscription_json(s)`,
      ),
    },
    {
      file: 'disputes.ndjson',
      rows: createCustomerRowReader(
        sql.fragment`payment_dispute d left join payment_transaction t on t.id = d.transaction_id`,
        sql.fragment`d`,
        sql.fragment`payment_dispute_json(d, t)`,
      ),
    },
  ],
}

const WEBHOOKS: ExportPart = {
  file: 'webhooks.ndjson',
  foreignKeys: ['webhook_endpoint.account_id'],
  rows: createRowReader({
    from: sql.fragment`webhook_endpoint e`,
    where: (of) => sql.fragment`e.account_id = ${castAccountId(of)} and e.deleted_at is null`,
    key: sql.fragment`e.id`,
    type: 'bigint',
    item: sql.fragment`webhook_endpoint_json(e)`,
  }),
  childFiles: [
    {
      file: 'webhook-deliveries.ndjson',
      rows: createRowReader({
        from: sql.fragment`webhook_delivery d`,
        where: (of) => sql.fragment`d.endpoint_id = ${of}::text::bigint`,
        key: sql.fragment`d.id`,
        type: 'bigint',
        item: sql.fragment`webhook_delivery_json(d)::jsonb || jsonb_build_object('endpoint_id', d.endpoint_id, 'body', d.body)`,
      }),
    },
  ],
}

const EVENT_FIELDS = sql.fragment`'id', e.id, 'at', iso(e.at), 'kind', e.kind, 'account_id', e.account_id,
  'organization_id', e.organization_id`

// Audit events have no foreign keys. Events of other actors exclude the actor and the client address, which are
// personal data of the actor.
const AUDIT_AS_ACTOR: ExportPart = {
  file: 'audit-done.ndjson',
  foreignKeys: [],
  rows: createAuditRowReader(
    (of) => sql.fragment`e.actor_id = ${castAccountId(of)}`,
    sql.fragment`json_build_object(${EVENT_FIELDS}, 'address', e.address, 'data',
      case when e.account_id = e.actor_id then e.data else e.data - 'email' - 'address' end)`,
  ),
}
const AUDIT_AS_SUBJECT: ExportPart = {
  file: 'audit-suffered.ndjson',
  foreignKeys: [],
  rows: createAuditRowReader(
    (of) => sql.fragment`e.account_id = ${castAccountId(of)} and e.account_id is distinct from e.actor_id`,
    sql.fragment`json_build_object(${EVENT_FIELDS}, 'data', e.data - 'api_key')`,
  ),
}

export const EXPORT_PARTS: readonly ExportPart[] = [
  ...[
    SESSIONS,
    API_KEYS,
    PASSKEYS,
    MEMBERSHIPS,
    INVITES,
    DOCUMENTS,
    TRANSCRIPTIONS,
    COLLECTIONS,
    CONVERSATIONS,
    USAGE,
  ],
  ...[POSTS, JOBS, MESSAGES, CUSTOMER, WEBHOOKS, AUDIT_AS_ACTOR, AUDIT_AS_SUBJECT],
]
