import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { QUOTA_NAMES } from '../../sql/quotas/quotas.ts'
import { type Account, type Answered, createEmail, getSharedEdge, startEdge } from './harness.ts'

/** Tests refusals by quota, how accounts read their quotas, and how admins change them. */

const { api: plain, admin, url, query } = await getSharedEdge()
const QUOTAS = {
  documents: 3,
  bytes: 1000,
  organizations: 1,
  keys: 1,
  webhook_endpoints: 1,
  conversations: 1,
  waiting_jobs: 2,
}
const env = Object.fromEntries(
  Object.entries(QUOTAS).map(([kind, n]) => [`QUOTA_${kind.toUpperCase()}`, String(n)]),
)
const api = await startEdge(url, { env: { ...env, OPENAI_API_KEY: 'sk-test' } })
const registerAccount = (): Promise<Account> => plain.register(createEmail())

async function readQuotas(account: Pick<Account, 'token'>, path = '/api/v1/auth/me/quotas') {
  const answer = await api.get(path, { token: account.token })
  assert.equal(answer.status, 200, answer.text)
  type QuotaUse = { kind: string; used: number; quota: number | null; own: number | null; setting: string }
  return new Map((answer.json.quotas as QuotaUse[]).map((use) => [use.kind, use]))
}

function assertExceeded(
  answer: Answered,
  kind: keyof typeof QUOTAS,
  [status, code] = [429, `quota.${kind}`],
): void {
  assert.deepEqual([answer.status, answer.json.code], [status, code], answer.text)
  assert.ok(answer.json.detail.includes(`(QUOTA_${kind.toUpperCase()})`), answer.text)
}

/** Functions that create the n-th item of a kind for an account. */
const CREATORS: Readonly<
  Partial<Record<keyof typeof QUOTAS, (account: Account, n: number) => Promise<Answered>>>
> = {
  documents: ({ token }, n) => api.upload(token, `document ${n}`),
  organizations: ({ token, id }, n) =>
    api.post('/api/v1/orgs', { token, json: { name: 'Org', slug: `quota-${id}-${n}` } }),
  keys: ({ token }) => api.post('/api/v1/auth/keys', { token, json: { name: 'k', scopes: ['jobs:read'] } }),
  webhook_endpoints: ({ token }, n) =>
    api.post('/api/v1/webhooks', { token, json: { url: `https://example.com/${n}`, events: ['job.done'] } }),
  conversations: ({ token }) =>
    api.post('/api/v1/ai/chat', { token, json: { message: 'Hello' }, headers: { prefer: 'respond-async' } }),
  waiting_jobs: ({ token }) =>
    api.post('/api/v1/tasks/enqueue', {
      token,
      json: { queue_type: 'load_test', task_name: 'io_simulation_task', args: {} },
    }),
}

for (const [kind, make] of Object.entries(CREATORS) as [
  keyof typeof QUOTAS,
  NonNullable<(typeof CREATORS)['keys']>,
][])
  test(`${kind}: concurrent requests cannot exceed the quota, and refusals name it`, async () => {
    const account = await registerAccount()
    const answers = await Promise.all(Array.from({ length: QUOTAS[kind] + 3 }, (_, n) => make(account, n)))
    const [made, refused] = [0, 1].map((no) => answers.filter(({ status }) => Number(status >= 400) === no))
    assert.equal(made!.length, QUOTAS[kind], JSON.stringify(answers.map(({ text }) => text)))
    for (const answer of refused!) assertExceeded(answer, kind)
    assert.deepEqual((await readQuotas(account)).get(kind), {
      kind,
      used: QUOTAS[kind],
      quota: QUOTAS[kind],
      own: null,
      setting: `QUOTA_${kind.toUpperCase()}`,
    })
  })

describe('the quota of bytes', () => {
  test('rejects a file that would exceed it, with 413 if the file alone is larger', async () => {
    const { token } = await registerAccount()
    assert.equal((await api.upload(token, 'a'.repeat(600))).status, 201)
    assertExceeded(await api.upload(token, 'b'.repeat(600)), 'bytes')
    assertExceeded(await api.upload(token, 'c'.repeat(1001)), 'bytes', [413, 'quota.file_bytes'])
    assert.equal((await api.upload(token, 'a'.repeat(600))).status, 200, 'what it has already takes nothing')
    assert.equal((await api.upload(token, 'd'.repeat(400))).status, 201)
    const left = await query(
      `select from blob where sha256 in (sha256(repeat('b', 600)::bytea), sha256(repeat('c', 1001)::bytea))`,
    )
    assert.deepEqual(left, [], 'nothing is left of what was refused')
  })
})

test('jobs of one request are added together or not at all', async () => {
  const account = await registerAccount()
  const enqueue = (count: number) =>
    api.post('/api/v1/tasks/enqueue', {
      token: account.token,
      json: { queue_type: 'load_test', task_name: 'io_simulation_task', args: {}, count },
    })
  assertExceeded(await enqueue(3), 'waiting_jobs')
  assert.equal((await readQuotas(account)).get('waiting_jobs')!.used, 0)
  assert.equal((await enqueue(2)).status, 202)
})

test('an account sees all its quotas, and an admin has none', async () => {
  const own = await readQuotas(await registerAccount())
  assert.deepEqual([...own.keys()], QUOTA_NAMES)
  assert.equal(own.get('pages')!.quota, 10_000_000)
  for (const { quota } of (await readQuotas(admin)).values()) assert.equal(quota, null)
  assert.equal((await api.get('/api/v1/auth/me/quotas')).status, 401)
})

describe('an admin', () => {
  const path = ({ id }: Pick<Account, 'id'>) => `/api/v1/auth/users/${id}/quotas`
  const change = (who: Account, of: Pick<Account, 'id'>, json: object) =>
    api.call('PATCH', path(of), { token: who.token, json })

  test('sets and removes quotas of an account, with audit events', async () => {
    const account = await registerAccount()
    assert.equal((await change(admin, account, { keys: 2, organizations: 0 })).status, 204)
    const given = await readQuotas(admin, path(account))
    assert.deepEqual([given.get('keys')!.quota, given.get('keys')!.own], [2, 2])
    assert.deepEqual([given.get('organizations')!.quota, given.get('organizations')!.own], [null, 0])
    for (const n of [1, 2]) assert.equal((await CREATORS.keys!(account, n)).status, 201)
    assertExceeded(await CREATORS.keys!(account, 3), 'keys')
    for (const n of [1, 2]) assert.equal((await CREATORS.organizations!(account, n)).status, 201)
    assert.equal((await change(admin, account, { keys: null })).status, 204)
    assert.deepEqual((await readQuotas(account)).get('keys')!.quota, 1)
    const events = await query(
      `select data from audit_event where kind = 'account.quotas_changed' and account_id = $1 order by id`,
      [account.id],
    )
    assert.deepEqual(events, [{ data: { keys: 2, organizations: 0 } }, { data: { keys: null } }])
  })

  test('is required, and the account must exist', async () => {
    const account = await registerAccount()
    assert.equal((await change(account, account, { keys: 9 })).status, 403)
    assert.equal((await api.get(path(account), { token: account.token })).status, 403)
    assert.equal((await change(admin, { id: 999_999_999 }, { keys: 9 })).status, 404)
    assert.equal((await api.get(path({ id: 999_999_999 }), { token: admin.token })).status, 404)
    assert.equal((await change(admin, account, {})).status, 400)
    for (const body of [{ keys: -1 }, { keys: 1.5 }, { doors: 1 }])
      assert.equal((await change(admin, account, body)).status, 422, JSON.stringify(body))
  })
})
