import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { buildMessageSchema } from '../../edge/routes/webhooks/events.ts'
import { storePendingQuota } from '../../sql/quotas/quotas.ts'
import { DELIVERY_TYPES, WEBHOOK_EVENTS } from '../../sql/webhooks/webhooks.ts'
import { DEFAULT_QUOTAS } from '../job-settings.ts'
import { assertRefused, createCast } from './accounts-help.ts'
import { createKey } from './api-keys-help.ts'
import { type Account, startEdgeAndDatabase } from './harness.ts'

/** The reference describes all messages, and a test event carries their examples. */

const { api, db, query } = await startEdgeAndDatabase()
const { admin, user, newcomer } = await createCast(api)
const PATH = '/api/v1/webhooks'

interface Described {
  readonly operationId: string
  readonly parameters: readonly { readonly name: string; readonly in: string; readonly required: boolean }[]
  readonly requestBody: {
    readonly content: { 'application/json': { readonly example: { readonly type: string } } }
  }
  readonly responses: Readonly<Record<string, object>>
}
const reference = (await api.get('/openapi.json')).json as {
  readonly openapi: string
  readonly webhooks: Readonly<Record<string, { readonly post: Described }>>
}

const createEndpoint = async ({ token }: Pick<Account, 'token'>): Promise<number> =>
  (await api.post(PATH, { token, json: { url: 'https://example.com/', events: ['send.changed'] } })).json.id
const sendTest = ({ token }: Pick<Account, 'token'>, id: number, json?: object) =>
  api.post(`${PATH}/${id}/test`, json === undefined ? { token } : { token, json })
const readMessage = async ({ token }: Account, id: number, delivery: number) =>
  JSON.parse((await api.get(`${PATH}/${id}/deliveries/${delivery}`, { token })).json.body)

describe('the reference', () => {
  test('has every message with the headers of Standard Webhooks', () => {
    assert.deepEqual(Object.keys(reference.webhooks).sort(), [...DELIVERY_TYPES].sort())
    for (const { post } of Object.values(reference.webhooks)) {
      assert.deepEqual(
        post.parameters.map(({ name, in: location, required }) => [name, location, required]),
        ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) => [name, 'header', true]),
      )
      assert.ok(post.responses['2XX'])
    }
  })

  test('has an example of each message that its schema allows', () => {
    for (const type of DELIVERY_TYPES) {
      const { example } = reference.webhooks[type]!.post.requestBody.content['application/json']
      assert.equal(example.type, type)
      buildMessageSchema(type).parse(example)
    }
  })
})

describe('a test event', () => {
  test('is recorded as a delivery, without a subscription, a body or an example', async () => {
    const id = await createEndpoint(user)
    const sent = await sendTest(user, id)
    assert.equal(sent.status, 202, sent.text)
    assert.deepEqual([sent.json.type, sent.json.status, sent.json.attempts], ['webhook.test', 'pending', 0])
    const message = await readMessage(user, id, sent.json.id)
    buildMessageSchema('webhook.test').parse(message)
    assert.deepEqual([message.account_id, message.data], [user.id, { type: null, data: null }])
    const again = await api.post(`${PATH}/${id}/deliveries/${sent.json.id}/send`, { token: user.token })
    assert.equal(again.status, 202, again.text)
  })

  test('carries the example of the chosen event', async () => {
    const id = await createEndpoint(user)
    for (const type of WEBHOOK_EVENTS) {
      const { data } = await readMessage(user, id, (await sendTest(user, id, { type })).json.id)
      assert.equal(data.type, type)
      buildMessageSchema(type).shape.data.parse(data.data)
    }
  })

  test('of an unknown type is refused', async () => {
    const id = await createEndpoint(user)
    for (const json of [{ type: 'job.begun' }, { type: 'webhook.challenge' }, { kind: 'job.done' }])
      assert.equal((await sendTest(user, id, json)).status, 422)
  })

  test('can be sent, read and redelivered by an API key without scopes of events', async () => {
    const id = await createEndpoint(user)
    const { key: token } = await createKey(api, user, { scopes: ['webhooks:write'] })
    const sent = await sendTest({ token }, id, { type: 'payment.changed' })
    assert.equal(sent.status, 202, sent.text)
    const at = `${PATH}/${id}/deliveries`
    const [, challenge] = (await api.get(at, { token })).json
    for (const one of [sent.json, challenge]) {
      assert.equal((await api.get(`${at}/${one.id}`, { token })).status, 200)
      assert.equal((await api.post(`${at}/${one.id}/send`, { token })).status, 202)
    }
  })

  test('is refused to strangers, for callbacks and beyond the quota', async () => {
    const [account, stranger] = [await newcomer(), await newcomer()]
    const id = await createEndpoint(account)
    assertRefused(await sendTest(stranger, id), 404, 'Webhook endpoint not found')
    const [callbacks] = await query(
      `insert into webhook_endpoint (secret, account_id, events) values ('aaaaaaaa.AAAA', $1, '{}') returning id::int`,
      [account.id],
    )
    assertRefused(
      await sendTest(account, Number(callbacks!.id)),
      409,
      'The callback endpoint has no URL or events of its own',
    )
    await db.run(storePendingQuota({ ...DEFAULT_QUOTAS, pending_deliveries: 2 }))
    assert.deepEqual([(await sendTest(account, id)).status, (await sendTest(account, id)).status], [202, 429])
    await db.run(storePendingQuota(DEFAULT_QUOTAS))
    assert.equal((await sendTest(admin, id)).status, 202, 'an admin of the service')
  })
})
