import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { uuidv7 } from '../../sql/ids.ts'
import { bulkJobs, type JobsActionPayload } from '../../tasks/system/bulk.task.ts'
import { enqueue } from '../../tasks/task.ts'
import { createJobSettings } from '../job-settings.ts'
import { until } from '../until.ts'
import { startEdgeAndDatabase } from './harness.ts'
import { createLedger } from './ledger.ts'
import { startOwnWorker } from './own-worker.ts'

/** Owners search, count, cancel, retry and delete their own jobs, and no others. */

const QUOTA = 50
const { api, ...database } = await startEdgeAndDatabase()
const { query } = database
const ledger = createLedger(database)
const admin = await api.register('admin@example.com')
const ann = await api.register('ann@example.com')
const bob = await api.register('bob@example.com')
const JOBS = '/api/v1/jobs'
await startOwnWorker(database.url, 'system', { QUOTA_WAITING_JOBS: String(QUOTA) })

const search = (params: Record<string, string>, token: string | undefined = ann.token) =>
  api.get(`${JOBS}/search?${new URLSearchParams({ queue: 'documents', ...params })}`, { token })
const searchIds = async (params: Record<string, string>, token?: string): Promise<string[]> => {
  const { status, json, text } = await search(params, token)
  assert.equal(status, 200, text)
  return json.jobs.map(({ job_id }: { job_id: string }) => job_id)
}
let documents = 0
/** Options of a job with a document of its own. Otherwise one retry would join another. */
const createDocument = () => {
  documents++
  return {
    payload: { documentId: documents, force: false },
    mailbox: `document:${documents}`,
    mailbox_limit: 1,
  }
}
const addFailed = async (ownerId: number, count: number): Promise<string[]> => {
  const ids: string[] = []
  for (let n = 0; n < count; n++) ids.push(await ledger.add(ownerId, createDocument()))
  for (const id of ids) {
    await ledger.claim(id)
    await ledger.finish(id, 'failed', { code: 'internal', detail: 'no' })
  }
  return ids
}
const statusesOf = async (ids: readonly string[]) =>
  (
    await query(
      'select status, count(*)::int as n from job where id = any($1) group by status order by status',
      [ids],
    )
  ).map(({ status, n }) => `${n} ${status}`)

describe('an owner who searches jobs', () => {
  test('finds only own jobs, by every filter', async () => {
    const batch = uuidv7()
    await ledger.add(ann.id, {
      id: batch,
      name: 'jobs.batch',
      queue: 'system',
      is_batch: true,
      payload: { is_open: true },
    })
    const [batchId] = (await query(`select id from job where name = 'jobs.batch'`)).map(({ id }) =>
      String(id),
    )
    const keyed = await ledger.add(ann.id, { key: 'k', request_id: 'r' })
    const member = await ledger.add(ann.id, { batch_id: batchId, name: 'documents.draw' })
    const waiting = await ledger.add(ann.id, { after: [keyed], after_outcome: 'any' })
    const [failed] = await addFailed(ann.id, 1)
    for (const add of [
      ledger.add(bob.id, { key: 'k', request_id: 'r' }),
      ledger.add(null),
      addFailed(bob.id, 1),
    ])
      await add
    const all = [failed!, waiting, member, keyed]
    const [{ at, end } = {}] = await query(
      'select created_at as at, finished_at as end from job where id = $1',
      [failed],
    )
    const before = new Date((at as Date).getTime() + 1).toISOString()
    assert.ok(end !== null)
    for (const [params, ids] of [
      [{}, all],
      [{ owner_id: String(ann.id) }, all],
      [{ sort: 'created_at' }, all.toReversed()],
      [{ sort: '-finished_at' }, [failed]],
      [{ sort: '-attempts', limit: '1' }, [failed]],
      [{ status: 'failed' }, [failed]],
      [{ status: 'waiting' }, [waiting]],
      [{ status: 'queued' }, [member, keyed]],
      [{ batch: batchId }, [member]],
      [{ batch: batchId, status: 'failed' }, []],
      [{ batch: batchId, sort: '-ran' }, [member]],
      [{ batch: failed }, []],
      [{ key: 'k' }, [keyed]],
      [{ key: 'k', sort: '-finished_at' }, []],
      [{ key: 'other' }, []],
      [{ task: 'documents.draw' }, [member]],
      [{ request_id: 'r' }, [keyed]],
      [{ queue: 'system' }, [batchId]],
      [{ to: before }, all],
      [{ from: before }, []],
    ] as const)
      assert.deepEqual(await searchIds(params as never), ids, JSON.stringify(params))
    assert.deepEqual(await searchIds({ batch: batchId! }, bob.token), [])
    assert.equal((await searchIds({ key: 'k' }, admin.token)).length, 2)
    const { json } = await search({ batch: batchId! })
    assert.deepEqual(
      [json.jobs[0].batch_id, json.jobs[0].key, json.jobs[0].owner_id],
      [batchId, null, ann.id],
    )
  })

  test('reads pages in every order', async () => {
    for (const sort of ['created_at', '-created_at', '-finished_at', '-ran']) {
      const whole = await searchIds({ sort })
      const seen: string[] = []
      for (let next: string | null = ''; next !== null; ) {
        const { json } = await search({ sort, limit: '1', ...(next === '' ? {} : { cursor: next }) })
        seen.push(...json.jobs.map(({ job_id }: { job_id: string }) => job_id))
        next = json.next
      }
      assert.deepEqual(seen, whole, sort)
    }
  })

  test('is refused the jobs of others, and needs an account', async () => {
    for (const path of [`${JOBS}/search?owner_id=${bob.id}`, `${JOBS}/failures?owner_id=${bob.id}`]) {
      const { status, json } = await api.get(path, { token: ann.token })
      assert.deepEqual([status, json.code], [403, 'auth.forbidden'], path)
    }
    for (const path of ['search', 'failures']) assert.equal((await api.get(`${JOBS}/${path}`)).status, 401)
    for (const params of [{ batch: 'x' }, { key: '' }, { key: 'x'.repeat(201) }])
      assert.equal((await search(params as never)).status, 422, JSON.stringify(params))
  })

  test('counts only own failures', async () => {
    const count = async (token: string): Promise<number> =>
      (await api.get(`${JOBS}/failures`, { token })).json.groups.reduce(
        (sum: number, { jobs }: { jobs: number }) => sum + jobs,
        0,
      )
    assert.deepEqual([await count(ann.token), await count(bob.token), await count(admin.token)], [1, 1, 2])
  })
})

describe('a bulk action of an owner', () => {
  const bulk = (json: unknown, token: string | undefined = ann.token) =>
    api.post(`${JOBS}/bulk`, { token, json })
  const outcomeOf = (id: string) =>
    until('the action has ended', async () => {
      const { json } = await api.get(`${JOBS}/${id}`, { token: admin.token })
      return ['done', 'failed'].includes(json.status) && json
    })
  const act = async (json: unknown) => {
    const { status, json: job, text } = await bulk(json)
    assert.equal(status, 202, text)
    return (await outcomeOf(job.job_id)).result
  }

  test('retries, cancels and deletes own jobs only', async () => {
    const [mine, others] = [await addFailed(ann.id, 3), await addFailed(bob.id, 2)]
    const filter = { queue: 'documents', status: 'failed' }
    const { done } = await act({ action: 'retry', filter })
    assert.ok(done >= 3)
    const retries = (await query('select id, owner_id from job where retry_of = any($1)', [
      [...mine, ...others],
    ])) as unknown as { id: string; owner_id: number }[]
    assert.deepEqual(
      retries.map(({ owner_id }) => owner_id),
      [ann.id, ann.id, ann.id],
    )
    assert.deepEqual(await act({ action: 'retry', ids: others }), { done: 0, refused: 0, more: false })
    const theirs = await ledger.add(bob.id)
    await act({ action: 'cancel', filter: { queue: 'documents' } })
    assert.deepEqual(await statusesOf(retries.map(({ id }) => id)), ['3 cancelled'])
    assert.deepEqual(await statusesOf([theirs]), ['1 available'])
    await act({ action: 'delete', filter: { queue: 'documents' } })
    assert.deepEqual([await statusesOf(mine), await statusesOf(others)], [[], ['2 failed']])
  })

  test('cancels the members of a batch, and those that match its filter', async () => {
    const batch = await ledger.add(ann.id, {
      name: 'jobs.batch',
      queue: 'system',
      is_batch: true,
      payload: { is_open: true },
    })
    const blocker = await ledger.add(ann.id, { delay_ms: 3_600_000 })
    const members = [
      await ledger.add(ann.id, { batch_id: batch, ...createDocument() }),
      await ledger.add(ann.id, { batch_id: batch, after: [blocker], after_outcome: 'any' }),
    ]
    assert.equal((await act({ action: 'cancel', filter: { batch, status: 'queued' } })).done, 1)
    assert.deepEqual(await statusesOf(members), ['1 cancelled', '1 waiting'])
    assert.equal((await act({ action: 'cancel', ids: [batch] })).done, 1)
    assert.deepEqual(await statusesOf([...members, batch]), ['3 cancelled'])
  })

  test('keeps the quota of waiting jobs', async () => {
    const mine = await addFailed(ann.id, QUOTA + 5)
    const { json } = await bulk({ action: 'retry', ids: mine })
    const readRetries = async () =>
      (await query('select id from job where retry_of = any($1) and finished_at is null', [mine])).map(
        ({ id }) => id,
      )
    const isFull = async () => {
      const [{ n } = {}] = await query(
        `select count(*)::int as n from job where owner_id = $1 and name <> 'jobs.bulk' and status in ('waiting', 'scheduled', 'available')`,
        [ann.id],
      )
      assert.ok((n as number) <= QUOTA)
      return (n as number) >= QUOTA - 1
    }
    await until('the quota is full', isFull)
    const first = await readRetries()
    assert.ok(
      first.length < mine.length &&
        !['done', 'failed'].includes(
          (await api.get(`${JOBS}/${json.job_id}`, { token: ann.token })).json.status,
        ),
    )
    await query('select job_cancel($1::uuid[])', [first])
    assert.equal((await outcomeOf(json.job_id)).status, 'done')
    assert.equal((await readRetries()).length, mine.length - first.length)
  })

  test('keeps the key, limit and priority of a retried job', async () => {
    const failed = await ledger.add(ann.id, {
      name: 'load_test.io_simulation_task',
      queue: 'load_test',
      payload: { operations: 1, duration_ms: 1 },
      key: 'mine',
      mailbox: 'mine',
      mailbox_limit: 3,
      priority: 1,
    })
    await ledger.claim(failed)
    await ledger.finish(failed, 'failed', { code: 'internal', detail: 'no' })
    await act({ action: 'retry', ids: [failed] })
    assert.deepEqual(
      await query('select key, mailbox_limit, priority from job where retry_of = $1', [failed]),
      [{ key: 'mine', mailbox_limit: 3, priority: 1 }],
    )
  })

  test('keeps what a job that has not ended depends on', async () => {
    const first = await ledger.addFinished(ann.id)
    const second = await ledger.add(ann.id, { after: [first], after_outcome: 'done', delay_ms: 60_000 })
    assert.deepEqual(await act({ action: 'delete', ids: [first] }), { done: 0, refused: 1, more: false })
    await act({ action: 'cancel', ids: [second] })
    assert.equal((await act({ action: 'delete', ids: [first] })).done, 1)
  })

  test('is refused for the jobs of others, by the route and by the job', async () => {
    const filter = { owner_id: bob.id }
    const refused = await bulk({ action: 'cancel', filter })
    assert.deepEqual([refused.status, refused.json.code], [403, 'auth.forbidden'])
    assert.equal((await api.post(`${JOBS}/bulk`, { json: { action: 'cancel' } })).status, 401)
    assert.equal((await bulk({ action: 'cancel', owners: 'any' })).status, 422)
    const options = { settings: createJobSettings() }
    const run = async (ownerId: number | null, payload: Omit<JobsActionPayload, 'action'>) => {
      const { jobId } = await database.db.transaction((tx) =>
        enqueue(tx, bulkJobs, { action: 'cancel', ...payload }, { ownerId, ...options }),
      )
      return outcomeOf(jobId)
    }
    assert.equal((await run(ann.id, { filter, owners: 'own' })).error.code, 'auth.forbidden')
    assert.equal((await run(null, { filter: {}, owners: 'own' })).error.code, 'auth.forbidden')
  })

  test('cannot be retried, because its caller may have lost the rights', async () => {
    const { jobId } = await database.db.transaction((tx) =>
      enqueue(
        tx,
        bulkJobs,
        { action: 'cancel', filter: {}, ids: [uuidv7()], owners: 'any' },
        {
          ownerId: ann.id,
          settings: createJobSettings(),
        },
      ),
    )
    await outcomeOf(jobId)
    await query(
      `update job set status = 'failed', error_code = 'internal', error_detail = 'x' where id = $1`,
      [jobId],
    )
    const { status, json } = await api.post(`${JOBS}/${jobId}/retry`, { token: ann.token })
    assert.deepEqual([status, json.code], [409, 'job.not_retryable'])
  })

  test('is an audited event', async () => {
    const { json } = await bulk({ action: 'delete', filter: { task: 'none.such' } })
    const [event] = await query(
      `select actor_id, data from audit_event where kind = 'job.bulk' order by id desc limit 1`,
    )
    const filter = { task: 'none.such', owner_id: ann.id }
    assert.deepEqual(event, { actor_id: ann.id, data: { action: 'delete', filter, job_id: json.job_id } })
  })
})
