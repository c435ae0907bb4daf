import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, test } from 'node:test'
import { runAdmin } from '../../edge/admin/commands.ts'
import { createTestDatabase } from '../database.ts'
import { createAdminSettings } from '../job-settings.ts'
import { type Child, Client, startProcess } from '../service.ts'
import { startMailServer } from '../standins/smtp.ts'
import { until } from '../until.ts'

/**
 * Follows "A leaked key" of the operating guide, for a key and a database that have both leaked. Everything that their
 * owner could forge or read out is void afterwards, and accounts keep working.
 */

const [OLD, NEW] = ['the-old-key-of-thirty-two-letters', 'the-new-key-of-thirty-two-letters']
const EMAIL = 'ann@example.com'
const { url, db, query } = await createTestDatabase()
const mail = await startMailServer()
after(() => mail.stop())

const startAll = (secret: string): Promise<[edge: Child, worker: Child]> => {
  const env = {
    SECRET_KEY: secret,
    EMAIL_SMTP_URL: mail.url,
    EMAIL_PROVIDER_FROM_EMAIL: 'service@example.com',
    WORKER_THREADS: '1',
  }
  return Promise.all([startProcess('edge', url, env), startProcess('worker', url, env)])
}

/** Returns the statements of the section. */
async function readStatements(): Promise<string[]> {
  const guide = await readFile(new URL('../../deploy/operating.md', import.meta.url), 'utf8')
  const [, section] = /\n## A leaked key\n([\s\S]*?)\n## /.exec(guide)!
  return [...section!.matchAll(/`(delete from [^`]+)`/g)].map(([, statement]) => statement!)
}

async function createPreview(client: Client, post: number): Promise<string> {
  const response = await client.post(`/api/v1/blog/posts/${post}/preview`)
  assert.equal(response.status, 201)
  return ((await response.json()) as { token: string }).token
}

/** Returns the token of the last email to the account, which resets its password. */
async function requestReset(client: Client): Promise<string> {
  const count = mail.raw.length
  await client.post('/api/v1/auth/password-reset/request', { email: EMAIL })
  const text = await until('the email has arrived', () => mail.raw[count])
  return /token is: (\S+)/.exec(text.replaceAll('=\r\n', ''))![1]!
}

const first = await startAll(OLD)
const client = new Client(first[0].ready.port!)
await client.register(EMAIL)
await until('the first email has arrived', () => mail.raw.length === 1)

test('voids tokens and links of the old key, and accounts go on', async () => {
  const written = await client.post('/api/v1/blog/posts', { title: 'A draft' })
  const post = ((await written.json()) as { id: number }).id
  const preview = await createPreview(client, post)
  const reset = await requestReset(client)
  await client.post('/api/v1/webhooks', { url: 'https://example.com/hook', events: ['document.read'] })

  await Promise.all(first.map((child) => child.kill('SIGTERM')))
  assert.deepEqual((await runAdmin(['reseal'], db, createAdminSettings([NEW, OLD]))).slice(1), [
    'Texts that still need SECRET_KEYS_PREVIOUS: 0',
    'Texts that no key opens: 0',
  ])
  const statements = await readStatements()
  assert.equal(statements.length, 3)
  for (const statement of statements) await query(statement)
  const [edge] = await startAll(NEW)

  const caller = new Client(edge.ready.port!)
  assert.equal((await caller.fetch(`/api/v1/blog/preview/${preview}`)).status, 404)
  const confirmed = await caller.post('/api/v1/auth/password-reset/confirm', {
    token: reset,
    new_password: 'battery staple',
  })
  assert.equal(confirmed.status, 400)
  caller.token = client.token
  assert.equal((await caller.fetch('/api/v1/auth/me')).status, 401)

  await caller.signIn(EMAIL)
  const fresh = await createPreview(caller, post)
  assert.equal((await caller.fetch(`/api/v1/blog/preview/${fresh}`)).status, 200)
  const token = await requestReset(caller)
  const changed = await caller.post('/api/v1/auth/password-reset/confirm', {
    token,
    new_password: 'battery staple',
  })
  assert.equal(changed.status, 200, await changed.text())
  await caller.signIn(EMAIL, 'battery staple')
})
