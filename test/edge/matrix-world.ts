import { randomBytes, randomUUID } from 'node:crypto'
import { createTotpSecret, sealTotpSecret } from '../../edge/routes/accounts/one-time-codes.ts'
import { userHandleOf } from '../../edge/routes/accounts/relying-party.ts'
import { insertMailedToken, insertSession, type MailedTokenKind } from '../../sql/accounts/accounts.ts'
import { type AddressSide, beginEmailChange } from '../../sql/accounts/email-changes.ts'
import { insertExport } from '../../sql/accounts/exports.ts'
import { insertChallenge, insertPasskey } from '../../sql/accounts/passkeys.ts'
import { insertFirstTurn } from '../../sql/ai/turns.ts'
import { insertSend } from '../../sql/comms/sends.ts'
import { insertTemplate } from '../../sql/comms/templates.ts'
import { uuidv7 } from '../../sql/ids.ts'
import { insertApiKey } from '../../sql/keys/api-keys.ts'
import { applyChanges } from '../../sql/payments/changes.ts'
import { insertTranscription } from '../../sql/voice/transcriptions.ts'
import { digestOf, digestRecoveryCode, inviteTokenOf } from '../../tasks/accounts/tokens.ts'
import { previewTokenOf } from '../../tasks/blog/previews.ts'
import { changesOf } from '../../tasks/payments/changes.ts'
import type { TestDatabase } from '../database.ts'
import { PUBLIC_BASE_URL } from '../every-service.ts'
import { emailChangeTokenOf, mailedTokenOf, TEST_KEYS } from '../keys.ts'
import { Authenticator } from '../passkeys.ts'
import {
  buildDispute,
  buildIntent,
  buildSubscription,
  createEvent,
  type TestEvent,
} from '../payment-events.ts'
import { createSilentWav } from '../standins/transcriptions.ts'
import { computeCode, computeCurrentStep } from '../totp.ts'
import { type Api, PASSWORD } from './harness.ts'
import { createLedger, type Ledger } from './ledger.ts'
import type { Person } from './orgs-help.ts'

const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)
const CRASH_ERROR = { code: 'job.crashed', detail: 'The worker thread crashed while running the job' }

/**
 * Creates the rows that a request needs, which belong to the owner. Every call creates new rows, so that tests can send
 * destructive requests.
 */
export class RowFactory {
  private readonly api: Api
  private readonly database: TestDatabase
  private readonly ledger: Ledger
  private hash = ''
  private count = 0
  owner!: Person
  other!: Person
  moderator!: Person
  admin!: Person
  orgAdmin!: Person
  member!: Person

  private constructor(api: Api, database: TestDatabase) {
    this.api = api
    this.database = database
    this.ledger = createLedger(database)
    this.ledger.isQuiet = true
  }

  static async make(api: Api, database: TestDatabase): Promise<RowFactory> {
    const world = new RowFactory(api, database)
    world.hash = await api.serving.edge.passwords.hash(PASSWORD)
    for (const who of ['owner', 'other', 'moderator', 'admin', 'orgAdmin', 'member'] as const)
      world[who] = await world.createAccount(who === 'moderator' || who === 'admin' ? who : 'user')
    await database.query(
      `insert into payment_customer (user_id, provider_customer_id) values ($1, 'cus_owner')`,
      [world.owner.id],
    )
    return world
  }

  number(): number {
    return ++this.count
  }

  createName(): string {
    return `n${++this.count}`
  }

  async createAccount(role = 'user'): Promise<Person> {
    const email = `${this.createName()}@example.com`
    const id = await this.insert(
      'account (email, password_hash, role) values ($1, $2, $3)',
      email,
      this.hash,
      role,
    )
    return { id, email, token: await this.api.serving.edge.authenticator.sign({ id, role }, randomUUID()) }
  }

  /** Creates an organization with an account of each role. */
  async createOrg(): Promise<number> {
    const id = await this.insert(`organization (name, slug) values ('Acme', $1)`, this.createName())
    await this.database.query(
      `insert into organization_member (organization_id, user_id, role)
       values ($1, $2, 'owner'), ($1, $3, 'admin'), ($1, $4, 'member')`,
      [id, this.owner.id, this.orgAdmin.id, this.member.id],
    )
    return id
  }

  /** Adds a new account to an organization and returns its id. */
  async addMember(org_id: number, role = 'member'): Promise<number> {
    const { id } = await this.createAccount()
    await this.insert(
      'organization_member (organization_id, user_id, role) values ($1, $2, $3)',
      org_id,
      id,
      role,
    )
    return id
  }

  async createInvite(
    org_id: number,
    email = `${this.createName()}@example.com`,
  ): Promise<{ id: number; token: string }> {
    const id = await this.insert(
      `organization_invite (organization_id, email, role, expires_at) values ($1, $2, 'member', now() + '1 day')`,
      org_id,
      email,
    )
    return { id, token: inviteTokenOf(TEST_KEYS, id, email) }
  }

  async createMailedToken(kind: MailedTokenKind, accountId: number): Promise<string> {
    const id = uuidv7()
    const token = mailedTokenOf(kind, id)
    await this.database.db.one(insertMailedToken(id, accountId, kind, digestOf(token), 3600))
    return token
  }

  /** Links an identity to an account, in place of its earlier one. */
  async createIdentity(accountId: number): Promise<string> {
    const id = uuidv7()
    await this.database.query(
      `insert into oidc_identity (id, account_id, issuer, subject) values ($1::uuid, $2, ($1::uuid)::text, ($1::uuid)::text)`,
      [id, accountId],
    )
    return id
  }

  /** Creates a pending address change and returns the token for the current address. */
  async createEmailChange(accountId: number): Promise<string> {
    const id = uuidv7()
    const digest = (side: AddressSide) => digestOf(emailChangeTokenOf(side, id))
    const change = { id, accountId, email: `${this.createName()}@example.com`, sessionId: null }
    const digests = { old: digest('old'), new: digest('new') }
    await this.database.db.one(beginEmailChange({ ...change, digests, lifetimeSeconds: 3600 }))
    return emailChangeTokenOf('old', id)
  }

  /** Deletes rows of a kind that an account can have only once. */
  async deleteRows(rows: string): Promise<void> {
    await this.database.query(`delete from ${rows}`)
  }

  async createExport(): Promise<string> {
    const id = uuidv7()
    const [{ sha256, byte_size: byteSize }] = (await this.database.query(
      'select sha256, byte_size::int from document where id = $1',
      [await this.createDocument()],
    )) as [{ sha256: Buffer; byte_size: number }]
    await this.database.db.run(insertExport({ id, accountId: this.owner.id, sha256, byteSize }))
    return id
  }

  /** Returns a queue without limits, paused on request. */
  async createQueue(isPaused: boolean): Promise<string> {
    await this.database.query('delete from queue_control')
    if (isPaused)
      await this.database.query(`insert into queue_control (queue, paused_at) values ('ai', now())`)
    return 'ai'
  }

  async createWorker(): Promise<string> {
    const id = randomUUID()
    await this.database.query(
      `insert into worker_lease (id, name, queues, expires_at) values ($1, 'host/1', '{}', now() + interval '1 hour')`,
      [id],
    )
    return id
  }

  /** Adds a queue of the owner, or of an organization of which the owner is a plain member, with a task. */
  async createWorkerQueue(isMember: boolean): Promise<string> {
    const name = `q-${randomUUID()}`
    const organization = isMember ? await this.createForeignOrg() : null
    await this.database.query(
      'insert into worker_queue (name, account_id, organization_id) values ($1, $2, $3)',
      [name, isMember ? null : this.owner.id, organization],
    )
    await this.database.query(`insert into worker_task (queue, name) values ($1, 'work')`, [name])
    return name
  }

  async createHttpLease(isMember: boolean): Promise<string> {
    const id = randomUUID()
    await this.database.query(
      `insert into worker_lease (id, name, queues, queue, info, ttl_seconds, expires_at)
       values ($1, 'w', array[$2], $2, '{}', 30, now() + interval '1 hour')`,
      [id, await this.createWorkerQueue(isMember)],
    )
    return id
  }

  /** Adds an organization of which the owner is a plain member. */
  private async createForeignOrg(): Promise<number> {
    const id = await this.insert(`organization (name, slug) values ('n', $1)`, this.createName())
    await this.insert(
      `organization_member (organization_id, user_id, role) values ($1, $2, 'member')`,
      id,
      this.owner.id,
    )
    return id
  }

  async createSession(accountId: number): Promise<{ id: string; refresh: string }> {
    const [id, refresh] = [uuidv7(), randomUUID()]
    const from = { address: null, place: null, userAgent: null, device: null }
    await this.database.db.run(insertSession(id, accountId, digestOf(refresh), 3600, from))
    return { id, refresh }
  }

  async createApiKey(accountId: number, organizationId: number | null = null): Promise<string> {
    const id = uuidv7()
    const digest = digestOf(id)
    const key = { id, accountId, organizationId, name: 'a program', digest, hint: id.slice(-4) }
    await this.database.db.one(insertApiKey({ ...key, scopes: ['documents:read'], expiresAt: null }))
    return id
  }

  /**
   * Sets up one-time codes of an account: confirmed if `isOn`, pending if not, none if null. Returns a recovery code if
   * they are confirmed, otherwise the code of the current time step.
   */
  async setUpTotp(who: Person | null, isOn: boolean | null): Promise<string> {
    const [id, code, secret] = [uuidv7(), randomUUID(), createTotpSecret()]
    await this.database.query('delete from account_totp where account_id = $1', [who?.id ?? 0])
    if (isOn !== null && who !== null)
      await this.database.query(
        `insert into account_totp (secret, id, account_id, confirmed_at, recovery_codes)
         values ($5, $1, $2, case when $3 then now() end, array[$4::bytea])`,
        [id, who.id, isOn, digestRecoveryCode(code), sealTotpSecret(TEST_KEYS, id, secret)],
      )
    return isOn ? code : computeCode(secret, computeCurrentStep())
  }

  /** Deletes the account's passkeys, then returns an authenticator's response that creates one. */
  async createPasskeyResponse(who: Person | null): Promise<object> {
    await this.database.query('delete from passkey where account_id = $1', [who?.id ?? 0])
    return new Authenticator(PUBLIC_BASE_URL).create(await this.createChallenge(who?.id ?? 0))
  }

  async createPasskey(who: Person): Promise<{ id: string; device: Authenticator }> {
    const [id, device] = [uuidv7(), new Authenticator(PUBLIC_BASE_URL)]
    device.create(await this.createChallenge(who.id))
    const key = { publicKey: device.coseKey, credentialId: device.id, counter: 0, transports: [] }
    await this.database.db.one(insertPasskey({ ...key, id, accountId: who.id, name: 'n', isSynced: true }))
    return { id, device }
  }

  /** Returns an authenticator's response that signs an account in. */
  async signWithPasskey(who: Person): Promise<object> {
    const { device } = await this.createPasskey(who)
    return device.get(await this.createChallenge(null))
  }

  private async createChallenge(accountId: number | null) {
    const challenge = randomBytes(32)
    await this.database.db.run(insertChallenge(challenge, accountId))
    const { hostname: rpId } = new URL(PUBLIC_BASE_URL)
    const user = { id: userHandleOf(accountId ?? 0) }
    return { challenge: challenge.toString('base64url'), rpId, rp: { id: rpId }, user }
  }

  /** Suppresses a new mail address. */
  async createSuppression(): Promise<string> {
    const address = `${this.createName()}@example.com`
    await this.database.query(
      `insert into comms_suppression (address, reason, send_id) values ($1, 'bounced', gen_random_uuid())`,
      [address],
    )
    return address
  }

  /** Creates a template for text messages. */
  async createTemplate(): Promise<string> {
    const name = this.createName()
    const fields = { channel: 'sms', text: 'Hello', subject: null, html: null, variables: [] } as const
    await this.database.db.one(insertTemplate(name, fields))
    return name
  }

  async createWebhook(): Promise<number> {
    return this.insert(
      `webhook_endpoint (secret, account_id, url, host, events) values ('aaaaaaaa.AAAA', $1, 'https://example.com/', 'example.com', '{job.done}')`,
      this.owner.id,
    )
  }

  async createWebhookDelivery(): Promise<{ endpoint_id: number; delivery_id: number }> {
    const endpoint_id = await this.createWebhook()
    const delivery_id = await this.insert(
      `webhook_delivery (endpoint_id, type, body) values ($1, 'job.done', '{}')`,
      endpoint_id,
    )
    return { endpoint_id, delivery_id }
  }

  async createPost(status = 'published'): Promise<{ id: number; slug: string }> {
    const slug = this.createName()
    const id = await this.insert(
      `blog_post (title, slug, status, published_at)
       values ('A post', $1, $2, case when $2 = 'draft' then null else now() end)`,
      slug,
      status,
    )
    return { id, slug }
  }

  async createRevision(): Promise<{ post: number; revision: number }> {
    const { id: post, slug } = await this.createPost()
    const revision = await this.insert(
      `blog_revision (post_id, title, slug, content, tags, updated_at, replaced_by) values ($1, 'Old', $2, '', '[]', now(), 'update')`,
      post,
      slug,
    )
    return { post, revision }
  }

  async createPreview(): Promise<string> {
    const { id } = await this.createPost('draft')
    return previewTokenOf(
      TEST_KEYS,
      await this.insert(`blog_preview (post_id, expires_at) values ($1, now() + interval '1 day')`, id),
    )
  }

  createTag(): Promise<number> {
    return this.insert('blog_tag (name, slug) values ($1, $1)', this.createName())
  }

  /** Creates a document with one page, an image of it, and the tag `blue`. */
  async createDocument(who: Person = this.owner): Promise<number> {
    const uploaded = await this.api.upload(who.token, `text ${this.createName()}`)
    if (uploaded.status !== 201) throw new Error(uploaded.text)
    const { id } = uploaded.json
    await this.database.query(`update document set tags = '{blue}' where id = $1`, [id])
    await this.database.query(
      `insert into document_page (document_id, page_number, status, method, text, image, width, height, job_id)
       values ($1, 1, 'read', 'text_layer', 'words', $2, 1, 1, $3)`,
      [id, PNG, randomUUID()],
    )
    return id
  }

  /** Creates a document that can be transcribed. */
  async createRecording(): Promise<number> {
    const uploaded = await this.api.upload(this.owner.token, createSilentWav(0.1, this.number()))
    if (uploaded.status !== 201) throw new Error(uploaded.text)
    return uploaded.json.id
  }

  async createTranscription(): Promise<string> {
    const [id, jobId] = [uuidv7(), randomUUID()]
    const asked = { provider: 'openai', model: 'whisper-1', language: null, prompt: null }
    await this.database.db.run(
      insertTranscription({ id, ownerId: this.owner.id, documentId: 1, jobId, ...asked }),
    )
    return id
  }

  async createSpeech(): Promise<string> {
    const jobId = randomUUID()
    await this.database.query(
      `with speech as (
         insert into voice_preview (digest, owner_id, job_id, provider, model, voice, speed, text, generation, byte_size)
         values (sha256($2::text::bytea), $1, $2::uuid, 'openai', 'm', 'v', 1, 't', $2::uuid, 1))
       insert into voice_preview_chunk (digest, generation, ordinal, start, bytes)
       values (sha256($2::text::bytea), $2::uuid, 0, 0, 'x')`,
      [this.owner.id, jobId],
    )
    return jobId
  }

  async createTrashedDocument(): Promise<number> {
    const id = await this.createDocument()
    await this.api.call('DELETE', `/api/v1/documents/${id}`, { token: this.owner.token })
    return id
  }

  async createFailedJob(ownerId: number | null): Promise<string> {
    const documentId = 1_000_000 + ++this.count
    const more = { payload: { documentId, force: true }, actor: `document:${documentId}` }
    const id = await this.ledger.add(ownerId, more)
    await this.ledger.claim(id)
    await this.ledger.finish(id, 'failed', CRASH_ERROR)
    return id
  }

  createTask(ownerId: number | null): Promise<string> {
    return this.ledger.add(ownerId, { name: 'load_test.io_simulation_task', queue: 'load_test' })
  }

  /** Creates an open batch with a job that has failed. */
  async createBatch(): Promise<string> {
    const batch = {
      name: 'jobs.batch',
      queue: 'system',
      is_batch: true,
      payload: { name: null, is_open: true },
    }
    const id = await this.ledger.add(this.owner.id, batch)
    const member = { name: 'load_test.io_simulation_task', queue: 'load_test', batch_id: id }
    const failed = await this.ledger.add(this.owner.id, member)
    await this.ledger.claim(failed)
    await this.ledger.finish(failed, 'failed', { code: 'task.chosen_failure', detail: 'As asked' })
    return id
  }

  /** Creates a schedule of the owner, whose job joins no live job. */
  async createSchedule(isPaused: boolean): Promise<string> {
    const [row] = await this.database.query(
      `insert into schedule (id, owner_id, name, task_name, queue_type, args, cron, time_zone, overlap, catch_up, paused_at)
       values (gen_random_uuid(), $1, 'n', 'noop', 'system', '{}', '@yearly', 'UTC', 'skip', 'none', case when $2 then now() end)
       returning id`,
      [this.owner.id, isPaused],
    )
    return row!.id as string
  }

  async createBuiltIn(): Promise<string> {
    await this.database.query(
      `insert into schedule (id, is_built_in, name, task_name, queue_type, args, cron, time_zone, overlap, catch_up)
       values ('rag-purge', true, 'rag-purge', 'rag.purge', 'system', '{}', '@yearly', 'UTC', 'skip', 'none')
       on conflict (id) do nothing`,
    )
    return 'rag-purge'
  }

  async createMessage(ownerId: number | null = this.owner.id): Promise<string> {
    const [id, jobId] = [uuidv7(), await this.createTask(ownerId)]
    const message = { to: '+14155550123', body: 'hello' }
    const sent = { channel: 'sms' as const, ownerId, recipients: [message.to], message }
    await this.database.db.run(insertSend({ id, jobId, ...sent }))
    return id
  }

  /** Creates a conversation with one question and its answer. */
  async createConversation(): Promise<{ id: string; message: string }> {
    const [id, message] = [uuidv7(), uuidv7()]
    const question = { id: uuidv7(), content: 'Hm?', documentIds: [], toolResults: null }
    const asked = { conversationId: id, question, answerId: message }
    const turn = { ...asked, jobId: randomUUID(), provider: 'openai', model: 'gpt-4o-mini' }
    const whose = { userId: String(this.owner.id), ownerId: this.owner.id, title: 'Hm?' }
    await this.database.db.any(insertFirstTurn(turn, whose))
    await this.database.query(
      `update ai_message set status = 'complete', content = 'Yes', settled_at = now() where id = $1`,
      [message],
    )
    return { id, message }
  }

  async createTransaction(name = this.createName()): Promise<number> {
    await this.hear(createEvent('payment_intent.succeeded', buildIntent({ name, customer: 'cus_owner' })))
    return this.find('payment_transaction', 'provider_payment_intent_id', `pi_${name}`)
  }

  async createSubscription(name = this.createName()): Promise<number> {
    const object = buildSubscription({ name, customer: 'cus_owner' })
    await this.hear(createEvent('customer.subscription.created', object))
    return this.find('payment_subscription', 'provider_subscription_id', `sub_${name}`)
  }

  async createDispute(name = this.createName()): Promise<number> {
    await this.createTransaction(name)
    await this.hear(createEvent('charge.dispute.created', buildDispute({ name }, 'needs_response')))
    return this.find('payment_dispute', 'provider_dispute_id', `du_${name}`)
  }

  async createCollection(name = this.createName()): Promise<string> {
    await this.insert('rag_collection (name, version) values ($1, 1)', name)
    return name
  }

  /** Creates a collection of the owner's documents. */
  async createOwnCollection(name = this.createName()): Promise<string> {
    const columns = `rag_collection (name, version, owner_id, selection)`
    await this.insert(`${columns} values ($1, 1, $2, '{}')`, name, this.owner.id)
    return name
  }

  private async insert(text: string, ...values: readonly unknown[]): Promise<number> {
    return (await this.database.query(`insert into ${text} returning id::int`, values))[0]!.id as number
  }

  private async find(table: string, column: string, value: string): Promise<number> {
    return (await this.database.query(`select id::int from ${table} where ${column} = $1`, [value]))[0]!
      .id as number
  }

  private async hear({ type, created, data }: TestEvent): Promise<void> {
    const change = changesOf({ type, at: created, object: data.object, before: {} })
    await this.database.db.run(applyChanges(change))
  }
}
