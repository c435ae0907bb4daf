import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createTestDatabase } from '../database.ts'
import { startEdge } from '../edge/harness.ts'
import { Client, startProcess } from '../service.ts'
import { startMailServer } from '../standins/smtp.ts'
import { until } from '../until.ts'

/** The send ledger lists every account mail. After a worker is killed, no mail is sent twice or lost silently. */

const { url, query } = await createTestDatabase()
const mail = await startMailServer()
after(() => mail.stop())
const env = {
  EMAIL_SMTP_URL: mail.url,
  EMAIL_PROVIDER_FROM_EMAIL: 'service@example.com',
  LEASE_SECONDS: '1',
  WORKER_QUEUES: 'accounts',
  WORKER_THREADS: '1',
}
const edge = await startEdge(url, { env })
const admin = new Client(edge.port)
await admin.register('admin@example.com')

interface ListedSend {
  readonly status: string
  readonly to: readonly string[]
}
const listSends = async (client: Client): Promise<ListedSend[]> =>
  (await (await client.fetch('/api/v1/comms/sends')).json()) as ListedSend[]

test('does not resend a mail after a worker is killed during its delivery, and admins can see it', async () => {
  const worker = await startProcess('worker', url, env)
  await until('the first mail is sent', () => mail.taken.length === 1)
  // The server answers late, so that the worker is killed after the server accepts the mail and before the answer
  // arrives.
  mail.pace = () => 4_000
  const user = new Client(edge.port)
  await user.register('user@example.com')
  await until('the server has accepted the mail', () => mail.taken.length === 2)
  await worker.kill()
  mail.pace = () => 0
  await startProcess('worker', url, env)
  const outcome = async () => (await listSends(admin)).find(({ to }) => to[0] === 'user@example.com')
  await until('the send has an outcome', async () => (await outcome())?.status === 'unknown')
  assert.equal(mail.taken.length, 2, 'each mail was sent once')
  assert.deepEqual(await listSends(user), [], 'mails of accounts are for admins')
  // A suppressed address can still register and sign in. Mail to it fails, and admins can see that.
  await query(`insert into comms_suppression (address, reason, send_id)
    values ('gone@example.com', 'bounced', gen_random_uuid())`)
  await new Client(edge.port).register('gone@example.com')
  const refused = async () => (await listSends(admin)).find(({ to }) => to[0] === 'gone@example.com')
  await until('the mail is suppressed', async () => (await refused())?.status === 'failed')
  assert.equal(mail.taken.length, 2)
  const stored = JSON.stringify(await query('select * from comms_send'))
  for (const text of mail.raw) {
    const token = /token is: (\S+)/.exec(text.replaceAll('=\r\n', ''))?.[1]
    assert.ok(token === undefined || !stored.includes(token), 'no token is stored')
  }
})
