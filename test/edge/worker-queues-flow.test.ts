import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import net from 'node:net'
import { test } from 'node:test'
import { until } from '../until.ts'
import { assertRefused, createCast } from './accounts-help.ts'
import { startEdgeAndDatabase } from './harness.ts'
import { startOwnWorker } from './own-worker.ts'
import { createWorkerHelp, idsOf } from './worker-queues-help.ts'

/** Everything that holds for jobs holds for those of worker queues. */

const { api, query, url } = await startEdgeAndDatabase()
const { admin, newcomer } = await createCast(api)
await startOwnWorker(url, 'schedules,system', {})
const { send, addQueue, add, claim, take, renew, reported, readJob } = createWorkerHelp(api)

test('a job waits for others, and its worker gets their results', async () => {
  const user = await newcomer()
  const queue = await addQueue(user)
  const one = (n: number, more: object = {}) => ({
    queue_type: queue,
    task_name: 'work',
    args: { n },
    ...more,
  })
  const added = await send(user, 'POST', '/api/v1/batches', {
    jobs: [one(0), one(1), one(2, { after: [0, 1] })],
  })
  assert.equal(added.status, 202, added.text)
  const { lease, jobs } = await take(user, queue)
  const ids: string[] = added.json.job_ids
  assert.deepEqual(idsOf(jobs), ids.slice(0, 2))
  const ends = jobs.map(({ job_id, attempt, args }) => ({
    job_id,
    attempt,
    done: { result: { from: args.n } },
  }))
  assert.deepEqual(await reported(user, lease, ends), ['ok', 'ok'])
  const { jobs: last } = await take(user, queue)
  assert.deepEqual(
    last[0]!.dependencies.map(({ status, result }) => [status, result]),
    [
      ['done', { from: 0 }],
      ['done', { from: 1 }],
    ],
  )
  // Another worker cannot end it.
  const other = await take(user, queue)
  assert.deepEqual(await reported(user, other.lease, [{ job_id: ids[2], attempt: 1, done: {} }]), [
    'superseded',
  ])
})

test('large results of dependencies are left out', async () => {
  const user = await newcomer()
  const queue = await addQueue(user)
  const first = await add(user, queue)
  const { lease } = await take(user, queue)
  const second = await add(user, queue)
  await send(user, 'POST', `/api/v1/tasks/enqueue?after=${first}`, { queue_type: queue, task_name: 'work' })
  await reported(user, lease, [{ job_id: first, attempt: 1, done: { result: 'x'.repeat(70_000) } }])
  const { jobs } = await take(user, queue)
  assert.equal(jobs[0]!.job_id, second)
  const [dependency] = jobs[1]!.dependencies as unknown as [{ result: unknown; result_omitted: boolean }]
  assert.deepEqual([dependency.result, dependency.result_omitted], [null, true])
})

test('a pause, a limit of the queue and a drain hold claims back until they end', async () => {
  const user = await newcomer()
  const queue = await addQueue(user)
  const first = await add(user, queue)
  assert.equal((await send(admin, 'POST', `/api/v1/queues/${queue}/pause`)).status, 200)
  assert.deepEqual((await take(user, queue)).jobs, [])
  const waiting = claim(user, queue, { wait_seconds: 30 })
  await send(admin, 'POST', `/api/v1/queues/${queue}/resume`)
  assert.deepEqual(idsOf((await waiting).json.jobs), [first])
  await send(admin, 'PATCH', `/api/v1/queues/${queue}`, { limit: 2 })
  for (let n = 0; n < 3; n++) await add(user, queue)
  const { lease, jobs } = await take(user, queue)
  assert.equal(jobs.length, 1)
  const next = claim(user, queue, { wait_seconds: 30, max: 10 })
  await reported(user, lease, [{ job_id: jobs[0]!.job_id, attempt: 1, done: {} }])
  assert.equal((await next).json.jobs.length, 1)
  await send(admin, 'PATCH', `/api/v1/queues/${queue}`, { limit: null })
  assert.equal((await send(admin, 'POST', `/api/v1/workers/${lease}/drain`)).status, 200)
  assert.equal((await renew(user, lease)).json.drain, true)
  const drained = await claim(user, queue, { lease_id: lease })
  assert.deepEqual([drained.json.drain, drained.json.jobs], [true, []])
  assert.equal((await take(user, queue)).jobs.length, 1)
})

test('attempts end at their time limits', async () => {
  const user = await newcomer()
  const queue = await addQueue(user)
  const path = `/api/v1/worker-queues/${queue}/tasks/work`
  await send(user, 'PUT', path, { timeout_seconds: 60, stall_seconds: 20, max_tries: 1 })
  const [late, silent, fine] = [await add(user, queue), await add(user, queue), await add(user, queue)]
  const { lease } = await take(user, queue)
  const since = (id: string, seconds: number) =>
    query(`update job set started_at = now() - make_interval(secs => $2) where id = $1`, [id, seconds])
  await since(late, 61)
  await since(silent, 21)
  await since(fine, 21)
  await reported(user, lease, [
    { job_id: late, attempt: 1, progress: { label: 'a' } },
    { job_id: fine, attempt: 1, progress: { label: 'b' } },
  ])
  const jobs = [late, silent, fine].map((job_id) => ({ job_id, attempt: 1 }))
  assert.deepEqual((await renew(user, lease, { jobs })).json.superseded.sort(), [late, silent].sort())
  const errors = await Promise.all([late, silent].map(async (id) => (await readJob(user, id)).error))
  assert.deepEqual(errors, [
    { code: 'job.timeout', detail: 'The job exceeded its time limit of 60 s' },
    { code: 'job.timeout', detail: 'The job reported nothing for 20 s' },
  ])
  assert.equal((await readJob(user, fine)).status, 'running')
})

test('deleting a queue cancels its jobs, and its name is free afterwards', async () => {
  const user = await newcomer()
  const queue = await addQueue(user)
  const [running, queued, later] = [
    await add(user, queue),
    await add(user, queue),
    await add(user, queue, {}, { delay_seconds: 600 }),
  ]
  const { lease } = await take(user, queue, { max: 1 })
  assert.equal((await send(user, 'DELETE', `/api/v1/worker-queues/${queue}`)).status, 204)
  assert.equal((await renew(user, lease)).status, 404)
  for (const id of [running, queued, later])
    await until('the job is cancelled', async () => (await readJob(user, id)).status === 'cancelled')
  assert.equal((await send(user, 'GET', `/api/v1/worker-queues/${queue}`)).status, 404)
  const other = await newcomer()
  assert.equal((await send(other, 'POST', '/api/v1/worker-queues', { name: queue })).status, 201)
  // The first owner cannot run jobs in the queue of the second.
  await query(`update job set status = 'failed', error_code = 'x' where id = $1`, [queued])
  const retried = await send(user, 'POST', `/api/v1/jobs/${queued}/retry`)
  assert.deepEqual([retried.status, retried.json.code], [409, 'job.not_runnable'])
})

test('jobs of queues that went with their account are cancelled', async () => {
  const [owner, user] = [await newcomer(), await newcomer()]
  const queue = await addQueue(owner)
  const id = await add(owner, queue)
  await query('update job set owner_id = $2 where id = $1', [id, user.id])
  await query('delete from account where id = $1', [owner.id])
  await send(admin, 'POST', '/api/v1/schedules/prune/run')
  await until('the job is cancelled', async () => (await readJob(user, id)).status === 'cancelled')
})

test('a failed job is retried by hand, in a bulk and in a batch', async () => {
  const user = await newcomer()
  const queue = await addQueue(user)
  const id = await add(user, queue, { a: 1 }, { key: 'k' })
  const fail = async (): Promise<void> => {
    const { lease, jobs } = await take(user, queue)
    const items = jobs.map(({ job_id, attempt }) => ({
      job_id,
      attempt,
      failed: { detail: 'no', retry: false },
    }))
    assert.deepEqual(
      await reported(user, lease, items),
      items.map(() => 'ok'),
    )
  }
  await fail()
  const retried = await send(user, 'POST', `/api/v1/jobs/${id}/retry`)
  assert.equal(retried.status, 202, retried.text)
  await fail()
  const one = { queue_type: queue, task_name: 'work' }
  const { json: batch } = await send(user, 'POST', '/api/v1/batches', { jobs: [one] })
  await fail()
  await until('the batch has ended', async () => {
    const { json } = await send(user, 'GET', `/api/v1/batches/${batch.batch_id}`)
    return json.finished_at !== null
  })
  const again = await send(user, 'POST', `/api/v1/batches/${batch.batch_id}/retry`)
  assert.equal(again.status, 202, again.text)
  assert.equal((await take(user, queue)).jobs.length, 1)
})

test('a schedule adds jobs to a worker queue, while the queue accepts them', async () => {
  const user = await newcomer()
  const queue = await addQueue(user)
  const { json: schedule } = await send(user, 'POST', '/api/v1/schedules', {
    ...{ name: 's', every_seconds: 60, queue_type: queue, task_name: 'work', args: { n: 1 } },
  })
  const move = () =>
    query(
      `with moved as (update schedule set next_at = now() - interval '1 s' where id = $1 returning next_at)
       update job set payload = payload || jsonb_build_object('at', iso(next_at)), run_at = now() from moved
       where name = 'schedules.run' and payload ->> 'schedule_id' = $1`,
      [schedule.id],
    )
  await move()
  const { json } = await claim(user, queue, { wait_seconds: 30 })
  assert.deepEqual(json.jobs[0].args, { n: 1 })
  await send(user, 'PUT', `/api/v1/worker-queues/${queue}/tasks/work`, { args: { required: ['m'] } })
  await reported(user, json.lease_id, [{ job_id: json.jobs[0].job_id, attempt: 1, done: {} }])
  await move()
  await until('the time is skipped', async () => {
    const { json } = await send(user, 'GET', `/api/v1/schedules/${schedule.id}`)
    return json.last_skip?.reason === 'task'
  })
})

test('jobs of a claim whose caller has left go back', async () => {
  const user = await newcomer()
  const queue = await addQueue(user)
  const body = JSON.stringify({ worker: 'gone', wait_seconds: 30 })
  const socket = net.connect(api.port, '127.0.0.1')
  socket.write(
    `POST /api/v1/worker-queues/${queue}/claims HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${user.token}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  )
  await until(
    'the claim waits',
    async () => (await query('select from worker_lease where queue = $1', [queue])).length > 0,
  )
  socket.destroy()
  const id = await add(user, queue)
  const { jobs } = (await claim(user, queue, { wait_seconds: 30 })).json
  assert.deepEqual(idsOf(jobs), [id])
})

test('a claim has at most 8 MiB of arguments, but at least one job', async () => {
  const user = await newcomer()
  const queue = await addQueue(user)
  const large = { text: 'x'.repeat(900_000) }
  await add(user, queue, { small: true })
  for (let n = 0; n < 12; n++) await add(user, queue, large)
  const sizes: number[] = []
  for (let left = 13; left > 0; left -= sizes.at(-1)!) sizes.push((await take(user, queue)).jobs.length)
  assert.deepEqual(sizes, [10, 3])
  const [{ tries }] = (await query('select max(tries) as tries from job where queue = $1', [queue])) as [
    { tries: number },
  ]
  assert.equal(tries, 1)
})

test('high priority comes first, and low is not forgotten', async () => {
  const user = await newcomer()
  const queue = await addQueue(user)
  const low = await add(user, queue, {}, { priority: 'low' })
  const normal = await add(user, queue)
  const order = [...(await take(user, queue, { max: 1 })).jobs, ...(await take(user, queue, { max: 1 })).jobs]
  assert.deepEqual(idsOf(order).sort(), [low, normal].sort())
})

test('two claims at once never get the same job, and get all jobs', async () => {
  const user = await newcomer()
  const queue = await addQueue(user)
  await send(user, 'POST', '/api/v1/tasks/enqueue', { queue_type: queue, task_name: 'work', count: 500 })
  const seen: string[] = []
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      const lease_id = randomUUID()
      for (;;) {
        const { json } = await claim(user, queue, { lease_id, max: 20, wait_seconds: 1 })
        if (json.jobs.length === 0) return
        seen.push(...idsOf(json.jobs))
        const items = json.jobs.map(({ job_id }: { job_id: string }) => ({ job_id, attempt: 1, done: {} }))
        await reported(user, lease_id, items)
      }
    }),
  )
  assert.deepEqual([seen.length, new Set(seen).size], [500, 500])
  assertRefused(await claim(user, 'nothing-here'), 404, 'Worker queue not found')
})
