import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { startEdgeAndDatabase } from './harness.ts'
import { createLedger } from './ledger.ts'

/** Tests the routes of batches; no worker runs, but `ledger` ends jobs as one does. */

const { api, ...database } = await startEdgeAndDatabase()
const { query } = database
const ledger = createLedger(database)
const admin = await api.register('admin@example.com')
const owner = await api.register('owner@example.com')
const other = await api.register('other@example.com')

const PATH = '/api/v1/batches'
const io = (more: object = {}) => ({ task_name: 'io_simulation_task', queue_type: 'load_test', ...more })
const post = (rest: string, json: unknown, token = owner.token, headers: Record<string, string> = {}) =>
  api.post(`${PATH}${rest}`, { json, token, headers })
const get = async (id: string, token = owner.token) => api.get(`${PATH}/${id}`, { token })
const add = async (jobs: readonly object[], more: object = {}) => {
  const answer = await post('', { jobs, ...more })
  assert.equal(answer.status, 202, JSON.stringify(answer.json))
  return answer.json as { batch_id: string; job_ids: string[]; status: string }
}
const statusesOf = async (ids: readonly string[]) => {
  const rows = await query('select id, status from job where id = any($1)', [ids])
  return ids.map((id) => rows.find((row) => row.id === id)?.status)
}
const end = async (id: string, outcome: 'done' | 'failed' = 'done') => {
  await ledger.claim(id)
  await ledger.finish(
    id,
    outcome,
    outcome === 'done' ? { result: { id } } : { code: 'task.chosen_failure', detail: 'As asked' },
  )
}

describe('a batch', () => {
  test('is added with different jobs, counted, listed with results, and ends', async () => {
    const answer = await post('', {
      name: 'nightly',
      jobs: [io({ args: { operations: 1 } }), { task_name: 'cpu_intensive_task' }, io({ delay_seconds: 60 })],
    })
    const { batch_id, job_ids } = answer.json
    assert.equal(answer.headers.location, `${PATH}/${batch_id}`)
    assert.deepEqual([answer.json.status, job_ids.length], ['running', 3])
    const batch = (await get(batch_id)).json
    assert.deepEqual(
      [batch.name, batch.status, batch.progress, batch.failures, batch.started_at, batch.finished_at],
      ['nightly', 'running', { current: 0, total: 3 }, [], null, null],
    )
    assert.deepEqual(batch.counts, { waiting: 0, queued: 3, running: 0, done: 0, failed: 0, cancelled: 0 })

    await end(job_ids[0])
    await end(job_ids[1], 'failed')
    const later = (await get(batch_id)).json
    assert.deepEqual(later.counts, { waiting: 0, queued: 1, running: 0, done: 1, failed: 1, cancelled: 0 })
    assert.deepEqual(
      later.failures.map(({ job_id, error }: { job_id: string; error: { code: string } }) => [
        job_id,
        error.code,
      ]),
      [[job_ids[1], 'task.chosen_failure']],
    )
    await query(`update job set status = 'available' where id = $1`, [job_ids[2]])
    await end(job_ids[2])
    await end(batch_id)
    const ended = (await get(batch_id)).json
    assert.deepEqual([ended.status, ended.progress.current], ['done', 3])

    const first = await api.get(`${PATH}/${batch_id}/jobs?limit=2`, { token: owner.token })
    assert.deepEqual(
      first.json.map(({ job_id, result }: { job_id: string; result: unknown }) => [job_id, result]),
      [
        [job_ids[0], { id: job_ids[0] }],
        [job_ids[1], null],
      ],
    )
    const next = /<([^>]*)>/.exec(String(first.headers.link))![1]!
    assert.deepEqual(
      (await api.get(next, { token: owner.token })).json.map(({ job_id }: { job_id: string }) => job_id),
      [job_ids[2]],
    )
    const failed = await api.get(`${PATH}/${batch_id}/jobs?status=failed`, { token: owner.token })
    assert.equal(failed.json.length, 1)
  })

  test('is a graph, by indexes and ids', async () => {
    const before = await add([io()])
    const { batch_id, job_ids } = await add([
      io(),
      io({ after: [0] }),
      io({ after: [0, 0, before.job_ids[0]!] }),
      io({ after: [1, 2], after_outcome: 'any' }),
    ])
    const [a, b, c, d] = job_ids as [string, string, string, string]
    assert.deepEqual(await statusesOf(job_ids), ['available', 'waiting', 'waiting', 'waiting'])
    const listed = (await api.get(`/api/v1/batches/${batch_id}/jobs`, { token: owner.token })).json
    assert.deepEqual(
      listed.map(({ after }: { after: string[] }) => after),
      [[], [a], [a, before.job_ids[0]], [b, c]],
    )
    await end(a)
    assert.deepEqual(await statusesOf(job_ids), ['done', 'available', 'waiting', 'waiting'])
    await end(before.job_ids[0]!, 'failed')
    assert.deepEqual(await statusesOf([c, d]), ['cancelled', 'waiting'])
    const { error, status } = (await api.get(`/api/v1/jobs/${c}`, { token: owner.token })).json
    assert.deepEqual([status, error.code], ['cancelled', 'job.dependency_failed'])
    assert.ok(error.detail.includes(before.job_ids[0]))
    await end(b)
    assert.deepEqual(await statusesOf([d]), ['available'])
  })

  test('stays open for more jobs until it is closed', async () => {
    const { batch_id, status } = await add([], { open: true })
    assert.equal(status, 'open')
    const more = await post(`/${batch_id}/jobs`, { jobs: [io(), io({ after: [0] })] })
    assert.equal(more.status, 202)
    const [first] = more.json.job_ids as string[]
    const again = await post(`/${batch_id}/jobs`, { jobs: [io({ after: [first!] })] })
    assert.equal(again.status, 202)
    await end(first!)
    assert.deepEqual(await statusesOf([...again.json.job_ids]), ['available'])
    assert.equal((await get(batch_id)).json.status, 'open')
    assert.equal((await post(`/${batch_id}/close`, {})).json.status, 'running')
    assert.equal((await post(`/${batch_id}/close`, {})).status, 200)
    const late = await post(`/${batch_id}/jobs`, { jobs: [io()] })
    assert.deepEqual([late.status, late.json.code], [409, 'batch.closed'])
  })

  test('ends when it is closed without jobs', async () => {
    const { batch_id } = await add([])
    assert.deepEqual(await statusesOf([batch_id]), ['available'])
    await end(batch_id)
    assert.equal((await get(batch_id)).json.status, 'done')
  })

  test('is cancelled with its jobs, after those that run', async () => {
    const { batch_id, job_ids } = await add([io(), io(), io({ after: [0] })])
    await ledger.claim(job_ids[0]!)
    const cancelled = await api.call('DELETE', `${PATH}/${batch_id}`, { token: owner.token })
    assert.deepEqual([cancelled.status, cancelled.json.status], [202, 'cancelling'])
    assert.deepEqual(await statusesOf(job_ids), ['running', 'cancelled', 'cancelled'])
    await ledger.finish(job_ids[0]!, 'cancelled', {})
    const batch = (await get(batch_id)).json
    assert.deepEqual([batch.status, batch.counts.cancelled], ['cancelled', 3])
  })

  test('retries what did not succeed as a new batch, with its dependencies', async () => {
    const { batch_id, job_ids } = await add(
      [io({ key: 'mine', limit: 2, priority: 'low' }), io({ after: [0] }), io()],
      { name: 'import' },
    )
    await end(job_ids[2]!)
    assert.deepEqual((await post(`/${batch_id}/retry`, {})).json.code, 'batch.succeeded')
    await end(job_ids[0]!, 'failed')
    await end(batch_id)
    const retried = await post(`/${batch_id}/retry`, {})
    assert.deepEqual([retried.status, retried.json.name, retried.json.counts.queued], [202, 'import', 1])
    const jobs = (await api.get(`${PATH}/${retried.json.batch_id}/jobs`, { token: owner.token })).json
    assert.deepEqual(
      jobs.map(({ status, retry_of }: { status: string; retry_of: string }) => [status, retry_of]),
      [
        ['queued', job_ids[0]],
        ['waiting', job_ids[1]],
      ],
    )
    const [row] = await query('select key, mailbox_limit, priority from job where id = $1', [jobs[0].job_id])
    assert.deepEqual(row, { key: 'mine', mailbox_limit: 2, priority: 1 })
    assert.equal((await post(`/${batch_id}/retry`, {})).json.code, 'batch.succeeded')
  })

  test('retries a job that was cancelled if another needs it, and waits for earlier retries', async () => {
    const { batch_id, job_ids } = await add([io(), io({ after: [0] }), io(), io({ after: [2] })])
    const [first, second, third] = job_ids as [string, string, string]
    await api.call('DELETE', `/api/v1/jobs/${first}`, { token: owner.token })
    await end(third, 'failed')
    const single = (await api.post(`/api/v1/jobs/${third}/retry`, { token: owner.token })).json.job_id
    const retried = await post(`/${batch_id}/retry`, {})
    const jobs = (await api.get(`${PATH}/${retried.json.batch_id}/jobs`, { token: owner.token })).json
    assert.deepEqual(
      jobs.map(({ retry_of, status }: { retry_of: string; status: string }) => [retry_of, status]),
      [
        [first, 'queued'],
        [second, 'waiting'],
        [job_ids[3], 'waiting'],
      ],
    )
    const [row] = await query('select after from job where id = $1', [jobs[2].job_id])
    assert.deepEqual(row!.after, [single])
  })

  test('keeps its ended jobs until it expires itself', async () => {
    const { batch_id, job_ids } = await add([io()], { open: true })
    const [first] = job_ids as [string]
    await end(first)
    await query(`update job set finished_at = now() - interval '2 hours' where id = $1`, [first])
    const job = await api.get(`/api/v1/jobs/${first}`, { token: owner.token })
    assert.deepEqual([job.status, job.json.expires_at], [200, null])
    assert.equal((await post(`/${batch_id}/jobs`, { jobs: [io({ after: [first] })] })).status, 202)
    await api.call('DELETE', `${PATH}/${batch_id}`, { token: owner.token })
    assert.ok((await api.get(`/api/v1/jobs/${first}`, { token: owner.token })).json.expires_at !== null)
  })

  test('is not retried if a job outside of it did not succeed', async () => {
    const outside = (await add([io()])).job_ids[0]!
    const { batch_id } = await add([io({ after: [outside] })])
    await end(outside, 'failed')
    const answer = await post(`/${batch_id}/retry`, {})
    assert.deepEqual([answer.status, answer.json.code], [409, 'job.dependency_failed'])
  })

  test('has the jobs that an admin adds to it, too', async () => {
    const { batch_id } = await add([], { open: true })
    const added = await post(`/${batch_id}/jobs`, { jobs: [io({ priority: 'high' })] }, admin.token)
    const [row] = await query('select owner_id, priority from job where id = $1', [added.json.job_ids[0]])
    assert.deepEqual(row, { owner_id: owner.id, priority: -1 })
  })

  test('counts towards the quota of waiting jobs', async () => {
    await query(`insert into account_quota (account_id, kind, quota) values ($1, 'waiting_jobs', 50)`, [
      other.id,
    ])
    const jobs = Array.from({ length: 100 }, (_, n) => io(n === 0 ? {} : { after: [0] }))
    const answer = await post('', { jobs }, other.token)
    assert.deepEqual([answer.status, answer.json.code], [429, 'quota.waiting_jobs'])
    await query('delete from account_quota')
  })

  test('is added once per Idempotency-Key', async () => {
    const headers = { 'idempotency-key': 'batch-1' }
    const [one, two] = [
      await post('', { jobs: [io()] }, owner.token, headers),
      await post('', { jobs: [io()] }, owner.token, headers),
    ]
    assert.deepEqual(one.json, two.json)
  })

  test('belongs to its owner: others get 404, admins may do everything', async () => {
    const { batch_id, job_ids } = await add([io()], { open: true })
    for (const [method, rest, json] of [
      ['GET', '', undefined],
      ['GET', '/jobs', undefined],
      ['POST', '/jobs', { jobs: [io()] }],
      ['POST', '/close', {}],
      ['POST', '/retry', {}],
      ['DELETE', '', undefined],
    ] as const) {
      const request = { token: other.token, ...(json && { json }) }
      const answer = await api.call(method, `${PATH}/${batch_id}${rest}`, request)
      assert.deepEqual([answer.status, answer.json.code], [404, 'batch.missing'], `${method} ${rest}`)
    }
    assert.equal((await get(batch_id, admin.token)).status, 200)
    const foreign = await post('', { jobs: [io({ after: [job_ids[0]] })] }, other.token)
    assert.deepEqual([foreign.status, foreign.json.code], [404, 'job.missing'])
    for (const id of ['nonsense', '01a20118-fbcc-738c-80ed-00058e0e401d', job_ids[0]!])
      assert.equal((await get(id)).status, 404)
  })

  test('is refused as a whole with the place of each problem', async () => {
    const cases: [object, unknown][] = [
      [{ jobs: [io(), io({ args: { operations: 0 } })] }, ['body', 'jobs', 1, 'args', 'operations']],
      [{ jobs: [io({ after: [0] })] }, ['body', 'jobs', 0, 'after']],
      [{ jobs: [io({ key: 'a', when_busy: 'join' }), io({ after: [0] })] }, ['body', 'jobs', 1, 'after']],
      [{ jobs: [io({ limit: 2 })] }, ['body', 'jobs', 0, 'limit']],
      [{ jobs: [io()], callback_url: 'ftp://example.com' }, ['body', 'callback_url']],
      [{ jobs: Array.from({ length: 10_001 }, () => io()) }, ['body', 'jobs']],
      [{ jobs: Array.from({ length: 1001 }, (_, n) => io({ key: `${n}` })) }, ['body', 'jobs']],
      [{}, ['body', 'jobs']],
    ]
    for (const [body, loc] of cases) {
      const answer = await post('', body)
      assert.deepEqual([answer.status, answer.json.errors[0].loc], [422, loc], JSON.stringify(answer.json))
    }
    assert.equal((await post('', { jobs: [io({ task_name: 'no_such_task' })] })).json.code, 'task.unknown')
    assert.equal((await post('', { jobs: [io({ priority: 'high' })] })).json.code, 'auth.forbidden')
  })

  test('has 10,000 jobs with a dependency each', async () => {
    const jobs = Array.from({ length: 10_000 }, (_, n) => io(n % 2 === 0 ? {} : { after: [n - 1] }))
    const { batch_id } = await add(jobs)
    const { counts } = (await get(batch_id)).json
    assert.deepEqual([counts.queued, counts.waiting], [5000, 5000])
    await api.call('DELETE', `${PATH}/${batch_id}`, { token: owner.token })
    assert.equal((await get(batch_id)).json.status, 'cancelled')
  })
})
