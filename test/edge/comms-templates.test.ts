import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { until } from '../until.ts'
import { createCast } from './accounts-help.ts'
import { makeDue, startMessageWorker, startProviderStandIns } from './comms-help.ts'
import { startEdgeAndDatabase } from './harness.ts'
import { assertRefused } from './orgs-help.ts'

/** Admins manage templates, senders use them, and sent messages keep their rendered text. */

const standIns = await startProviderStandIns()
const { mail, twilio } = standIns
const env = { ...standIns.env, OPEN_AREAS: 'ai', AUTH_LEVEL: 'basic' }
const { api, url, query } = await startEdgeAndDatabase({ env })
await startMessageWorker(url, env)
const { admin, moderator, user } = await createCast(api)
const PATH = '/api/v1/comms/templates'

const call = (method: string, path: string, json?: object, token = admin.token, headers = {}) =>
  api.call(method, `${PATH}${path}`, { token, headers, ...(json === undefined ? {} : { json }) })
const send = (path: string, json: object, token = user.token) =>
  api.post(`/api/v1/comms${path}`, { token, json })
const contentOf = (raw: string) => raw.slice(raw.indexOf('\r\n\r\n') + 4)

const WELCOME_TEMPLATE = {
  channel: 'email',
  subject: 'Welcome, {{name}}',
  text: 'Hello {{name}} of {{place}}',
  html: '<p>Hello {{name}} of {{place}}</p>',
  variables: [{ name: 'name' }, { name: 'place', default: 'nowhere' }],
}
const CODE_TEMPLATE = { channel: 'sms', text: 'Your code is {{code}}', variables: [{ name: 'code' }] }
let names = 0
const createTemplate = async (fields: object = WELCOME_TEMPLATE): Promise<string> => {
  const name = `template-${++names}`
  const answer = await call('POST', '', { name, ...fields })
  assert.equal(answer.status, 201, answer.text)
  return name
}

describe('managing templates', () => {
  test('adds, shows, replaces and deletes them, with audit events', async () => {
    const added = await call('POST', '', { name: 'welcome', ...WELCOME_TEMPLATE })
    const { created_at, ...rest } = added.json
    assert.deepEqual([added.status, rest], [201, { name: 'welcome', ...WELCOME_TEMPLATE, updated_at: null }])
    assert.deepEqual((await call('GET', '/welcome', undefined, user.token)).json, added.json)
    const replaced = await call('PUT', '/welcome', CODE_TEMPLATE)
    const { updated_at, ...code } = replaced.json
    assert.deepEqual(code, { name: 'welcome', ...CODE_TEMPLATE, subject: null, html: null, created_at })
    assert.ok(updated_at >= created_at)
    assert.equal((await call('DELETE', '/welcome')).status, 204)
    const detail = 'There is no template named welcome'
    for (const [method, path, json] of [
      ['GET', '/welcome', undefined],
      ['PUT', '/welcome', CODE_TEMPLATE],
      ['DELETE', '/welcome', undefined],
      ['POST', '/welcome/preview', {}],
    ] as const)
      assertRefused(await call(method, path, json), 404, detail)
    const audited = await query(
      `select kind, actor_id, data from audit_event where kind like 'template.%' order by id`,
    )
    assert.deepEqual(
      audited,
      ['created', 'updated', 'deleted'].map((what) => ({
        ...{ kind: `template.${what}`, actor_id: admin.id, data: { name: 'welcome' } },
      })),
    )
  })

  test('is limited to admins; all senders may read and preview', async () => {
    const name = await createTemplate()
    for (const token of [user.token, moderator.token]) {
      assert.equal((await call('POST', '', { name: 'mine', ...CODE_TEMPLATE }, token)).status, 403)
      assert.equal((await call('PUT', `/${name}`, CODE_TEMPLATE, token)).status, 403)
      assert.equal((await call('DELETE', `/${name}`, undefined, token)).status, 403)
      assert.equal((await call('GET', '', undefined, token)).status, 200)
      assert.equal((await call('POST', `/${name}/preview`, { variables: { name: 'x' } }, token)).status, 200)
    }
    assert.equal((await api.get(PATH)).status, 401)
  })

  test('adds a name once, also concurrently and with a key', async () => {
    const json = { name: 'once', ...CODE_TEMPLATE }
    const all = await Promise.all(Array.from({ length: 5 }, () => call('POST', '', json)))
    assert.deepEqual(all.map(({ status }) => status).sort(), [201, 409, 409, 409, 409])
    assertRefused(await call('POST', '', json), 409, 'A template with this name already exists')
    const keyed = () =>
      call('POST', '', { name: 'keyed', ...CODE_TEMPLATE }, admin.token, { 'idempotency-key': 'k' })
    const first = await keyed()
    assert.deepEqual([first.status, (await keyed()).text], [201, first.text])
  })

  for (const [what, more, loc] of [
    ['no name', { name: undefined }, ['name']],
    ['a name with a slash', { name: 'a/b' }, ['name']],
    ['capitals', { name: 'Welcome' }, ['name']],
    ['a long name', { name: 'a'.repeat(65) }, ['name']],
    ['another channel', { channel: 'call' }, ['channel']],
    ['a subject of two lines', { subject: 'a\r\nBcc: x@example.com' }, ['subject']],
    ['an undeclared name', { text: '{{other}}' }, ['text']],
    ['logic', { html: '{{#name}}x{{/name}}' }, ['html']],
    ['a variable of no name', { variables: [{ name: 'a b' }] }, ['variables', '0', 'name']],
    ['51 variables', { variables: Array.from({ length: 51 }, (_, n) => ({ name: `v${n}` })) }, ['variables']],
    [
      'a long default',
      { variables: [{ name: 'a', default: 'x'.repeat(501) }] },
      ['variables', '0', 'default'],
    ],
    ['an unknown field', { logic: true }, []],
    ['a text that is too long', { text: 'x'.repeat(1_000_001) }, ['text']],
  ] as const)
    test(`422 for ${what}`, async () => {
      const answer = await call('POST', '', { name: 'refused', ...WELCOME_TEMPLATE, ...more })
      assert.equal(answer.status, 422, answer.text)
      assert.deepEqual(answer.json.errors[0].loc.map(String), ['body', ...loc])
    })

  test('lists by name, in pages, without the content', async () => {
    await query('delete from comms_template')
    for (const name of ['c', 'a', 'b']) await call('POST', '', { name, ...WELCOME_TEMPLATE })
    const seen: string[] = []
    let path: string | undefined = `${PATH}?limit=2`
    while (path !== undefined) {
      const { headers, json } = await api.get(path, { token: user.token })
      for (const one of json)
        assert.deepEqual([one.text, one.html, one.subject], [undefined, undefined, WELCOME_TEMPLATE.subject])
      seen.push(...json.map(({ name }: { name: string }) => name))
      path = /^<(.+)>; rel="next"$/.exec(String(headers.link ?? ''))?.[1]
    }
    assert.deepEqual(seen, ['a', 'b', 'c'])
    for (const search of ['limit=0', 'limit=201', 'cursor=x'])
      assert.equal((await api.get(`${PATH}?${search}`, { token: user.token })).status, 422)
  })
})

describe('a preview', () => {
  test('renders the message and sends nothing', async () => {
    const [email, sms] = [await createTemplate(), await createTemplate(CODE_TEMPLATE)]
    const before = await query('select count(*)::int as n from comms_send')
    const shown = await call('POST', `/${email}/preview`, { variables: { name: '<Ada>' } })
    assert.deepEqual(shown.json, {
      channel: 'email',
      subject: 'Welcome, <Ada>',
      text: 'Hello <Ada> of nowhere',
      html: '<p>Hello &#60;Ada&#62; of nowhere</p>',
      segments: null,
    })
    const text = await call('POST', `/${sms}/preview`, { variables: { code: '検'.repeat(70) } })
    assert.deepEqual([text.json.text, text.json.segments], [`Your code is ${'検'.repeat(70)}`, 2])
    assert.deepEqual(await query('select count(*)::int as n from comms_send'), before)
  })

  test('renders unsaved contents, even without a template', async () => {
    const contents = { channel: 'sms', text: 'Hello {{name}}', variables: [{ name: 'name', default: 'you' }] }
    const { json } = await call('POST', '/unsaved/preview', { contents })
    assert.deepEqual([json.text, json.segments], ['Hello you', 1])
    const answer = await call('POST', '/unsaved/preview', { contents: { ...contents, variables: [] } })
    assert.deepEqual(
      [answer.status, answer.json.detail],
      [422, 'contents.text: uses {{name}}, which is not declared'],
    )
  })

  test('names missing values', async () => {
    const answer = await call('POST', `/${await createTemplate()}/preview`, {})
    assert.deepEqual(
      [answer.status, answer.json.detail, answer.json.errors[0].loc],
      [422, 'variables.name: is required by the template', ['body', 'variables', 'name']],
    )
  })
})

describe('a message from a template', () => {
  const to = ['a@example.com']

  test('is sent with its values and names its template', async () => {
    const name = await createTemplate()
    const answer = await send('/email/send', {
      to,
      template: name,
      variables: { name: 'Ada & Co', place: 'X' },
    })
    assert.equal(answer.status, 200, answer.text)
    const raw = mail.raw.at(-1)!
    assert.match(raw, /^Subject: Welcome, Ada & Co\r$/m)
    assert.match(contentOf(raw), /\r\n\r\nHello Ada & Co of X\r\n/)
    assert.match(contentOf(raw), /<p>Hello Ada &#38; Co of X<\/p>/)
    const { template } = (await api.get(`/api/v1/comms/sends/${answer.json.id}`, { token: user.token })).json
    assert.equal(template, name)
  })

  test('counts the parts of a text message after rendering', async () => {
    const name = await createTemplate(CODE_TEMPLATE)
    const json = { to: '+14155550001', template: name, variables: { code: '1'.repeat(160) } }
    assert.equal((await send('/sms/send', json)).json.segments, 2)
    assert.equal(twilio.taken.at(-1)!.content, `Your code is ${'1'.repeat(160)}`)
  })

  test('keeps its text when scheduled, even if the template changes', async () => {
    const name = await createTemplate()
    const send_at = new Date(Date.now() + 3_600_000).toISOString()
    const json = { to, template: name, variables: { name: 'Bob' }, send_at }
    const { id } = (await send('/email/send', json)).json
    await call('PUT', `/${name}`, {
      ...WELCOME_TEMPLATE,
      subject: 'Changed',
      variables: WELCOME_TEMPLATE.variables,
    })
    await call('DELETE', `/${name}`)
    await makeDue(query, id)
    const raw = await until('the message arrives', () => mail.raw.find((one) => one.includes(id)))
    assert.match(raw, /^Subject: Welcome, Bob\r$/m)
  })

  for (const [what, json, status, detail] of [
    ['a value that is missing', { variables: {} }, 422, 'variables.name: is required by the template'],
    ['no values at all', {}, 422, 'variables.name: is required by the template'],
    [
      'an unknown value',
      { variables: { name: 'x', nam: 'y' } },
      422,
      'variables.nam: is not a variable of the template',
    ],
    ['a value that is no text', { variables: { name: 1 } }, 422, undefined],
    ['a value that is null', { variables: { name: null } }, 422, undefined],
    [
      'a value that would add a header',
      { variables: { name: 'x\r\nBcc: evil@example.com' } },
      422,
      'variables.name: must be one line without control characters, because the subject uses it',
    ],
    ['a value that is far too long', { variables: { name: 'x'.repeat(100_001) } }, 422, undefined],
    [
      'too long a subject',
      { variables: { name: 'x'.repeat(990) } },
      422,
      'variables: the subject would exceed 998 characters',
    ],
    [
      'a subject beside it',
      { subject: 's', variables: { name: 'x' } },
      422,
      'subject: must not be given with a template',
    ],
    [
      'a text beside it',
      { text: 't', variables: { name: 'x' } },
      422,
      'text: must not be given with a template',
    ],
    ['a template that is none', { template: 'Not A Name' }, 422, undefined],
    ['a template that there is not', { template: 'missing' }, 404, 'There is no template named missing'],
  ] as const)
    test(`is rejected with ${what}`, async () => {
      const template = await createTemplate()
      const before = await query(
        'select (select count(*) from job) as jobs, (select count(*) from comms_send) as sends',
      )
      assertRefused(await send('/email/send', { to, template, ...json }), status, detail)
      assert.deepEqual(
        await query('select (select count(*) from job) as jobs, (select count(*) from comms_send) as sends'),
        before,
      )
    })

  test('is rejected for a template of another channel, or with values but no template', async () => {
    const [email, sms] = [await createTemplate(), await createTemplate(CODE_TEMPLATE)]
    assertRefused(await send('/email/send', { to, template: sms }), 422, 'template: is for sms')
    assertRefused(
      await send('/sms/send', { to: '+14155550002', template: email }),
      422,
      'template: is for email',
    )
    assertRefused(
      await send('/sms/send', { to: '+14155550002', body: 'x', variables: {} }),
      422,
      'variables: needs a template',
    )
    const beside = await send('/sms/send', { to: '+14155550002', body: 'x', template: sms })
    assertRefused(beside, 422, 'body: must not be given with a template')
    assertRefused(
      await send('/sms/send', { to: '+14155550002' }),
      422,
      'body: is required without a template',
    )
  })

  test('counts as another request if its values differ under the same key', async () => {
    const template = await createTemplate()
    const headers = { 'idempotency-key': randomUUID() }
    const post = (name: string) =>
      api.post('/api/v1/comms/email/send', {
        token: user.token,
        headers,
        json: { to, template, variables: { name } },
      })
    assert.equal((await post('x')).status, 200)
    assertRefused(await post('y'), 422, 'This Idempotency-Key was already used with a different request')
  })
})
