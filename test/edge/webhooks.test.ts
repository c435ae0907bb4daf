import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { assertRefused, getSharedCast } from './accounts-help.ts'
import { createKey } from './api-keys-help.ts'
import { type Account, type Answered, type Api, startEdge } from './harness.ts'
import { createSlug } from './orgs-help.ts'

/** Webhook endpoints and deliveries, and the permission to create, list and change them. */

const { api, query, url, admin, newcomer } = await getSharedCast()
const PATH = '/api/v1/webhooks'
const TARGET = 'https://example.com/hooks'
const NOT_FOUND = [404, 'Webhook endpoint not found'] as const

const postEndpoint = (who: Pick<Account, 'token'>, fields: object = {}, on: Api = api): Promise<Answered> =>
  on.post(PATH, { token: who.token, json: { url: TARGET, events: ['job.done'], ...fields } })
async function createEndpoint(
  who: Pick<Account, 'token'>,
  fields: object = {},
): Promise<{ id: number; secret: string }> {
  const answer = await postEndpoint(who, fields)
  assert.equal(answer.status, 201, answer.text)
  return answer.json
}
const patchEndpoint = (who: Pick<Account, 'token'>, id: number, json: object) =>
  api.call('PATCH', `${PATH}/${id}`, { token: who.token, json })
const insertDelivery = async (id: number, status = 'pending'): Promise<number> =>
  Number(
    (
      await query(
        `insert into webhook_delivery (endpoint_id, type, body, status, due_at, ended_at, answers)
         values ($1, 'job.done', '{"type":"job.done"}', $2, case when $2 = 'pending' then now() end,
           case when $2 <> 'pending' then now() end, $3) returning id`,
        [id, status, '[{"at":"2026-01-01T00:00:00.000Z","ms":3,"status":500,"body":"no","error":null}]'],
      )
    )[0]!.id,
  )

describe('an endpoint', () => {
  test('is created with a secret that only the creation shows, also to a retry with the same Idempotency-Key', async () => {
    const account = await newcomer()
    const headers = { 'idempotency-key': randomUUID() }
    const json = { url: TARGET, events: ['job.failed', 'job.done', 'job.done'], description: ' mine ' }
    const post = () => api.post(PATH, { token: account.token, json, headers })
    const [first, second] = [await post(), await post()]
    assert.equal(first.status, 201, first.text)
    assert.equal(second.text, first.text)
    assert.equal(first.headers['cache-control'], 'no-store')
    const { secret, ...shown } = first.json
    const { id, created_at } = shown
    assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
    assert.deepEqual(shown, {
      ...{
        id,
        scope: 'account',
        account_id: account.id,
        organization_id: null,
        url: TARGET,
        events: ['job.done', 'job.failed'],
      },
      ...{ description: 'mine', is_active: true, failures: 0, failing_since: null, paused_until: null },
      ...{ disabled_at: null, proved_at: null, secret_rolled_at: null, created_at, updated_at: null },
    })
    const list = await api.get(PATH, { token: account.token })
    assert.deepEqual(list.json, [shown])
    assert.deepEqual((await api.get(`${PATH}/${id}`, { token: account.token })).json, shown)
  })

  test('is rejected with the invalid field', async () => {
    const account = await newcomer()
    const cases: readonly [object, string][] = [
      [{ url: 'nonsense' }, 'url'],
      [{ url: 'ftp://example.com/' }, 'url'],
      [{ url: 'https://10.0.0.1/' }, 'url'],
      [{ url: 'https://a:b@example.com/' }, 'url'],
      [{ events: [] }, 'events'],
      [{ events: ['job.begun'] }, 'events.0'],
      [{ description: 'd'.repeat(501) }, 'description'],
      [{ is_active: false }, 'body'],
    ]
    for (const [fields, where] of cases) {
      const answer = await postEndpoint(account, fields)
      assert.equal(answer.status, 422, answer.text)
      assert.equal(answer.json.errors[0].loc.join('.').replace(/^body\./, ''), where)
    }
    const { id } = await createEndpoint(account)
    assert.equal((await patchEndpoint(account, id, { url: 'https://10.0.0.1/' })).status, 422)
  })

  test('may use a local address in development, but not in production', async () => {
    const account = await newcomer()
    assert.equal((await postEndpoint(account, { url: 'http://127.0.0.1:9000/' })).status, 201)
    const production = await startEdge(url, { env: { NODE_ENV: 'production', DATABASE_URL: url } })
    for (const target of ['http://127.0.0.1:9000/', 'https://127.0.0.1:9000/', 'http://example.com/'])
      assert.equal((await postEndpoint(account, { url: target }, production)).status, 422, target)
    assert.equal((await postEndpoint(account, {}, production)).status, 201)
  })

  test('counts towards the quota', async () => {
    const account = await newcomer()
    await query(
      `insert into webhook_endpoint (secret, account_id, url, host, events)
       select 'aaaaaaaa.AAAA', $1, 'https://example.com/', 'example.com', '{job.done}' from generate_series(1, 49)`,
      [account.id],
    )
    const made = await Promise.all([postEndpoint(account), postEndpoint(account)])
    assert.deepEqual(made.map(({ status }) => status).sort(), [201, 429])
    const page = await api.get(`${PATH}?limit=30`, { token: account.token })
    const next = /^<(.+)>; rel="next"$/.exec(String(page.headers.link))![1]!
    assert.deepEqual(
      [page.json.length, (await api.get(next, { token: account.token })).json.length],
      [30, 20],
    )
  })

  test('can be changed, deactivated and activated', async () => {
    const account = await newcomer()
    const { id } = await createEndpoint(account, { description: 'd' })
    const changed = await patchEndpoint(account, id, {
      url: `${TARGET}/2`,
      events: ['document.read'],
      description: null,
    })
    assert.deepEqual(
      [changed.json.url, changed.json.events, changed.json.description],
      [`${TARGET}/2`, ['document.read'], null],
    )
    assert.equal((await patchEndpoint(account, id, { is_active: false })).json.is_active, false)
    await query(
      `update webhook_endpoint set disabled_at = now(), failures = 7, failing_since = now(), blocked_until = now() + interval '1 h'
       where id = $1`,
      [id],
    )
    const { is_active, failures, failing_since, disabled_at } = (
      await patchEndpoint(account, id, { is_active: true })
    ).json
    assert.deepEqual([is_active, failures, failing_since, disabled_at], [true, 0, null, null])
  })

  test('gets a new secret when rolled, which a retry shows again', async () => {
    const account = await newcomer()
    const { id, secret } = await createEndpoint(account)
    const headers = { 'idempotency-key': randomUUID() }
    const roll = () => api.post(`${PATH}/${id}/secret`, { token: account.token, headers })
    const [first, second] = [await roll(), await roll()]
    assert.deepEqual({ ...first.json, secret: '' }, { endpoint_id: id, version: 2, secret: '' })
    assert.equal(second.text, first.text)
    assert.notEqual(first.json.secret, secret)
  })

  test('is gone after its deletion', async () => {
    const account = await newcomer()
    const { id } = await createEndpoint(account)
    const remove = () => api.call('DELETE', `${PATH}/${id}`, { token: account.token })
    assert.equal((await remove()).status, 204)
    assertRefused(await remove(), ...NOT_FOUND)
    assertRefused(await patchEndpoint(account, id, { is_active: true }), ...NOT_FOUND)
    assert.deepEqual((await api.get(PATH, { token: account.token })).json, [])
  })

  test('for callbacks has no URL or events to change', async () => {
    const account = await newcomer()
    await query(
      `insert into webhook_endpoint (secret, account_id, events) values ('aaaaaaaa.AAAA', $1, '{}')`,
      [account.id],
    )
    const [{ id, url: none }] = (await api.get(PATH, { token: account.token })).json
    assert.equal(none, null)
    for (const fields of [{ url: TARGET }, { events: ['job.done'] }])
      assertRefused(
        await patchEndpoint(account, id, fields),
        409,
        'The callback endpoint has no URL or events of its own',
      )
    assert.equal((await patchEndpoint(account, id, { description: 'of jobs' })).status, 200)
  })
})

describe('access to an endpoint', () => {
  test('is limited to its account and service admins', async () => {
    const [account, stranger] = [await newcomer(), await newcomer()]
    const { id } = await createEndpoint(account)
    const delivery = await insertDelivery(id)
    const calls = (who: Account): Promise<Answered>[] => [
      api.get(`${PATH}/${id}`, { token: who.token }),
      patchEndpoint(who, id, { description: 'x' }),
      api.post(`${PATH}/${id}/secret`, { token: who.token }),
      api.get(`${PATH}/${id}/deliveries`, { token: who.token }),
    ]
    for (const answer of await Promise.all(calls(stranger))) assertRefused(answer, ...NOT_FOUND)
    for (const path of [`${delivery}`, `${delivery}/send`]) {
      const method = path.endsWith('send') ? 'POST' : 'GET'
      const answer = await api.call(method, `${PATH}/${id}/deliveries/${path}`, { token: stranger.token })
      assertRefused(answer, 404, 'Delivery not found')
    }
    for (const answer of await Promise.all(calls(admin))) assert.equal(answer.status, 200, answer.text)
  })

  test('is shared with the admins and owners of its organization', async () => {
    const [owner, member, ranked] = [await newcomer(), await newcomer(), await newcomer()]
    const org = await api.post('/api/v1/orgs', {
      token: owner.token,
      json: { name: 'Mill', slug: createSlug('hooks') },
    })
    const organization_id = org.json.id
    for (const [who, role] of [
      [member, 'member'],
      [ranked, 'owner'],
    ] as const)
      await api.call('POST', `/api/v1/orgs/${organization_id}/members?user_id=${who.id}&role=${role}`, {
        token: owner.token,
      })
    const { id } = await createEndpoint(owner, { organization_id })
    assert.equal((await postEndpoint(member, { organization_id })).status, 403)
    const list = (who: Account) => api.get(`${PATH}?organization_id=${organization_id}`, { token: who.token })
    assert.deepEqual(
      (await list(ranked)).json.map((one: { id: number }) => one.id),
      [id],
    )
    assert.equal((await list(member)).status, 403)
    assert.equal((await patchEndpoint(ranked, id, { description: 'ours' })).status, 200)
    assertRefused(await patchEndpoint(member, id, { description: 'mine' }), ...NOT_FOUND)
    await api.call('DELETE', `/api/v1/orgs/${organization_id}/members/me`, { token: owner.token })
    assertRefused(await patchEndpoint(owner, id, { description: 'still' }), ...NOT_FOUND)
  })

  test('is denied to an API key of another organization', async () => {
    const owner = await newcomer()
    const organizations: number[] = []
    for (const slug of [createSlug('hooks'), createSlug('hooks')])
      organizations.push(
        (await api.post('/api/v1/orgs', { token: owner.token, json: { name: 'Mill', slug } })).json.id,
      )
    const [one, two] = organizations as [number, number]
    const ids = [
      await createEndpoint(owner, { organization_id: one }),
      await createEndpoint(owner, { organization_id: two }),
      await createEndpoint(owner),
    ].map(({ id }) => id)
    const { key: token } = await createKey(api, owner, { organization_id: one })
    const delivery = await insertDelivery(ids[1]!)
    const reached = await Promise.all(
      ids.map((id) => patchEndpoint({ token }, id, { description: 'by the key' })),
    )
    assert.deepEqual(
      reached.map(({ status }) => status),
      [200, 404, 200],
    )
    const statusOf = async (path: string) => (await api.get(PATH + path, { token })).status
    assert.equal(await statusOf(`/${ids[1]}`), 404)
    assert.equal(await statusOf(`/${ids[1]}/deliveries`), 404)
    assert.equal(await statusOf(`/${ids[1]}/deliveries/${delivery}`), 404)
    assert.equal(await statusOf(`?organization_id=${one}`), 200)
    assert.equal(await statusOf(`?organization_id=${two}`), 403)
    assertRefused(
      await postEndpoint({ token }, { organization_id: two }),
      403,
      'This API key is limited to one organization: its routes, webhooks, worker queues and audit trail',
    )
  })

  test('requires an API key with a matching scope', async () => {
    const account = await newcomer()
    const { key } = await createKey(api, account, { scopes: ['webhooks:write', 'jobs:read'] })
    const { id } = await createEndpoint({ token: key })
    const reading = await createKey(api, account, { scopes: ['webhooks:read'] })
    assert.equal((await api.get(`${PATH}/${id}`, { token: reading.key })).status, 200)
    assert.equal((await postEndpoint({ token: reading.key })).status, 403)
  })

  test('does not show an API key any data outside its scopes', async () => {
    const account = await newcomer()
    const keyed = async (...scopes: readonly string[]) => ({
      token: (await createKey(api, account, { scopes: ['webhooks:write', ...scopes] })).key,
    })
    const needs = (area: string) => [403, `The API key lacks the scope ${area}:read`] as const
    const without = await keyed()
    const areas = {
      jobs: 'job.failed',
      documents: 'document.read',
      comms: 'send.changed',
      payments: 'payment.changed',
    }
    for (const [area, event] of Object.entries(areas)) {
      assertRefused(await postEndpoint(without, { events: [event] }), ...needs(area))
      await createEndpoint(await keyed(`${area}:read`), { events: [event] })
      await createEndpoint(await keyed('*:read'), { events: [event] })
    }
    const { id } = await createEndpoint(account, { events: ['payment.changed'] })
    const [jobs, both] = [await keyed('jobs:read'), await keyed('jobs:read', 'payments:read')]
    for (const who of [without, jobs])
      for (const fields of [{ url: `${TARGET}/2` }, { events: ['job.done'] }])
        assertRefused(await patchEndpoint(who, id, fields), ...needs('payments'))
    assert.equal(
      (await patchEndpoint(without, id, { description: 'of a key', is_active: false })).status,
      200,
    )
    assert.equal((await patchEndpoint(both, id, { events: ['job.done'] })).status, 200)
    const delivery = `${PATH}/${id}/deliveries/${await insertDelivery(id, 'failed')}`
    for (const { token } of [without, await keyed('payments:read')]) {
      assertRefused(await api.get(delivery, { token }), ...needs('jobs'))
      assertRefused(await api.post(`${delivery}/send`, { token }), ...needs('jobs'))
    }
    assert.equal((await api.get(delivery, jobs)).json.status, 'failed')
    assert.equal((await api.post(`${delivery}/send`, jobs)).status, 202)
  })
})

describe('deliveries', () => {
  test('are listed by status, newest first, with their request and answers', async () => {
    const account = await newcomer()
    const { id } = await createEndpoint(account)
    const ids = [
      await insertDelivery(id, 'delivered'),
      await insertDelivery(id),
      await insertDelivery(id, 'failed'),
    ]
    await insertDelivery((await createEndpoint(account)).id)
    const list = async (search = '') => {
      const answer = await api.get(`${PATH}/${id}/deliveries${search}`, { token: account.token })
      return answer.json.map((one: { id: number }) => one.id)
    }
    const [challenge] = await query(
      `select id::int from webhook_delivery where endpoint_id = $1 and type = 'webhook.challenge'`,
      [id],
    )
    assert.deepEqual(await list(), [...ids].reverse().concat(Number(challenge!.id)))
    assert.deepEqual(await list('?status=failed'), [ids[2]])
    assert.deepEqual(await list('?status=pending'), [ids[1], Number(challenge!.id)])
    const { body, answers, last_answer, ...rest } = (
      await api.get(`${PATH}/${id}/deliveries/${ids[2]}`, { token: account.token })
    ).json
    assert.equal(body, '{"type":"job.done"}')
    assert.deepEqual(answers, [last_answer])
    assert.deepEqual(
      [last_answer.status, last_answer.body, rest.status, rest.due_at],
      [500, 'no', 'failed', null],
    )
  })

  test('can be redelivered any number of times', async () => {
    const account = await newcomer()
    const { id } = await createEndpoint(account)
    const one = await insertDelivery(id, 'failed')
    const send = (delivery: number) =>
      api.post(`${PATH}/${id}/deliveries/${delivery}/send`, { token: account.token })
    const sent = await send(one)
    assert.deepEqual([sent.status, sent.json.status, sent.json.attempts], [202, 'pending', 0])
    assert.equal((await send(one)).status, 202)
    const elsewhere = await insertDelivery((await createEndpoint(account)).id)
    for (const other of [elsewhere, 999_999]) assertRefused(await send(other), 404, 'Delivery not found')
  })
})

test('records endpoint changes in the audit trail', async () => {
  const account = await newcomer()
  const { id } = await createEndpoint(account)
  await patchEndpoint(account, id, { is_active: false })
  await api.post(`${PATH}/${id}/secret`, { token: account.token })
  await api.call('DELETE', `${PATH}/${id}`, { token: account.token })
  const audit = await api.get(`/api/v1/auth/audit?account_id=${account.id}`, { token: admin.token })
  const kinds = audit.json.events.map(({ kind }: { kind: string }) => kind)
  for (const kind of ['webhook.created', 'webhook.updated', 'webhook.secret_rolled', 'webhook.deleted'])
    assert.ok(kinds.includes(kind), kind)
  assert.ok(!audit.text.includes('whsec_'))
})
