import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Stream } from '../service.ts'
import { startEdge, startEdgeAndDatabase } from './harness.ts'
import { createLedger } from './ledger.ts'

const { api, ...database } = await startEdgeAndDatabase()
const ledger = createLedger(database)
const admin = await api.register('admin@example.com')
const [ann, bob] = [await api.register('ann@example.com'), await api.register('bob@example.com')]
const get = (path = '', token?: string) =>
  api.get(`/api/v1/jobs${path}`, token === undefined ? {} : { token })
const list = async (search = '', token?: string): Promise<string[]> => {
  const answer = await get(search, token)
  assert.equal(answer.status, 200, answer.text)
  return answer.json.map(({ job_id }: { job_id: string }) => job_id)
}
const cancel = (id: string, token = ann.token) => api.call('DELETE', `/api/v1/jobs/${id}`, { token })
const UNKNOWN_ID = '01900000-0000-7000-8000-000000000000'

// The jobs are created in this order, so their ids grow.
const doneJob = await ledger.addFinished(ann.id)
const failedJob = await ledger.addFinished(ann.id, 'failed', {
  code: 'job.crashed',
  detail: 'The worker thread crashed while running the job',
})
const cancelledJob = await ledger.addFinished(ann.id, 'cancelled', {})
const queuedFirst = await ledger.add(ann.id)
const runningJob = await ledger.add(ann.id)
const queuedLast = await ledger.add(ann.id)
const runningLast = await ledger.add(ann.id)
await ledger.claim(runningJob)
await ledger.progress(runningJob, 'Page 3 of 9', 3, 9)
await ledger.claim(runningLast)
const otherOwnersJob = await ledger.add(bob.id)
const ownerlessJob = await ledger.add(null)

test('lists running, then waiting, then ended jobs, each oldest first', async () => {
  const own = (await list('', ann.token)).filter((id) => id !== ownerlessJob)
  assert.deepEqual(own, [runningLast, runningJob, queuedFirst, queuedLast, cancelledJob, failedJob, doneJob])
})

test('filters by status, and rejects an unknown one with 422', async () => {
  for (const [status, ids] of Object.entries({
    running: [runningLast, runningJob],
    done: [doneJob],
    failed: [failedJob],
    cancelled: [cancelledJob],
  })) {
    assert.deepEqual(await list(`?status=${status}`, ann.token), ids, status)
  }
  assert.deepEqual(await list('?status=queued', ann.token), [queuedFirst, queuedLast, ownerlessJob])
  for (const status of ['sent', 'RUNNING', '', 'x']) {
    const answer = await get(`?status=${status}`, ann.token)
    assert.deepEqual([answer.status, answer.json.errors[0].loc], [422, ['query', 'status']], status)
  }
})

test('sorting uses the order of creation, regardless of state and caller', async () => {
  const added = [doneJob, failedJob, cancelledJob, queuedFirst, runningJob, queuedLast, runningLast]
  const all = [...added, otherOwnersJob, ownerlessJob]
  for (const [token, seen] of [
    [ann.token, [...added, ownerlessJob]],
    [admin.token, all],
  ] as const) {
    // Ignore the jobs that send mail to new accounts, which admins also see.
    const known = async (search: string) => (await list(search, token)).filter((id) => all.includes(id))
    assert.deepEqual(await known('?sort=created_at'), seen)
    assert.deepEqual(await known('?sort=-created_at'), seen.toReversed())
    assert.deepEqual(await known('?sort=-created_at&limit=2'), seen.toReversed().slice(0, 2))
  }
  for (const [status, ids] of Object.entries({ running: [runningJob, runningLast], failed: [failedJob] }))
    assert.deepEqual(await list(`?sort=created_at&status=${status}`, ann.token), ids)
})

test('a limit truncates the list and has a valid range', async () => {
  assert.deepEqual(await list('?limit=3', ann.token), [runningLast, runningJob, queuedFirst])
  assert.equal((await list('?limit=1000', ann.token)).length, 8)
  for (const limit of ['0', '1001', '-1', 'x'])
    assert.equal((await get(`?limit=${limit}`, ann.token)).status, 422, limit)
})

test('a cursor continues the list for any caller', async () => {
  for (const [token, search] of [
    [ann.token, ''],
    [admin.token, ''],
    [ann.token, '&status=queued'],
    [admin.token, '&status=queued'],
    [admin.token, '&status=done'],
  ] as const) {
    const all = await list(`?limit=1000${search}`, token)
    const followed: string[] = []
    let path: string | undefined = `/api/v1/jobs?limit=1${search}`
    while (path !== undefined) {
      const answer = await api.get(path, { token })
      followed.push(...answer.json.map(({ job_id }: { job_id: string }) => job_id))
      path = /^<(.+)>; rel="next"$/.exec(String(answer.headers.link ?? ''))?.[1]
    }
    assert.deepEqual(followed, all)
  }
})

test('lists one hundred jobs by default', async () => {
  const { query } = database
  await query(
    `insert into job (id, name, queue, owner_id, mailbox, payload, status, max_tries, finished_at, result)
     select gen_random_uuid(), 'many', 'documents', $1, 'many', '{}', 'done', 1, now(), '{}' from generate_series(1, 150)`,
    [bob.id],
  )
  assert.equal((await list('', bob.token)).length, 100)
  assert.equal((await list('?limit=1000', bob.token)).length, 152)
  await query(`delete from job where name = 'many'`)
})

test('a job shows all its public fields', async () => {
  const answer = await get(`/${runningJob}`, ann.token)
  assert.equal(answer.status, 200)
  const { created_at, started_at, ...job } = answer.json
  assert.deepEqual(job, {
    job_id: runningJob,
    name: 'documents.extract',
    queue: 'documents',
    status: 'running',
    label: 'Page 3 of 9',
    progress: { current: 3, total: 9 },
    attempts: 1,
    retry_of: null,
    batch_id: null,
    result: null,
    error: null,
    run_at: null,
    finished_at: null,
    expires_at: null,
  })
  for (const at of [created_at, started_at]) assert.match(at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
})

test('a waiting job has no start, and an ended one has its result or error', async () => {
  const waiting = (await get(`/${queuedFirst}`, ann.token)).json
  assert.deepEqual(
    [waiting.status, waiting.started_at, waiting.attempts, waiting.progress],
    ['queued', null, 0, null],
  )
  const good = (await get(`/${doneJob}`, ann.token)).json
  assert.deepEqual([good.status, good.result, good.error], ['done', { read: 1, unread: 0, skipped: 0 }, null])
  assert.ok(good.finished_at >= good.started_at)
  const keptSeconds = (job: { finished_at: string; expires_at: string }) =>
    (Date.parse(job.expires_at) - Date.parse(job.finished_at)) / 1000
  assert.equal(keptSeconds(good), 3600)
  const bad = (await get(`/${failedJob}`, ann.token)).json
  assert.deepEqual(
    [bad.status, bad.result, bad.error],
    ['failed', null, { code: 'job.crashed', detail: 'The worker thread crashed while running the job' }],
  )
  assert.equal(keptSeconds(bad), 604_800)
})

test('the payload and internals are hidden', async () => {
  const fields = [
    'attempts',
    'batch_id',
    'created_at',
    'error',
    'expires_at',
    'finished_at',
    'job_id',
    'label',
    'name',
    'progress',
    'queue',
    'result',
    'retry_of',
    'run_at',
    'started_at',
    'status',
  ]
  assert.deepEqual(Object.keys((await get(`/${runningJob}`, ann.token)).json).sort(), fields)
})

test('own jobs and jobs without an owner are visible; others are the same 404 as missing ones', async () => {
  const missing = await get(`/${UNKNOWN_ID}`, ann.token)
  assert.deepEqual([missing.status, missing.json], [404, { detail: 'Job not found', code: 'job.missing' }])
  for (const path of [`/${otherOwnersJob}`, `/${otherOwnersJob}/events`]) {
    const answer = await get(path, ann.token)
    assert.deepEqual([answer.status, answer.text], [404, missing.text])
  }
  assert.equal((await get(`/${ownerlessJob}`, ann.token)).status, 200)
  assert.deepEqual((await list('', bob.token)).sort(), [otherOwnersJob, ownerlessJob].sort())
})

test('an admin sees every job', async () => {
  const all = await database.query('select id from job')
  assert.deepEqual((await list('', admin.token)).sort(), all.map(({ id }) => id).sort())
  for (const id of [runningJob, otherOwnersJob, ownerlessJob])
    assert.equal((await get(`/${id}`, admin.token)).status, 200)
})

test('an anonymous caller sees jobs without an owner if the area is open', async () => {
  assert.deepEqual(await list(), [ownerlessJob])
  assert.equal((await get(`/${ownerlessJob}`)).status, 200)
  assert.equal((await get(`/${runningJob}`)).status, 404)
})

test('an id that is not a UUID is 404 like any missing one', async () => {
  for (const id of ['1', 'x', UNKNOWN_ID.slice(1), `${UNKNOWN_ID}0`, '%27']) {
    for (const path of [`/${id}`, `/${id}/events`])
      assert.equal((await get(path, ann.token)).status, 404, path)
    assert.equal((await cancel(id)).status, 404)
  }
})

test('cancelling a waiting job ends it', async () => {
  const id = await ledger.add(ann.id)
  const answer = await cancel(id)
  assert.deepEqual([answer.status, answer.json.job_id, answer.json.status], [202, id, 'cancelled'])
  assert.match(answer.json.finished_at, /Z$/)
  assert.equal((await get(`/${id}`, ann.token)).json.status, 'cancelled')
})

test('cancelling a running job asks its worker to stop', async () => {
  const id = await ledger.add(ann.id)
  await ledger.claim(id)
  const answer = await cancel(id)
  assert.deepEqual([answer.status, answer.json.status], [202, 'running'])
  const [row] = await database.query(
    'select cancel_requested_at is not null as requested from job where id = $1',
    [id],
  )
  assert.equal(row!.requested, true)
  await ledger.finish(id, 'cancelled')
  assert.equal((await get(`/${id}`, ann.token)).json.status, 'cancelled')
})

test('cancelling an ended job changes nothing', async () => {
  const id = await ledger.addFinished(ann.id)
  const before = (await get(`/${id}`, ann.token)).json
  const answer = await cancel(id)
  assert.deepEqual([answer.status, answer.json], [202, before])
  assert.deepEqual((await get(`/${id}`, ann.token)).json, before)
})

test('callers cannot cancel jobs that they cannot see, and admins may cancel all', async () => {
  const id = await ledger.add(ann.id)
  assert.equal((await cancel(id, bob.token)).status, 404)
  assert.equal((await get(`/${id}`, ann.token)).json.status, 'queued')
  assert.equal((await cancel(id, admin.token)).status, 202)
  assert.equal((await cancel(UNKNOWN_ID)).status, 404)
})

test('only admins cancel and retry jobs without an owner', async () => {
  const waiting = await ledger.add(null)
  const failed = await ledger.add(null, { payload: { documentId: 1, force: true } })
  await ledger.claim(failed)
  await ledger.finish(failed, 'failed', { code: 'internal', detail: 'x' })
  const retry = (token?: string) =>
    api.post(`/api/v1/jobs/${failed}/retry`, token === undefined ? {} : { token })
  for (const token of [ann.token, undefined]) {
    const ended = await api.call('DELETE', `/api/v1/jobs/${waiting}`, token === undefined ? {} : { token })
    for (const answer of [ended, await retry(token)])
      assert.deepEqual(
        [answer.status, answer.json],
        [403, { detail: 'This requires the role admin', code: 'auth.forbidden' }],
      )
  }
  assert.equal((await get(`/${waiting}`, ann.token)).json.status, 'queued')
  assert.equal((await cancel(waiting, admin.token)).json.status, 'cancelled')
  assert.equal((await retry(admin.token)).status, 202)
})

test('without authentication every caller is an admin', async () => {
  const none = await startEdge(database.url, { env: { AUTH_LEVEL: 'none' } })
  for (const owner of [null, ann.id]) {
    const id = await ledger.add(owner)
    const answer = await none.call('DELETE', `/api/v1/jobs/${id}`)
    assert.deepEqual([answer.status, answer.json.status], [202, 'cancelled'])
  }
})

const addFailed = () => ledger.addFinished(ann.id, 'failed', { code: 'internal', detail: 'x' })

for (const [status, add, seconds] of [
  ['failed', addFailed, 604_800],
  ['done', () => ledger.addFinished(ann.id), 3600],
] as const)
  test(`a ${status} job past its retention is gone, even before pruning`, async () => {
    const [old, young] = [await add(), await add()]
    const ago = (id: string, seconds: number) =>
      database.query('update job set finished_at = now() - make_interval(secs => $2) where id = $1', [
        id,
        seconds,
      ])
    await Promise.all([ago(old, seconds + 1), ago(young, seconds - 100)])
    for (const token of [ann.token, admin.token]) {
      for (const path of [`/${old}`, `/${old}/events`, `/${old}/history`])
        assert.deepEqual(
          (await get(path, token)).json,
          { detail: 'Job not found', code: 'job.missing' },
          path,
        )
      assert.equal((await cancel(old, token)).status, 404)
      assert.equal((await api.post(`/api/v1/jobs/${old}/retry`, { token })).status, 404)
      assert.equal((await get(`/${young}/events`, token)).status, 200)
      for (const search of [
        '?limit=1000',
        '?status=failed&limit=1000',
        '?status=done&limit=1000',
        '?sort=-created_at&limit=1000',
      ])
        assert.ok(!(await list(search, token)).includes(old), search)
      assert.ok((await list(`?status=${status}`, token)).includes(young))
    }
    const abort = new AbortController()
    const response = await fetch(`http://127.0.0.1:${api.port}/api/v1/jobs/events`, {
      headers: { authorization: `Bearer ${ann.token}`, 'last-event-id': '1' },
      signal: abort.signal,
    })
    const stream = new Stream(response, abort)
    await stream.until('the jobs have ended', (frames) => frames.some(({ data }) => data.job_id === young))
    assert.ok(!stream.frames.some(({ data }) => data.job_id === old))
    stream.close()
  })
