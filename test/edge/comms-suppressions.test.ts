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
const list = async (query = '?stream=transactional') =>
  (await api.get(`${PATH}${query}`, { token: admin.token })).json
const liftSuppression = (address: string, token = admin.token, query = '') =>
  api.call('DELETE', `${PATH}/${encodeURIComponent(address)}${query}`, { token })
const deliverEvent = (type: string, more: Parameters<typeof createMailEvent>[1] & object, id?: string) =>
  api.post(
    '/api/v1/comms/webhooks/resend',
    createSignedEvent(createMailEvent(type, more), id === undefined ? {} : { id }),
  )
/** Sends mail to an address, then delivers a provider event about the mail. Returns the id of the message. */
async function sendAndReport(
  to: string,
  type: string,
  { stream, ...more }: { stream?: string } & Readonly<Record<string, unknown>> = {},
  event?: string,
): Promise<string> {
  const { id } = (await send({ to: [to], stream })).json
  assert.equal((await deliverEvent(type, { id, to, ...more }, event)).status, 200)
  return id
}

const PERMANENT_BOUNCE = { bounce: { type: 'Permanent', subType: 'General' } }
const detailOf = (addresses: string): string =>
  `Mail to ${addresses} is suppressed after a permanent bounce, a spam complaint or an unsubscription. An admin can lift the suppression.`

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
      assert.deepEqual(
        [rest, others],
        [{ channel: 'email', address: 'ada@example.com', stream: 'transactional', reason, send_id: id }, []],
      )
      assert.deepEqual(await list('?stream=broadcast'), [{ ...one, stream: 'broadcast' }])
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

  test('if the event has its display name', async () => {
    for (const to of ['"Lovelace, Ada" <Ada@example.com>', 'Ada <ada@bücher.example>']) {
      await sendAndReport(to, 'email.complained')
      const [{ address }] = await list()
      assert.equal(address, to.includes('"') ? 'ada@example.com' : 'ada@xn--bcher-kva.example')
      assertRefused(await send({ to: [address] }), 409, detailOf(address))
      assert.equal((await liftSuppression(address)).status, 204)
    }
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

describe('streams', () => {
  const streamsOf = async (address: string) =>
    (await list(''))
      .filter((one: { address: string }) => one.address === address)
      .map(({ stream }: { stream: string }) => stream)

  test('a complaint about a broadcast stops broadcasts only', async () => {
    const to = 'dora@example.com'
    const id = await sendAndReport(to, 'email.complained', { stream: 'broadcast' })
    assert.deepEqual(await streamsOf(to), ['broadcast'])
    assertRefused(await send({ to: [to], stream: 'broadcast' }), 409, detailOf(to))
    const answer = await send({ to: [to] })
    assert.equal(answer.status, 200)
    const sends = (await api.get('/api/v1/comms/sends', { token: user.token })).json
    const streamOf = (send: string) => sends.find((one: { id: string }) => one.id === send).stream
    assert.deepEqual([streamOf(id), streamOf(answer.json.id)], ['broadcast', 'transactional'])
    await liftSuppression(to)
  })

  test('a permanent bounce of a broadcast stops both, which are lifted one by one', async () => {
    const to = 'emil@example.com'
    await sendAndReport(to, 'email.bounced', { ...PERMANENT_BOUNCE, stream: 'broadcast' })
    assert.deepEqual(await streamsOf(to), ['transactional', 'broadcast'])
    assertRefused(await send({ to: [to] }), 409, detailOf(to))
    assert.equal((await liftSuppression(to, admin.token, '?stream=transactional')).status, 204)
    assert.deepEqual(await streamsOf(to), ['broadcast'])
    assert.equal((await send({ to: [to] })).status, 200)
    assert.equal((await send({ to: [to], stream: 'broadcast' })).status, 409)
    assert.equal((await liftSuppression(to, admin.token, '?stream=transactional')).status, 404)
    await liftSuppression(to)
    assert.deepEqual(await streamsOf(to), [])
  })

  test('a complaint about a broadcast does not hide an earlier bounce', async () => {
    const to = 'finn@example.com'
    const broadcast = (await send({ to: [to], stream: 'broadcast' })).json.id
    await sendAndReport(to, 'email.bounced', PERMANENT_BOUNCE)
    await deliverEvent('email.complained', { id: broadcast, to })
    const reasons = (await list('')).map(({ stream, reason }: Record<string, string>) => [stream, reason])
    assert.deepEqual(reasons, [
      ['transactional', 'bounced'],
      ['broadcast', 'complained'],
    ])
    await liftSuppression(to)
  })

  test('422 for an unknown stream', async () => {
    assert.equal((await send({ to: ['a@example.com'], stream: 'x' })).status, 422)
    assert.equal((await api.get(`${PATH}?stream=x`, { token: admin.token })).status, 422)
    assert.equal((await liftSuppression('a@example.com', admin.token, '?stream=x')).status, 422)
  })
})

test('lifting a suppression is audited, and a repeated event does not restore it', async () => {
  const event = 'msg_again'
  const id = await sendAndReport('carl@example.com', 'email.complained', {}, event)
  await liftSuppression('carl@example.com')
  await deliverEvent('email.complained', { id, to: 'carl@example.com' }, event)
  assert.deepEqual(await list(), [])
  assertRefused(await liftSuppression('carl@example.com'), 404, 'Messages to this address are not suppressed')
  const audited = await query(
    `select actor_id, data from audit_event where kind = 'suppression.lifted' and data ->> 'address' = 'carl@example.com'`,
  )
  assert.deepEqual(audited, [
    { actor_id: admin.id, data: { address: 'carl@example.com', streams: ['broadcast', 'transactional'] } },
  ])
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
