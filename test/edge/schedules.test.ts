import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ensureBuiltIns } from '../../tasks/schedules/built-in.ts'
import { findNextRun, parseCron } from '../../tasks/schedules/cron.ts'
import { scheduleEntries } from '../../tasks/schedules/entries.ts'
import { createJobSettings } from '../job-settings.ts'
import { assertRefused, createCast } from './accounts-help.ts'
import { type Answered, startEdge, startEdgeAndDatabase } from './harness.ts'
import { createLedger } from './ledger.ts'

/** Admins see the built-in schedules; they can only pause, resume and run them. */

const { api, ...database } = await startEdgeAndDatabase()
const { db, query, url } = database
await ensureBuiltIns(db, createJobSettings())
const noAuthEdge = await startEdge(url, { env: { AUTH_LEVEL: 'none' } })
const ledger = createLedger(database)
const { admin, moderator, user, newcomer } = await createCast(api)
const SCHEDULES = '/api/v1/schedules'

interface Schedule {
  readonly id: string
  readonly paused_at: string | null
  readonly paused_by: number | null
  readonly next_run_at: string | null
  readonly last_run_at: string | null
  readonly last_job: { readonly job_id: string } | null
  readonly [field: string]: unknown
}

async function list(): Promise<Schedule[]> {
  const answer = await api.get(SCHEDULES, { token: admin.token })
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}
const read = async (name: string): Promise<Schedule> => (await list()).find((each) => each.id === name)!
const act = (name: string, what: string, headers = {}, token = admin.token): Promise<Answered> =>
  api.post(`${SCHEDULES}/${name}/${what}`, { token, headers })
const readJobIds = async (task: string): Promise<string[]> =>
  (await query('select id from job where name = $1 order by ordinal', [task])).map(({ id }) => id as string)
const readAuditEvents = (requestId: string) =>
  query(`select kind, actor_id, account_id, data from audit_event where request_id = $1 order by id`, [
    requestId,
  ])

test('lists every entry, with its next runs', async () => {
  const found = await list()
  assert.deepEqual(
    found.map(({ id, name, cron, is_built_in, owner_id }) => ({ id, name, cron, is_built_in, owner_id })),
    scheduleEntries
      .map(({ identifier: id, match: cron }) => ({ id, name: id, cron, is_built_in: true, owner_id: null }))
      .sort((a, b) => (a.id < b.id ? -1 : 1)),
  )
  for (const { cron, next_run_at, next_runs } of found) {
    assert.equal((next_runs as string[])[0], next_run_at)
    for (const [index, at] of (next_runs as string[]).slice(1).entries())
      assert.equal(
        findNextRun(parseCron(cron as string), 'UTC', Date.parse((next_runs as string[])[index]!)),
        Date.parse(at),
      )
  }
  const { task_name, queue_type, time_zone, overlap, catch_up, paused_at, last_job } = await read('collect')
  assert.deepEqual(
    { task_name, queue_type, time_zone, overlap, catch_up, paused_at, last_job },
    {
      ...{
        task_name: 'documents.collect',
        queue_type: 'system',
        time_zone: 'UTC',
        overlap: 'skip',
        catch_up: 'none',
      },
      ...{ paused_at: null, last_job: null },
    },
  )
  assert.deepEqual(
    (await api.get(`${SCHEDULES}/collect`, { token: admin.token })).json,
    await read('collect'),
  )
})

test('a run returns its job, which becomes the last one, with its outcome', async () => {
  const answer = await act('blog-retag', 'run')
  assert.equal(answer.status, 202, answer.text)
  const [id, ...more] = await readJobIds('blog.retag')
  assert.deepEqual([answer.json.job_id, more], [id, []])
  assert.equal(answer.headers.location, `/api/v1/jobs/${id}`)
  assert.deepEqual(answer.json, (await api.get(`/api/v1/jobs/${id}`, { token: admin.token })).json)
  const [row] = await query('select owner_id, request_id, payload from job where id = $1', [id])
  assert.deepEqual(row, { owner_id: null, request_id: answer.headers['x-request-id'], payload: {} })
  const { last_run_at, last_job } = await read('blog-retag')
  assert.ok(Math.abs(Date.parse(last_run_at!) - Date.now()) < 60_000)
  assert.deepEqual(last_job, { job_id: id, status: 'queued', error: null, finished_at: null })

  await ledger.claim(id!)
  const error = { code: 'internal', detail: 'It broke' }
  await ledger.finish(id!, 'failed', error)
  const ended = (await api.get(`/api/v1/jobs/${id}`, { token: admin.token })).json
  assert.deepEqual((await read('blog-retag')).last_job, {
    job_id: id,
    status: 'failed',
    error,
    finished_at: ended.finished_at,
  })
})

test('a run joins a live job if its task does', async () => {
  const first = (await act('collect', 'run')).json.job_id
  const second = await act('collect', 'run')
  assert.deepEqual([second.status, second.json.job_id], [202, first])
  assert.deepEqual(await readJobIds('documents.collect'), [first])
})

test('a paused entry has no next run, shows who paused it and when, and can still be run', async () => {
  const other = await newcomer()
  await api.call('PATCH', `/api/v1/auth/users/${other.id}/role?role=admin`, { token: admin.token })
  const paused = await act('retention', 'pause')
  assert.equal(paused.status, 200, paused.text)
  const { paused_at, paused_by, next_run_at } = paused.json
  assert.ok(Math.abs(Date.parse(paused_at) - Date.now()) < 60_000)
  assert.deepEqual([paused_by, next_run_at], [admin.id, null])
  assert.deepEqual(await read('retention'), paused.json)

  const again = await act('retention', 'pause', {}, other.token)
  assert.deepEqual([again.status, again.json], [200, paused.json], 'the first pause counts')

  const run = await act('retention', 'run')
  assert.equal(run.status, 202)
  const after = await read('retention')
  assert.deepEqual([after.last_job!.job_id, after.paused_at], [run.json.job_id, paused_at])

  for (const _ of ['resumed', 'once more']) {
    const resumed = await act('retention', 'resume')
    assert.equal(resumed.status, 200, resumed.text)
    assert.deepEqual([resumed.json.paused_at, resumed.json.paused_by], [null, null])
    assert.ok(Date.parse(resumed.json.next_run_at) > Date.now())
    assert.deepEqual(await read('retention'), resumed.json)
  }
})

test('each action takes effect once per Idempotency-Key', async () => {
  const key = (text: string) => ({ 'idempotency-key': text })
  const run = await act('rag-purge', 'run', key('run'))
  const repeated = await act('rag-purge', 'run', key('run'))
  assert.deepEqual(
    [repeated.status, repeated.json, repeated.headers.location],
    [run.status, run.json, run.headers.location],
  )
  assert.equal((await readJobIds('rag.purge')).length, 1)
  await act('rag-purge', 'run')
  assert.equal((await readJobIds('rag.purge')).length, 2, 'without one, as often as it is asked for')

  const paused = await act('rag-purge', 'pause', key('pause'))
  await act('rag-purge', 'resume')
  assert.deepEqual((await act('rag-purge', 'pause', key('pause'))).json, paused.json)
  assert.equal((await read('rag-purge')).paused_at, null, 'the repetition did nothing')
})

test('each change has one audit event', async () => {
  let count = 0
  const told = async (what: string, expected: readonly string[], name = 'llm-sync') => {
    const id = `schedule-${++count}`
    await act(name, what, { 'x-request-id': id })
    const data = { schedule: name }
    const events = expected.map((kind) => ({ kind, actor_id: admin.id, account_id: null, data }))
    assert.deepEqual(await readAuditEvents(id), events, `${what} ${name}`)
  }
  await told('run', ['schedule.run'])
  await told('pause', ['schedule.paused'])
  await told('pause', [])
  await told('run', ['schedule.run'])
  await told('resume', ['schedule.resumed'])
  await told('resume', [])
  for (const what of ['run', 'pause', 'resume']) await told(what, [], 'unknown')
  const answer = await api.get('/api/v1/auth/audit?kind=schedule.paused', { token: admin.token })
  assert.ok(answer.json.events.length > 0)
})

test('an unknown schedule is 404', async () => {
  for (const what of ['run', 'pause', 'resume'])
    for (const name of ['unknown', 'system.retention', 'Retention', 'constructor', '%20', 'x'.repeat(2000)])
      assertRefused(await act(name, what), 404, 'Schedule not found', `${what} ${name}`)
})

test('a built-in schedule cannot be changed or deleted', async () => {
  const path = `${SCHEDULES}/payments`
  for (const answer of [
    await api.call('PATCH', path, { token: admin.token, json: { name: 'mine' } }),
    await api.call('DELETE', path, { token: admin.token }),
  ])
    assertRefused(answer, 409, 'A built-in schedule can only be paused, resumed and run')
  await query(
    `insert into schedule (id, is_built_in, name, task_name, queue_type, args, cron, time_zone, overlap, catch_up)
     values ('former', true, 'former', 't', 'q', '{}', '@daily', 'UTC', 'skip', 'none')`,
  )
  const former = await api.call('DELETE', `${SCHEDULES}/former`, { token: admin.token })
  assert.equal(former.status, 204, 'this version does not declare it')
})

test('accounts that are no admins do not see them', async () => {
  const calls = ['run', 'pause', 'resume'].map((what) => ['POST', `${SCHEDULES}/payments/${what}`] as const)
  for (const { token } of [moderator, user]) assert.deepEqual((await api.get(SCHEDULES, { token })).json, [])
  for (const [method, path] of [['GET', `${SCHEDULES}/payments`] as const, ...calls]) {
    for (const { token } of [moderator, user])
      assertRefused(await api.call(method, path, { token }), 404, 'Schedule not found', path)
    assertRefused(await api.call(method, path), 401, 'Not authenticated', path)
  }
  assert.deepEqual(await readJobIds('payments.reconcile'), [])
})

test('without authentication a pause names no account', async () => {
  const answer = await noAuthEdge.post(`${SCHEDULES}/payments/pause`)
  assert.equal(answer.status, 200, answer.text)
  assert.deepEqual([answer.json.paused_at === null, answer.json.paused_by], [false, null])
  assert.equal((await noAuthEdge.get(SCHEDULES)).json.length, scheduleEntries.length)
})
