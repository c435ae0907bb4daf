import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findFreePort } from '../free-port.ts'
import { stopAfterFile } from '../services.ts'
import { startMailServer } from '../standins/smtp.ts'
import { startTwilio } from '../standins/twilio.ts'
import { until } from '../until.ts'
import { startMessageWorker } from './comms-help.ts'
import { startEdgeAndDatabase } from './harness.ts'
import { startOwnWorker } from './own-worker.ts'

/** Messages wait for a provider that is away, and are sent once it is back. */

const port = await findFreePort()
const twilio = await startTwilio()
stopAfterFile(() => twilio.stop())
const env = {
  OPEN_AREAS: 'comms,jobs',
  EMAIL_SMTP_URL: `smtp://127.0.0.1:${port}`,
  EMAIL_PROVIDER_FROM_EMAIL: 'service@example.com',
  TELEPHONY_ACCOUNT_SID: `AC${'0'.repeat(32)}`,
  TELEPHONY_AUTH_TOKEN: 'secret',
  TELEPHONY_PHONE_NUMBER: '+14155550100',
  TELEPHONY_API_BASE_URL: `http://127.0.0.1:${port}`,
  WORKER_MAX_TRIES: '1',
}
const { api, url, query } = await startEdgeAndDatabase({ env })
await startMessageWorker(url, env)
await startOwnWorker(url, 'accounts', env)

const readSend = async (jobId: string) =>
  (await api.get('/api/v1/comms/sends')).json.find((send: { job_id: string }) => send.job_id === jobId)

test('an email, a text message and a call are queued with the reason while nothing answers', async () => {
  for (const [path, json, detail] of [
    [
      '/email/send',
      { to: ['a@example.com'], subject: 's', text: 't' },
      /^The email provider could not be reached/,
    ],
    ['/sms/send', { to: '+14155552671', body: 'x' }, /^The telephony provider .*ECONNREFUSED/],
    ['/call', { to: '+14155552671', script_url: 'https://example.com/' }, /^The telephony .*ECONNREFUSED/],
  ] as const) {
    const { status, json: job } = await api.post(`/api/v1/comms${path}?background=true`, { json })
    assert.equal(status, 202)
    const send = await until('an attempt has failed', async () => {
      const found = await readSend(job.job_id)
      return found.next_attempt_at !== null && found
    })
    assert.deepEqual([send.status, send.settled_at], ['queued', null])
    assert.match(send.detail, detail)
    assert.equal(send.recipients[0].status, 'queued')
    assert.ok(Date.parse(send.next_attempt_at) > Date.parse(send.created_at))
    await until(
      'the job waits for its next attempt',
      async () => (await api.get(`/api/v1/jobs/${job.job_id}`)).json.status === 'queued',
    )
  }
})

test('emails, also of accounts, are sent once the server is back, and none fails before', async () => {
  const json = { email: 'ann@example.com', password: 'correct horse 1', full_name: 'Ann' }
  assert.equal((await api.post('/api/v1/auth/register', { json })).status, 200)
  const later = new Date(Date.now() + 300).toISOString()
  for (const extra of [{}, { send_at: later }]) {
    const email = { to: ['b@example.com'], subject: 's', text: 't', ...extra }
    await api.post('/api/v1/comms/email/send?background=true', { json: email })
  }
  await until('all have had an attempt', async () => {
    const rows = await query(
      `select next_attempt_at from comms_send where channel = 'email' and settled_at is null`,
    )
    return rows.length === 4 && rows.every(({ next_attempt_at }) => next_attempt_at !== null)
  })
  const mail = await startMailServer(port)
  stopAfterFile(() => mail.stop())
  // The next attempts follow after seconds; the test does not wait for them.
  await query(`update job set run_at = now() where status = 'scheduled'`)
  await until('all are sent', async () => {
    const rows = await query(`select status from comms_send where channel = 'email'`)
    return rows.every(({ status }) => status === 'sent')
  })
  assert.equal(new Set(mail.taken).size, 4)
  assert.deepEqual(await query(`select id from job where status = 'failed'`), [])
})
