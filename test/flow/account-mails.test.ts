import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { testDatabase } from '../database.ts'
import { startEdge } from '../edge/harness.ts'
import { Client, startProcess } from '../service.ts'
import { mailServer } from '../standins/smtp.ts'
import { until } from '../until.ts'

/** The ledger of sends has all mails of accounts: a killed worker sends none twice and loses none silently. */

const { url, query } = await testDatabase()
const mail = await mailServer()
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

interface Listed {
  readonly status: string
  readonly to: readonly string[]
}
const sends = async (client: Client): Promise<Listed[]> =>
  (await (await client.fetch('/api/v1/comms/sends')).json()) as Listed[]

test('a worker that is killed while the server takes a mail does not send it again, and admins see that', async () => {
  const worker = await startProcess('worker', url, env)
  await until('the first mail is sent', () => mail.taken.length === 1)
  // The server delays its answer after it accepts the mail. The worker is killed before the answer comes.
  mail.pace = () => 4_000
  const user = new Client(edge.port)
  await user.register('user@example.com')
  await until('the server has taken the mail', () => mail.taken.length === 2)
  await worker.kill()
  mail.pace = () => 0
  await startProcess('worker', url, env)
  const outcome = async () => (await sends(admin)).find(({ to }) => to[0] === 'user@example.com')
  await until('it is settled', async () => (await outcome())?.status === 'unknown')
  assert.equal(mail.taken.length, 2, 'nobody got a mail twice')
  assert.deepEqual(await sends(user), [], 'mails of accounts are for admins')
  // A suppressed address can register and sign in. Its mail fails, which admins see.
  await query(`insert into comms_suppression (address, reason, send_id)
    values ('gone@example.com', 'bounced', gen_random_uuid())`)
  await new Client(edge.port).register('gone@example.com')
  const refused = async () => (await sends(admin)).find(({ to }) => to[0] === 'gone@example.com')
  await until('it is refused', async () => (await refused())?.status === 'failed')
  assert.equal(mail.taken.length, 2)
  const stored = JSON.stringify(await query('select * from comms_send'))
  for (const text of mail.raw) {
    const token = /token is: (\S+)/.exec(text.replaceAll('=\r\n', ''))?.[1]
    assert.ok(token === undefined || !stored.includes(token), 'no token is stored')
  }
})
