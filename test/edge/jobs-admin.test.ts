import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { until } from '../until.ts'
import { type Answered, startEdgeAndDatabase } from './harness.ts'
import { createLedger } from './ledger.ts'
import { startOwnWorker } from './own-worker.ts'

/** Tests job search, failure counts and bulk actions. */

const { api, ...database } = await startEdgeAndDatabase()
const { query } = database
const ledger = createLedger(database)
const admin = await api.register('admin@example.com')
const ann = await api.register('ann@example.com')
const adminToken = { token: admin.token }
const JOBS = '/api/v1/jobs'

const search = async (params: Record<string, string> = {}): Promise<Answered> =>
  // Search one queue only, because jobs of other queues send mail to the accounts of the test.
  api.get(`${JOBS}/search?${new URLSearchParams({ queue: 'documents', ...params })}`, adminToken)
const searchJobIds = async (params: Record<string, string> = {}): Promise<string[]> => {
  const { status, json, text } = await search(params)
  assert.equal(status, 200, text)
  return json.jobs.map(({ job_id }: { job_id: string }) => job_id)
}

const waitingJob = await ledger.add(ann.id)
const runningJob = await ledger.add(admin.id)
await ledger.claim(runningJob)
await ledger.progress(runningJob, 'Page 3 of 9: 100 % "done"', 3, 9)
const failedJob = await ledger.add(ann.id)
await ledger.claim(failedJob)
await ledger.finish(failedJob, 'failed', { code: 'document.missing', detail: 'Document not found' })
const doneJob = await ledger.add(ann.id)
await ledger.claim(doneJob)
await ledger.finish(doneJob, 'done')
const allJobs = [doneJob, failedJob, runningJob, waitingJob]

describe('searching jobs', () => {
  test('returns all jobs, newest or oldest first, with the fields of the list', async () => {
    assert.deepEqual(await searchJobIds(), allJobs)
    assert.deepEqual(await searchJobIds({ sort: 'created_at' }), allJobs.toReversed())
    const { json } = await search({ status: 'failed' })
    const [{ created_at, started_at, finished_at, expires_at, ...job }] = json.jobs
    for (const time of [created_at, started_at, finished_at, expires_at]) assert.match(time, /Z$/)
    assert.deepEqual(job, {
      job_id: failedJob,
      name: 'documents.extract',
      queue: 'documents',
      owner_id: ann.id,
      owner_email: 'ann@example.com',
      status: 'failed',
      label: '',
      attempts: 1,
      request_id: null,
      error: { code: 'document.missing', detail: 'Document not found' },
      due_at: null,
      batch_id: null,
      key: null,
      retried_by: null,
    })
    assert.equal(json.next, null)
  })

  test('filters by every field, alone and combined', async () => {
    const [{ created_at: at }] = (await search({ status: 'running' })).json.jobs
    for (const [params, ids] of [
      [{ status: 'queued' }, [waitingJob]],
      [{ queue: 'documents' }, allJobs],
      [{ queue: 'voice' }, []],
      [{ task: 'documents.extract' }, allJobs],
      [{ task: 'documents' }, []],
      [{ code: 'document.missing' }, [failedJob]],
      [{ owner_id: String(ann.id) }, [doneJob, failedJob, waitingJob]],
      [{ owner_id: String(ann.id), status: 'done' }, [doneJob]],
      [{ search: 'PAGE 3' }, [runningJob]],
      [{ search: '100 % "' }, [runningJob]],
      [{ search: 'not found' }, [failedJob]],
      [{ search: '_age' }, []],
      [{ from: new Date(Date.parse(at) + 60_000).toISOString() }, []],
      [{ to: new Date(Date.parse(at) + 60_000).toISOString() }, allJobs],
      [{ request_id: 'none' }, []],
    ] as const)
      assert.deepEqual(await searchJobIds(params as never), ids, JSON.stringify(params))
  })

  test('returns consecutive pages', async () => {
    for (const [sort, ids] of [
      ['-created_at', allJobs],
      ['created_at', allJobs.toReversed()],
    ] as const) {
      const seen: string[] = []
      for (let next: string | null = ''; next !== null; ) {
        const { json } = await search({ sort, limit: '1', ...(next === '' ? {} : { cursor: next }) })
        seen.push(...json.jobs.map(({ job_id }: { job_id: string }) => job_id))
        next = json.next
      }
      assert.deepEqual(seen, ids)
    }
  })

  test('sorts by run time, wait time and attempts, in pages that stay stable while jobs run', async () => {
    const owner_id = String((await api.register('bob@example.com')).id)
    const measured = async (attempt: number, waited: number | null, ran: number | null): Promise<string> => {
      const id = await ledger.add(Number(owner_id))
      if (waited !== null) await ledger.claim(id)
      if (ran !== null) await ledger.finish(id, 'done')
      await query(
        `update job set attempt = $2, created_at = now() - interval '1 hour', run_at = now() - interval '1 hour',
           started_at = now() - interval '1 hour' + make_interval(secs => $3),
           finished_at = now() - interval '1 hour' + make_interval(secs => $3 + $4)
         where id = $1`,
        [id, attempt, waited, ran],
      )
      return id
    }
    const mine = { owner_id }
    const [one, two, three, four] = [
      await measured(2, 300, null),
      await measured(3, 200, 5),
      await measured(1, 400, 60),
      await measured(0, null, null),
    ]
    for (const [sort, ids] of [
      ['-ran', [one, three, two, four]],
      ['-waited', [four, three, one, two]],
      ['-attempts', [two, one, three, four]],
    ] as const) {
      assert.deepEqual(await searchJobIds({ sort, ...mine }), ids, sort)
      assert.deepEqual(await searchJobIds({ sort, ...mine, status: 'running' }), [one])
      const seen: string[] = []
      let added: string | null = null
      for (let next: string | null = ''; next !== null; ) {
        const { json } = await search({ sort, ...mine, limit: '1', ...(next === '' ? {} : { cursor: next }) })
        seen.push(...json.jobs.map(({ job_id }: { job_id: string }) => job_id))
        next = json.next
        // Add a job between the pages, which must not appear on a later page.
        added ??= await measured(1, 1, 1)
      }
      assert.deepEqual(seen, ids, sort)
      await query('delete from job where id = $1', [added])
    }
    await query('delete from job where owner_id = $1', [owner_id])
    const { next } = (await search({ sort: '-ran', limit: '1' })).json
    assert.equal((await search({ cursor: next })).status, 422)
    const other = (await search({ limit: '1' })).json.next
    assert.equal((await search({ sort: '-ran', cursor: other })).status, 422)
  })

  test('rejects invalid filters', async () => {
    for (const params of [
      { status: 'lost' },
      { owner_id: 'me' },
      { from: 'today' },
      { limit: '0' },
      { cursor: 'x' },
      { sort: 'name' },
    ])
      assert.equal((await search(params as never)).status, 422, JSON.stringify(params))
  })
})

describe('failure statistics', () => {
  const failures = async (params: Record<string, string> = {}) =>
    (await api.get(`${JOBS}/failures?${new URLSearchParams(params)}`, adminToken)).json

  test('count failures by task and code, with the latest failure and times', async () => {
    for (const code of ['document.missing', 'job.timeout']) {
      const id = await ledger.add(ann.id)
      await ledger.claim(id)
      await ledger.finish(id, 'failed', { code, detail: `It was ${code}` })
    }
    const { groups, span_seconds, total_is_exact } = await failures()
    assert.deepEqual([span_seconds, total_is_exact], [150, true])
    const [{ first_at, last_at, expires_at, last_job_id, history, ...group }, other] = groups
    assert.equal(Date.parse(expires_at), Date.parse(first_at) + 604_800_000)
    assert.deepEqual(group, {
      task: 'documents.extract',
      queue: 'documents',
      code: 'document.missing',
      jobs: 2,
      retried: 0,
      last_detail: 'It was document.missing',
    })
    assert.ok(first_at < last_at && last_job_id !== failedJob)
    assert.deepEqual([history.length, history.at(-1)], [24, 2])
    assert.deepEqual([other.code, other.jobs], ['job.timeout', 1])
  })

  test('can be filtered, also by time', async () => {
    assert.equal((await failures({ code: 'job.timeout' })).groups.length, 1)
    assert.deepEqual((await failures({ queue: 'voice' })).groups, [])
    await query(`update job set finished_at = now() - interval '90 seconds' where error_code = 'job.timeout'`)
    assert.equal((await failures({ seconds: '60' })).groups.length, 1)
    assert.equal((await failures({ seconds: '120' })).groups.length, 2)
    for (const seconds of ['59', '604801', 'x'])
      assert.equal((await api.get(`${JOBS}/failures?seconds=${seconds}`, adminToken)).status, 422)
  })
})

describe('bulk actions', () => {
  const bulk = (json: unknown) => api.post(`${JOBS}/bulk`, { ...adminToken, json })
  const result = (id: string) =>
    until('the action has ended', async () => {
      const { json } = await api.get(`${JOBS}/${id}`, adminToken)
      return json.status === 'done' && json.result
    })
  const states = async (ids: readonly string[]) =>
    (await query('select status, count(*)::int as n from job where id = any($1) group by status', [ids])).map(
      ({ status, n }) => `${n} ${status}`,
    )
  const addFailed = async (count: number, code: string): Promise<string[]> => {
    const ids: string[] = []
    // Use another document for each job: otherwise one retry would join another.
    for (let n = 1; n <= count; n++)
      ids.push(
        await ledger.add(ann.id, { payload: { documentId: n, force: false }, mailbox: `document:${n}` }),
      )
    for (const id of ids) {
      await ledger.claim(id)
      await ledger.finish(id, 'failed', { code, detail: 'no' })
    }
    return ids
  }

  test('retry, cancel and delete jobs in a job that reports its progress', async () => {
    await startOwnWorker(database.url, 'system', {})
    const failures = await addFailed(12, 'internal')
    const asked = await bulk({ action: 'retry', filter: { code: 'internal' } })
    assert.equal(asked.status, 202)
    assert.deepEqual([asked.json.name, asked.json.queue], ['jobs.bulk', 'system'])
    assert.equal(asked.headers.location, `${JOBS}/${asked.json.job_id}`)
    assert.deepEqual(await result(asked.json.job_id), { done: 12, refused: 0, more: false })
    const again = (await query('select id from job where retry_of = any($1)', [failures])).map(
      ({ id }) => id as string,
    )
    assert.equal(again.length, 12)
    // The first action has left no failed job to retry.
    const twice = await bulk({ action: 'retry', filter: { code: 'internal' } })
    assert.deepEqual(await result(twice.json.job_id), { done: 0, refused: 0, more: false })

    const some = await bulk({ action: 'cancel', ids: again.slice(0, 5) })
    assert.deepEqual(await result(some.json.job_id), { done: 5, refused: 0, more: false })
    const rest = await bulk({ action: 'cancel', filter: { owner_id: ann.id, task: 'documents.extract' } })
    assert.equal((await result(rest.json.job_id)).done >= 7, true)
    assert.deepEqual(await states(again), ['12 cancelled'])

    const gone = await bulk({ action: 'delete', filter: { status: 'cancelled', owner_id: ann.id } })
    assert.equal((await result(gone.json.job_id)).done >= 12, true)
    assert.deepEqual(await states(again), [])
    assert.deepEqual(await states([runningJob]), ['1 running'], 'what has not ended is not deleted')
  })

  test('record an audit event with the filter', async () => {
    const { json } = await bulk({ action: 'delete', filter: { task: 'none.such' } })
    const [event] = await query(
      `select actor_id, data from audit_event where kind = 'job.bulk' order by id desc limit 1`,
    )
    assert.deepEqual(event, {
      actor_id: admin.id,
      data: { action: 'delete', filter: { task: 'none.such' }, job_id: json.job_id },
    })
  })

  test('reject unknown actions and invalid filters', async () => {
    for (const json of [
      {},
      { action: 'explode' },
      { action: 'retry', filter: { stauts: 'failed' } },
      { action: 'retry', ids: [] },
      { action: 'retry', ids: ['x'] },
      { action: 'retry', filter: { from: '2026-01-01T00:00:00+23:00' } },
      { action: 'retry', filter: { to: '0000-01-01T00:00:00Z' } },
    ])
      assert.equal((await bulk(json)).status, 422, JSON.stringify(json))
  })

  test('read a time without a zone as UTC, as a search does', async () => {
    const filter = { from: '2026-01-01T00:00:00', to: '2026-01-01T01:00:00+01:00' }
    const { status, json } = await bulk({ action: 'delete', filter })
    assert.equal(status, 202)
    const [job] = await query('select payload from job where id = $1', [json.job_id])
    assert.deepEqual((job!.payload as { filter: unknown }).filter, { ...filter, from: `${filter.from}Z` })
  })
})
