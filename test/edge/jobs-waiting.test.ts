import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Client } from '../service.ts'
import { startEdgeAndDatabase } from './harness.ts'
import { createLedger } from './ledger.ts'

/** Jobs that wait for others are `waiting` wherever jobs are shown. */

const { api, ...database } = await startEdgeAndDatabase()
const ledger = createLedger(database)
const admin = await api.register('admin@example.com')
const [ann, bob] = [await api.register('ann@example.com'), await api.register('bob@example.com')]
const LOAD = { name: 'load_test.io_simulation_task', queue: 'load_test' }

const running = await ledger.add(ann.id)
const queued = await ledger.add(ann.id)
const foreign = await ledger.add(bob.id)
const batch = await ledger.add(ann.id, {
  name: 'jobs.batch',
  queue: 'system',
  is_batch: true,
  payload: { is_open: true },
})
const waiting = await ledger.add(ann.id, {
  ...LOAD,
  ...{ after: [queued, running, foreign], after_outcome: 'any', batch_id: batch, key: 'k', priority: 1 },
})
const member = await ledger.add(ann.id, { batch_id: batch })
const bobs = await ledger.add(bob.id, { after: [foreign], after_outcome: 'done' })
const last = await ledger.add(ann.id)
const ended = await ledger.addFinished(ann.id)
await ledger.claim(running)

const get = async (path: string, token = ann.token) => (await api.get(path, { token })).json
// Registrations have added other jobs.
const isListed = (id: string): boolean =>
  [running, queued, foreign, batch, waiting, member, bobs, last, ended].includes(id)
const list = async (query: string, token = ann.token): Promise<string[]> =>
  (await get(`/api/v1/jobs?${query}`, token)).map(({ job_id }: { job_id: string }) => job_id).filter(isListed)
const byPages = async (query: string, token: string): Promise<string[]> => {
  const ids: string[] = []
  let next: string | undefined = `/api/v1/jobs?limit=2&${query}`
  while (next !== undefined) {
    const answer = await api.get(next, { token })
    ids.push(...answer.json.map(({ job_id }: { job_id: string }) => job_id))
    next = /<(?:https?:\/\/[^/]+)?([^>]+)>; rel="next"/.exec(String(answer.headers.link ?? ''))?.[1]
  }
  return ids.filter(isListed)
}

test('lists have waiting jobs between queued and ended ones', async () => {
  const own = [running, queued, member, last, batch, waiting, ended]
  assert.deepEqual(await list(''), own)
  assert.deepEqual(await byPages('', ann.token), own)
  const all = [running, queued, foreign, member, last, batch, waiting, bobs, ended]
  assert.deepEqual(await list('', admin.token), all)
  assert.deepEqual(await byPages('', admin.token), all)
  assert.deepEqual(await list('status=waiting'), [batch, waiting])
  assert.deepEqual(await byPages('status=waiting', admin.token), [batch, waiting, bobs])
  assert.deepEqual(await list('status=queued'), [queued, member, last])
  assert.deepEqual(await list('status=waiting&sort=-created_at', admin.token), [bobs, waiting, batch])
  assert.deepEqual(await byPages('sort=created_at', ann.token), [
    running,
    queued,
    batch,
    waiting,
    member,
    last,
    ended,
  ])
})

test('a job names its batch, and its details the jobs on which it still depends', async () => {
  const { status, batch_id } = await get(`/api/v1/jobs/${waiting}`)
  assert.deepEqual([status, batch_id], ['waiting', batch])
  const details = await get(`/api/v1/jobs/${waiting}/details`)
  const { after, key, priority, waits_for } = details
  assert.deepEqual([after, key, priority], [[queued, running, foreign], 'k', 'low'])
  const name = 'documents.extract'
  const visible = [
    { job_id: running, name, status: 'running' },
    { job_id: queued, name, status: 'queued' },
  ]
  assert.deepEqual(waits_for.jobs, visible)
  const seen = await get(`/api/v1/jobs/${waiting}/details`, admin.token)
  assert.deepEqual(seen.waits_for.jobs, [...visible, { job_id: foreign, name, status: 'queued' }])
  const whole = await get(`/api/v1/jobs/${batch}/details`)
  assert.deepEqual(
    whole.waits_for.jobs.map(({ job_id, status }: Record<string, string>) => [job_id, status]),
    [
      [waiting, 'waiting'],
      [member, 'queued'],
    ],
  )
  const [other] = [await get(`/api/v1/jobs/${last}/details`)]
  assert.deepEqual([other.after, other.key, other.priority, other.waits_for.jobs], [[], null, 'normal', []])
})

test('an ended dependency is not listed any more', async () => {
  const first = await ledger.add(ann.id)
  const dependant = await ledger.add(ann.id, { after: [first, queued], after_outcome: 'any' })
  await ledger.claim(first)
  await ledger.finish(first, 'done', { result: 1 })
  const { waits_for, after } = await get(`/api/v1/jobs/${dependant}/details`)
  assert.deepEqual([after.length, waits_for.jobs.length, waits_for.jobs[0].job_id], [2, 1, queued])
  await api.call('DELETE', `/api/v1/jobs/${dependant}`, { token: ann.token })
})

test('a task result is waiting, too, and queues count these jobs', async () => {
  assert.equal((await get(`/api/v1/tasks/result/${waiting}`)).status, 'waiting')
  assert.equal((await get(`/api/v1/tasks/results?ids=${waiting}`)).results[0].status, 'waiting')
  const load = (await get('/api/v1/tasks')).queues.find(
    ({ queue_type }: { queue_type: string }) => queue_type === 'load_test',
  )
  assert.deepEqual([load.depth, load.waiting], [0, 1])
  const { queues } = await get('/api/v1/queues', admin.token)
  const counts = Object.fromEntries(
    queues.map(({ queue, queued, waiting }: Record<string, number | string>) => [queue, [queued, waiting]]),
  )
  assert.deepEqual(
    [counts.load_test, counts.system, counts.documents],
    [
      [0, 1],
      [0, 1],
      [4, 1],
    ],
  )
})

test('metrics count waiting jobs by queue', async () => {
  const { text } = await api.get('/metrics')
  assert.match(text, /^jobs\{queue="load_test",status="waiting"\} 1$/m)
  assert.match(text, /^jobs\{queue="load_test",status="queued"\} 0$/m)
})

test('the search finds waiting jobs, and a stream of all jobs begins with them', async (t) => {
  const { jobs } = await get('/api/v1/jobs/search?status=waiting', admin.token)
  assert.deepEqual(
    jobs.map(({ job_id, status }: Record<string, string>) => [job_id, status]),
    [bobs, waiting, batch].map((id) => [id, 'waiting']),
  )
  const client = new Client(api.port)
  client.token = ann.token
  const stream = await client.stream('/api/v1/jobs/events')
  t.after(() => stream.close())
  const states = () => stream.frames.filter(({ data }) => data.status === 'waiting')
  await stream.until('the waiting jobs', () => states().length === 2)
  assert.deepEqual(
    states().map(({ data }) => data.job_id),
    [batch, waiting],
  )
})
