import assert from 'node:assert/strict'
import { test } from 'node:test'
import { uuidv7 } from '../../sql/ids.ts'
import { createEmail, getSharedEdge } from './harness.ts'
import { createLedger } from './ledger.ts'

const { api, admin, ...database } = await getSharedEdge()
const ledger = createLedger(database)
const [ann, bob] = [await api.register(createEmail('ann')), await api.register(createEmail('bob'))]
const retry = (id: string, token?: string, headers = {}) =>
  api.post(`/api/v1/jobs/${id}/retry`, { headers, ...(token === undefined ? {} : { token }) })
const readJob = async (id: string) => (await database.query('select * from job where id = $1', [id]))[0]!

const CRASH_ERROR = { code: 'job.crashed', detail: 'The worker thread crashed while running the job' }
// Starts far above existing document ids, because a retry joins any live job of the same document.
let documents = 1_000_000_000
/** Inserts a failed job that can be retried. */
async function addFailedJob(
  ownerId: number | null,
  more: Readonly<Record<string, unknown>> = {},
): Promise<string> {
  const payload = { documentId: ++documents, force: true }
  const id = await ledger.add(ownerId, { payload, actor: `document:${documents}`, ...more })
  await ledger.claim(id)
  await ledger.finish(id, 'failed', CRASH_ERROR)
  return id
}

test('a new job repeats the failed one, which stays unchanged', async () => {
  const id = await addFailedJob(ann.id)
  const before = await readJob(id)
  const answer = await retry(id, ann.token)
  assert.equal(answer.status, 202, answer.text)
  const { job_id, status, retry_of, attempts, error } = answer.json
  assert.deepEqual([status, retry_of, attempts, error], ['queued', id, 0, null])
  assert.equal(answer.headers.location, `/api/v1/jobs/${job_id}`)
  const again = await readJob(job_id)
  for (const field of ['name', 'queue', 'owner_id', 'payload', 'max_tries'])
    assert.deepEqual(again[field], before[field], field)
  assert.equal(again.mailbox, before.mailbox)
  assert.deepEqual(await readJob(id), before)
  assert.equal((await ledger.claim(job_id)) > 0, true, 'workers take it')
  await ledger.finish(job_id, 'done', { result: null })
})

test('repeated and concurrent requests create one retry', async () => {
  const id = await addFailedJob(ann.id)
  const answers = await Promise.all(Array.from({ length: 8 }, () => retry(id, ann.token)))
  assert.deepEqual([...new Set(answers.map(({ status }) => status))], [202])
  assert.equal(new Set(answers.map(({ json }) => json.job_id)).size, 1)
  const jobs = await database.query('select id from job where retry_of = $1', [id])
  assert.equal(jobs.length, 1)
})

test('a retry that fails can be retried by its own id', async () => {
  const id = await addFailedJob(ann.id)
  const first = (await retry(id, ann.token)).json.job_id
  await ledger.claim(first)
  await ledger.finish(first, 'failed', CRASH_ERROR)
  const second = (await retry(first, ann.token)).json
  assert.equal(second.retry_of, first)
  assert.equal((await retry(id, ann.token)).json.job_id, first)
})

test('returns the live job of the same actor if it does the same work', async () => {
  const id = await addFailedJob(ann.id)
  const payload = { documentId: documents, force: true }
  const live = await ledger.add(ann.id, { payload, actor: `document:${documents}` })
  const answer = await retry(id, ann.token)
  assert.deepEqual([answer.status, answer.json.job_id, answer.json.retry_of], [202, live, null])
})

test('only a failed job can be retried', async () => {
  const waiting = await ledger.add(ann.id)
  const running = await ledger.add(ann.id)
  await ledger.claim(running)
  for (const [id, status] of [
    [waiting, 'queued'],
    [running, 'running'],
    [await ledger.addFinished(ann.id), 'done'],
    [await ledger.addFinished(ann.id, 'cancelled', {}), 'cancelled'],
  ]) {
    const answer = await retry(id!, ann.token)
    const detail = `Only a failed job can be retried; this one is ${status}`
    assert.deepEqual([answer.status, answer.json], [409, { detail, code: 'job.not_failed' }])
  }
})

test('rejects jobs of a removed task or with an outdated payload', async () => {
  const before = (await database.query('select count(*)::int as n from job where retry_of is not null'))[0]
  for (const more of [
    { name: 'gone.task', actor: null },
    { payload: { documentId: 'one' }, actor: null },
  ]) {
    const answer = await retry(await addFailedJob(ann.id, more), ann.token)
    assert.deepEqual(
      [answer.status, answer.json],
      [409, { detail: 'This version of the service cannot retry the job', code: 'job.not_runnable' }],
    )
  }
  const after = (await database.query('select count(*)::int as n from job where retry_of is not null'))[0]
  assert.deepEqual(after, before)
})

test('owners and admins may retry; others get 404, and jobs without an owner are for admins', async () => {
  const own = await addFailedJob(ann.id)
  assert.equal((await retry(own, bob.token)).status, 404)
  assert.equal((await retry(own)).status, 404, 'without a credential, in an open area')
  const byAdmin = await retry(own, admin.token)
  assert.deepEqual([byAdmin.status, byAdmin.json.retry_of], [202, own])
  assert.equal((await readJob(byAdmin.json.job_id)).owner_id, ann.id)
  const nobodys = await addFailedJob(null)
  for (const token of [ann.token, undefined]) {
    const answer = await retry(nobodys, token)
    assert.deepEqual(
      [answer.status, answer.json],
      [403, { detail: 'This requires the role admin', code: 'auth.forbidden' }],
    )
  }
  assert.equal((await retry(nobodys, admin.token)).status, 202)
  for (const id of [uuidv7(), 'x']) assert.equal((await retry(id, admin.token)).status, 404)
})

test('a repetition under an Idempotency-Key replays the first answer', async () => {
  const id = await addFailedJob(ann.id)
  const first = await retry(id, ann.token, { 'idempotency-key': 'k' })
  await ledger.claim(first.json.job_id)
  const second = await retry(id, ann.token, { 'idempotency-key': 'k' })
  assert.deepEqual([second.status, second.text], [202, first.text])
})

test('the history of a job lists its events with times to callers who see the job', async () => {
  const id = await addFailedJob(ann.id)
  const answer = await api.get(`/api/v1/jobs/${id}/history`, { token: ann.token })
  assert.equal(answer.status, 200)
  assert.deepEqual(
    answer.json.map(({ seq, kind, data }: Record<string, unknown>) => [
      seq,
      kind,
      (data as { status: string }).status,
    ]),
    [
      [1, 'status', 'running'],
      [2, 'status', 'failed'],
    ],
  )
  for (const { at } of answer.json) assert.match(at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  const fresh = await ledger.add(ann.id)
  assert.deepEqual((await api.get(`/api/v1/jobs/${fresh}/history`, { token: ann.token })).json, [])
  for (const [path, token] of [
    [id, bob.token],
    [uuidv7(), ann.token],
    ['x', ann.token],
  ])
    assert.equal((await api.get(`/api/v1/jobs/${path}/history`, { token: token! })).status, 404)
})
