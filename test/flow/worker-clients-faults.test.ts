import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JobContext } from '../client/work-types.ts'
import { until } from '../until.ts'
import { startWorkerClients } from './worker-clients.ts'

/** The worker of the generated client survives lost answers, lost leases, drains, and jobs that kill processes. */

const { admin, client, create, work, addQueue, enqueue, readJob, waitFor, query } = await startWorkerClients()

interface Sent {
  readonly path: string
  readonly body: Record<string, unknown>
  /** Null until the answer arrives. */
  answer: unknown
}

/** Returns a `fetch` that loses the first answers to paths with this end, and records all requests. */
function loseAnswers(end: string, count: number) {
  const sent: Sent[] = []
  let left = count
  const send = async (url: string, init: RequestInit): Promise<Response> => {
    const body = init.body === null ? {} : JSON.parse(init.body as string)
    const one: Sent = { path: new URL(url).pathname, body, answer: null }
    sent.push(one)
    const response = await fetch(url, init)
    one.answer = await response.clone().json()
    if (!url.endsWith(end) || left-- <= 0) return response
    // A bad gateway knows no answer either.
    if (left % 2 === 0) throw new TypeError('fetch failed')
    return new Response('bad gateway', { status: 502 })
  }
  const to = (suffix: string) => sent.filter(({ path }) => path.endsWith(suffix))
  return { to, fetch: send as typeof fetch }
}

const readLease = async (queue: string): Promise<string> => {
  const [lease] = await query('select id from worker_lease where queue = $1', [queue])
  return lease?.id as string
}

test('repeats a claim without an answer under its id, and gets the same jobs', async () => {
  const queue = await addQueue()
  const ids = [await enqueue(queue, 'count'), await enqueue(queue, 'count')]
  const { to, fetch } = loseAnswers('/claims', 2)
  work(queue, { count: (_, { attempt }) => attempt }, {}, create({ fetch }))
  assert.deepEqual(await Promise.all(ids.map((id) => client.jobs.result(id))), [1, 1])
  const claims = to('/claims').slice(0, 3)
  assert.equal(new Set(claims.map(({ body }) => body.claim_id)).size, 1)
  const claimed = claims.map(({ answer }) => (answer as { jobs: { job_id: string }[] }).jobs)
  for (const jobs of claimed) assert.deepEqual(jobs.map(({ job_id }) => job_id).sort(), ids.toSorted())
  await until(
    'the next claim has another id',
    () => new Set(to('/claims').map(({ body }) => body.claim_id)).size > 1,
  )
})

test('repeats a report without an answer, and stores its events once', async () => {
  const queue = await addQueue()
  const { to, fetch } = loseAnswers('/reports', 3)
  const task = async (_: object, { emit, progress }: JobContext) => {
    emit('tile', 1)
    progress('One', 1, 2)
    await until('the report was repeated', () => to('/reports').length > 1)
    emit('tile', 2)
    return 'drawn'
  }
  const id = await enqueue(queue, 'draw')
  work(queue, { draw: task }, {}, create({ fetch }))
  assert.equal(await client.jobs.result(id), 'drawn')
  const rows = await query('select kind, data from job_event_row where job_id = $1 order by seq', [id])
  const tiles = rows.filter(({ kind }) => kind === 'tile').map(({ data }) => data)
  assert.deepEqual([tiles, rows.length], [[1, 2], 3])
  assert.equal((await readJob(id)).attempt, 1)
})

test('stops the jobs of an expired lease, and goes on with another one', async () => {
  const queue = await addQueue()
  const reasons: string[] = []
  const task = async (_: object, { attempt, signal }: JobContext) => {
    if (attempt > 1) return attempt
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
    reasons.push((signal.reason as { reason: string }).reason)
    return 'too late'
  }
  const id = await enqueue(queue, 'wait')
  // A claim that waits would keep the lease.
  work(queue, { wait: task }, { concurrency: 1 })
  await waitFor(id, 'running')
  const lease = await readLease(queue)
  // The service takes over the jobs of a lease that has expired.
  await query(`update worker_lease set expires_at = now() - interval '1 hour' where id = $1`, [lease])
  assert.equal(await client.jobs.result(id), 2)
  await until('the first attempt was aborted', () => reasons.length > 0)
  assert.deepEqual(reasons, ['superseded'])
  assert.notEqual(await readLease(queue), lease)
})

test('runs a job that has killed processes after all others, and alone', async () => {
  const queue = await addQueue()
  const { to, fetch } = loseAnswers('/', 0)
  const ends: string[] = []
  const { promise: canEnd, resolve: end } = Promise.withResolvers<void>()
  const started = new Set<string>()
  const wait = async (_: object, { jobId }: JobContext) => {
    started.add(jobId)
    await canEnd
    ends.push(jobId)
  }
  const kill = async (_: object, { jobId }: JobContext) => {
    started.add(jobId)
    const next = await enqueue(queue, 'wait')
    await waitForRenewal()
    assert.ok(!started.has(next))
    ends.push(jobId)
    return next
  }
  const others = [await enqueue(queue, 'wait'), await enqueue(queue, 'wait')]
  work(queue, { wait, kill }, { concurrency: 5 }, create({ fetch }))
  await until('both run', () => started.size === 2)
  const lease = await readLease(queue)
  const waitForRenewal = async () => {
    const seen = to(lease).length
    await until('the lease is renewed', () => to(lease).length > seen)
  }
  assert.equal((await admin.post(`/api/v1/queues/${queue}/pause`)).status, 200)
  const suspect = await enqueue(queue, 'kill')
  await query('update job set interruptions = 2 where id = $1', [suspect])
  assert.equal((await admin.post(`/api/v1/queues/${queue}/resume`)).status, 200)
  await waitFor(suspect, 'running')
  await waitForRenewal()
  assert.equal(started.has(suspect), false)
  end()
  const next = await client.jobs.result<string>(suspect)
  await client.jobs.result(next)
  assert.deepEqual([ends.slice(0, 2).toSorted(), ends.slice(2)], [others.toSorted(), [suspect, next]])
})

test('claims nothing while it is drained', async () => {
  const queue = await addQueue()
  const { to, fetch } = loseAnswers('/', 0)
  work(queue, { one: () => 1 }, {}, create({ fetch }))
  assert.equal(await client.jobs.result(await enqueue(queue, 'one')), 1)
  const lease = await readLease(queue)
  assert.equal((await admin.post(`/api/v1/workers/${lease}/drain`)).status, 200)
  const drained = ({ answer }: Sent) => (answer as { drain: boolean } | null)?.drain
  await until('a renewal says so', () => to(lease).some(drained))
  const id = await enqueue(queue, 'one')
  const seen = to(lease).length
  await until('it was renewed again', () => to(lease).length > seen)
  assert.equal((await readJob(id)).status, 'available')
  assert.equal((await admin.post(`/api/v1/workers/${lease}/resume`)).status, 200)
  assert.equal(await client.jobs.result(id), 1)
})
