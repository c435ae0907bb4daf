import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import PostalMime from 'postal-mime'
import { createTestDatabase } from '../database.ts'
import { IS_LONG } from '../runs.ts'
import { type Child, Client, startProcess } from '../service.ts'
import { until } from '../until.ts'
import { SHORT_LEASE } from './crash.ts'
import { createClosedGate } from './gate.ts'

// Threads of a worker start slowly on a busy machine.
const DEADLINE_MS = 60_000
const dataDir = mkdtempSync(join(tmpdir(), 'millrace-mail-'))
after(() => rmSync(dataDir, { recursive: true, force: true }))
const { url, query } = await createTestDatabase()
const env = {
  DATA_DIR: dataDir,
  PUBLIC_BASE_URL: 'https://service.example',
  EMAIL_SMTP_URL: 'outbox:',
  RATE_LIMIT_REGISTER: '0',
  RATE_LIMIT_PASSWORD_RESET: '0',
  WORKER_QUEUES: 'accounts',
  WORKER_THREADS: '1',
}
const TRACE_LOG = { LOG_LEVEL: 'trace' }
const edge = await startProcess('edge', url, { ...env, ...TRACE_LOG })
const startWorker = (more: Readonly<Record<string, string>> = {}): Promise<Child> =>
  startProcess('worker', url, { ...env, ...SHORT_LEASE, ...more })
const client = new Client(edge.ready.port!)
const secrets: string[] = []

const listMailFiles = (): string[] => {
  try {
    return readdirSync(join(dataDir, 'outbox')).filter((name) => name.endsWith('.eml'))
  } catch {
    return []
  }
}

interface Mail {
  readonly subject: string
  readonly token: string
}

/** Waits for the mail to an address whose subject contains the text. */
function waitForMail(to: string, subject: string): Promise<Mail> {
  return until(
    `there is a mail "${subject}" to ${to}`,
    async () => {
      for (const name of listMailFiles()) {
        const mail = await PostalMime.parse(readFileSync(join(dataDir, 'outbox', name)))
        if (mail.to?.[0]?.address !== to || mail.subject !== subject) continue
        const token = /token is: (\S+)/.exec(mail.text!)![1]!
        assert.ok(mail.html!.includes(token) && mail.text!.includes(`#token=${token}`))
        secrets.push(token)
        return { subject, token }
      }
      return null
    },
    DEADLINE_MS,
  )
}

const login = (email: string, password: string): Promise<Response> => {
  secrets.push(password)
  return client.fetch('/api/v1/auth/token', {
    method: 'POST',
    body: new URLSearchParams({ username: email, password }),
  })
}
const readMe = async (): Promise<{ is_verified: boolean }> =>
  (await client.fetch('/api/v1/auth/me')).json() as Promise<{ is_verified: boolean }>

test('verifies and recovers an account with mails from the outbox', async () => {
  const worker = await startWorker(TRACE_LOG)
  const email = 'reader@example.com'
  await client.register(email, 'the first password')
  assert.equal((await readMe()).is_verified, false)
  const { token } = await waitForMail(email, 'Verify your address')
  assert.equal((await client.post('/api/v1/auth/verify-email', { token })).status, 200)
  await until('the account is verified', async () => (await readMe()).is_verified)

  assert.equal((await client.post('/api/v1/auth/password-reset/request', { email })).status, 200)
  const reset = await waitForMail(email, 'Set a new password')
  const json = { token: reset.token, new_password: 'the second password' }
  assert.equal((await client.post('/api/v1/auth/password-reset/confirm', json)).status, 200)
  await until('the old session has ended', async () => (await client.fetch('/api/v1/auth/me')).status === 401)
  assert.equal((await login(email, 'the first password')).status, 401)
  assert.equal((await login(email, 'the second password')).status, 200)

  const next = 'next@example.com'
  await client.signIn(email, 'the second password')
  assert.equal((await client.post('/api/v1/auth/me/email', { email: next })).status, 201)
  for (const [to, subject] of [
    [next, 'Confirm your new address'],
    [email, 'Confirm your email address change'],
  ] as const) {
    const { token } = await waitForMail(to, subject)
    assert.equal((await client.post('/api/v1/auth/email-change/confirm', { token })).status, 200)
  }
  assert.equal((await login(email, 'the second password')).status, 401)
  assert.equal((await login(next, 'the second password')).status, 200)

  for (const process of [edge, worker])
    for (const line of process.log)
      for (const secret of secrets) assert.ok(!line.includes(secret), 'no secret is in a log')
  const rows = await query(`select payload::text || coalesce(result::text, '') as text from job`)
  for (const { text } of rows) for (const secret of secrets) assert.ok(!String(text).includes(secret))
  await worker.kill('SIGTERM')
})

test('writes each mail as one file even if workers are killed', {
  timeout: 240_000,
}, async () => {
  const MAILS = 60
  const before = listMailFiles().length
  // Each of six accounts gets ten mails, the limit per address.
  await query(`insert into account (email, password_hash)
    select 'mail-' || n || '@example.com', '' from generate_series(0, 5) n`)
  for (let i = 0; i < MAILS; i++) {
    const email = `mail-${i % 6}@example.com`
    const answer = await client.post('/api/v1/auth/password-reset/request', { email })
    assert.equal(answer.status, 200)
  }
  const countUnfinished = async (): Promise<number> =>
    (await query(`select count(*)::int as n from job where status <> 'done' and queue <> 'schedules'`))[0]!
      .n as number
  let killed = 0
  // Each worker is killed while it is busy, and the last worker completes the rest. The gate holds one job until the
  // first worker is dead.
  const [one] = await query('select id from job order by ordinal desc limit 1')
  const gate = await createClosedGate(
    url,
    `before update of finished_at on job for each row when (new.id = '${one!.id}')`,
  )
  for (const share of IS_LONG ? [0.1, 0.4, 0.7] : [0.4]) {
    const worker = await startWorker()
    await until('some mails are written', () => listMailFiles().length - before >= share * MAILS, DEADLINE_MS)
    if ((await countUnfinished()) > 0) killed++
    await worker.kill()
    await gate.open()
  }
  const last = await startWorker()
  await until('every job is done', async () => (await countUnfinished()) === 0, DEADLINE_MS)
  assert.ok(killed > 0)

  const jobs = await query(`select id from job where name like 'accounts.%' and name <> 'accounts.purge'`)
  const ids = jobs.map(({ id }) => `${id}.eml`)
  assert.deepEqual(listMailFiles().sort(), ids.sort())
  for (const name of listMailFiles()) {
    const mail = await PostalMime.parse(readFileSync(join(dataDir, 'outbox', name)))
    assert.equal(mail.messageId, `<${name.replace('.eml', '')}@localhost>`)
    assert.match(mail.text!, /token is: \S+/)
  }
  await last.kill('SIGTERM')
})
