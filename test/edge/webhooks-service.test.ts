import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertRefused, createCast } from './accounts-help.ts'
import { createKey } from './api-keys-help.ts'
import { type Account, startEdgeAndDatabase } from './harness.ts'
import { createSlug } from './orgs-help.ts'

/** Endpoints of the service belong to the admins. */

const { api, query } = await startEdgeAndDatabase({ env: { QUOTA_WEBHOOK_ENDPOINTS: '3' } })
const { admin, moderator, user, newcomer } = await createCast(api)
const PATH = '/api/v1/webhooks'
const ADMINS_ONLY = [403, 'This requires the role admin'] as const
const NOT_FOUND = [404, 'Webhook endpoint not found'] as const

type Caller = Pick<Account, 'token'>
const json = { url: 'https://example.com/hooks', events: ['job.done'], scope: 'service' }
const add = ({ token }: Caller, more: object = {}) => api.post(PATH, { token, json: { ...json, ...more } })
const list = ({ token }: Caller, search = '?scope=service') => api.get(PATH + search, { token })
const patch = ({ token }: Caller, id: number, fields: object) =>
  api.call('PATCH', `${PATH}/${id}`, { token, json: fields })
const remove = ({ token }: Caller, id: number) => api.call('DELETE', `${PATH}/${id}`, { token })
async function secondAdmin(): Promise<Account> {
  const account = await newcomer()
  await api.call('PATCH', `/api/v1/auth/users/${account.id}/role?role=admin`, { token: admin.token })
  return account
}

describe('an endpoint of the service', () => {
  test('is added, listed, changed and deleted by any admin', async () => {
    const other = await secondAdmin()
    const added = await add(admin)
    assert.equal(added.status, 201, added.text)
    const { id, scope, account_id, secret } = added.json
    assert.deepEqual([scope, account_id, typeof secret], ['service', null, 'string'])
    const ids = async (who: Caller, search?: string) =>
      (await list(who, search)).json.map((one: { id: number }) => one.id)
    assert.deepEqual(await ids(other), [id])
    assert.deepEqual([await ids(admin, ''), await ids(admin, '?scope=account')], [[], []])
    assert.equal((await patch(other, id, { url: 'https://example.com/2' })).status, 200)
    for (const path of ['/secret', '/challenge', '/test'])
      assert.ok((await api.post(`${PATH}/${id}${path}`, { token: other.token })).status < 300, path)
    const sent = (await api.get(`${PATH}/${id}/deliveries`, { token: other.token })).json
    const body = await api.get(`${PATH}/${id}/deliveries/${sent[0].id}`, { token: other.token })
    assert.equal(JSON.parse(body.json.body).account_id, null)
    assert.equal((await remove(other, id)).status, 204)
    assert.deepEqual(await ids(admin), [])
  })

  test('is refused to everybody else, and invisible to them', async () => {
    const { id } = (await add(admin)).json
    for (const who of [moderator, user]) {
      assertRefused(await add(who), ...ADMINS_ONLY)
      assertRefused(await list(who), ...ADMINS_ONLY)
      assertRefused(await patch(who, id, { description: 'x' }), ...NOT_FOUND)
      assertRefused(await remove(who, id), ...NOT_FOUND)
      for (const path of ['/secret', '/challenge', '/test'])
        assertRefused(await api.post(`${PATH}/${id}${path}`, { token: who.token }), ...NOT_FOUND)
      assertRefused(await api.get(`${PATH}/${id}/deliveries`, { token: who.token }), ...NOT_FOUND)
    }
    assert.equal((await add({ token: '' } as Caller)).status, 401)
    await remove(admin, id)
  })

  test('belongs to no organization, and no API key of one reaches it', async () => {
    const slug = createSlug('service')
    const org = (await api.post('/api/v1/orgs', { token: admin.token, json: { name: 'Mill', slug } })).json
    const both = await add(admin, { organization_id: org.id })
    assert.equal(both.status, 422, both.text)
    assert.deepEqual(both.json.errors[0].loc, ['body', 'organization_id'])
    assert.equal((await list(admin, `?scope=service&organization_id=${org.id}`)).status, 422)
    const { id } = (await add(admin)).json
    const { key: token } = await createKey(api, admin, { organization_id: org.id })
    assert.deepEqual([(await add({ token })).status, (await list({ token })).status], [403, 403])
    assertRefused(await patch({ token }, id, { description: 'x' }), ...NOT_FOUND)
    await remove(admin, id)
  })

  test('needs the scopes of its events from an API key, and ends with the key', async () => {
    const { id: keyId, key: token } = await createKey(api, admin, { scopes: ['webhooks:write', 'jobs:read'] })
    assertRefused(
      await add({ token }, { events: ['payment.changed'] }),
      403,
      'The API key lacks the scope payments:read',
    )
    const added = await add({ token })
    assert.equal(added.status, 201, added.text)
    await api.call('DELETE', `/api/v1/auth/keys/${keyId}`, { token: admin.token })
    assert.deepEqual((await list(admin)).json, [])
  })

  test('counts towards one quota of the service, not of the admin', async () => {
    const admins = [admin, await secondAdmin(), await secondAdmin(), await secondAdmin(), await secondAdmin()]
    const answers = await Promise.all(admins.map((who) => add(who)))
    assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 201, 201, 429, 429])
    assert.equal((await add(admin, { scope: 'account' })).status, 201)
    for (const { status, json: made } of answers) if (status === 201) await remove(admin, made.id)
  })

  test('survives the demotion and the deletion of the admin who added it', async () => {
    const [adder, second] = [await secondAdmin(), await secondAdmin()]
    const { id } = (await add(adder)).json
    await api.call('PATCH', `/api/v1/auth/users/${adder.id}/role?role=user`, { token: admin.token })
    assertRefused(await patch(adder, id, { description: 'x' }), ...NOT_FOUND)
    await query('select account_delete($1, 100)', [adder.id])
    await query('delete from account where id = $1', [adder.id])
    assert.equal((await patch(second, id, { description: 'still here' })).json.is_active, true)
    await remove(admin, id)
  })

  test('is named in the audit trail of the service', async () => {
    const { id } = (await add(admin)).json
    await remove(admin, id)
    const [created, deleted] = await Promise.all(
      ['webhook.created', 'webhook.deleted'].map((kind) =>
        query(
          `select actor_id, account_id, data from audit_event where kind = $1 and (data ->> 'webhook')::int = $2`,
          [kind, id],
        ),
      ),
    )
    for (const events of [created!, deleted!])
      assert.deepEqual(
        events.map(({ actor_id, account_id }) => [actor_id, account_id]),
        [[admin.id, null]],
      )
    assert.equal((created![0]!.data as { scope: string }).scope, 'service')
  })
})
