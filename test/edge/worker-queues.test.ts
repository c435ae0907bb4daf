import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { assertRefused, createCast } from './accounts-help.ts'
import { startEdgeAndDatabase } from './harness.ts'
import { createWorkerHelp, idsOf, waitForClaim } from './worker-queues-help.ts'

/** HTTP workers claim jobs, renew leases and report. */

const { api, query } = await startEdgeAndDatabase()
const { newcomer } = await createCast(api)
const { send, addQueue, add, claim, take, renew, reported, report, readJob } = createWorkerHelp(api)
const NO_LEASE = 'The lease has expired or was returned; its jobs run elsewhere. Claim again'

test('a job goes from its request to its result through a worker', async () => {
  const user = await newcomer()
  const queue = await addQueue(user)
  const id = await add(user, queue, { text: 'hello' })
  const { lease, jobs } = await take(user, queue)
  const { deadline, ...job } = jobs[0]!
  assert.deepEqual(job, {
    ...{ job_id: id, task: 'work', args: { text: 'hello' }, attempt: 1, tries: 1, max_tries: 3 },
    ...{ dependencies: [], traceparent: null, alone: false },
  })
  assert.ok(Date.parse(deadline) > Date.now() + 3_500_000)
  assert.equal((await readJob(user, id)).status, 'running')
  const items = [
    { job_id: id, attempt: 1, n: 1, progress: { label: 'Half', current: 1, total: 2 } },
    { job_id: id, attempt: 1, n: 2, event: { kind: 'note', data: { a: 1 } } },
    { job_id: id, attempt: 1, log: { message: 'A <b>line</b>', data: { x: 1 } } },
    { job_id: id, attempt: 1, done: { result: { length: 5 } } },
  ]
  assert.deepEqual(await reported(user, lease, items), ['ok', 'ok', 'ok', 'ok'])
  const { status, result, label, name, progress } = await readJob(user, id)
  assert.deepEqual(
    { status, result, label, name, progress },
    {
      status: 'done',
      result: { length: 5 },
      label: 'Half',
      name: `${queue}/work`,
      progress: { current: 1, total: 2 },
    },
  )
  const { json } = await send(user, 'GET', `/api/v1/tasks/result/${id}`)
  assert.deepEqual([json.task_name, json.queue_type, json.status], ['work', queue, 'completed'])
  const lines = await query('select level, message, data from job_log where job_id = $1', [id])
  assert.deepEqual(lines, [{ level: 'info', message: 'A <b>line</b>', data: { x: 1 } }])
  const events = await query('select kind, data from job_event where job_id = $1 order by seq', [id])
  assert.deepEqual(
    events.map(({ kind }) => kind),
    ['status', 'status', 'note', 'status'],
  )
})

test('events of a worker keep their text in streams, and cannot pretend to be others', async () => {
  const user = await newcomer()
  const queue = await addQueue(user)
  const id = await add(user, queue)
  const { lease } = await take(user, queue)
  const data = { status: 'done\t0\tdocuments\tx\t\t{}\n\nevent: status', text: '<b>\u2028\t' }
  const item = { job_id: id, attempt: 1 }
  assert.deepEqual(
    await reported(user, lease, [
      { ...item, event: { kind: 'note', data } },
      { ...item, progress: { label: 'a\tb\nc' } },
      { ...item, done: {} },
    ]),
    ['ok', 'ok', 'ok'],
  )
  const { text } = await send(user, 'GET', `/api/v1/jobs/${id}/events?last_event_id=1`)
  const frames = text.split('\n\n').filter((frame) => frame.includes('data:'))
  assert.deepEqual(
    frames.map((frame) => /^event: (.*)$/m.exec(frame)?.[1]),
    ['note', 'status', 'status'],
  )
  assert.deepEqual(JSON.parse(/^data: ([^\n]*)$/m.exec(frames[0]!)![1]!), data)
  for (const kind of ['status', 'error', 'open', 'Upper', 'a b'])
    assert.deepEqual(await reported(user, lease, [{ ...item, event: { kind, data } }]), ['invalid'], kind)
})

test('a repeated claim gets the same jobs, and repeated reports change nothing', async () => {
  const user = await newcomer()
  const queue = await addQueue(user)
  for (let n = 0; n < 5; n++) await add(user, queue, { n })
  const [lease_id, claim_id] = [randomUUID(), randomUUID()]
  const first = await claim(user, queue, { lease_id, claim_id, max: 3 })
  const again = await claim(user, queue, { lease_id, claim_id, max: 3 })
  assert.deepEqual(idsOf(again.json.jobs), idsOf(first.json.jobs))
  const items = first.json.jobs.map(({ job_id, attempt }: { job_id: string; attempt: number }) => ({
    ...{ job_id, attempt, n: 1, event: { kind: 'seen', data: null } },
  }))
  const ends = first.json.jobs.map(({ job_id, attempt }: { job_id: string; attempt: number }) => ({
    ...{ job_id, attempt, done: { result: null } },
  }))
  assert.deepEqual(await reported(user, lease_id, [...items, ...ends]), new Array(6).fill('ok'))
  assert.deepEqual(await reported(user, lease_id, ends), ['ok', 'ok', 'ok'])
  const other = ends.map(({ done: _, ...end }: { done: unknown }) => ({ ...end, failed: { detail: 'no' } }))
  assert.deepEqual(await reported(user, lease_id, other), new Array(3).fill('superseded'))
  const [{ n }] = (await query(
    `select count(*)::int as n from job_event where kind = 'seen' and job_id = any($1)`,
    [ends.map((end: { job_id: string }) => end.job_id)],
  )) as [{ n: number }]
  assert.equal(n, 3)
  const rest = await claim(user, queue, { lease_id, claim_id: randomUUID(), max: 500 })
  assert.equal(rest.json.jobs.length, 2)
})

test('a waiting claim gets a job when it is added, and only then', async () => {
  const user = await newcomer()
  const queue = await addQueue(user)
  const waiting = claim(user, queue, { wait_seconds: 30, tasks: ['work'] })
  const others = claim(user, queue, { wait_seconds: 0.2, tasks: ['rest'] })
  assert.deepEqual((await others).json.jobs, [])
  const id = await add(user, queue)
  assert.deepEqual(idsOf((await waiting).json.jobs), [id])
})

test('a failure retries with a delay, and ends the job after the last try', async () => {
  const user = await newcomer()
  const queue = await addQueue(user)
  const id = await add(user, queue)
  const { lease } = await take(user, queue)
  const fail = { job_id: id, attempt: 1, failed: { code: 'image.broken', detail: 'Bad pixels' } }
  assert.deepEqual(await reported(user, lease, [fail]), ['ok'])
  assert.deepEqual(await reported(user, lease, [fail]), ['ok'])
  assert.equal((await readJob(user, id)).status, 'queued')
  await query('update job set run_at = now() where id = $1', [id])
  await query('select job_schedule(100)')
  const second = await take(user, queue)
  assert.deepEqual([second.jobs[0]!.attempt, second.jobs[0]!.tries], [2, 2])
  const last = {
    job_id: id,
    attempt: 2,
    failed: { code: 'image.broken', detail: 'Bad pixels', retry: false },
  }
  assert.deepEqual(await reported(user, second.lease, [last]), ['ok'])
  const { status, error } = await readJob(user, id)
  assert.deepEqual([status, error], ['failed', { code: 'image.broken', detail: 'Bad pixels' }])
})

test('one item that is not allowed does not spoil the others, and a repeated report stores nothing twice', async () => {
  const user = await newcomer()
  const queue = await addQueue(user)
  const id = await add(user, queue)
  const { lease } = await take(user, queue)
  const item = { job_id: id, attempt: 1 }
  const items = [
    { ...item, n: 1, progress: { label: 'x'.repeat(1001) } },
    { ...item, n: 2, log: { message: 'once' } },
    { ...item, n: 3, event: { kind: 'once', data: 1 } },
    { ...item, failed: { code: 'No Code', detail: '' } },
    { ...item, n: 4, progress: { label: 'fine' } },
  ]
  const expected = ['invalid', 'ok', 'ok', 'invalid', 'ok']
  assert.deepEqual(await reported(user, lease, items), expected)
  assert.deepEqual(await reported(user, lease, items), expected)
  const last = [
    { ...item, n: 5, progress: { label: 'last' } },
    { ...item, done: {} },
  ]
  assert.deepEqual(await reported(user, lease, last), ['ok', 'ok'])
  assert.deepEqual(await reported(user, lease, last), ['ok', 'ok'])
  const [counts] = await query(
    `select (select count(*)::int from job_log where job_id = $1) as lines,
       (select count(*)::int from job_event where job_id = $1 and kind = 'once') as events`,
    [id],
  )
  assert.deepEqual(counts, { lines: 1, events: 1 })
})

test('a lease that is given back ends its waiting claims, and takes no more jobs', async () => {
  const user = await newcomer()
  const queue = await addQueue(user)
  const id = await add(user, queue)
  const { lease } = await take(user, queue)
  const ids = { lease_id: lease, claim_id: randomUUID() }
  const waiting = claim(user, queue, { ...ids, worker: 'waiting', wait_seconds: 30 })
  await waitForClaim(query, lease)
  assert.equal((await send(user, 'DELETE', `/api/v1/workers/leases/${lease}`)).status, 204)
  assertRefused(await waiting, 404, NO_LEASE)
  assert.deepEqual((await take(user, queue, { wait_seconds: 30 })).jobs[0]!.job_id, id)
})

test('claims with the same id at the same time get the same jobs', async () => {
  const user = await newcomer()
  const queue = await addQueue(user)
  const ids = { lease_id: randomUUID(), claim_id: randomUUID(), worker: 'waiting', wait_seconds: 30, max: 10 }
  const both = [claim(user, queue, ids), claim(user, queue, ids)]
  await waitForClaim(query, ids.lease_id)
  const id = await add(user, queue)
  // The second delivery wakes the other one, which finds the jobs of the first.
  await add(user, queue, {}, { key: 'other' })
  for (const { json } of await Promise.all(both))
    assert.ok(
      json.jobs.some((job: { job_id: string }) => job.job_id === id),
      JSON.stringify(json),
    )
})

test('a claim keeps the lease of a worker without jobs until the wait ends', async () => {
  const user = await newcomer()
  const queue = await addQueue(user)
  const { lease } = await take(user, queue)
  /** Returns the seconds that a lease of 20 s has after a claim without jobs, rounded. */
  const readLeft = async (waitSeconds: number): Promise<number> => {
    await query(`update worker_lease set expires_at = now() + interval '20 s' where id = $1`, [lease])
    await query(
      `select worker_claim_take(q.name, q.account_id, false, null, $1, null, 'test', '{}', 30, $2, null, 1, 1000, 1000, 2, 8, false)
      from worker_queue q where name = $3`,
      [lease, waitSeconds, queue],
    )
    const [row] = await query(
      'select extract(epoch from expires_at - now())::int as left from worker_lease where id = $1',
      [lease],
    )
    return Math.round((row!.left as number) / 5) * 5
  }
  assert.deepEqual([await readLeft(30), await readLeft(10)], [35, 20])
  await add(user, queue)
  await take(user, queue, { lease_id: lease })
  assert.equal(await readLeft(30), 20)
})

test('an expired lease loses its jobs, and its late reports are refused', async () => {
  const user = await newcomer()
  const queue = await addQueue(user)
  const id = await add(user, queue)
  const { lease } = await take(user, queue)
  await query(`update worker_lease set expires_at = now() - interval '1 s' where id = $1`, [lease])
  await query('select job_rescue_running(null, null, 2, 8, 1000)')
  const { lease: other, jobs } = await take(user, queue)
  assert.deepEqual([jobs[0]!.job_id, jobs[0]!.attempt, jobs[0]!.tries], [id, 2, 1])
  assertRefused(await report(user, lease, [{ job_id: id, attempt: 1, done: {} }]), 404, NO_LEASE)
  assertRefused(await renew(user, lease), 404, NO_LEASE)
  assert.deepEqual(await reported(user, other, [{ job_id: id, attempt: 1, done: {} }]), ['superseded'])
  assert.deepEqual(await reported(user, other, [{ job_id: id, attempt: 2, done: {} }]), ['ok'])
})

test('a renewal names cancelled and superseded jobs, and gives back jobs whose claim was lost', async () => {
  const user = await newcomer()
  const queue = await addQueue(user)
  const [cancelled, lost, known] = [await add(user, queue), await add(user, queue), await add(user, queue)]
  const { lease } = await take(user, queue)
  assert.equal((await send(user, 'DELETE', `/api/v1/jobs/${cancelled}`)).status, 202)
  await query(`update job set started_at = now() - interval '1 minute' where id = $1`, [lost])
  const jobs = [
    { job_id: cancelled, attempt: 1 },
    { job_id: known, attempt: 1 },
    { job_id: randomUUID(), attempt: 1 },
  ]
  const { json } = await renew(user, lease, { jobs })
  assert.deepEqual(json, {
    ...{ lease_seconds: 30, drain: false, cancelled: [cancelled], superseded: [jobs[2]!.job_id] },
  })
  assert.equal((await readJob(user, lost)).status, 'queued')
  assert.deepEqual(await reported(user, lease, [{ job_id: cancelled, attempt: 1, release: {} }]), ['ok'])
  assert.equal((await readJob(user, cancelled)).status, 'cancelled')
  assert.equal((await send(user, 'DELETE', `/api/v1/workers/leases/${lease}`)).status, 204)
  const next = await take(user, queue)
  assert.deepEqual(
    next.jobs.map((job) => [job.job_id, job.tries]),
    [
      [lost, 1],
      [known, 1],
    ],
  )
})

test('a job of two deaths is claimed alone, and fails after three more', async () => {
  const user = await newcomer()
  const queue = await addQueue(user)
  const id = await add(user, queue)
  await add(user, queue)
  const die = async (): Promise<void> => {
    await query(`update worker_lease set expires_at = now() - interval '1 s' where queue = $1`, [queue])
    await query('select job_rescue_running(null, null, 2, 8, 1000)')
  }
  for (let n = 0; n < 2; n++) {
    assert.equal((await take(user, queue)).jobs.length, 2)
    await die()
  }
  for (let n = 0; n < 3; n++) {
    const { lease, jobs } = await take(user, queue)
    assert.deepEqual(
      jobs.map((job) => [job.job_id, job.alone]),
      [[id, true]],
    )
    assert.deepEqual((await claim(user, queue, { lease_id: lease })).json.jobs, [])
    await die()
  }
  const { status, error } = await readJob(user, id)
  assert.deepEqual([status, error.code], ['failed', 'job.crashed'])
})
