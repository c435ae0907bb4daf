import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createMailEvent, createSignedEvent } from '../standins/resend.ts'
import { createCast } from './accounts-help.ts'
import { startMessageWorker, startProviderStandIns } from './comms-help.ts'
import { startEdgeAndDatabase } from './harness.ts'
import { assertRefused } from './orgs-help.ts'

/** Permanent bounces and spam complaints must suppress an address until an admin lifts the suppression. */

const standIns = await startProviderStandIns()
const env = { ...standIns.env, OPEN_AREAS: 'ai', AUTH_LEVEL: 'basic' }
const { api, url, query } = await startEdgeAndDatabase({ env })
await startMessageWorker(url, env)
const { admin, user } = await createCast(api)
const PATH = '/api/v1/comms/suppressions'

const send = (more: object) =>
  api.post('/api/v1/comms/email/send', { token: user.token, json: { subject: 's', text: 't', ...more } })
const list = async () => (await api.get(PATH, { token: admin.token })).json
const liftSuppression = (address: string, token = admin.token) =>
  api.call('DELETE', `${PATH}/${encodeURIComponent(address)}`, { token })
const deliverEvent = (type: string, more: Parameters<typeof createMailEvent>[1] & object, id?: string) =>
  api.post(
    '/api/v1/comms/webhooks/resend',
    createSignedEvent(createMailEvent(type, more), id === undefined ? {} : { id }),
  )
/** Sends mail to an address, then delivers a provider event about the mail. Returns the id of the message. */
async function sendAndReport(to: string, type: string, more: object = {}, event?: string): Promise<string> {
  const { id } = (await send({ to: [to] })).json
  assert.equal((await deliverEvent(type, { id, to, ...more }, event)).status, 200)
  return id
}

const PERMANENT_BOUNCE = { bounce: { type: 'Permanent', subType: 'General' } }
const detailOf = (addresses: string): string =>
  `Mail to ${addresses} is suppressed after a permanent bounce or a spam complaint. An admin can lift the suppression.`

describe('an address is suppressed', () => {
  for (const [what, type, more, reason] of [
    ['whose server has refused mail for good', 'email.bounced', PERMANENT_BOUNCE, 'bounced'],
    ['that the provider suppresses', 'email.suppressed', {}, 'bounced'],
    ['whose owner calls it spam', 'email.complained', {}, 'complained'],
  ] as const)
    test(what, async () => {
      const id = await sendAndReport('Ada@example.com', type, more)
      const [one, ...others] = await list()
      const { created_at, ...rest } = one
      assert.deepEqual([rest, others], [{ address: 'ada@example.com', reason, send_id: id }, []])
      assert.ok(Date.parse(created_at) > 0)
      for (const fields of [
        { to: ['ADA@example.com'] },
        { to: ['b@example.com'], cc: ['ada@example.com'] },
        { to: ['b@example.com'], bcc: ['ada@Example.com'] },
      ])
        assertRefused(await send(fields), 409, detailOf('ada@example.com'))
      assert.equal((await liftSuppression('ADA@example.com')).status, 204)
      assert.deepEqual(await list(), [])
      assert.equal((await send({ to: ['ada@example.com'] })).status, 200)
    })

  for (const [what, type, more] of [
    ['a refusal that may pass', 'email.bounced', { bounce: { type: 'Transient' } }],
    ['a refusal of no kind', 'email.bounced', {}],
    ['a delivery', 'email.delivered', {}],
    ['a failure of the provider', 'email.failed', {}],
  ] as const)
    test(`but not after ${what}`, async () => {
      await sendAndReport('bob@example.com', type, more)
      assert.deepEqual(await list(), [])
    })

  test('but not if the event names several addresses', async () => {
    const { id } = (await send({ to: ['a@example.com', 'b@example.com'] })).json
    await deliverEvent('email.complained', { id, to: ['a@example.com', 'b@example.com'] })
    assert.deepEqual(await list(), [])
  })
})

test('a rejected request leaves no message or job and names every suppressed address', async () => {
  await sendAndReport('x@example.com', 'email.complained')
  await sendAndReport('y@example.com', 'email.bounced', PERMANENT_BOUNCE)
  const rows = () =>
    query('select (select count(*) from comms_send) as sends, (select count(*) from job) as jobs')
  const before = await rows()
  const answer = await send({ to: ['y@example.com', 'x@example.com', 'z@example.com'] })
  assertRefused(answer, 409, detailOf('x@example.com, y@example.com'))
  assert.deepEqual(await rows(), before)
  for (const address of ['x@example.com', 'y@example.com']) await liftSuppression(address)
})

test('lifting a suppression is audited, and a repeated event does not restore it', async () => {
  const event = 'msg_again'
  const id = await sendAndReport('carl@example.com', 'email.complained', {}, event)
  await liftSuppression('carl@example.com')
  await deliverEvent('email.complained', { id, to: 'carl@example.com' }, event)
  assert.deepEqual(await list(), [])
  assertRefused(await liftSuppression('carl@example.com'), 404, 'Mail to this address is not suppressed')
  const audited = await query(
    `select actor_id, data from audit_event where kind = 'suppression.lifted' and data ->> 'address' = 'carl@example.com'`,
  )
  assert.deepEqual(audited, [{ actor_id: admin.id, data: { address: 'carl@example.com' } }])
})

test('only admins list suppressions, in pages', async () => {
  await query(`insert into comms_suppression (address, reason, send_id, created_at)
    select n || '@example.com', 'bounced', gen_random_uuid(), now() - n / 2 * interval '1 minute' from generate_series(1, 5) n`)
  const found: string[] = []
  let path: string | undefined = `${PATH}?limit=2`
  while (path !== undefined) {
    const { headers, json } = await api.get(path, { token: admin.token })
    found.push(...json.map(({ address }: { address: string }) => address))
    path = /^<(.+)>; rel="next"$/.exec(String(headers.link ?? ''))?.[1]
  }
  assert.deepEqual(
    found,
    ['1', '3', '2', '5', '4'].map((name) => `${name}@example.com`),
  )
  assert.equal((await api.get(PATH, { token: user.token })).status, 403)
  assert.equal((await liftSuppression('1@example.com', user.token)).status, 403)
  for (const query of ['limit=0', 'limit=1001', 'cursor=x'])
    assert.equal((await api.get(`${PATH}?${query}`, { token: admin.token })).status, 422)
})
