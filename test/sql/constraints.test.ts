import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { createTestDatabase } from '../database.ts'
import { SEALED_TEXT } from '../keys.ts'

/** For each constraint, a statement violates that constraint and no other. */

const { query } = await createTestDatabase()

type Row = Readonly<Record<string, unknown>>

const bytes = (length: number): Buffer => Buffer.alloc(length, 7)
let counter = 0

async function insert(table: string, row: Row): Promise<Record<string, unknown>> {
  const keys = Object.keys(row)
  const text = `insert into ${table} (${keys.join(', ')}) values (${keys.map((_, i) => `$${i + 1}`).join(', ')}) returning *`
  return (await query(text, Object.values(row)))[0]!
}

async function assertBroken(constraint: string, action: Promise<unknown>): Promise<void> {
  await assert.rejects(action, (error: { constraint?: string }) => {
    assert.equal(error.constraint, constraint)
    return true
  })
  triedConstraints.add(constraint)
}
const triedConstraints = new Set<string>()

const createAccountRow = (fields: Row = {}): Row => ({
  email: `a${++counter}@example.com`,
  password_hash: 'x',
  ...fields,
})
const createJobRow = (fields: Row = {}): Row => ({
  id: randomUUID(),
  name: 'n',
  queue: 'q',
  mailbox: 'm',
  payload: '{}',
  status: 'available',
  max_tries: 1,
  ...fields,
})
const createDocumentRow = (fields: Row = {}): Row => ({
  title: 't',
  media_type: 'text/plain',
  byte_size: 1,
  sha256: Buffer.from(randomUUID().replaceAll('-', '')),
  ...fields,
})
const createLeaseRow = (fields: Row): Row => ({
  ...{ id: randomUUID(), name: 'w', queues: [], expires_at: new Date() },
  ...fields,
})
const createScheduleRow = (fields: Row = {}): Row => ({
  ...{ id: randomUUID(), name: 'n', task_name: 't', queue_type: 'q', args: '{}', cron: '@daily' },
  ...{ time_zone: 'UTC', overlap: 'skip', catch_up: 'none' },
  ...fields,
})
const endedFields = { finished_at: new Date() }
const deletedFields = {
  deleted_at: new Date(),
  email: null,
  full_name: null,
  password_hash: '',
  is_active: false,
}
const runningFields = { status: 'running', lease_id: randomUUID() }

const owner = (await insert('account', createAccountRow())).id
await insert('worker_queue', { name: 'tried' })
const session = (await insert('session', { id: randomUUID(), account_id: owner })).id
const createSuppressionRow = (fields: Row = {}): Row => ({
  ...{ address: 'a@example.com', reason: 'bounced', send_id: randomUUID() },
  ...fields,
})
await insert('comms_suppression', createSuppressionRow({ address: 'twice@example.com' }))
const createTemplateRow = (fields: Row = {}): Row => ({ name: 't', channel: 'sms', text: 'x', ...fields })
await insert('comms_template', createTemplateRow({ name: 'twice' }))
const createEndpointRow = (fields: Row = {}): Row => ({
  ...{ account_id: owner, url: 'https://example.com/', host: 'example.com', events: ['job.done'] },
  secret: SEALED_TEXT,
  ...fields,
  ...(fields.url === null ? { host: null } : {}),
})
const callbacks = (await insert('webhook_endpoint', createEndpointRow({ url: null, events: [] }))).id
await insert('account_quota', { account_id: owner, kind: 'pages', quota: 2 })
const createDeliveryRow = (fields: Row = {}): Row => ({
  ...{ endpoint_id: callbacks, host: 'example.com', type: 't', body: '{}' },
  ...fields,
})
await insert('webhook_delivery', createDeliveryRow())
const createCallbackRow = (fields: Row = {}): Row => ({
  ...{ job_id: callbackJob, endpoint_id: callbacks, host: 'example.com' },
  ...fields,
})
const callbackJob = randomUUID()
await insert('job_callback', createCallbackRow({ url: 'https://example.com/' }))
const createApiKeyRow = (fields: Row = {}): Row => ({
  id: randomUUID(),
  account_id: owner,
  name: 'n',
  digest: Buffer.from(randomUUID().replaceAll('-', '')),
  hint: 'abcd',
  scopes: ['jobs:read'],
  ...fields,
})
const key = (
  await insert('api_key', createApiKeyRow({ digest: bytes(32), scopes: ['*:write', 'jobs:read'] }))
).id
const createAllowanceRow = (fields: Row = {}): Row => ({
  ...{ key_id: key, began_at: new Date(), taken: 1, granted: 1 },
  ...fields,
})
await insert('api_key_allowance', createAllowanceRow())
await insert('ai_budget', { account_id: owner, kind: 'month_cost', amount: 1 })
await insert('ai_budget', { key_id: key, kind: 'month_cost', amount: 1 })
const heldJob = (await insert('job', createJobRow())).id
await insert('ai_budget_hold', { job_id: heldJob, tokens: 1, cost: 0 })
const createTotpRow = (fields: Row = {}): Row => ({
  ...{ id: randomUUID(), account_id: owner, secret: SEALED_TEXT },
  ...fields,
})
const accountWithTotp = (await insert('account', createAccountRow())).id
const otherTotp = (await insert('account_totp', createTotpRow({ account_id: accountWithTotp }))).id
const createPasskeyRow = (fields: Row = {}): Row => ({
  ...{
    id: randomUUID(),
    account_id: owner,
    credential_id: Buffer.from(randomUUID()),
    public_key: bytes(9),
    counter: 0,
  },
  ...{ transports: [], name: 'n', is_synced: true },
  ...fields,
})
const otherPasskey = (await insert('passkey', createPasskeyRow({ credential_id: bytes(40) }))).id
const createIdentityRow = (fields: Row = {}): Row => ({
  ...{ id: randomUUID(), account_id: owner, issuer: 'i', subject: randomUUID() },
  ...fields,
})
const otherIdentity = (await insert('oidc_identity', createIdentityRow({ issuer: 'taken' }))).id
await insert(
  'oidc_identity',
  createIdentityRow({ account_id: (await insert('account', createAccountRow())).id, subject: 'taken' }),
)
await insert('oidc_login', { digest: bytes(32), issuer: 'i', subject: 's', expires_at: new Date() })
await insert('passkey_challenge', { challenge: bytes(32), expires_at: new Date() })
const blob = (await insert('blob', { sha256: bytes(32) })).id
const doc = (await insert('document', createDocumentRow())).id
const createEmailChangeRow = (fields: Row = {}): Row => ({
  ...{ id: randomUUID(), account_id: owner, email: 'b@example.com', expires_at: new Date() },
  ...{ old_digest: bytes(32), new_digest: bytes(32) },
  ...fields,
})
const createExportRow = (fields: Row = {}): Row => ({
  ...{ id: randomUUID(), account_id: owner, sha256: bytes(32), byte_size: 1 },
  ...fields,
})
const createPageRow = (fields: Row = {}): Row => ({
  document_id: doc,
  page_number: ++counter,
  status: 'read',
  method: 'text_layer',
  job_id: randomUUID(),
  ...fields,
})
const createTokenRow = (fields: Row = {}): Row => ({
  digest: Buffer.from(randomUUID().replaceAll('-', '')),
  session_id: session,
  expires_at: new Date(),
  ...fields,
})

const createPostRow = (fields: Row = {}): Row => ({ title: 't', slug: `s-${++counter}`, ...fields })
const blogPost = (await insert('blog_post', createPostRow({ slug: 'taken' }))).id
await insert('blog_redirect', { slug: 'once', post_id: blogPost })
const blogTag = (await insert('blog_tag', { name: 'n', slug: 'n' })).id
const blogUpload = (await insert('blog_upload', { file_name: 'f', format: 'zip' })).id

const createRevisionRow = (fields: Row = {}): Row => ({
  ...{ post_id: blogPost, title: 't', slug: 's', content: 'c', tags: '[]', updated_at: new Date() },
  ...{ replaced_by: 'update', ...fields },
})

const validRows: Readonly<Record<string, readonly Row[]>> = {
  account: [createAccountRow({ role: 'moderator', full_name: 'N' }), createAccountRow(deletedFields)],
  job: [
    createJobRow(),
    createJobRow({ mailbox: 'v1', mailbox_limit: 1 }),
    createJobRow({ ...runningFields, mailbox: 'v1', mailbox_limit: 1, settle: 'x' }),
    createJobRow({ status: 'done', ...endedFields }),
    createJobRow({ status: 'failed', error_code: 'internal', ...endedFields }),
    createJobRow({ status: 'cancelled', ...endedFields }),
  ],
  document: [createDocumentRow(), createDocumentRow({ owner_id: owner })],
  blog_post: [
    createPostRow({
      title: 't'.repeat(200),
      slug: 's'.repeat(220),
      content: 'c'.repeat(1_000_000),
      excerpt: 'e'.repeat(500),
    }),
    createPostRow({
      slug: '1',
      seo_title: 's'.repeat(200),
      seo_description: 's'.repeat(320),
      author_name: 'a'.repeat(320),
    }),
    createPostRow({
      slug: 'a-1-b',
      hero_image_url: 'h'.repeat(1024),
      status: 'published',
      published_at: new Date(),
    }),
    createPostRow({ status: 'archived' }),
    createPostRow({ published_at: new Date() }),
  ],
  blog_post_part: [{ post_id: blogPost, part: 5, search: '' }],
  blog_redirect: [{ slug: 'former', post_id: blogPost }],
  blog_preview: [{ post_id: blogPost, expires_at: new Date() }],
  blog_revision: [createRevisionRow(), createRevisionRow({ replaced_by: 'import', editor_id: owner })],
  blog_tag: [
    { name: 'n'.repeat(80), slug: 's'.repeat(100) },
    { deleted_at: new Date(), applied_to: 0 },
  ],
  document_page: [
    createPageRow(),
    createPageRow({ method: 'vision', model: 'm', image: bytes(3), width: 1, height: 1 }),
    createPageRow({ method: 'vision' }),
    createPageRow({ status: 'unread', method: 'none', detail: 'why' }),
  ],
}

const violations: Readonly<Record<string, readonly [constraint: string, ...Row[]][]>> = {
  account: [
    [
      'account_email_check',
      createAccountRow({ email: 'Upper@example.com' }),
      createAccountRow({ email: 'a@' }),
      createAccountRow({ email: `${'a'.repeat(254)}@` }),
    ],
    ['account_full_name_check', createAccountRow({ full_name: 'n'.repeat(201) })],
    ['account_role_check', createAccountRow({ role: 'root' })],
    [
      'account_deleted_check',
      createAccountRow({ email: null }),
      createAccountRow({ ...deletedFields, email: 'a@example.com' }),
      createAccountRow({ ...deletedFields, full_name: 'N' }),
      createAccountRow({ ...deletedFields, password_hash: 'x' }),
      createAccountRow({ ...deletedFields, is_active: true }),
      createAccountRow({ ...deletedFields, deletion_at: new Date() }),
    ],
  ],
  session: [
    ['session_pkey', { id: session, account_id: owner }],
    ['session_account_id_fkey', { id: randomUUID(), account_id: 999_999 }],
    ['session_ended_check', { id: randomUUID(), account_id: owner, ended_at: new Date() }],
  ],
  stored_key: [['stored_key_secret_check', { id: randomUUID(), secret: 'plain' }]],
  account_totp: [
    ['account_totp_pkey', createTotpRow({ id: otherTotp, account_id: owner })],
    ['account_totp_account_id_key', createTotpRow({ account_id: accountWithTotp })],
    ['account_totp_account_id_fkey', createTotpRow({ account_id: 999_999 })],
    ['account_totp_secret_check', createTotpRow({ secret: 'plain' })],
    ['account_totp_last_step_check', createTotpRow({ last_step: -1 })],
    ['account_totp_recovery_codes_check', createTotpRow({ recovery_codes: Array(11).fill(bytes(32)) })],
  ],
  passkey: [
    ['passkey_pkey', createPasskeyRow({ id: otherPasskey })],
    ['passkey_credential_id_key', createPasskeyRow({ credential_id: bytes(40) })],
    [
      'passkey_credential_id_check',
      createPasskeyRow({ credential_id: bytes(0) }),
      createPasskeyRow({ credential_id: bytes(1024) }),
    ],
    [
      'passkey_public_key_check',
      createPasskeyRow({ public_key: bytes(0) }),
      createPasskeyRow({ public_key: bytes(4001) }),
    ],
    ['passkey_counter_check', createPasskeyRow({ counter: -1 })],
    ['passkey_transports_check', createPasskeyRow({ transports: Array(11).fill('usb') })],
    ['passkey_name_check', createPasskeyRow({ name: '' }), createPasskeyRow({ name: 'n'.repeat(101) })],
    ['passkey_account_id_fkey', createPasskeyRow({ account_id: 999_999 })],
  ],
  oidc_identity: [
    ['oidc_identity_pkey', createIdentityRow({ id: otherIdentity })],
    ['oidc_identity_subject_key', createIdentityRow({ subject: 'taken' })],
    ['oidc_identity_account_id_key', createIdentityRow({ issuer: 'taken' })],
    ['oidc_identity_account_id_fkey', createIdentityRow({ account_id: 999_999 })],
  ],
  oidc_login: [
    ['oidc_login_pkey', { digest: bytes(32), issuer: 'i', subject: 's', expires_at: new Date() }],
    ['oidc_login_digest_check', { digest: bytes(31), issuer: 'i', subject: 's', expires_at: new Date() }],
  ],
  passkey_challenge: [
    ['passkey_challenge_pkey', { challenge: bytes(32), expires_at: new Date() }],
    ['passkey_challenge_check', { challenge: bytes(31), expires_at: new Date() }],
  ],
  account_export: [
    ['account_export_account_id_fkey', createExportRow({ account_id: 999_999 })],
    ['account_export_sha256_check', createExportRow({ sha256: bytes(31) })],
    ['account_export_byte_size_check', createExportRow({ byte_size: 0 })],
  ],
  email_change: [
    ['email_change_account_id_fkey', createEmailChangeRow({ account_id: 999_999 })],
    [
      'email_change_email_check',
      createEmailChangeRow({ email: 'B@example.com' }),
      createEmailChangeRow({ email: 'a@' }),
    ],
    [
      'email_change_digest_check',
      createEmailChangeRow({ old_digest: bytes(31) }),
      createEmailChangeRow({ new_digest: bytes(33) }),
    ],
    [
      'email_change_confirmed_check',
      createEmailChangeRow({ old_confirmed_at: new Date(), new_confirmed_at: new Date() }),
    ],
  ],
  webhook_endpoint: [
    [
      'webhook_endpoint_url_check',
      createEndpointRow({ url: 'https:/' }),
      createEndpointRow({ url: 'u'.repeat(2001) }),
    ],
    ['webhook_endpoint_host_check', { ...createEndpointRow(), host: null }],
    [
      'webhook_endpoint_service_check',
      createEndpointRow({ account_id: null, url: null, host: null, events: [] }),
    ],
    ['webhook_endpoint_description_check', createEndpointRow({ description: 'd'.repeat(501) })],
    ['webhook_endpoint_events_check', createEndpointRow({ events: [] }), createEndpointRow({ url: null })],
    [
      'webhook_endpoint_failures_check',
      createEndpointRow({ failures: 1 }),
      createEndpointRow({ failing_since: new Date() }),
    ],
    ['webhook_endpoint_secret_check', createEndpointRow({ secret: 'whsec_plain' })],
    ['webhook_endpoint_previous_secret_check', createEndpointRow({ previous_secret: 'whsec_plain' })],
    ['webhook_endpoint_disabled_check', createEndpointRow({ disabled_at: new Date() })],
    ['webhook_endpoint_deleted_check', createEndpointRow({ deleted_at: new Date() })],
    ['webhook_endpoint_account_id_fkey', createEndpointRow({ account_id: 999_999 })],
    ['webhook_endpoint_callbacks_key', createEndpointRow({ url: null, events: [] })],
  ],
  comms_suppression: [
    ['comms_suppression_address_check', createSuppressionRow({ address: 'A@example.com' })],
    ['comms_suppression_stream_check', createSuppressionRow({ stream: 'x' })],
    ['comms_suppression_reason_check', createSuppressionRow({ reason: 'x' })],
    ['comms_suppression_reason_check', createSuppressionRow({ reason: 'opted_out' })],
    ['comms_suppression_reason_check', createSuppressionRow({ channel: 'sms' })],
    ['comms_suppression_reason_check', createSuppressionRow({ channel: 'call' })],
    ['comms_suppression_pkey', createSuppressionRow({ address: 'twice@example.com' })],
  ],
  comms_template: [
    ['comms_template_name_check', createTemplateRow({ name: 'A' }), createTemplateRow({ name: '' })],
    [
      'comms_template_content_check',
      createTemplateRow({ channel: 'call' }),
      createTemplateRow({ text: null }),
      createTemplateRow({ subject: 's' }),
      createTemplateRow({ channel: 'email' }),
      createTemplateRow({ channel: 'email', subject: 's', text: null }),
    ],
    ['comms_template_variables_check', createTemplateRow({ variables: '{}' })],
    ['comms_template_pkey', createTemplateRow({ name: 'twice' })],
  ],
  ai_budget: [
    ['ai_budget_kind_check', { account_id: owner, kind: 'week_cost', amount: 1 }],
    [
      'ai_budget_amount_check',
      { account_id: owner, kind: 'day_cost', amount: -1 },
      { key_id: key, kind: 'day_cost', amount: 0 },
    ],
    [
      'ai_budget_holder_check',
      { kind: 'day_cost', amount: 1 },
      { account_id: owner, key_id: key, kind: 'day_cost', amount: 1 },
    ],
    ['ai_budget_account_id_fkey', { account_id: 999_999, kind: 'day_cost', amount: 1 }],
    ['ai_budget_key_id_fkey', { key_id: randomUUID(), kind: 'day_cost', amount: 1 }],
    ['ai_budget_account_id_key', { account_id: owner, kind: 'month_cost', amount: 1 }],
    ['ai_budget_key_id_key', { key_id: key, kind: 'month_cost', amount: 1 }],
  ],
  ai_budget_hold: [
    ['ai_budget_hold_pkey', { job_id: heldJob, tokens: 1, cost: 0 }],
    ['ai_budget_hold_job_id_fkey', { job_id: randomUUID(), tokens: 1, cost: 0 }],
    [
      'ai_budget_hold_amounts_check',
      { job_id: heldJob, tokens: -1, cost: 0 },
      { job_id: heldJob, tokens: 0, cost: -1 },
    ],
  ],
  account_quota: [
    ['account_quota_kind_check', { account_id: owner, kind: 'doors', quota: 1 }],
    ['account_quota_quota_check', { account_id: owner, kind: 'keys', quota: -1 }],
    ['account_quota_account_id_fkey', { account_id: 999_999, kind: 'keys', quota: 1 }],
    ['account_quota_pkey', { account_id: owner, kind: 'pages', quota: 1 }],
  ],
  webhook_delivery: [
    [
      'webhook_delivery_status_check',
      createDeliveryRow({ status: 'sent', due_at: null, ended_at: new Date() }),
    ],
    ['webhook_delivery_due_check', createDeliveryRow({ due_at: null })],
    ['webhook_delivery_ended_check', createDeliveryRow({ ended_at: new Date() })],
    ['webhook_delivery_endpoint_id_fkey', createDeliveryRow({ endpoint_id: 999_999 })],
  ],
  job_callback: [
    ['job_callback_pkey', createCallbackRow({ url: 'https://example.com/' })],
    [
      'job_callback_url_check',
      createCallbackRow({ url: 'https:/' }),
      createCallbackRow({ url: 'u'.repeat(2001) }),
    ],
    [
      'job_callback_endpoint_id_fkey',
      createCallbackRow({ endpoint_id: 999_999, url: 'https://example.com/' }),
    ],
  ],
  api_key: [
    ['api_key_pkey', createApiKeyRow({ id: key })],
    ['api_key_digest_key', createApiKeyRow({ digest: bytes(32) })],
    ['api_key_digest_check', createApiKeyRow({ digest: bytes(31) })],
    ['api_key_name_check', createApiKeyRow({ name: '' }), createApiKeyRow({ name: 'n'.repeat(101) })],
    ['api_key_hint_check', createApiKeyRow({ hint: 'abc' })],
    [
      'api_key_scopes_check',
      ...[[], ['jobs'], ['jobs:admin'], ['Jobs:read'], [null], Array(51).fill('jobs:read')].map((scopes) =>
        createApiKeyRow({ scopes }),
      ),
    ],
    ['api_key_account_id_fkey', createApiKeyRow({ account_id: 999_999 })],
    ['api_key_organization_id_account_id_fkey', createApiKeyRow({ organization_id: 999_999 })],
  ],
  api_key_allowance: [
    ['api_key_allowance_pkey', createAllowanceRow({ key_id: key })],
    [
      'api_key_allowance_taken_check',
      createAllowanceRow({ granted: -1 }),
      createAllowanceRow({ granted: 2 }),
    ],
    ['api_key_allowance_key_id_fkey', createAllowanceRow({ key_id: randomUUID() })],
  ],
  refresh_token: [
    [
      'refresh_token_digest_check',
      createTokenRow({ digest: bytes(31) }),
      createTokenRow({ digest: bytes(33) }),
    ],
    ['refresh_token_session_id_fkey', createTokenRow({ session_id: randomUUID() })],
  ],
  job: [
    ['job_status_check', createJobRow({ status: 'paused' })],
    ['job_mailbox_limit_check', createJobRow({ mailbox_limit: 0 }), createJobRow({ mailbox_limit: 1001 })],
    [
      'job_lease_check',
      createJobRow({ lease_id: randomUUID() }),
      createJobRow({ status: 'running' }),
      createJobRow({ status: 'done', ...endedFields, lease_id: randomUUID() }),
    ],
    [
      'job_finished_check',
      createJobRow({ ...endedFields }),
      createJobRow({ status: 'done' }),
      createJobRow({ status: 'failed', error_code: 'x' }),
      createJobRow({ ...runningFields, ...endedFields }),
    ],
    [
      'job_error_check',
      createJobRow({ status: 'failed', ...endedFields }),
      createJobRow({ status: 'done', ...endedFields, error_code: 'x' }),
      createJobRow({ error_code: 'x' }),
    ],
    ['job_key_check', createJobRow({ key: '' }), createJobRow({ key: 'k'.repeat(201) })],
    ['job_priority_check', createJobRow({ priority: 2 })],
    [
      'job_after_check',
      createJobRow({ after: [randomUUID()] }),
      createJobRow({ after: [], after_outcome: 'done' }),
    ],
    ['job_after_outcome_check', createJobRow({ after: [randomUUID()], after_outcome: 'some' })],
    ['job_waiting_check', createJobRow({ status: 'waiting' }), createJobRow({ waits_for: -1 })],
    ['job_max_tries_check', createJobRow({ max_tries: 0 }), createJobRow({ max_tries: 101 })],
    ['job_owner_id_fkey', createJobRow({ owner_id: 999_999 })],
  ],
  worker_queue: [
    ['worker_queue_name_check', { name: '' }, { name: 'Upper' }, { name: '1st' }, { name: 'a'.repeat(64) }],
    ['worker_queue_owner_check', { name: 'a', account_id: owner, organization_id: 999_999 }],
    ['worker_queue_account_id_fkey', { name: 'a', account_id: 999_999 }],
    ['worker_queue_organization_id_fkey', { name: 'a', organization_id: 999_999 }],
    ['worker_queue_created_by_fkey', { name: 'a', created_by: 999_999 }],
    ['worker_queue_description_check', { name: 'a', description: 'd'.repeat(501) }],
    [
      'worker_queue_endpoint_check',
      { name: 'a', endpoint_url: 'https://a.b' },
      { name: 'a', endpoint_secret: SEALED_TEXT },
    ],
    [
      'worker_queue_endpoint_url_check',
      { name: 'a', endpoint_url: 'https', endpoint_concurrency: 1, endpoint_secret: SEALED_TEXT },
    ],
    [
      'worker_queue_endpoint_concurrency_check',
      { name: 'a', endpoint_url: 'https://a.b', endpoint_concurrency: 0, endpoint_secret: SEALED_TEXT },
      { name: 'a', endpoint_url: 'https://a.b', endpoint_concurrency: 1001, endpoint_secret: SEALED_TEXT },
    ],
    [
      'worker_queue_endpoint_secret_check',
      { name: 'a', endpoint_url: 'https://a.b', endpoint_concurrency: 1, endpoint_secret: 'whsec_plain' },
    ],
  ],
  worker_task: [
    ['worker_task_queue_fkey', { queue: 'nothing', name: 'a' }],
    ['worker_task_name_check', { queue: 'tried', name: '' }, { queue: 'tried', name: 'a/b' }],
    [
      'worker_task_max_tries_check',
      { queue: 'tried', name: 'a', max_tries: 0 },
      { queue: 'tried', name: 'a', max_tries: 101 },
    ],
    [
      'worker_task_timeout_check',
      { queue: 'tried', name: 'a', timeout_seconds: 0 },
      { queue: 'tried', name: 'a', timeout_seconds: 86_401 },
    ],
    [
      'worker_task_stall_check',
      { queue: 'tried', name: 'a', stall_seconds: 0 },
      { queue: 'tried', name: 'a', stall_seconds: 86_401 },
    ],
    [
      'worker_task_most_running_check',
      { queue: 'tried', name: 'a', most_running: 0 },
      { queue: 'tried', name: 'a', most_running: 1001 },
    ],
    ['worker_task_secrets_check', { queue: 'tried', name: 'a', secrets: new Array(51).fill('s') }],
  ],
  worker_claim: [
    ['worker_claim_lease_id_fkey', { lease_id: randomUUID(), claim_id: randomUUID(), job_ids: [] }],
  ],
  worker_lease: [
    [
      'worker_lease_http_check',
      createLeaseRow({ queue: 'q' }),
      createLeaseRow({ info: '{}' }),
      createLeaseRow({ ttl_seconds: 5 }),
    ],
    [
      'worker_lease_ttl_check',
      createLeaseRow({ queue: 'q', info: '{}', ttl_seconds: 4 }),
      createLeaseRow({ queue: 'q', info: '{}', ttl_seconds: 601 }),
    ],
  ],
  schedule: [
    ['schedule_owner_id_fkey', createScheduleRow({ owner_id: 999_999 })],
    ['schedule_built_in_check', createScheduleRow({ owner_id: owner, is_built_in: true })],
    ['schedule_name_check', createScheduleRow({ name: '' }), createScheduleRow({ name: 'n'.repeat(101) })],
    ['schedule_timing_check', createScheduleRow({ cron: null }), createScheduleRow({ every_seconds: 60 })],
    [
      'schedule_every_seconds_check',
      createScheduleRow({ cron: null, every_seconds: 59 }),
      createScheduleRow({ cron: null, every_seconds: 31_536_001 }),
    ],
    ['schedule_period_check', createScheduleRow({ start_at: new Date(1), end_at: new Date(1) })],
    ['schedule_overlap_check', createScheduleRow({ overlap: 'x' })],
    ['schedule_catch_up_check', createScheduleRow({ catch_up: 'all' })],
    ['schedule_paused_check', createScheduleRow({ paused_at: new Date(), next_at: new Date() })],
    ['schedule_paused_by_check', createScheduleRow({ paused_by: owner })],
    ['schedule_paused_by_fkey', createScheduleRow({ paused_at: new Date(), paused_by: 999_999 })],
    [
      'schedule_last_run_check',
      createScheduleRow({ last_job_id: randomUUID() }),
      createScheduleRow({ last_run_at: new Date() }),
    ],
    [
      'schedule_last_skip_check',
      createScheduleRow({ last_skipped_at: new Date() }),
      createScheduleRow({ last_skip_reason: 'late' }),
    ],
    ['schedule_skip_reason_check', createScheduleRow({ last_skipped_at: new Date(), last_skip_reason: 'x' })],
  ],
  blob: [
    ['blob_sha256_check', { sha256: bytes(31) }],
    ['blob_sha256_key', { sha256: bytes(32) }],
    ['blob_store_check', { store: 'elsewhere' }, { store: 'file:' }, { store: 's3://' }],
    ['blob_deleted_check', { sha256: bytes(32), deleted: true }],
  ],
  blob_chunk: [['blob_chunk_blob_id_fkey', { blob_id: 999_999, ordinal: 0, bytes: bytes(1) }]],
  document: [
    ['document_owner_id_fkey', createDocumentRow({ owner_id: 999_999 })],
    ['document_supersedes_missing', createDocumentRow({ supersedes_id: 999_999 })],
    ['document_attached_to_id_fkey', createDocumentRow({ attached_to_id: 999_999 })],
    ['document_sealed_password_check', createDocumentRow({ sealed_password: 'plain' })],
    ['document_tags_check', createDocumentRow({ tags: Array.from({ length: 101 }, (_, i) => `t${i}`) })],
    ['document_title_check', createDocumentRow({ title: '' }), createDocumentRow({ title: 't'.repeat(301) })],
    ['document_kind_check', createDocumentRow({ kind: '' }), createDocumentRow({ kind: 'k'.repeat(33) })],
    ['document_sha256_check', createDocumentRow({ sha256: bytes(31) })],
    [
      'document_expires_at_check',
      createDocumentRow({ deleted_at: new Date() }),
      createDocumentRow({ expires_at: new Date() }),
    ],
  ],
  document_page: [
    ['document_page_document_id_fkey', createPageRow({ document_id: 999_999 })],
    ['document_page_page_number_check', createPageRow({ page_number: 0 })],
    ['document_page_status_check', createPageRow({ status: 'half', detail: 'x' })],
    ['document_page_method_check', createPageRow({ method: 'guess' })],
    ['document_page_reason_check', createPageRow({ status: 'unread', method: 'none' })],
    ['document_page_model_check', createPageRow({ method: 'none', model: 'm' })],
    ['document_page_image_check', createPageRow({ image: bytes(1) })],
    ['document_page_size_check', createPageRow({ width: 1 }), createPageRow({ image: bytes(1), width: 1 })],
    ['document_page_given_up_check', createPageRow({ given_up: true })],
  ],
  blog_post: [
    ['blog_post_slug_key', createPostRow({ slug: 'taken' })],
    ['blog_post_author_id_fkey', createPostRow({ author_id: 999_999 })],
    ['blog_post_title_check', createPostRow({ title: '' }), createPostRow({ title: 't'.repeat(201) })],
    [
      'blog_post_slug_check',
      ...['', '-', 'a-', '-a', 'a--b', 'A', 'ä', 'a b', 'a\n', 's'.repeat(221)].map((slug) =>
        createPostRow({ slug }),
      ),
    ],
    ['blog_post_content_check', createPostRow({ content: 'c'.repeat(1_000_001) })],
    ['blog_post_excerpt_check', createPostRow({ excerpt: 'e'.repeat(501) })],
    ['blog_post_status_check', createPostRow({ status: 'gone' })],
    ['blog_post_author_name_check', createPostRow({ author_name: 'a'.repeat(321) })],
    ['blog_post_published_at_check', createPostRow({ status: 'published' })],
    ['blog_post_seo_title_check', createPostRow({ seo_title: 's'.repeat(201) })],
    ['blog_post_seo_description_check', createPostRow({ seo_description: 's'.repeat(321) })],
    ['blog_post_hero_image_url_check', createPostRow({ hero_image_url: 'h'.repeat(1025) })],
  ],
  blog_post_part: [
    ['blog_post_part_pkey', { post_id: blogPost, part: 0, search: '' }],
    ['blog_post_part_post_id_fkey', { post_id: 999_999, part: 0, search: '' }],
  ],
  blog_redirect: [
    ['blog_redirect_pkey', { slug: 'once', post_id: blogPost }],
    ['blog_redirect_post_id_fkey', { slug: 'nowhere', post_id: 999_999 }],
  ],
  blog_preview: [['blog_preview_post_id_fkey', { post_id: 999_999, expires_at: new Date() }]],
  blog_revision: [
    ['blog_revision_post_id_fkey', createRevisionRow({ post_id: 999_999 })],
    ['blog_revision_editor_id_fkey', createRevisionRow({ editor_id: 999_999 })],
    ['blog_revision_replaced_by_check', createRevisionRow({ replaced_by: 'magic' })],
  ],
  blog_tag: [
    ['blog_tag_name_key', { name: 'n', slug: 'other' }],
    ['blog_tag_slug_key', { name: 'other', slug: 'n' }],
    ['blog_tag_name_check', { name: '', slug: 'x' }, { name: 'n'.repeat(81), slug: 'x' }],
    [
      'blog_tag_slug_check',
      { name: 'x', slug: 'X' },
      { name: 'x', slug: '' },
      { name: 'x', slug: 's'.repeat(101) },
    ],
    [
      'blog_tag_deleted_check',
      { created_at: new Date() },
      { name: 'x' },
      { slug: 'x' },
      { name: 'x', slug: 'x', deleted_at: new Date() },
      { slug: 'x', deleted_at: new Date() },
      { name: 'x', deleted_at: new Date() },
    ],
  ],
  blog_post_tag: [
    ['blog_post_tag_post_id_fkey', { post_id: 999_999, tag_id: blogTag }],
    ['blog_post_tag_tag_id_fkey', { post_id: blogPost, tag_id: 999_999 }],
  ],
  blog_post_count: [],
  blog_upload: [['blog_upload_format_check', { file_name: 'f', format: 'tar' }]],
  blog_upload_chunk: [
    ['blog_upload_chunk_upload_id_fkey', { upload_id: 999_999, ordinal: 0, bytes: bytes(1) }],
  ],
  idempotency_key: [
    ['idempotency_key_answer_check', { scope: 's', key: 'k', fingerprint: bytes(1), status: 200 }],
    ['idempotency_key_use_check', { scope: 's', key: 'k', fingerprint: bytes(1) }],
  ],
}

describe('constraints', () => {
  for (const [table, rows] of Object.entries(validRows)) {
    test(`${table}: valid rows are accepted`, async () => {
      for (const row of rows) await insert(table, row)
    })
  }

  for (const [table, cases] of Object.entries(violations)) {
    for (const [constraint, ...rows] of cases) {
      test(constraint, async () => {
        for (const row of rows) await assertBroken(constraint, insert(table, row))
      })
    }
  }

  test('unique values', async () => {
    const assertUnique = async (constraint: string, table: string, row: Row): Promise<void> => {
      await insert(table, row)
      await assertBroken(constraint, insert(table, row))
    }
    await assertBroken('account_email_key', insert('account', createAccountRow({ email: 'a1@example.com' })))
    await assertUnique('job_pkey', 'job', createJobRow())
    await assertUnique('account_export_pkey', 'account_export', createExportRow())
    const { id: changeId } = await insert('email_change', createEmailChangeRow())
    const unlike = { old_digest: bytes(32).fill(1), new_digest: bytes(32).fill(2) }
    const other = { ...unlike, account_id: (await insert('account', createAccountRow())).id }
    for (const [constraint, row] of [
      ['email_change_pkey', createEmailChangeRow({ ...other, id: changeId })],
      ['email_change_account_id_key', createEmailChangeRow(unlike)],
      ['email_change_old_digest_key', createEmailChangeRow({ ...other, old_digest: bytes(32) })],
      ['email_change_new_digest_key', createEmailChangeRow({ ...other, new_digest: bytes(32) })],
    ] as const)
      await assertBroken(constraint, insert('email_change', row))
    await assertUnique('job_event_row_pkey', 'job_event_row', {
      job_id: randomUUID(),
      seq: 1,
      kind: 'k',
      data: '{}',
    })
    await assertUnique('worker_lease_pkey', 'worker_lease', createLeaseRow({}))
    await assertUnique('stored_key_pkey', 'stored_key', { id: randomUUID(), secret: SEALED_TEXT })
    await assertUnique('worker_queue_pkey', 'worker_queue', { name: 'twice' })
    await assertUnique('worker_task_pkey', 'worker_task', { queue: 'twice', name: 'a' })
    const held = createLeaseRow({})
    await insert('worker_lease', held)
    await assertUnique('worker_claim_pkey', 'worker_claim', {
      lease_id: held.id,
      claim_id: randomUUID(),
      job_ids: [],
    })
    await assertUnique('setting_pkey', 'setting', { name: 'x', value: 1 })
    await assertUnique('webhook_rate_pkey', 'webhook_rate', {
      ...{ account_id: owner, host: 'example.com', slots: [], counts: [], expires_at: new Date() },
    })
    await assertUnique('schedule_pkey', 'schedule', createScheduleRow({ id: 'x' }))
    await assertUnique('idempotency_key_pkey', 'idempotency_key', {
      scope: 's',
      key: 'k',
      fingerprint: bytes(1),
      status: 204,
      body: '',
    })
    await assertUnique('document_page_pkey', 'document_page', createPageRow())
    await assertUnique('blob_chunk_pkey', 'blob_chunk', { blob_id: blob, ordinal: 0, bytes: bytes(1) })
    await assertUnique('blog_post_tag_pkey', 'blog_post_tag', { post_id: blogPost, tag_id: blogTag })
    await assertUnique('blog_upload_chunk_pkey', 'blog_upload_chunk', {
      upload_id: blogUpload,
      ordinal: 0,
      bytes: bytes(1),
    })
    for (const table of ['blog_tag', 'blog_upload', 'blog_post_count', 'blog_preview', 'blog_revision'])
      await assertBroken(
        `${table}_pkey`,
        query(`insert into ${table} overriding system value select * from ${table} limit 1`),
      )
    await assertBroken(
      'blog_post_pkey',
      query(`insert into blog_post (id, title, slug) overriding system value values ($1, 't', 'free')`, [
        blogPost,
      ]),
    )
    await assertUnique('document_owner_id_sha256_key', 'document', createDocumentRow())
    await assertUnique('document_owner_id_sha256_key', 'document', createDocumentRow({ owner_id: owner }))
    await assertBroken(
      'blob_pkey',
      query('insert into blob (id) overriding system value values ($1)', [blob]),
    )
    await assertBroken(
      'account_pkey',
      query(
        `insert into account (id, email, password_hash) overriding system value values ($1, 'free@example.com', 'x')`,
        [owner],
      ),
    )
    const retry_of = (await insert('job', createJobRow({ retry_of: randomUUID() }))).retry_of
    await assertBroken('job_retry_of_key', insert('job', createJobRow({ retry_of })))
    await assertBroken(
      'document_pkey',
      query(
        `insert into document (id, title, media_type, byte_size, sha256) overriding system value
         select id, title, media_type, byte_size, sha256 from document where id = $1`,
        [doc],
      ),
    )
    for (const table of ['webhook_endpoint', 'webhook_delivery'])
      await assertBroken(
        `${table}_pkey`,
        query(`insert into ${table} overriding system value select * from ${table} limit 1`),
      )
    await assertUnique('refresh_token_pkey', 'refresh_token', createTokenRow({ rotated_at: new Date() }))
  })

  test('an actor has one running job, and other mailboxes may have several', async () => {
    const actor = { mailbox: `live-${++counter}`, mailbox_limit: 1 }
    await insert('job', createJobRow({ ...actor, ...runningFields }))
    await insert('job', createJobRow({ ...actor, status: 'done', ...endedFields }))
    await insert('job', createJobRow(actor))
    await assertBroken('job_actor_running_key', insert('job', createJobRow({ ...actor, ...runningFields })))
    for (const mailbox_limit of [2, null])
      for (const _ of [1, 2])
        await insert('job', createJobRow({ mailbox: 'several', mailbox_limit, ...runningFields }))
  })

  test('a session has one current token', async () => {
    await insert('refresh_token', createTokenRow())
    await insert('refresh_token', createTokenRow({ rotated_at: new Date() }))
    await assertBroken('refresh_token_session_id_current_key', insert('refresh_token', createTokenRow()))
  })

  test('a document is superseded by at most one document', async () => {
    const replaced = (await insert('document', createDocumentRow())).id
    const trashed = { deleted_at: new Date(), expires_at: new Date() }
    await insert('document', createDocumentRow({ supersedes_id: replaced, ...trashed }))
    await insert('document', createDocumentRow({ supersedes_id: replaced }))
    await assertBroken(
      'document_supersedes_id_key',
      insert('document', createDocumentRow({ supersedes_id: replaced })),
    )
    // The trigger is disabled because it would fail before the foreign key does.
    const trigger = 'alter table document disable trigger document_supersedes'
    const missing = `update document set supersedes_id = 999999 where id = ${replaced}`
    await assertBroken('document_supersedes_id_fkey', query(`${trigger}; ${missing}`))
    await assertBroken(
      'document_supersedes_id_check',
      query('update document set supersedes_id = id where id = $1', [replaced]),
    )
  })

  test('every constraint of these tables is covered', async () => {
    const names = await query(
      `select conname as name from pg_constraint where conrelid = any($1::regclass[]) and contype <> 'n'
       union
       select indexrelid::regclass::text from pg_index where indisunique and indrelid = any($1::regclass[])`,
      [[...Object.keys(violations), 'job_event_row']],
    )
    const untried = names.map((row) => String(row.name)).filter((name) => !triedConstraints.has(name))
    assert.deepEqual(untried.sort(), [])
  })
})
