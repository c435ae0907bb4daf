import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, test } from 'node:test'
import pg from 'pg'
import { runAdmin } from '../../edge/admin/commands.ts'
import { uuidv7 } from '../../sql/ids.ts'
import { SecretKeys } from '../../tasks/platform/keys.ts'
import { resealTexts } from '../../tasks/system/reseal.task.ts'
import { enqueue } from '../../tasks/task.ts'
import { createTestDatabase, waitForLock } from '../database.ts'
import { createAdminSettings, createJobSettings } from '../job-settings.ts'
import { type Child, Client, startProcess } from '../service.ts'
import { answerWith, startReceiver, verifyWebhook } from '../standins/receiver.ts'
import { computeCode, computeCurrentStep, decodeBase32, useEarlierCode } from '../totp.ts'
import { until } from '../until.ts'

/**
 * A rotation of SECRET_KEY in a whole service. Each step replaces the processes one after another, so that processes of
 * two steps run next to each other. Secrets and tokens of the first key work under the last one.
 */

const [OLD, NEW] = ['the-old-key-of-thirty-two-letters', 'the-new-key-of-thirty-two-letters']
const PASSWORD = 'Grün & weiß'
const EMAIL = 'ann@example.com'
const { url, db, query } = await createTestDatabase()
const receiver = await startReceiver()
after(() => receiver.stop())
receiver.answer = (response, { path }) =>
  answerWith(200, path === '/work' ? '{"sum":3}' : '')(response, null as never)

const startStep = async (secret: string, previous = ''): Promise<readonly [edge: Child, worker: Child]> => {
  const env = {
    SECRET_KEY: secret,
    SECRET_KEYS_PREVIOUS: previous,
    WORKER_THREADS: '1',
    REQUEST_WAIT_SECONDS: '60',
  }
  return Promise.all([startProcess('edge', url, env), startProcess('worker', url, env)])
}
const stopStep = (step: readonly Child[]) => Promise.all(step.map((child) => child.kill('SIGTERM')))
const clientOf = ([edge]: readonly [Child, Child], token: string): Client =>
  Object.assign(new Client(edge.ready.port!), { token })

type Json = Record<string, never> & {
  readonly id: number
  readonly secret: string
  readonly access_token: string
}
const read = async (answer: Promise<Response>, status = 200): Promise<Json> => {
  const response = await answer
  const text = await response.text()
  assert.equal(response.status, status, text)
  return JSON.parse(text)
}

const signIn = (client: Client, code: string): Promise<Response> =>
  client.fetch('/api/v1/auth/token', {
    method: 'POST',
    body: new URLSearchParams({ username: EMAIL, password: 'correct horse', totp_code: code }),
  })

/** Signs in with the current code of the app, also if a code of this step was used before. */
async function signInWithCode(client: Client, secret: Buffer): Promise<string> {
  await query('update account_totp set last_step = 0')
  return (await read(signIn(client, computeCode(secret, computeCurrentStep())))).access_token
}

const extract = (client: Client, id: number, body?: object) =>
  read(client.post(`/api/v1/documents/${id}/extract?force=true`, body))

const first = await startStep(OLD)
const client = clientOf(first, '')
await client.register(EMAIL)
const begun = await read(client.post('/api/v1/auth/totp', {}))
const appSecret = decodeBase32(begun.secret)
assert.equal(
  (await useEarlierCode(appSecret, (code) => client.post('/api/v1/auth/totp/confirm', { code }))).status,
  200,
)
const hook = await read(
  client.post('/api/v1/webhooks', { url: `${receiver.url}/hook`, events: ['document.read'] }),
  201,
)
const endpoint = { url: `${receiver.url}/work` }
await read(client.post('/api/v1/worker-queues', { name: 'adders', open: true, endpoint }), 201)
const pdf = await read(
  client.upload(await readFile(new URL('../data/locked.pdf', import.meta.url)), 'a.pdf'),
  201,
)
await extract(client, pdf.id, { password: PASSWORD })

/** Asserts that everything that was made under the first key works. */
async function assertWorks(step: readonly [Child, Child], token: string): Promise<void> {
  const caller = clientOf(step, token)
  const before = receiver.received.length
  assert.deepEqual(await extract(caller, pdf.id), { read: 2, unread: 0, skipped: 0 })
  const job = { queue_type: 'adders', task_name: 'add', args: {} }
  await read(caller.post('/api/v1/tasks/enqueue', job), 202)
  const sent = await until('both requests have arrived', async () => {
    const requests = receiver.received.slice(before)
    return ['/hook', '/work'].every((path) => requests.some((each) => each.path === path)) ? requests : null
  })
  verifyWebhook(hook.secret, sent.find(({ path }) => path === '/hook')!)
  const jobs = await until('the job has ended', async () => {
    const rows = await query(
      `select status, result from job where name = 'adders/add' order by ordinal desc limit 1`,
    )
    return ['done', 'failed'].includes(rows[0]!.status as string) ? rows : null
  })
  assert.deepEqual(jobs[0], { status: 'done', result: { sum: 3 } })
}

test('loses nothing, in three steps after the preparation', async () => {
  await assertWorks(first, client.token)
  const prepared = await startStep(OLD, NEW)
  await stopStep(first)
  await assertWorks(prepared, client.token)

  const rotated = await startStep(NEW, OLD)
  // For a while, both steps run. Each accepts the tokens of the other.
  const fresh = await signInWithCode(clientOf(rotated, ''), appSecret)
  await assertWorks(prepared, fresh)
  await assertWorks(rotated, client.token)
  await stopStep(prepared)

  await read(clientOf(rotated, fresh).post('/api/v1/schedules/reseal/run'), 202)
  const { currentId } = new SecretKeys({ secrets: [NEW], stored: [] })
  await until('the job has sealed the codes', async () => {
    const [row] = await query('select secret from account_totp')
    return (row!.secret as string).startsWith(`${currentId}.`)
  })
  await until('the job has ended', async () => {
    const rows = await query(`select from job where name = 'system.reseal' and status = 'running'`)
    return rows.length === 0
  })
  assert.deepEqual((await runAdmin(['reseal'], db, createAdminSettings([NEW, OLD]))).slice(1), [
    'Texts that still need SECRET_KEYS_PREVIOUS: 0',
    'Texts that no key opens: 0',
  ])

  const last = await startStep(NEW)
  await stopStep(rotated)
  assert.equal((await clientOf(last, client.token).fetch('/api/v1/auth/me')).status, 401)
  await assertWorks(last, fresh)
  await signInWithCode(clientOf(last, ''), appSecret)
})

test('a killed worker loses nothing: another one continues its job', async () => {
  const { url, db, query } = await createTestDatabase()
  const createKeys = (...secrets: string[]) => new SecretKeys({ secrets, stored: [] })
  const ids = Array.from({ length: 1100 }, () => uuidv7())
  const secrets = ids.map((id) => createKeys(OLD).seal(`stored_key:${id}`, id))
  await query('insert into stored_key select * from unnest($1::uuid[], $2::text[])', [ids, secrets])
  const env = { SECRET_KEY: NEW, SECRET_KEYS_PREVIOUS: OLD, LEASE_SECONDS: '1', WORKER_QUEUES: 'system' }
  const killed = await startProcess('worker', url, env)

  // The lock stops the job within its second batch of 500 texts.
  const lock = new pg.Client({ connectionString: url })
  await lock.connect()
  await lock.query('begin')
  await lock.query(
    'select from stored_key where id = (select id from stored_key order by id offset 700 limit 1) for update',
  )
  const job = await enqueue(db, resealTexts, {}, { ownerId: null, settings: createJobSettings() })
  await waitForLock(query)
  await killed.kill('SIGKILL')
  await startProcess('worker', url, env)
  await lock.end()

  const ended = await until('the job has ended', async () => {
    const [row] = await query('select status, attempt, result from job where id = $1', [job.jobId])
    return ['done', 'failed'].includes(row!.status as string) ? row : null
  })
  assert.deepEqual([ended.status, ended.attempt], ['done', 2])
  assert.equal((ended.result as { left: number }).left, 0)
  const rows = (await query('select id, secret from stored_key')) as { id: string; secret: string }[]
  for (const { id, secret } of rows) assert.equal(createKeys(NEW).unseal(`stored_key:${id}`, secret), id)
})
