import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { runPurge } from '../purge.ts'
import { createCast } from './accounts-help.ts'
import { startMessageWorker, startProviderStandIns } from './comms-help.ts'
import { startEdge, startEdgeAndDatabase } from './harness.ts'

/** Tests the configuration report, the delivery status of messages, and domains. */

const standIns = await startProviderStandIns()
const { resend } = standIns
const env = { ...standIns.env, OPEN_AREAS: 'ai', AUTH_LEVEL: 'basic' }
const { api, url, query, db } = await startEdgeAndDatabase({ env })
const openEdge = await startEdge(url, { env: { ...env, OPEN_AREAS: 'comms' } })
await startMessageWorker(url, env)
const { admin, user, newcomer } = await createCast(api)
const otherAccount = await newcomer()

const get = (path: string, token = admin.token) => api.get(`/api/v1/comms${path}`, { token })
const post = (path: string, json?: object, token = admin.token) =>
  api.post(`/api/v1/comms${path}`, { token, ...(json === undefined ? {} : { json }) })

describe('GET /comms/status', () => {
  test('reports the configuration without secrets', async () => {
    const answer = await get('/status')
    const phone = { configured: true, provider: 'twilio', from: '+14155550100', missing: [] }
    assert.deepEqual(
      [answer.status, answer.json],
      [
        200,
        {
          email: { configured: true, provider: 'smtp', from: 'service@example.com', missing: [] },
          sms: phone,
          call: phone,
          domains: { configured: true, provider: 'resend', from: null, missing: [] },
          unknown_sends: 0,
        },
      ],
    )
    for (const secret of ['hunter2', '127.0.0.1']) assert.ok(!answer.text.includes(secret))
  })

  test('names missing settings', async () => {
    const bare = await startEdge(url, { env: { AUTH_LEVEL: 'none' } })
    const { email, sms, domains } = (await bare.get('/api/v1/comms/status')).json
    assert.deepEqual([email.configured, email.provider, email.from], [true, 'outbox', 'millrace@localhost'])
    const names = ['TELEPHONY_ACCOUNT_SID', 'TELEPHONY_AUTH_TOKEN', 'TELEPHONY_PHONE_NUMBER']
    assert.deepEqual(sms, { configured: false, provider: null, from: null, missing: names })
    assert.deepEqual(domains.missing, ['EMAIL_PROVIDER_API_KEY'])
    const production = { NODE_ENV: 'production', DATABASE_URL: url, AUTH_LEVEL: 'none' }
    const live = await startEdge(url, { env: production })
    const missing = ['EMAIL_PROVIDER_API_KEY', 'EMAIL_PROVIDER_FROM_EMAIL']
    const expected = { configured: false, provider: null, from: null, missing }
    assert.deepEqual((await live.get('/api/v1/comms/status')).json.email, expected)
    const relay = {
      ...production,
      EMAIL_PROVIDER_API_KEY: 're_x',
      EMAIL_PROVIDER_FROM_EMAIL: 'a@example.com',
    }
    assert.equal(
      (await (await startEdge(url, { env: relay })).get('/api/v1/comms/status')).json.email.provider,
      'resend',
    )
  })
})

describe('GET /comms/sends', () => {
  test('lists own messages newest first; admins see all, and others get 404 by id', async () => {
    const email = { to: ['a@example.com'], subject: 's', text: 't' }
    const mine = (await post('/email/send', email, user.token)).json.id
    await post('/sms/send', { to: '+14155552671', body: 't' }, user.token)
    const [text] = await query(`select id, provider_id from comms_send where channel = 'sms'`)
    const nobodys = (await openEdge.post('/api/v1/comms/email/send', { json: email })).json.id
    const ids = async (path: string, token: string) =>
      (await get(path, token)).json.map(({ id }: { id: string }) => id)
    assert.deepEqual(await ids('/sends', user.token), [nobodys, text!.id, mine])
    assert.deepEqual(await ids('/sends?channel=email', user.token), [nobodys, mine])
    assert.deepEqual(await ids('/sends?status=unknown', user.token), [])
    assert.deepEqual(await ids('/sends?limit=1', user.token), [nobodys])
    assert.deepEqual(await ids('/sends', otherAccount.token), [nobodys])
    assert.deepEqual(await ids('/sends', admin.token), [nobodys, text!.id, mine])

    const pages: string[] = []
    let path: string | undefined = '/api/v1/comms/sends?limit=1'
    while (path !== undefined) {
      const { headers, json } = await api.get(path, { token: user.token })
      pages.push(...json.map(({ id }: { id: string }) => id))
      path = /^<(.+)>; rel="next"$/.exec(String(headers.link ?? ''))?.[1]
    }
    assert.deepEqual(pages, [nobodys, text!.id, mine])

    const one = await get(`/sends/${text!.id}`, user.token)
    const { job_id, created_at, requested_at, settled_at, ...rest } = one.json
    assert.deepEqual(rest, {
      id: text!.id,
      channel: 'sms',
      stream: 'transactional',
      to: ['+14155552671'],
      recipients: [{ address: '+14155552671', status: 'sent', detail: null }],
      next_attempt_at: null,
      status: 'sent',
      provider_id: text!.provider_id,
      provider_status: 'queued',
      requests: 1,
      detail: null,
      send_at: null,
      template: null,
      attachments: [],
    })
    assert.ok(created_at <= requested_at && requested_at <= settled_at && job_id !== undefined)
    const missing = await get(`/sends/${randomUUID()}`, otherAccount.token)
    assert.deepEqual(
      [missing.status, missing.json],
      [404, { detail: 'Message not found', code: 'send.missing' }],
    )
    assert.equal((await get(`/sends/${mine}`, otherAccount.token)).text, missing.text)
    assert.equal((await get('/sends/nonsense')).status, 404)
  })

  test('rejects values out of range', async () => {
    for (const query of ['limit=0', 'limit=1001', 'limit=x', 'channel=fax', 'status=lost', 'cursor=x'])
      assert.equal((await get(`/sends?${query}`)).status, 422, query)
  })

  test('keeps messages of a deleted account, without an owner and visible to admins only', async () => {
    const account = await newcomer()
    const email = { to: ['a@example.com'], subject: 's', text: 't' }
    const { id } = (await post('/email/send', email, account.token)).json
    const gone = await api.call('DELETE', `/api/v1/auth/users/${account.id}`, { token: admin.token })
    assert.equal(gone.status, 204)
    await runPurge(db)
    assert.deepEqual(await query('select owner_id, status from comms_send where id = $1', [id]), [
      { owner_id: null, status: 'sent' },
    ])
    const shown = async (path: string, token: string) =>
      (await get(path, token)).json.some((send: { id: string }) => send.id === id)
    for (const path of ['/sends', '/sends?status=sent', '/sends?channel=email&status=sent'])
      assert.deepEqual(
        [await shown(path, admin.token), await shown(path, otherAccount.token)],
        [true, false],
        path,
      )
    assert.equal((await get(`/sends/${id}`)).status, 200)
    assert.equal((await get(`/sends/${id}`, otherAccount.token)).status, 404)
  })
})

describe('domains', () => {
  test('can be listed, added and checked', async () => {
    const listed = await get('/domains')
    assert.equal(listed.status, 200)
    assert.deepEqual(
      listed.json.map(({ name, status }: Record<string, string>) => [name, status]),
      [
        ['example.com', 'verified'],
        ['new.example', 'pending'],
      ],
    )
    const added = await post('/domains', { name: ' Mail.Example.ORG ', region: 'eu-west-1' })
    assert.deepEqual(
      [added.status, added.json.name, added.json.region],
      [200, 'mail.example.org', 'eu-west-1'],
    )
    assert.deepEqual(Object.keys(added.json.records[0]).sort(), [
      'name',
      'priority',
      'purpose',
      'status',
      'ttl',
      'type',
      'value',
    ])
    assert.deepEqual((await post('/domains', { name: 'mail.example.org' })).json, added.json)
    const checked = await post('/domains/MAIL.example.org/check')
    assert.deepEqual([checked.status, checked.json.status], [200, 'pending'])
    const missing = await post('/domains/other.example/check')
    assert.deepEqual(
      [missing.status, missing.json],
      [404, { detail: 'The email provider account has no such domain', code: 'domain.missing' }],
    )
  })

  test('must have valid names', async () => {
    for (const name of [
      '',
      'localhost',
      'a..b',
      '-a.example',
      'a.example/x',
      'ä_.example',
      `${'a'.repeat(64)}.example`,
      '1.2.3.4',
      null,
    ])
      assert.equal((await post('/domains', { name })).status, 422, String(name))
    assert.equal((await post('/domains', { name: 'x.example', region: 'Mars' })).status, 422)
    assert.equal((await post('/domains/not%20one/check')).status, 422)
  })

  test('answer 502 without the key if the provider refuses', async () => {
    resend.mode = () => ({
      status: 403,
      body: { name: 'validation_error', message: 'Upgrade to add more domains' },
    })
    const refused = await post('/domains', { name: 'more.example' })
    resend.mode = () => 'take'
    const detail = 'The email provider refused the request: Upgrade to add more domains'
    assert.deepEqual([refused.status, refused.json], [502, { detail, code: 'domain.refused' }])
  })

  test('are retried if the provider fails, then answer 502', async () => {
    const before = resend.asked.length
    resend.mode = () => (resend.asked.length === before + 1 ? 'error before' : 'take')
    assert.equal((await get('/domains')).status, 200)
    resend.mode = () => 'error before'
    const failed = await get('/domains')
    resend.mode = () => 'take'
    const detail = 'The REST API of the email provider could not be reached or failed: HTTP status 500'
    assert.deepEqual([failed.status, failed.json], [502, { detail, code: 'domain.failed' }])
  })
})
