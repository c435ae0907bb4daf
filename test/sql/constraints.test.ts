import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { createTestDatabase } from '../database.ts'

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

const account = (fields: Row = {}): Row => ({
  email: `a${++counter}@example.com`,
  password_hash: 'x',
  ...fields,
})
const job = (fields: Row = {}): Row => ({
  id: randomUUID(),
  name: 'n',
  queue: 'q',
  mailbox: 'm',
  payload: '{}',
  status: 'queued',
  max_tries: 1,
  ...fields,
})
const document = (fields: Row = {}): Row => ({
  title: 't',
  media_type: 'text/plain',
  byte_size: 1,
  sha256: Buffer.from(randomUUID().replaceAll('-', '')),
  ...fields,
})
const ended = { finished_at: new Date() }
const deleted = { deleted_at: new Date(), email: null, full_name: null, password_hash: '', is_active: false }
const running = { status: 'running', lease_id: randomUUID() }

const owner = (await insert('account', account())).id
const session = (await insert('session', { id: randomUUID(), account_id: owner })).id
const suppression = (fields: Row = {}): Row => ({
  ...{ address: 'a@example.com', reason: 'bounced', send_id: randomUUID() },
  ...fields,
})
await insert('comms_suppression', suppression({ address: 'twice@example.com' }))
const template = (fields: Row = {}): Row => ({ name: 't', channel: 'sms', text: 'x', ...fields })
await insert('comms_template', template({ name: 'twice' }))
const webhook = (fields: Row = {}): Row => ({
  ...{ account_id: owner, url: 'https://example.com/', host: 'example.com', events: ['job.done'] },
  ...fields,
  ...(fields.url === null ? { host: null } : {}),
})
const callbacks = (await insert('webhook_endpoint', webhook({ url: null, events: [] }))).id
await insert('account_quota', { account_id: owner, kind: 'pages', quota: 2 })
const delivery = (fields: Row = {}): Row => ({
  ...{ endpoint_id: callbacks, host: 'example.com', type: 't', body: '{}' },
  ...fields,
})
await insert('webhook_delivery', delivery())
const callback = (fields: Row = {}): Row => ({
  ...{ job_id: callbackJob, endpoint_id: callbacks, host: 'example.com' },
  ...fields,
})
const callbackJob = randomUUID()
await insert('job_callback', callback({ url: 'https://example.com/' }))
const apiKey = (fields: Row = {}): Row => ({
  id: randomUUID(),
  account_id: owner,
  name: 'n',
  digest: Buffer.from(randomUUID().replaceAll('-', '')),
  hint: 'abcd',
  scopes: ['jobs:read'],
  ...fields,
})
const key = (await insert('api_key', apiKey({ digest: bytes(32), scopes: ['*:write', 'jobs:read'] }))).id
const allowance = (fields: Row = {}): Row => ({
  ...{ key_id: key, began_at: new Date(), taken: 1, granted: 1 },
  ...fields,
})
await insert('api_key_allowance', allowance())
const totp = (fields: Row = {}): Row => ({ id: randomUUID(), account_id: owner, ...fields })
const accountWithTotp = (await insert('account', account())).id
const otherTotp = (await insert('account_totp', totp({ account_id: accountWithTotp }))).id
const passkey = (fields: Row = {}): Row => ({
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
const otherPasskey = (await insert('passkey', passkey({ credential_id: bytes(40) }))).id
await insert('passkey_challenge', { challenge: bytes(32), expires_at: new Date() })
const blob = (await insert('blob', { sha256: bytes(32) })).id
const doc = (await insert('document', document())).id
const change = (fields: Row = {}): Row => ({
  ...{ id: randomUUID(), account_id: owner, email: 'b@example.com', expires_at: new Date() },
  ...{ old_digest: bytes(32), new_digest: bytes(32) },
  ...fields,
})
const exported = (fields: Row = {}): Row => ({
  ...{ id: randomUUID(), account_id: owner, sha256: bytes(32), byte_size: 1 },
  ...fields,
})
const page = (fields: Row = {}): Row => ({
  document_id: doc,
  page_number: ++counter,
  status: 'read',
  method: 'text_layer',
  job_id: randomUUID(),
  ...fields,
})
const token = (fields: Row = {}): Row => ({
  digest: Buffer.from(randomUUID().replaceAll('-', '')),
  session_id: session,
  expires_at: new Date(),
  ...fields,
})

const post = (fields: Row = {}): Row => ({ title: 't', slug: `s-${++counter}`, ...fields })
const blogPost = (await insert('blog_post', post({ slug: 'taken' }))).id
const blogTag = (await insert('blog_tag', { name: 'n', slug: 'n' })).id
const blogUpload = (await insert('blog_upload', { file_name: 'f', format: 'zip' })).id

const validRows: Readonly<Record<string, readonly Row[]>> = {
  account: [account({ role: 'moderator', full_name: 'N' }), account(deleted)],
  job: [
    job(),
    job({ mailbox: 'v1', mailbox_limit: 1 }),
    job({ ...running, mailbox: 'v1', mailbox_limit: 1, settle: 'x' }),
    job({ status: 'done', ...ended }),
    job({ status: 'failed', error_code: 'internal', ...ended }),
    job({ status: 'cancelled', ...ended }),
  ],
  document: [document(), document({ owner_id: owner })],
  blog_post: [
    post({
      title: 't'.repeat(200),
      slug: 's'.repeat(220),
      content: 'c'.repeat(1_000_000),
      excerpt: 'e'.repeat(500),
    }),
    post({
      slug: '1',
      seo_title: 's'.repeat(200),
      seo_description: 's'.repeat(320),
      author_name: 'a'.repeat(320),
    }),
    post({ slug: 'a-1-b', hero_image_url: 'h'.repeat(1024), status: 'published', published_at: new Date() }),
    post({ status: 'archived' }),
    post({ published_at: new Date() }),
  ],
  blog_tag: [
    { name: 'n'.repeat(80), slug: 's'.repeat(100) },
    { deleted_at: new Date(), applied_to: 0 },
  ],
  document_page: [
    page(),
    page({ method: 'vision', model: 'm', image: bytes(3), width: 1, height: 1 }),
    page({ method: 'vision' }),
    page({ status: 'unread', method: 'none', detail: 'why' }),
  ],
}

const violations: Readonly<Record<string, readonly [constraint: string, ...Row[]][]>> = {
  account: [
    [
      'account_email_check',
      account({ email: 'Upper@example.com' }),
      account({ email: 'a@' }),
      account({ email: `${'a'.repeat(320)}@` }),
    ],
    ['account_full_name_check', account({ full_name: 'n'.repeat(201) })],
    ['account_role_check', account({ role: 'root' })],
    [
      'account_deleted_check',
      account({ email: null }),
      account({ ...deleted, email: 'a@example.com' }),
      account({ ...deleted, full_name: 'N' }),
      account({ ...deleted, password_hash: 'x' }),
      account({ ...deleted, is_active: true }),
      account({ ...deleted, deletion_at: new Date() }),
    ],
  ],
  session: [
    ['session_pkey', { id: session, account_id: owner }],
    ['session_account_id_fkey', { id: randomUUID(), account_id: 999_999 }],
    ['session_ended_check', { id: randomUUID(), account_id: owner, ended_at: new Date() }],
  ],
  account_totp: [
    ['account_totp_pkey', totp({ id: otherTotp, account_id: owner })],
    ['account_totp_account_id_key', totp({ account_id: accountWithTotp })],
    ['account_totp_account_id_fkey', totp({ account_id: 999_999 })],
    ['account_totp_last_step_check', totp({ last_step: -1 })],
    ['account_totp_recovery_codes_check', totp({ recovery_codes: Array(11).fill(bytes(32)) })],
  ],
  passkey: [
    ['passkey_pkey', passkey({ id: otherPasskey })],
    ['passkey_credential_id_key', passkey({ credential_id: bytes(40) })],
    [
      'passkey_credential_id_check',
      passkey({ credential_id: bytes(0) }),
      passkey({ credential_id: bytes(1024) }),
    ],
    ['passkey_public_key_check', passkey({ public_key: bytes(0) }), passkey({ public_key: bytes(4001) })],
    ['passkey_counter_check', passkey({ counter: -1 })],
    ['passkey_transports_check', passkey({ transports: Array(11).fill('usb') })],
    ['passkey_name_check', passkey({ name: '' }), passkey({ name: 'n'.repeat(101) })],
    ['passkey_account_id_fkey', passkey({ account_id: 999_999 })],
  ],
  passkey_challenge: [
    ['passkey_challenge_pkey', { challenge: bytes(32), expires_at: new Date() }],
    ['passkey_challenge_check', { challenge: bytes(31), expires_at: new Date() }],
  ],
  account_export: [
    ['account_export_account_id_fkey', exported({ account_id: 999_999 })],
    ['account_export_sha256_check', exported({ sha256: bytes(31) })],
    ['account_export_byte_size_check', exported({ byte_size: 0 })],
  ],
  email_change: [
    ['email_change_account_id_fkey', change({ account_id: 999_999 })],
    ['email_change_email_check', change({ email: 'B@example.com' }), change({ email: 'a@' })],
    ['email_change_digest_check', change({ old_digest: bytes(31) }), change({ new_digest: bytes(33) })],
    ['email_change_confirmed_check', change({ old_confirmed_at: new Date(), new_confirmed_at: new Date() })],
  ],
  webhook_endpoint: [
    ['webhook_endpoint_url_check', webhook({ url: 'https:/' }), webhook({ url: 'u'.repeat(2001) })],
    ['webhook_endpoint_host_check', { ...webhook(), host: null }],
    ['webhook_endpoint_description_check', webhook({ description: 'd'.repeat(501) })],
    ['webhook_endpoint_events_check', webhook({ events: [] }), webhook({ url: null })],
    ['webhook_endpoint_failures_check', webhook({ failures: 1 }), webhook({ failing_since: new Date() })],
    ['webhook_endpoint_disabled_check', webhook({ disabled_at: new Date() })],
    ['webhook_endpoint_deleted_check', webhook({ deleted_at: new Date() })],
    ['webhook_endpoint_account_id_fkey', webhook({ account_id: 999_999 })],
    ['webhook_endpoint_callbacks_key', webhook({ url: null, events: [] })],
  ],
  comms_suppression: [
    ['comms_suppression_address_check', suppression({ address: 'A@example.com' })],
    ['comms_suppression_reason_check', suppression({ reason: 'x' })],
    ['comms_suppression_pkey', suppression({ address: 'twice@example.com' })],
  ],
  comms_template: [
    ['comms_template_name_check', template({ name: 'A' }), template({ name: '' })],
    [
      'comms_template_content_check',
      template({ channel: 'call' }),
      template({ text: null }),
      template({ subject: 's' }),
      template({ channel: 'email' }),
      template({ channel: 'email', subject: 's', text: null }),
    ],
    ['comms_template_variables_check', template({ variables: '{}' })],
    ['comms_template_pkey', template({ name: 'twice' })],
  ],
  account_quota: [
    ['account_quota_kind_check', { account_id: owner, kind: 'doors', quota: 1 }],
    ['account_quota_quota_check', { account_id: owner, kind: 'keys', quota: -1 }],
    ['account_quota_account_id_fkey', { account_id: 999_999, kind: 'keys', quota: 1 }],
    ['account_quota_pkey', { account_id: owner, kind: 'pages', quota: 1 }],
  ],
  webhook_delivery: [
    ['webhook_delivery_status_check', delivery({ status: 'sent', due_at: null, ended_at: new Date() })],
    ['webhook_delivery_due_check', delivery({ due_at: null })],
    ['webhook_delivery_ended_check', delivery({ ended_at: new Date() })],
    ['webhook_delivery_endpoint_id_fkey', delivery({ endpoint_id: 999_999 })],
  ],
  job_callback: [
    ['job_callback_pkey', callback({ url: 'https://example.com/' })],
    ['job_callback_url_check', callback({ url: 'https:/' }), callback({ url: 'u'.repeat(2001) })],
    ['job_callback_endpoint_id_fkey', callback({ endpoint_id: 999_999, url: 'https://example.com/' })],
  ],
  api_key: [
    ['api_key_pkey', apiKey({ id: key })],
    ['api_key_digest_key', apiKey({ digest: bytes(32) })],
    ['api_key_digest_check', apiKey({ digest: bytes(31) })],
    ['api_key_name_check', apiKey({ name: '' }), apiKey({ name: 'n'.repeat(101) })],
    ['api_key_hint_check', apiKey({ hint: 'abc' })],
    [
      'api_key_scopes_check',
      ...[[], ['jobs'], ['jobs:admin'], ['Jobs:read'], [null], Array(51).fill('jobs:read')].map((scopes) =>
        apiKey({ scopes }),
      ),
    ],
    ['api_key_account_id_fkey', apiKey({ account_id: 999_999 })],
    ['api_key_organization_id_account_id_fkey', apiKey({ organization_id: 999_999 })],
  ],
  api_key_allowance: [
    ['api_key_allowance_pkey', allowance({ key_id: key })],
    ['api_key_allowance_taken_check', allowance({ granted: -1 }), allowance({ granted: 2 })],
    ['api_key_allowance_key_id_fkey', allowance({ key_id: randomUUID() })],
  ],
  refresh_token: [
    ['refresh_token_digest_check', token({ digest: bytes(31) }), token({ digest: bytes(33) })],
    ['refresh_token_session_id_fkey', token({ session_id: randomUUID() })],
  ],
  job: [
    ['job_status_check', job({ status: 'paused' })],
    ['job_mailbox_limit_check', job({ mailbox_limit: 0 }), job({ mailbox_limit: 1001 })],
    [
      'job_lease_check',
      job({ lease_id: randomUUID() }),
      job({ status: 'running' }),
      job({ status: 'done', ...ended, lease_id: randomUUID() }),
    ],
    [
      'job_finished_check',
      job({ ...ended }),
      job({ status: 'done' }),
      job({ status: 'failed', error_code: 'x' }),
      job({ ...running, ...ended }),
    ],
    [
      'job_error_check',
      job({ status: 'failed', ...ended }),
      job({ status: 'done', ...ended, error_code: 'x' }),
      job({ error_code: 'x' }),
    ],
    ['job_max_tries_check', job({ max_tries: 0 }), job({ max_tries: 101 })],
    ['job_owner_id_fkey', job({ owner_id: 999_999 })],
  ],
  schedule_control: [
    ['schedule_control_paused_by_fkey', { identifier: 'x', paused_at: new Date(), paused_by: 999_999 }],
    ['schedule_control_paused_by_check', { identifier: 'x', paused_by: owner }],
    [
      'schedule_control_last_run_check',
      { identifier: 'x', last_job_id: randomUUID() },
      { identifier: 'x', last_run_at: new Date() },
    ],
  ],
  blob: [
    ['blob_sha256_check', { sha256: bytes(31) }],
    ['blob_sha256_key', { sha256: bytes(32) }],
    ['blob_store_check', { store: 'elsewhere' }, { store: 'file:' }, { store: 's3://' }],
    ['blob_deleted_check', { sha256: bytes(32), deleted: true }],
  ],
  blob_chunk: [['blob_chunk_blob_id_fkey', { blob_id: 999_999, ordinal: 0, bytes: bytes(1) }]],
  document: [
    ['document_owner_id_fkey', document({ owner_id: 999_999 })],
    ['document_supersedes_missing', document({ supersedes_id: 999_999 })],
    ['document_attached_to_id_fkey', document({ attached_to_id: 999_999 })],
    ['document_tags_check', document({ tags: Array.from({ length: 101 }, (_, i) => `t${i}`) })],
    ['document_title_check', document({ title: '' }), document({ title: 't'.repeat(301) })],
    ['document_kind_check', document({ kind: '' }), document({ kind: 'k'.repeat(33) })],
    ['document_sha256_check', document({ sha256: bytes(31) })],
    ['document_expires_at_check', document({ deleted_at: new Date() }), document({ expires_at: new Date() })],
  ],
  document_page: [
    ['document_page_document_id_fkey', page({ document_id: 999_999 })],
    ['document_page_page_number_check', page({ page_number: 0 })],
    ['document_page_status_check', page({ status: 'half', detail: 'x' })],
    ['document_page_method_check', page({ method: 'guess' })],
    ['document_page_reason_check', page({ status: 'unread', method: 'none' })],
    ['document_page_model_check', page({ model: 'm' }), page({ method: 'none', model: 'm' })],
    ['document_page_image_check', page({ image: bytes(1) })],
    ['document_page_size_check', page({ width: 1 }), page({ image: bytes(1), width: 1 })],
    ['document_page_given_up_check', page({ given_up: true })],
  ],
  blog_post: [
    ['blog_post_slug_key', post({ slug: 'taken' })],
    ['blog_post_author_id_fkey', post({ author_id: 999_999 })],
    ['blog_post_title_check', post({ title: '' }), post({ title: 't'.repeat(201) })],
    [
      'blog_post_slug_check',
      ...['', '-', 'a-', '-a', 'a--b', 'A', 'ä', 'a b', 'a\n', 's'.repeat(221)].map((slug) => post({ slug })),
    ],
    ['blog_post_content_check', post({ content: 'c'.repeat(1_000_001) })],
    ['blog_post_excerpt_check', post({ excerpt: 'e'.repeat(501) })],
    ['blog_post_status_check', post({ status: 'gone' })],
    ['blog_post_author_name_check', post({ author_name: 'a'.repeat(321) })],
    ['blog_post_published_at_check', post({ status: 'published' })],
    ['blog_post_seo_title_check', post({ seo_title: 's'.repeat(201) })],
    ['blog_post_seo_description_check', post({ seo_description: 's'.repeat(321) })],
    ['blog_post_hero_image_url_check', post({ hero_image_url: 'h'.repeat(1025) })],
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
    await assertBroken('account_email_key', insert('account', account({ email: 'a1@example.com' })))
    await assertUnique('job_pkey', 'job', job())
    await assertUnique('account_export_pkey', 'account_export', exported())
    const { id: changeId } = await insert('email_change', change())
    const unlike = { old_digest: bytes(32).fill(1), new_digest: bytes(32).fill(2) }
    const other = { ...unlike, account_id: (await insert('account', account())).id }
    for (const [constraint, row] of [
      ['email_change_pkey', change({ ...other, id: changeId })],
      ['email_change_account_id_key', change(unlike)],
      ['email_change_old_digest_key', change({ ...other, old_digest: bytes(32) })],
      ['email_change_new_digest_key', change({ ...other, new_digest: bytes(32) })],
    ] as const)
      await assertBroken(constraint, insert('email_change', row))
    await assertUnique('job_event_row_pkey', 'job_event_row', {
      job_id: randomUUID(),
      seq: 1,
      kind: 'k',
      data: '{}',
    })
    await assertUnique('worker_lease_pkey', 'worker_lease', {
      id: randomUUID(),
      name: 'w',
      queues: [],
      expires_at: new Date(),
    })
    await assertUnique('setting_pkey', 'setting', { name: 'x', value: 1 })
    await assertUnique('webhook_rate_pkey', 'webhook_rate', {
      ...{ account_id: owner, host: 'example.com', slots: [], counts: [], expires_at: new Date() },
    })
    await assertUnique('schedule_control_pkey', 'schedule_control', { identifier: 'x' })
    await assertUnique('idempotency_key_pkey', 'idempotency_key', {
      scope: 's',
      key: 'k',
      fingerprint: bytes(1),
      status: 204,
      body: '',
    })
    await assertUnique('document_page_pkey', 'document_page', page())
    await assertUnique('blob_chunk_pkey', 'blob_chunk', { blob_id: blob, ordinal: 0, bytes: bytes(1) })
    await assertUnique('blog_post_tag_pkey', 'blog_post_tag', { post_id: blogPost, tag_id: blogTag })
    await assertUnique('blog_upload_chunk_pkey', 'blog_upload_chunk', {
      upload_id: blogUpload,
      ordinal: 0,
      bytes: bytes(1),
    })
    for (const table of ['blog_tag', 'blog_upload', 'blog_post_count'])
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
    await assertUnique('document_owner_id_sha256_key', 'document', document())
    await assertUnique('document_owner_id_sha256_key', 'document', document({ owner_id: owner }))
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
    const retry_of = (await insert('job', job({ retry_of: randomUUID() }))).retry_of
    await assertBroken('job_retry_of_key', insert('job', job({ retry_of })))
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
    await assertUnique('refresh_token_pkey', 'refresh_token', token({ rotated_at: new Date() }))
  })

  test('an actor has one running job, and other mailboxes may have several', async () => {
    const actor = { mailbox: `live-${++counter}`, mailbox_limit: 1 }
    await insert('job', job({ ...actor, ...running }))
    await insert('job', job({ ...actor, status: 'done', ...ended }))
    await insert('job', job(actor))
    await assertBroken('job_actor_running_key', insert('job', job({ ...actor, ...running })))
    for (const mailbox_limit of [2, null])
      for (const _ of [1, 2]) await insert('job', job({ mailbox: 'several', mailbox_limit, ...running }))
  })

  test('a session has one current token', async () => {
    await insert('refresh_token', token())
    await insert('refresh_token', token({ rotated_at: new Date() }))
    await assertBroken('refresh_token_session_id_current_key', insert('refresh_token', token()))
  })

  test('a document is superseded by at most one document', async () => {
    const replaced = (await insert('document', document())).id
    const trashed = { deleted_at: new Date(), expires_at: new Date() }
    await insert('document', document({ supersedes_id: replaced, ...trashed }))
    await insert('document', document({ supersedes_id: replaced }))
    await assertBroken(
      'document_supersedes_id_key',
      insert('document', document({ supersedes_id: replaced })),
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
      [[...Object.keys(violations), 'job_event_row', 'worker_lease']],
    )
    const untried = names.map((row) => String(row.name)).filter((name) => !triedConstraints.has(name))
    assert.deepEqual(untried.sort(), [])
  })
})
