import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createCast } from './accounts-help.ts'
import { createEmail, PASSWORD, startEdgeAndDatabase } from './harness.ts'
import { createMailbox } from './mailbox.ts'

/** Links of account emails to a front end of the operator's own, and emails with the operator's own texts. */

const APP = 'https://app.mill.test'
const env = { PUBLIC_BASE_URL: 'https://api.mill.test/base', CORS_ORIGINS: `${APP},https://other.example` }
const { api, url, query, db } = await startEdgeAndDatabase({ env })
const readMails = createMailbox({ url, query, db })
const { admin, user, newcomer } = await createCast(api)
const AUTH = '/api/v1/auth'
const { json: org } = await api.post('/api/v1/orgs', { ...user, json: { name: 'Mill', slug: 'mill' } })
const invitesPath = `/api/v1/orgs/${org.id}/invites`
const { json: invite } = await api.post(invitesPath, { ...user, json: { email: createEmail('invited') } })
const { email: resetEmail } = await newcomer()

/** Every request that causes an email with a link. */
const REQUESTS = {
  register: (more: object) =>
    api.post(`${AUTH}/register`, { json: { email: createEmail(), password: PASSWORD, ...more } }),
  'password reset': (more: object) =>
    api.post(`${AUTH}/password-reset/request`, { json: { email: resetEmail, ...more } }),
  'magic link': (more: object) =>
    api.post(`${AUTH}/magic-link/request`, { json: { email: resetEmail, ...more } }),
  resend: async (more: object) =>
    api.post(`${AUTH}/resend-verification`, { token: (await newcomer()).token, json: more }),
  'email change': (more: object) =>
    api.post(`${AUTH}/me/email`, { ...user, json: { email: createEmail(), password: PASSWORD, ...more } }),
  invite: (more: object) => api.post(invitesPath, { ...user, json: { email: createEmail(), ...more } }),
  'resent invite': (more: object) => api.post(`${invitesPath}/${invite.id}/resend`, { ...user, json: more }),
}
const linksOf = (text: string): URL[] => (text.match(/https?:\/\/\S+/g) ?? []).map((link) => new URL(link))

describe('the link of an email', () => {
  for (const [what, request] of Object.entries(REQUESTS)) {
    test(`${what}: leads to an allowed page, with the token as a parameter`, async () => {
      for (const page of [`${APP}/confirm?lang=de&token=x#top`, 'https://api.mill.test/other']) {
        await readMails()
        const answer = await request({ redirect_to: page })
        assert.ok(answer.status < 300, answer.text)
        const mail = (await readMails()).at(-1)!
        const [link] = linksOf(mail.text)
        assert.ok(mail.token.length > 20)
        const expected = new URL(page)
        expected.searchParams.set('token', mail.token)
        assert.equal(link!.href, expected.href)
        assert.ok(
          mail.html!.includes(expected.href.replaceAll('&', '&#38;')) || mail.html!.includes(link!.pathname),
        )
      }
    })

    test(`${what}: leads to our own page by default`, async () => {
      await readMails()
      assert.ok((await request({ redirect_to: null })).status < 300)
      const mail = (await readMails()).at(-1)!
      const [link] = linksOf(mail.text)
      assert.equal(link!.origin, 'http://127.0.0.1:8000')
      assert.equal(link!.hash, `#token=${mail.token}`)
    })

    test(`${what}: to any other page is refused`, async () => {
      await readMails()
      for (const redirect_to of [
        'https://evil.example/',
        'https://app.mill.test.evil.example/',
        'https://app.mill.test@evil.example/',
        'https://user@app.mill.test/',
        'https://app.mill.test:8443/',
        'http://app.mill.test/',
        'https://APP.evil.test/',
        'javascript:alert(1)//https://app.mill.test',
        '//app.mill.test/x',
        'https://app.mill.test\\@evil.example/',
        'https://app.mill.test\\.evil.example/',
        'https:/\\app.mill.test/',
        'https://app.mill.test/\r\nBcc: x',
        'https://app.mill\n.test/',
        ' https://app.mill.test/',
        'https://:@app.mill.test/',
        '/confirm',
        '',
        `${APP}/${'x'.repeat(2000)}`,
      ]) {
        const { status, json } = await request({ redirect_to })
        assert.deepEqual([status, json.errors?.[0].loc], [422, ['body', 'redirect_to']], redirect_to)
      }
      // The new account of a resend gets its own email.
      const [link] = (await readMails()).flatMap(({ text }) => linksOf(text)).filter((one) => !one.hash)
      assert.equal(link, undefined)
    })
  }

  test('both addresses of a change get their page, and the old one can refuse', async () => {
    await readMails()
    await REQUESTS['email change']({ redirect_to: `${APP}/email` })
    const mails = await readMails()
    const [confirm, refuse] = linksOf(mails.find(({ to }) => to === user.email)!.text)
    assert.equal(confirm!.searchParams.get('action'), null)
    assert.equal(refuse!.searchParams.get('action'), 'refuse')
    assert.equal(mails.length, 2)
    for (const { text } of mails) assert.equal(linksOf(text)[0]!.pathname, '/email')
    const refused = await api.post(`${AUTH}/email-change/refuse`, {
      json: { token: refuse!.searchParams.get('token') },
    })
    assert.equal(refused.status, 200)
  })
})

describe('an own text of an account email', () => {
  const TEMPLATES = '/api/v1/comms/templates'
  const RESET = {
    channel: 'email',
    subject: 'Neues Passwort, {{name}}',
    text: 'Hallo {{name}}: {{link}} ({{minutes}} Minuten)',
    html: '<p>Hallo {{name}}</p><a href="{{link}}">Weiter</a>',
    variables: [{ name: 'name', default: 'du' }, { name: 'link' }, { name: 'minutes' }],
  }
  const create = (name: string, fields: object) =>
    api.post(TEMPLATES, { ...admin, json: { name, ...fields } })
  const remove = (name: string) => api.call('DELETE', `${TEMPLATES}/${name}`, admin)

  test('replaces the built-in text until it is deleted', async () => {
    await readMails()
    assert.equal((await create('account.reset', RESET)).status, 201)
    await REQUESTS['password reset']({ redirect_to: `${APP}/?a=1&b=2` })
    const [mail] = await readMails()
    const [link] = linksOf(mail!.text)
    assert.equal(mail!.subject, 'Neues Passwort, du')
    assert.match(mail!.text, /^Hallo du: https:\/\/app\.mill\.test\/\?a=1&b=2&token=\S+ \(60 Minuten\)$/)
    assert.match(mail!.html!, /^<p>Hallo du<\/p><a href="https:\/\/app\.mill\.test\/\?a=1&#38;b=2&#38;token=/)
    const json = { token: link!.searchParams.get('token'), new_password: PASSWORD }
    assert.equal((await api.post(`${AUTH}/password-reset/confirm`, { json })).status, 200)
    assert.equal((await remove('account.reset')).status, 204)
    await REQUESTS['password reset']({})
    assert.equal((await readMails())[0]!.subject, 'Set a new password')
  })

  test('shows a name as plain text', async () => {
    const subject = 'Verify, {{name}}'
    const fields = {
      channel: 'email',
      subject,
      html: '{{token}} {{name}}',
      variables: [{ name: 'name' }, { name: 'token' }],
    }
    assert.equal((await create('account.verify', fields)).status, 201)
    for (const [full_name, shown] of [
      ['<b>Ann</b>', '&#60;b&#62;Ann&#60;/b&#62;'],
      ['https://evil.example', ''],
    ] as const) {
      await readMails()
      await REQUESTS.register({ full_name })
      const [mail] = await readMails()
      assert.deepEqual(mail!.html!.split(' ').slice(1).join(' '), shown)
    }
    await remove('account.verify')
  })

  test('is refused if the email could not use it', async () => {
    const variables = [{ name: 'link' }]
    const text = '{{link}}'
    for (const [name, fields, loc] of [
      ['account.unknown', { text, variables }, ['body', 'name']],
      ['account.reset', { channel: 'sms', subject: undefined, text, variables }, ['body', 'channel']],
      ['account.reset', { text: 'Hello', variables: [] }, ['body', 'text']],
      ['account.reset', { text, html: '<p>Hello</p>', variables }, ['body', 'html']],
      [
        'account.reset',
        { text, variables: [...variables, { name: 'hours' }] },
        ['body', 'variables', 1, 'name'],
      ],
      ['account.reset', { subject: '{{link}}', text, variables }, ['body', 'subject']],
      [
        'account.invite',
        { text: '{{organization}}', variables: [{ name: 'organization' }] },
        ['body', 'text'],
      ],
    ] as const) {
      const answer = await create(name, { channel: 'email', subject: 'Hello', ...fields })
      assert.deepEqual([answer.status, answer.json.errors[0].loc], [422, loc], answer.text)
    }
    assert.equal((await create('account.reset', RESET)).status, 201)
    const changed = await api.call('PUT', `${TEMPLATES}/account.reset`, {
      ...admin,
      json: { ...RESET, text: 'Hello', variables: RESET.variables },
    })
    assert.deepEqual([changed.status, changed.json.errors[0].loc], [422, ['body', 'text']])
    await remove('account.reset')
  })

  test('is for admins to change', async () => {
    assert.equal(
      (await api.post(TEMPLATES, { ...user, json: { name: 'account.reset', ...RESET } })).status,
      403,
    )
  })
})
