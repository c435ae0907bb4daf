import assert from 'node:assert/strict'
import net from 'node:net'
import { after, test } from 'node:test'
import { until } from '../until.ts'
import { createCast } from './accounts-help.ts'
import { startMessageWorker, startProviderStandIns } from './comms-help.ts'
import { startEdgeAndDatabase } from './harness.ts'
import { assertRefused } from './orgs-help.ts'

/** A message with a running attempt can be cancelled until the provider may have received it. */

const standIns = await startProviderStandIns()
const { mail, twilio } = standIns
const silentServer = net.createServer()
const sockets = new Set<net.Socket>()
silentServer.on('connection', (socket) => {
  sockets.add(socket)
  socket.on('error', () => {})
})
await new Promise<void>((resolve) => silentServer.listen(0, '127.0.0.1', () => resolve()))
after(() => {
  for (const socket of sockets) socket.destroy()
  silentServer.close()
})
const env = { ...standIns.env, OPEN_AREAS: 'ai', AUTH_LEVEL: 'basic' }
const { api, url, query } = await startEdgeAndDatabase({ env })
const { port } = silentServer.address() as net.AddressInfo
// This mail server never sends the SMTP client a greeting.
await startMessageWorker(url, { ...env, EMAIL_SMTP_URL: `smtp://127.0.0.1:${port}` })
const { user } = await createCast(api)

const cancel = (id: string) => api.call('DELETE', `/api/v1/comms/sends/${id}`, { token: user.token })
const post = (path: string, json: object) => api.post(`/api/v1/comms${path}`, { json, token: user.token })
const readMessages = (status: string) =>
  query('select id, job_id from comms_send where status = $1 order by created_at desc', [status])
const readJobStatus = async (id: unknown) =>
  (await query('select status from job where id = $1', [id]))[0]!.status

test('mail waiting for its server is cancelled immediately, along with the waiting request', async () => {
  const waiting = post('/email/send', { to: ['a@example.com'], subject: 's', text: 't' })
  await until('its attempt has connected', () => sockets.size > 0)
  const [one] = await readMessages('queued')
  assert.equal(await readJobStatus(one!.job_id), 'running')
  const answer = await cancel(one!.id as string)
  assert.deepEqual([answer.status, answer.json.status], [200, 'cancelled'])
  assertRefused(await waiting, 409, 'The job was cancelled')
  assert.equal(await readJobStatus(one!.job_id), 'cancelled')
  assert.equal(mail.requests, 0)
})

test('a text message that the provider may have received is not cancelled but sent', async () => {
  twilio.mode = () => 'hang before'
  const waiting = post('/sms/send', { to: '+14155552671', body: 't' })
  const one = await until('its request is running', async () => (await readMessages('sending'))[0])
  assertRefused(await cancel(one.id as string), 409, 'The message can no longer be cancelled: it is sending')
  assert.equal(await readJobStatus(one.job_id), 'running')
  const [row] = await query('select cancel_requested_at from job where id = $1', [one.job_id])
  assert.equal(row!.cancel_requested_at, null)
  const cancelling = api.call('DELETE', `/api/v1/jobs/${one.job_id}`, { token: user.token })
  assert.equal((await cancelling).status, 202)
  await waiting
  const [after] = await query('select status from comms_send where id = $1', [one.id])
  assert.equal(after!.status, 'unknown', 'its job can be cancelled, and its outcome is unknown')
  twilio.mode = () => 'take'
})
