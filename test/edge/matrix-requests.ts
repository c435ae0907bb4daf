import { randomUUID } from 'node:crypto'
import declaredPages from '../../edge/pages/pages.json' with { type: 'json' }
import { unsubscribeTokenOf } from '../../tasks/comms/unsubscribe.ts'
import { METRICS_TOKEN, PUBLIC_BASE_URL } from '../every-service.ts'
import { TEST_KEYS } from '../keys.ts'
import { createEvent, signEvent } from '../payment-events.ts'
import { createMailEvent, createSignedEvent } from '../standins/resend.ts'
import { createSilentWav } from '../standins/transcriptions.ts'
import { createSignedCallback } from '../standins/twilio.ts'
import { createMultipart, PASSWORD } from './harness.ts'
import type { RowFactory } from './matrix-world.ts'
import type { Person } from './orgs-help.ts'

/** Builds a valid request with new rows for each operation and case. Operations that need no input are not listed. */

export interface RequestParts {
  readonly params?: Readonly<Record<string, string | number>>
  readonly query?: Readonly<Record<string, string | number>>
  readonly json?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
}
type MakeRequest = (world: RowFactory, caller: Person | null) => RequestParts | Promise<RequestParts>

const json = (value: unknown): RequestParts => ({ json: value })
const createUpload = (bytes: string | Uint8Array, name: string): RequestParts => {
  const { body, type } = createMultipart(bytes, { name })
  return { body, headers: { 'content-type': type } }
}
const createFormBody = (fields: Readonly<Record<string, string>>): RequestParts => ({
  body: new URLSearchParams(fields).toString(),
  headers: { 'content-type': 'application/x-www-form-urlencoded' },
})
/** Adds the refresh cookie of a new session; anonymous callers get none. */
const withRefreshCookie: MakeRequest = async (world, caller) =>
  caller === null
    ? {}
    : { headers: { cookie: `millrace_refresh=${(await world.createSession(caller.id)).refresh}` } }

const account: MakeRequest = async (world) => ({ params: { user_id: (await world.createAccount()).id } })
const post: MakeRequest = async (world) => ({ params: { post: (await world.createPost()).id } })
const revision: MakeRequest = async (world) => ({ params: await world.createRevision() })
const tag: MakeRequest = async (world) => ({ params: { tag_id: await world.createTag() } })
const document: MakeRequest = async (world) => ({ params: { id: await world.createDocument() } })
const trashedDocument: MakeRequest = async (world) => ({
  params: { id: await world.createTrashedDocument() },
})
const page: MakeRequest = async (world) => ({ params: { id: await world.createDocument(), number: 1 } })
const job: MakeRequest = async (world) => ({ params: { job_id: await world.createTask(world.owner.id) } })
const workerQueue: MakeRequest = async (world) => ({
  params: { name: await world.createWorkerQueue(false) },
})
const memberQueue: MakeRequest = async (world) => ({ params: { name: await world.createWorkerQueue(true) } })
const queueTask: MakeRequest = async (world) => ({
  params: { name: await world.createWorkerQueue(false), task: 'work' },
})
const lease: MakeRequest = async (world) => ({ params: { lease_id: await world.createHttpLease(false) } })
const memberLease: MakeRequest = async (world) => ({
  params: { lease_id: await world.createHttpLease(true) },
})
const batch: MakeRequest = async (world) => ({ params: { batch_id: await world.createBatch() } })
const conversation: MakeRequest = async (world) => ({
  params: { conversation_id: (await world.createConversation()).id },
})
const transcription: MakeRequest = async (world) => ({
  params: { transcription_id: await world.createTranscription() },
})
const speech: MakeRequest = async (world) => ({ params: { job_id: await world.createSpeech() } })
const ownersRequest: MakeRequest = (world) => ({ query: { user_id: world.owner.id } })
const collection: MakeRequest = async (world) => ({ params: { name: await world.createCollection() } })
const ownCollection: MakeRequest = async (world) => ({ params: { name: await world.createOwnCollection() } })
const template: MakeRequest = async (world) => ({ params: { name: await world.createTemplate() } })
const org: MakeRequest = async (world) => ({ params: { org_id: await world.createOrg() } })
const createMemberParams =
  (role = 'member'): MakeRequest =>
  async (world) => {
    const org_id = await world.createOrg()
    return { params: { org_id, user_id: await world.addMember(org_id, role) } }
  }
const pendingInvite: MakeRequest = async (world) => {
  const org_id = await world.createOrg()
  return { params: { org_id, invite_id: (await world.createInvite(org_id)).id } }
}
const combine =
  (
    make: MakeRequest,
    more: RequestParts | ((world: RowFactory, caller: Person | null) => RequestParts | Promise<RequestParts>),
  ): MakeRequest =>
  async (world, caller) => ({
    ...(await make(world, caller)),
    ...(typeof more === 'function' ? await more(world, caller) : more),
  })
const createRoleQuery = (given: string): RequestParts => ({ query: { role: given } })
const createNewMemberQuery = (given?: string) => async (world: RowFactory) => ({
  query: { user_id: (await world.createAccount()).id, ...(given === undefined ? {} : { role: given }) },
})
const createNewMembersBody = (given?: string) => async (world: RowFactory) =>
  json({ user_ids: [(await world.createAccount()).id], role: given })
const createStripeEvent = (sign: boolean) => (): RequestParts => {
  // An unknown event type adds no job, so the request waits for none.
  const body = JSON.stringify(createEvent('of.nothing', { id: 'x' }))
  const headers = { 'content-type': 'application/json', ...(sign && { 'stripe-signature': signEvent(body) }) }
  return { body, headers }
}
const createTwilioCallback = (token: string): RequestParts =>
  createSignedCallback(
    `${PUBLIC_BASE_URL}/api/v1/comms/webhooks/twilio`,
    { MessageSid: 'SM1', MessageStatus: 'sent' },
    token,
  )

const endpoint: MakeRequest = async (world) => ({ params: { endpoint_id: await world.createWebhook() } })
const endpointDelivery: MakeRequest = async (world) => ({ params: await world.createWebhookDelivery() })
const webhookRequests: Record<string, MakeRequest> = {
  'POST /api/v1/webhooks': () => json({ url: 'https://example.com/', events: ['job.done'] }),
  'GET /api/v1/webhooks/:endpoint_id': endpoint,
  'PATCH /api/v1/webhooks/:endpoint_id': combine(endpoint, json({ description: 'mine' })),
  'DELETE /api/v1/webhooks/:endpoint_id': endpoint,
  'POST /api/v1/webhooks/:endpoint_id/secret': endpoint,
  'POST /api/v1/webhooks/:endpoint_id/challenge': endpoint,
  'POST /api/v1/webhooks/:endpoint_id/test': combine(endpoint, json({ type: 'job.done' })),
  'GET /api/v1/webhooks/:endpoint_id/deliveries': endpoint,
  'GET /api/v1/webhooks/:endpoint_id/deliveries/:delivery_id': endpointDelivery,
  'POST /api/v1/webhooks/:endpoint_id/deliveries/:delivery_id/send': endpointDelivery,
}

const passkey: MakeRequest = async (world) => ({
  params: { passkey_id: (await world.createPasskey(world.owner)).id },
})
const withProofOfIdentity: MakeRequest = async (world, caller) =>
  json({ password: PASSWORD, recovery_code: await world.setUpTotp(caller, true) })

const BCRYPT_HASH = `$2b$04$${'a'.repeat(53)}`
const confirmEmailChange: MakeRequest = async (world, caller) => {
  if (caller !== null) await world.createEmailChange(caller.id)
  return {}
}

const accounts: Record<string, MakeRequest> = {
  'POST /api/v1/auth/register': (world) =>
    json({ email: `${world.createName()}@example.com`, password: PASSWORD }),
  'POST /api/v1/auth/token': async (world) =>
    createFormBody({ username: (await world.createAccount()).email, password: PASSWORD }),
  'POST /api/v1/auth/refresh': withRefreshCookie,
  'POST /api/v1/auth/logout': withRefreshCookie,
  'GET /api/v1/auth/me/export/:id': async (world) => ({ params: { id: await world.createExport() } }),
  'DELETE /api/v1/auth/me': async (world, caller) => {
    if (caller?.id === world.admin.id) await world.createAccount('admin')
    await world.setUpTotp(caller, null)
    return json({ password: PASSWORD })
  },
  'POST /api/v1/auth/me/email': async (world, caller) => {
    await world.deleteRows('email_change')
    await world.setUpTotp(caller, null)
    return json({ email: `${world.createName()}@example.com`, password: PASSWORD })
  },
  'POST /api/v1/auth/me/export': async (world) => {
    await world.deleteRows("job where name = 'accounts.export'")
    return {}
  },
  'GET /api/v1/auth/me/email': confirmEmailChange,
  'DELETE /api/v1/auth/me/email': confirmEmailChange,
  'POST /api/v1/auth/email-change/confirm': async (world) =>
    json({ token: await world.createEmailChange((await world.createAccount()).id) }),
  'POST /api/v1/auth/email-change/refuse': async (world) =>
    json({ token: await world.createEmailChange((await world.createAccount()).id) }),
  'DELETE /api/v1/auth/sessions/:session_id': async (world) => ({
    params: { session_id: (await world.createSession(world.owner.id)).id },
  }),
  'POST /api/v1/auth/keys': async (world, caller) => {
    await world.setUpTotp(caller, null)
    return json({ name: 'a program', scopes: ['documents:read'], password: PASSWORD })
  },
  'PATCH /api/v1/auth/keys/:key_id': async (world) => ({
    params: { key_id: await world.createApiKey(world.owner.id) },
    json: { budget: { day_tokens: 1000 } },
  }),
  'DELETE /api/v1/auth/keys/:key_id': async (world) => ({
    params: { key_id: await world.createApiKey(world.owner.id) },
  }),
  'POST /api/v1/auth/totp': async (world, caller) => {
    await world.setUpTotp(caller, null)
    return json({ password: PASSWORD })
  },
  'POST /api/v1/auth/totp/confirm': async (world, caller) =>
    json({ code: await world.setUpTotp(caller, false) }),
  'POST /api/v1/auth/totp/recovery-codes': withProofOfIdentity,
  'DELETE /api/v1/auth/totp': withProofOfIdentity,
  'DELETE /api/v1/auth/users/:user_id/totp': async (world) => {
    const person = await world.createAccount()
    await world.setUpTotp(person, true)
    return { params: { user_id: person.id } }
  },
  'POST /api/v1/auth/passkeys/sign-in': async (world) =>
    json({ credential: await world.signWithPasskey(world.owner) }),
  'POST /api/v1/auth/passkeys/options': () => json({ password: PASSWORD }),
  'POST /api/v1/auth/passkeys': async (world, caller) =>
    json({ credential: await world.createPasskeyResponse(caller) }),
  'PATCH /api/v1/auth/passkeys/:passkey_id': combine(passkey, json({ name: 'mine' })),
  'DELETE /api/v1/auth/passkeys/:passkey_id': async (world, caller) => {
    await world.setUpTotp(caller, null)
    return { ...(await passkey(world, caller)), ...json({ password: PASSWORD }) }
  },
  'POST /api/v1/auth/password-reset/request': (world) => json({ email: `${world.createName()}@example.com` }),
  'POST /api/v1/auth/password-reset/confirm': async (world) =>
    json({
      token: await world.createMailedToken('reset', (await world.createAccount()).id),
      new_password: PASSWORD,
    }),
  'POST /api/v1/auth/magic-link/request': (world) => json({ email: `${world.createName()}@example.com` }),
  'POST /api/v1/auth/magic-link': async (world) =>
    json({ token: await world.createMailedToken('sign_in', (await world.createAccount()).id) }),
  'POST /api/v1/auth/oidc/begin': () => json({ binding: 'b'.repeat(40) }),
  'POST /api/v1/auth/oidc/callback': () => json({ binding: 'b'.repeat(40), parameters: 'code=c&state=s' }),
  'POST /api/v1/auth/oidc/sign-in': () => json({ binding: 'b'.repeat(40), state: 's' }),
  'DELETE /api/v1/auth/me/identities/:identity_id': async (world, caller) => {
    await world.setUpTotp(caller, null)
    return {
      params: { identity_id: await world.createIdentity(world.owner.id) },
      ...json({ password: PASSWORD }),
    }
  },
  'POST /api/v1/auth/change-password': async (world, caller) => {
    await world.setUpTotp(caller, null)
    return json({ current_password: PASSWORD, new_password: PASSWORD })
  },
  'POST /api/v1/auth/verify-email': async (world) =>
    json({ token: await world.createMailedToken('verify', (await world.createAccount()).id) }),
  'POST /api/v1/auth/accept-invite': async (world) =>
    json({ token: (await world.createInvite(await world.createOrg(), world.owner.email)).token }),
  'POST /api/v1/auth/users/import': (world) =>
    json({ accounts: [{ email: `${world.createName()}@example.com`, password_hash: BCRYPT_HASH }] }),
  'GET /api/v1/auth/users/:user_id': account,
  'PATCH /api/v1/auth/users/:user_id': (world) => ({
    params: { user_id: world.owner.id },
    query: { full_name: 'Ada' },
  }),
  'PATCH /api/v1/auth/users/:user_id/deactivate': account,
  'PATCH /api/v1/auth/users/:user_id/activate': account,
  'PATCH /api/v1/auth/users/:user_id/role': combine(account, json({ role: 'moderator' })),
  "PATCH /api/v1/auth/users/:user_id/role #one's own": (world, caller) => ({
    params: { user_id: (caller ?? world.owner).id },
    json: { role: 'admin' },
  }),
  'GET /api/v1/auth/users/:user_id/quotas': account,
  'PATCH /api/v1/auth/users/:user_id/quotas': combine(account, json({ keys: 100 })),
  'DELETE /api/v1/auth/users/:user_id': account,
}

const queue =
  (isPaused: boolean) =>
  async (world: RowFactory): Promise<RequestParts> => ({
    params: { queue: await world.createQueue(isPaused) },
  })

const worker = async (world: RowFactory): Promise<RequestParts> => ({
  params: { worker_id: await world.createWorker() },
})

const queues: Record<string, MakeRequest> = {
  'POST /api/v1/workers/:worker_id/drain': worker,
  'POST /api/v1/workers/:worker_id/resume': worker,
  "GET /api/v1/jobs/search #the owner's": (world) => ({ query: { owner_id: world.owner.id } }),
  "GET /api/v1/jobs/failures #the owner's": (world) => ({ query: { owner_id: world.owner.id } }),
  'POST /api/v1/jobs/bulk': () => json({ action: 'cancel', filter: { task: 'none.such' } }),
  "POST /api/v1/jobs/bulk #the owner's": (world) =>
    json({ action: 'cancel', filter: { task: 'none.such', owner_id: world.owner.id } }),
  'PATCH /api/v1/queues/:queue': combine(queue(false), json({ limit: 5 })),
  'POST /api/v1/queues/:queue/pause': queue(false),
  'POST /api/v1/queues/:queue/resume': queue(true),
}

const organizations: Record<string, MakeRequest> = {
  'POST /api/v1/orgs': (world) => json({ name: 'Acme', slug: world.createName() }),
  'GET /api/v1/orgs/:org_id': org,
  'PATCH /api/v1/orgs/:org_id': combine(org, { query: { name: 'Acme & Sons' } }),
  'PATCH /api/v1/orgs/:org_id #slug': combine(org, (world) => ({ query: { slug: world.createName() } })),
  'DELETE /api/v1/orgs/:org_id': org,
  'POST /api/v1/orgs/:org_id/transfer-ownership': combine(org, (world) => json({ user_id: world.member.id })),
  'GET /api/v1/orgs/:org_id/members': org,
  'GET /api/v1/orgs/:org_id/members/details': org,
  'POST /api/v1/orgs/:org_id/members': combine(org, createNewMemberQuery()),
  'POST /api/v1/orgs/:org_id/members #as admin': combine(org, createNewMemberQuery('admin')),
  'POST /api/v1/orgs/:org_id/members #as owner': combine(org, createNewMemberQuery('owner')),
  'POST /api/v1/orgs/:org_id/members/bulk': combine(org, createNewMembersBody()),
  'POST /api/v1/orgs/:org_id/members/bulk #as owner': combine(org, createNewMembersBody('owner')),
  'PATCH /api/v1/orgs/:org_id/members/:user_id': combine(createMemberParams(), createRoleQuery('admin')),
  'PATCH /api/v1/orgs/:org_id/members/:user_id #to owner': combine(
    createMemberParams(),
    createRoleQuery('owner'),
  ),
  'PATCH /api/v1/orgs/:org_id/members/:user_id #an admin': combine(
    createMemberParams('admin'),
    createRoleQuery('member'),
  ),
  'PATCH /api/v1/orgs/:org_id/members/:user_id #an owner': combine(
    createMemberParams('owner'),
    createRoleQuery('member'),
  ),
  'DELETE /api/v1/orgs/:org_id/members/me': org,
  'DELETE /api/v1/orgs/:org_id/members/:user_id': createMemberParams(),
  'DELETE /api/v1/orgs/:org_id/members/:user_id #an owner': createMemberParams('owner'),
  'POST /api/v1/orgs/:org_id/invites': combine(org, (world) =>
    json({ email: `${world.createName()}@example.com` }),
  ),
  'POST /api/v1/orgs/:org_id/invites #as owner': combine(org, (world) =>
    json({ email: `${world.createName()}@example.com`, role: 'owner' }),
  ),
  'POST /api/v1/orgs/:org_id/invites #who has an account': combine(org, async (world) =>
    json({ email: (await world.createAccount()).email }),
  ),
  'GET /api/v1/orgs/:org_id/invites': org,
  'DELETE /api/v1/orgs/:org_id/invites/:invite_id': pendingInvite,
  'POST /api/v1/orgs/:org_id/invites/:invite_id/resend': pendingInvite,
}

const blog: Record<string, MakeRequest> = {
  'GET /api/v1/blog/posts/:post': async (world) => ({ params: { post: (await world.createPost()).slug } }),
  'GET /api/v1/blog/posts/:post #a draft': async (world) => ({
    params: { post: (await world.createPost('draft')).slug },
  }),
  'GET /api/v1/blog/admin/posts/:post': post,
  'POST /api/v1/blog/posts': (world) => json({ title: world.createName() }),
  'PUT /api/v1/blog/posts/:post': combine(post, json({ title: 'Another' })),
  'POST /api/v1/blog/posts/:post/publish': post,
  'POST /api/v1/blog/posts/:post/archive': post,
  'DELETE /api/v1/blog/posts/:post': post,
  'POST /api/v1/blog/posts/:post/preview': post,
  'DELETE /api/v1/blog/posts/:post/preview': post,
  'GET /api/v1/blog/preview/:token': async (world) => ({ params: { token: await world.createPreview() } }),
  'GET /api/v1/blog/posts/:post/revisions': post,
  'GET /api/v1/blog/posts/:post/revisions/:revision': revision,
  'POST /api/v1/blog/posts/:post/revisions/:revision/restore': revision,
  'POST /api/v1/blog/tags': (world) => json({ name: world.createName() }),
  'PUT /api/v1/blog/tags/:tag_id': combine(tag, (world) => json({ name: world.createName() })),
  'DELETE /api/v1/blog/tags/:tag_id': tag,
  'POST /api/v1/blog/import': () => createUpload('---\ntitle: A post\n---\nText', 'post.md'),
}

const documents: Record<string, MakeRequest> = {
  'POST /api/v1/documents': (world) => createUpload(`text ${world.createName()}`, 'file.txt'),
  'GET /api/v1/documents/:id': document,
  'PATCH /api/v1/documents/:id': combine(document, json({ title: 'Another' })),
  "PATCH /api/v1/documents/:id #supersede the owner's": async (world, caller) => ({
    params: { id: await world.createDocument(caller ?? world.owner) },
    json: { supersedes_id: await world.createDocument() },
  }),
  'DELETE /api/v1/documents/:id': document,
  'DELETE /api/v1/documents/:id #from the trash': combine(trashedDocument, { query: { permanent: 'true' } }),
  'POST /api/v1/documents/bulk': async (world) => ({
    json: { action: 'tag', ids: [await world.createDocument()], label: 'red' },
  }),
  'POST /api/v1/documents/:id/restore': trashedDocument,
  'POST /api/v1/documents/:id/tags': combine(document, json({ label: 'red' })),
  'DELETE /api/v1/documents/:id/tags/:label': async (world) => ({
    params: { id: await world.createDocument(), label: 'blue' },
  }),
  'GET /api/v1/documents/:id/content': document,
  'POST /api/v1/documents/:id/extract': document,
  'GET /api/v1/documents/:id/extraction': document,
  'GET /api/v1/documents/:id/pages': document,
  'GET /api/v1/documents/:id/pages/:number': page,
  'GET /api/v1/documents/:id/pages/:number/image': page,
  'GET /api/v1/documents/:id/pages/:number/words': combine(page, { query: { search: '.' } }),
}

const schedule: MakeRequest = async (world) => ({
  params: { schedule_id: await world.createSchedule(false) },
})
const builtIn: MakeRequest = async (world) => ({ params: { schedule_id: await world.createBuiltIn() } })
const jobs: Record<string, MakeRequest> = {
  'GET /api/v1/jobs/:job_id': job,
  "GET /api/v1/jobs/:job_id #nobody's": async (world) => ({
    params: { job_id: await world.createTask(null) },
  }),
  'PATCH /api/v1/jobs/:job_id': combine(job, json({ delay_seconds: 60 })),
  "PATCH /api/v1/jobs/:job_id #nobody's": async (world) => ({
    params: { job_id: await world.createTask(null) },
    ...json({ delay_seconds: 60 }),
  }),
  'DELETE /api/v1/jobs/:job_id': job,
  "DELETE /api/v1/jobs/:job_id #nobody's": async (world) => ({
    params: { job_id: await world.createTask(null) },
  }),
  'POST /api/v1/jobs/:job_id/retry': async (world) => ({
    params: { job_id: await world.createFailedJob(world.owner.id) },
  }),
  "POST /api/v1/jobs/:job_id/retry #nobody's": async (world) => ({
    params: { job_id: await world.createFailedJob(null) },
  }),
  'GET /api/v1/jobs/:job_id/history': job,
  'GET /api/v1/jobs/:job_id/details': job,
  "GET /api/v1/jobs/:job_id/details #nobody's": async (world) => ({
    params: { job_id: await world.createTask(null) },
  }),
  'GET /api/v1/jobs/:job_id/events': job,
  'POST /api/v1/batches': () =>
    json({ jobs: [{ task_name: 'io_simulation_task', queue_type: 'load_test' }] }),
  'GET /api/v1/batches/:batch_id': batch,
  'GET /api/v1/batches/:batch_id/jobs': batch,
  'GET /api/v1/batches/:batch_id/events': batch,
  'POST /api/v1/batches/:batch_id/jobs': combine(
    batch,
    json({ jobs: [{ task_name: 'io_simulation_task', queue_type: 'load_test' }] }),
  ),
  'POST /api/v1/batches/:batch_id/close': batch,
  'POST /api/v1/batches/:batch_id/retry': batch,
  'DELETE /api/v1/batches/:batch_id': batch,
  'POST /api/v1/worker-queues': () => json({ name: `q-${randomUUID()}` }),
  'GET /api/v1/worker-queues/:name': workerQueue,
  'GET /api/v1/worker-queues/:name #of a member': memberQueue,
  'PATCH /api/v1/worker-queues/:name': combine(workerQueue, json({ description: 'mine' })),
  'PATCH /api/v1/worker-queues/:name #of a member': combine(memberQueue, json({ description: 'mine' })),
  'DELETE /api/v1/worker-queues/:name': workerQueue,
  'DELETE /api/v1/worker-queues/:name #of a member': memberQueue,
  'PUT /api/v1/worker-queues/:name/tasks/:task': combine(queueTask, json({ max_tries: 2 })),
  'GET /api/v1/worker-queues/:name/tasks/:task': queueTask,
  'DELETE /api/v1/worker-queues/:name/tasks/:task': queueTask,
  'POST /api/v1/worker-queues/:name/claims': combine(workerQueue, json({ worker: 'w' })),
  'POST /api/v1/worker-queues/:name/claims #of a member': combine(memberQueue, json({ worker: 'w' })),
  'POST /api/v1/workers/leases/:lease_id': combine(lease, json({ jobs: [] })),
  'POST /api/v1/workers/leases/:lease_id #of a member': combine(memberLease, json({ jobs: [] })),
  'POST /api/v1/workers/leases/:lease_id/reports': combine(
    lease,
    json({ items: [{ job_id: randomUUID(), attempt: 1, done: {} }] }),
  ),
  'DELETE /api/v1/workers/leases/:lease_id': lease,
  'POST /api/v1/schedules': () => json({ name: 'Mine', cron: '@yearly', task_name: 'noop' }),
  'GET /api/v1/schedules/:schedule_id': schedule,
  'GET /api/v1/schedules/:schedule_id #built-in': builtIn,
  'PATCH /api/v1/schedules/:schedule_id': combine(schedule, json({ name: 'Renamed' })),
  'PATCH /api/v1/schedules/:schedule_id #built-in': combine(builtIn, json({ name: 'Renamed' })),
  'DELETE /api/v1/schedules/:schedule_id': schedule,
  'DELETE /api/v1/schedules/:schedule_id #built-in': builtIn,
  'POST /api/v1/schedules/:schedule_id/run': schedule,
  'POST /api/v1/schedules/:schedule_id/run #built-in': builtIn,
  'POST /api/v1/schedules/:schedule_id/pause': schedule,
  'POST /api/v1/schedules/:schedule_id/pause #built-in': builtIn,
  'POST /api/v1/schedules/:schedule_id/resume': async (world) => ({
    params: { schedule_id: await world.createSchedule(true) },
  }),
  'POST /api/v1/schedules/:schedule_id/resume #built-in': builtIn,
  'POST /api/v1/tasks/enqueue': () => json({ task_name: 'io_simulation_task', queue_type: 'load_test' }),
  'GET /api/v1/tasks/result/:task_id': async (world) => ({
    params: { task_id: await world.createTask(world.owner.id) },
  }),
  'GET /api/v1/tasks/results': async (world) => ({
    query: { ids: await world.createTask(world.owner.id) },
  }),
}

const providerRequests: Record<string, MakeRequest> = {
  'POST /api/v1/comms/email/send': () => json({ to: ['ada@example.com'], subject: 'Hm', text: 'Hello' }),
  'POST /api/v1/comms/sms/send': () => json({ to: '+14155550123', body: 'Hello' }),
  'POST /api/v1/comms/call': () => json({ to: '+14155550123', script_url: 'https://example.com/call' }),
  'GET /api/v1/comms/sends/:id': async (world) => ({ params: { id: await world.createMessage() } }),
  'DELETE /api/v1/comms/sends/:id': async (world) => ({ params: { id: await world.createMessage() } }),
  "DELETE /api/v1/comms/sends/:id #nobody's": async (world) => ({
    params: { id: await world.createMessage(null) },
  }),
  'POST /api/v1/comms/domains': () => json({ name: 'mail.example.com' }),
  'POST /api/v1/comms/domains/:domain/check': () => ({ params: { domain: 'example.com' } }),
  'DELETE /api/v1/comms/suppressions/:address': async (world) => ({
    params: { address: await world.createSuppression() },
  }),
  'POST /unsubscribe': () => ({
    query: {
      token: unsubscribeTokenOf(TEST_KEYS, {
        sendId: randomUUID(),
        stream: 'broadcast',
        address: 'ada@example.com',
      }),
    },
  }),
  'POST /api/v1/comms/templates': (world) =>
    json({ name: world.createName(), channel: 'sms', text: 'Hello {{name}}', variables: [{ name: 'name' }] }),
  'GET /api/v1/comms/templates/:name': template,
  'PUT /api/v1/comms/templates/:name': combine(template, json({ channel: 'sms', text: 'Hello' })),
  'DELETE /api/v1/comms/templates/:name': template,
  'POST /api/v1/comms/templates/:name/preview': combine(template, json({})),
  'POST /api/v1/comms/webhooks/twilio': () => createTwilioCallback('token'),
  'POST /api/v1/comms/webhooks/twilio #unsigned': () => createTwilioCallback('another token'),
  'POST /api/v1/comms/webhooks/resend': () => createSignedEvent(createMailEvent('email.delivered')),
  'POST /api/v1/comms/webhooks/resend #unsigned': () => json(createMailEvent('email.delivered')),
  'POST /api/v1/payment/checkout': () => json({ price_id: 'price_1', mode: 'payment' }),
  'POST /api/v1/payment/portal': () => json({}),
  'GET /api/v1/payment/transactions/:id': async (world) => ({
    params: { id: await world.createTransaction() },
  }),
  'POST /api/v1/payment/refund/:id': async (world) => ({
    params: { id: await world.createTransaction() },
    json: {},
  }),
  'POST /api/v1/payment/subscriptions/:id/cancel': async (world) => ({
    params: { id: await world.createSubscription() },
  }),
  'POST /api/v1/payment/subscriptions/:id/resume': async (world) => ({
    params: { id: await world.createSubscription() },
  }),
  'POST /api/v1/payment/subscriptions/:id/plan': async (world) => ({
    params: { id: await world.createSubscription() },
    json: { price_id: 'price_gold' },
  }),
  'GET /api/v1/payment/disputes/:id': async (world) => ({ params: { id: await world.createDispute() } }),
  'GET /api/v1/payment/admin/transactions/:id': async (world) => ({
    params: { id: await world.createTransaction() },
  }),
  'POST /api/v1/payment/admin/refund/:id': async (world) => ({
    params: { id: await world.createTransaction() },
    json: {},
  }),
  'GET /api/v1/payment/admin/disputes/:id': async (world) => ({
    params: { id: await world.createDispute() },
  }),
  'POST /api/v1/payment/webhook': createStripeEvent(true),
  'POST /api/v1/payment/webhook #unsigned': createStripeEvent(false),
}

const models: Record<string, MakeRequest> = {
  'GET /llm/prices': () => ({ query: { vendor: 'openai', model_id: 'gpt-4.1' } }),
  'POST /llm/current': () => json({ model: 'gpt-4.1' }),
  'POST /api/v1/ai/chat': () => json({ message: 'Hm?' }),
  'POST /v1/chat/completions': () =>
    json({ model: 'assistant', messages: [{ role: 'user', content: 'Hm?' }] }),
  'GET /v1/models/:model': () => ({ params: { model: 'assistant' } }),
  'POST /api/v1/ai/chat #as the owner': (world) => json({ message: 'Hm?', user_id: String(world.owner.id) }),
  "POST /api/v1/ai/chat #in the owner's conversation": async (world) =>
    json({ message: 'Hm?', conversation_id: (await world.createConversation()).id }),
  'POST /api/v1/ai/chat/stream': () => json({ message: 'Hm?' }),
  'GET /api/v1/ai/chat/stream': () => ({ query: { message: 'Hm?' } }),
  'GET /api/v1/ai/chat/stream/:message_id': async (world) => ({
    params: { message_id: (await world.createConversation()).message },
  }),
  'GET /api/v1/ai/conversations #of the owner': ownersRequest,
  'GET /api/v1/ai/conversations/:conversation_id': conversation,
  'GET /api/v1/ai/conversations/:conversation_id #named': combine(conversation, ownersRequest),
  'PATCH /api/v1/ai/conversations/:conversation_id': combine(conversation, json({ title: 'Hm' })),
  'POST /api/v1/ai/conversations/:conversation_id/branch': async (world) => {
    const { id, message } = await world.createConversation()
    return { params: { conversation_id: id }, json: { message_id: message } }
  },
  'DELETE /api/v1/ai/conversations/:conversation_id': conversation,
  'PATCH /api/v1/ai/agents/:slug': () => ({ params: { slug: 'assistant' }, json: { temperature: 1 } }),
  'GET /api/v1/ai/usage/stats #of the owner': ownersRequest,
  'GET /api/v1/ai/usage/budget #of the owner': ownersRequest,
  'PATCH /api/v1/ai/usage/budget/:account_id': (world) => ({
    params: { account_id: String(world.owner.id) },
    json: { day_tokens: 0 },
  }),
  'GET /voice/catalog/tts/:provider_id/models': () => ({ params: { provider_id: 'openai' } }),
  'GET /voice/catalog/tts/:provider_id/voices': () => ({ params: { provider_id: 'openai' } }),
  'GET /voice/catalog/stt/:provider_id/models': () => ({ params: { provider_id: 'openai' } }),
  'POST /voice/settings': () => json({ tts_speed: 1 }),
  'POST /voice/preview': () => json({ voice_id: 'alloy' }),
  'GET /voice/preview/:voice_id': () => ({ params: { voice_id: 'alloy' } }),
  'POST /voice/speech': (world) => json({ text: `Hello ${world.number()}` }),
  'GET /voice/speech/:job_id': speech,
  'DELETE /voice/speech/:job_id': speech,
  'POST /voice/transcriptions': (world) => createUpload(createSilentWav(0.1, world.number()), 'call.wav'),
  'POST /voice/transcriptions #a document of the owner': async (world) =>
    json({ document_id: await world.createRecording() }),
  'GET /voice/transcriptions/:transcription_id': transcription,
  'DELETE /voice/transcriptions/:transcription_id': transcription,
  'POST /rag/index': (world) => json({ path: '.', collection_name: world.createName() }),
  'POST /rag/search': async (world) =>
    json({ query: 'words', collection_name: await world.createCollection() }),
  'GET /rag/collections/:name': collection,
  'GET /rag/collections/:name/files': collection,
  'DELETE /rag/collections/:name': collection,
  'POST /rag/index #documents': (world) => json({ documents: {}, collection_name: world.createName() }),
  'GET /rag/collections/:name #documents': ownCollection,
  'GET /rag/collections/:name/files #documents': ownCollection,
  'DELETE /rag/collections/:name #documents': ownCollection,
}

const pages: Record<string, MakeRequest> = {
  ...Object.fromEntries(
    declaredPages.map(({ path }) => [
      `GET ${path}`,
      () => ({ params: Object.fromEntries([...path.matchAll(/:(\w+)/g)].map(([, name]) => [name, '1'])) }),
    ]),
  ),
  'GET /pages/:folder/:file': () => ({ params: { folder: 'parts', file: 'base.css' } }),
  'GET /docs/:file': () => ({ params: { file: 'docs.css' } }),
  'GET /metrics #with METRICS_TOKEN': () => ({ headers: { authorization: `Bearer ${METRICS_TOKEN}` } }),
}

export const REQUESTS: Readonly<Record<string, MakeRequest>> = {
  ...accounts,
  ...webhookRequests,
  ...queues,
  ...organizations,
  ...blog,
  ...documents,
  ...jobs,
  ...providerRequests,
  ...models,
  ...pages,
}
