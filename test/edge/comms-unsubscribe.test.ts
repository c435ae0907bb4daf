import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import PostalMime from 'postal-mime'
import { unsubscribeTokenOf } from '../../tasks/comms/unsubscribe.ts'
import { FOREIGN_KEYS, TEST_KEYS } from '../keys.ts'
import { createCast } from './accounts-help.ts'
import { startMessageWorker, startProviderStandIns } from './comms-help.ts'
import { startEdgeAndDatabase } from './harness.ts'

/** Unsubscribe links of emails, with one click in mail clients (RFC 8058) and on a page. */

const standIns = await startProviderStandIns()
const { mail } = standIns
const PUBLIC_BASE_URL = 'https://mill.example.com'
const env = { ...standIns.env, OPEN_AREAS: 'comms,jobs', PUBLIC_BASE_URL }
const { api, url } = await startEdgeAndDatabase({ env })
await startMessageWorker(url, env)
const { admin } = await createCast(api)
const PATH = '/api/v1/comms/suppressions'

const send = (more: object) =>
  api.post('/api/v1/comms/email/send', { json: { subject: 's', text: 't', ...more } })
/** Sends an email; returns its id, and the headers that concern unsubscription. */
async function sendAndRead(more: object) {
  const answer = await send(more)
  assert.equal(answer.status, 200, answer.text)
  const { headers } = await PostalMime.parse(mail.raw.at(-1)!)
  const findHeader = (name: string) => headers.find(({ key }) => key === name)?.value
  return {
    id: answer.json.id,
    link: findHeader('list-unsubscribe'),
    post: findHeader('list-unsubscribe-post'),
  }
}
/** Returns path and query of the link. */
const pathOf = (link: string | undefined): string => {
  const { origin, pathname, search } = new URL(/^<(.+)>$/.exec(link ?? '')![1]!)
  assert.equal(origin, PUBLIC_BASE_URL)
  return `${pathname}${search}`
}
const list = async () => (await api.get(PATH, { token: admin.token })).json
const lift = (address: string) => api.call('DELETE', `${PATH}/${address}`, { token: admin.token })
const ONE_CLICK = {
  body: 'List-Unsubscribe=One-Click',
  headers: { 'content-type': 'application/x-www-form-urlencoded' },
}

describe('an email has an unsubscribe link', () => {
  test('that works with one click, without a sign-in, for its stream', async () => {
    const { id, link, post } = await sendAndRead({ to: ['"Ann" <Ann@example.com>'], stream: 'broadcast' })
    assert.equal(post, 'List-Unsubscribe=One-Click')
    const page = await api.get(pathOf(link))
    assert.deepEqual([page.status, page.headers['content-type']], [200, 'text/html; charset=utf-8'])
    assert.deepEqual(await list(), [], 'a mail server that follows the link changes nothing')
    for (let n = 0; n < 2; n++) {
      const answer = await api.post(pathOf(link), ONE_CLICK)
      assert.deepEqual([answer.status, answer.json], [200, { detail: 'You are unsubscribed' }])
    }
    const [{ created_at: _, ...one }, ...others] = await list()
    assert.deepEqual(
      [one, others],
      [
        {
          channel: 'email',
          address: 'ann@example.com',
          stream: 'broadcast',
          reason: 'unsubscribed',
          send_id: id,
        },
        [],
      ],
    )
    const again = await send({ to: ['ann@example.com'], stream: 'broadcast' })
    assert.deepEqual([again.status, again.json.code], [409, 'email.suppressed'])
    assert.equal((await send({ to: ['ann@example.com'] })).status, 200)
    await lift('ann@example.com')
  })

  test('if it is asked for, and then for transactional mail', async () => {
    const { link } = await sendAndRead({ to: ['bob@example.com'], unsubscribe: true })
    assert.equal((await api.post(pathOf(link), ONE_CLICK)).status, 200)
    assert.equal((await send({ to: ['bob@example.com'] })).status, 409)
    assert.equal((await send({ to: ['bob@example.com'], stream: 'broadcast' })).status, 200)
    await lift('bob@example.com')
  })

  test('that takes the multipart body of RFC 8058 and a body of another form', async () => {
    const { link } = await sendAndRead({ to: ['c@example.com'], stream: 'broadcast' })
    const multipart =
      '--x\r\nContent-Disposition: form-data; name="List-Unsubscribe"\r\n\r\nOne-Click\r\n--x--\r\n'
    for (const [type, body] of [
      ['multipart/form-data; boundary=x', multipart],
      ['application/json', '{'],
    ] as const)
      assert.equal((await api.post(pathOf(link), { body, headers: { 'content-type': type } })).status, 200)
    assert.equal((await api.post(pathOf(link), {})).status, 200)
    await lift('c@example.com')
  })

  test('but not by default', async () => {
    const { link, post } = await sendAndRead({ to: ['d@example.com', 'e@example.com'] })
    assert.deepEqual([link, post], [undefined, undefined])
  })
})

describe('a link that this service has not issued is refused', () => {
  const subscription = { sendId: randomUUID(), stream: 'broadcast', address: 'x@example.com' } as const
  const token = unsubscribeTokenOf(TEST_KEYS, subscription)
  const [text, mac] = token.split('.') as [string, string]
  const other = Buffer.from(JSON.stringify({ ...subscription, address: 'y@example.com' })).toString(
    'base64url',
  )
  for (const [what, given] of Object.entries({
    'another key': unsubscribeTokenOf(FOREIGN_KEYS, subscription),
    'another address': `${other}.${mac}`,
    'no signature': text,
    'a short token': token.slice(0, -1),
    'an empty token': '',
    'other characters': '%C3%A4.%20',
  }))
    test(`400 for ${what}`, async () => {
      const answer = await api.post(`/unsubscribe?token=${given}`, ONE_CLICK)
      assert.deepEqual(
        [answer.status, answer.json],
        [400, { detail: 'This unsubscribe link is invalid or incomplete', code: 'suppression.link_invalid' }],
      )
      assert.deepEqual(await list(), [])
    })

  test('400 without a token', async () => {
    assert.equal((await api.post('/unsubscribe', ONE_CLICK)).status, 400)
  })
})

describe('422 for', () => {
  const to = ['a@example.com']
  for (const [what, more, loc] of [
    ['two recipients of a link', { to: [...to, 'b@example.com'], unsubscribe: true }, ['to']],
    ['a broadcast to two', { to: [...to, 'b@example.com'], stream: 'broadcast' }, ['to']],
    ['a copy of a broadcast', { to, cc: ['b@example.com'], stream: 'broadcast' }, ['to']],
    ['a blind copy of a broadcast', { to, bcc: ['b@example.com'], stream: 'broadcast' }, ['to']],
    ['a broadcast without a link', { to, stream: 'broadcast', unsubscribe: false }, ['unsubscribe']],
    [
      'a second link',
      { to, unsubscribe: true, headers: { 'list-unsubscribe': '<https://x.example>' } },
      ['headers', 'list-unsubscribe'],
    ],
    [
      'a second header of the click',
      { to, stream: 'broadcast', headers: { 'List-Unsubscribe-Post': 'x' } },
      ['headers', 'List-Unsubscribe-Post'],
    ],
  ] as const)
    test(what, async () => {
      const before = mail.requests
      const answer = await send(more)
      assert.equal(answer.status, 422, answer.text)
      assert.deepEqual(answer.json.errors[0].loc, ['body', ...loc])
      assert.equal(mail.requests, before)
    })
})
