import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { createOverview, followOverview, type Part, readOverview } from '../../edge/streams/overview.ts'
import type { SseFrame, SseStream } from '../../edge/streams/sse.ts'
import { createReader } from '../../sql/reads/reader.ts'
import { Client, type Stream } from '../service.ts'
import { createLedgerHelp as rows } from '../sql/ledger-help.ts'
import { until } from '../until.ts'
import { startEdge, startEdgeAndDatabase } from './harness.ts'
import { createLedger } from './ledger.ts'

const { api, ...database } = await startEdgeAndDatabase()
const ledger = createLedger(database)
const workerRows = rows(database)
const admin = await api.register('admin@example.com')
const ann = await api.register('ann@example.com')
const PATH = '/api/v1/jobs/overview/events'

type Item = Record<string, unknown>

async function openOverview(port = api.port, token = admin.token): Promise<Stream> {
  const client = new Client(port)
  client.token = token
  return client.stream(PATH)
}
const getLastItems = (stream: Stream, event: string): Item[] =>
  (stream.frames.findLast((frame) => frame.event === event)?.data.items ?? []) as Item[]
const findJob = (stream: Stream, event: string, id: string): Item | undefined =>
  getLastItems(stream, event).find((item) => item.job_id === id)

test('starts with all parts and sends a part again when it changes', async (t) => {
  const stream = await openOverview()
  t.after(() => stream.close())
  await stream.until('all parts', (frames) => frames.length >= 6)
  assert.deepEqual(
    stream.frames.slice(0, 6).map(({ event }) => event),
    ['queues', 'workers', 'running', 'queued', 'waiting', 'failed'],
  )
  const id = await ledger.add(ann.id)
  await stream.until('the job is queued', () => findJob(stream, 'queued', id) !== undefined)
  const documents = () => getLastItems(stream, 'queues').find(({ queue }) => queue === 'documents')!
  assert.deepEqual([documents().queued, documents().running], [1, 0])
  assert.match(String(documents().oldest_at), /Z$/)
  await ledger.claim(id)
  await ledger.progress(id, 'Page 3 of 9', 3, 9)
  await stream.until('the job runs', () => findJob(stream, 'running', id)?.label === 'Page 3 of 9')
  const { started_at, ...running } = findJob(stream, 'running', id)!
  assert.deepEqual(running, {
    job_id: id,
    name: 'documents.extract',
    queue: 'documents',
    label: 'Page 3 of 9',
    progress: { current: 3, total: 9 },
    attempts: 1,
    cancelling: false,
    worker: 'test',
  })
  assert.match(String(started_at), /Z$/)
  assert.deepEqual([findJob(stream, 'queued', id), documents().running], [undefined, 1])
  await api.call('DELETE', `/api/v1/jobs/${id}`, { token: admin.token })
  await stream.until('the job is being cancelled', () => findJob(stream, 'running', id)?.cancelling === true)
  await ledger.finish(id, 'failed', { code: 'internal', detail: 'It broke' })
  await stream.until('the job has failed', () => findJob(stream, 'failed', id) !== undefined)
  assert.deepEqual(findJob(stream, 'failed', id)!.error, { code: 'internal', detail: 'It broke' })
  assert.equal(findJob(stream, 'running', id), undefined)
})

test('a job that waits for others is listed and counted apart from queued ones', async (t) => {
  const first = await ledger.add(ann.id)
  const second = await ledger.add(ann.id, { queue: 'pictures', after: [first], after_outcome: 'done' })
  const stream = await openOverview()
  t.after(() => stream.close())
  await stream.until('the job waits', () => findJob(stream, 'waiting', second) !== undefined)
  const { created_at: _, ...waiting } = findJob(stream, 'waiting', second)!
  assert.deepEqual(waiting, {
    job_id: second,
    name: 'documents.extract',
    queue: 'pictures',
    label: '',
    waits_for: 1,
  })
  const pictures = () => getLastItems(stream, 'queues').find(({ queue }) => queue === 'pictures')!
  assert.deepEqual(
    [pictures().queued, pictures().waiting, findJob(stream, 'queued', second)],
    [0, 1, undefined],
  )
  await ledger.claim(first)
  await ledger.finish(first, 'done', { result: null })
  await stream.until('the job is queued', () => findJob(stream, 'queued', second) !== undefined)
  assert.deepEqual([findJob(stream, 'waiting', second), pictures().waiting], [undefined, 0])
})

test('a failed job names its retry', async (t) => {
  const payload = { documentId: 1, force: false }
  const id = await ledger.add(ann.id, { payload })
  await ledger.claim(id)
  await ledger.finish(id, 'failed', { code: 'internal', detail: 'x' })
  const stream = await openOverview()
  t.after(() => stream.close())
  await stream.until('the job has failed', () => findJob(stream, 'failed', id)?.retried_by === null)
  const { json } = await api.post(`/api/v1/jobs/${id}/retry`, { token: admin.token })
  await stream.until('the job has its retry', () => findJob(stream, 'failed', id)?.retried_by === json.job_id)
})

test('workers appear with their lease, threads, memory and liveness', async (t) => {
  const stream = await openOverview()
  t.after(() => stream.close())
  const lease = await workerRows.lease()
  await database.query('update worker_lease set memory_bytes = 1000, threads = 7 where id = $1', [lease])
  await database.query(`select pg_notify('worker_changed', '')`)
  const worker = () => getLastItems(stream, 'workers').find(({ id }) => id === lease)
  await stream.until('the worker appears', () => worker()?.threads === 7)
  const { started_at, expires_at, ...shown } = worker()!
  assert.deepEqual(shown, {
    id: lease,
    name: 'test',
    queue: null,
    host: null,
    language: null,
    version: null,
    queues: ['test'],
    threads: 7,
    busy: 0,
    drained: false,
    memory_bytes: 1000,
    alive: true,
    running: 0,
  })
  assert.ok(String(expires_at) > String(started_at))
  assert.ok(
    getLastItems(stream, 'queues').some((item) => item.queue === 'test' && item.queued === 0),
    'its queues show, too, though nothing is in them',
  )
  await database.query('delete from worker_lease where id = $1', [lease])
  await database.query(`select pg_notify('worker_changed', '')`)
  await stream.until('the worker is gone', () => worker() === undefined)
})

describe('HTTP workers', () => {
  const addLeases = (count: number, info: object): Promise<Item[]> =>
    database.query(
      `insert into worker_lease (id, name, queues, queue, info, ttl_seconds, expires_at)
       select gen_random_uuid(), 'worker ' || g, '{images}', 'images', $2, 30, now() + interval '1 hour'
       from generate_series(1, $1::int) g returning id`,
      [count, info],
    )
  const getPart = (stream: Stream, event: string) =>
    stream.frames.findLast((frame) => frame.event === event)!.data as unknown as {
      items: Item[]
      total: Readonly<Record<string, number>>
    }
  const removeLeases = () => database.query(`delete from worker_lease where queue = 'images'`)

  test('appear with host, language, version and running jobs, but without threads and memory', async (t) => {
    t.after(removeLeases)
    const [{ id: lease }] = (await addLeases(1, { host: 'h1', language: 'python', version: '3.12' })) as [
      Item,
    ]
    await addLeases(1, { push: true })
    const job = await ledger.add(ann.id, { name: 'images/resize', queue: 'images' })
    await ledger.claim(job)
    await database.query('update job set lease_id = $1 where id = $2', [lease, job])
    const stream = await openOverview()
    t.after(() => stream.close())
    await stream.until('all parts', (frames) => frames.length >= 6)
    const { items, total } = getPart(stream, 'workers')
    const workers = items.filter(({ queue }) => queue === 'images')
    assert.equal(workers.length, 1, 'the lease of an endpoint is no worker')
    const { started_at: _, expires_at: __, ...shown } = workers[0]!
    assert.deepEqual(shown, {
      id: lease,
      name: 'worker 1',
      queue: 'images',
      host: 'h1',
      language: 'python',
      version: '3.12',
      queues: ['images'],
      threads: null,
      busy: null,
      drained: false,
      memory_bytes: null,
      alive: true,
      running: 1,
    })
    assert.equal(total.alive, items.filter(({ alive }) => alive).length)
    assert.equal(findJob(stream, 'running', job)!.worker, 'worker 1')
    const { items: queues, total: jobs } = getPart(stream, 'queues')
    assert.equal(
      jobs.running,
      queues.reduce((sum, { running }) => sum + Number(running), 0),
    )
    await api.post(`/api/v1/workers/${lease}/drain`, { token: admin.token })
    await stream.until('the worker is drained', () =>
      getPart(stream, 'workers').items.some(({ id, drained }) => id === lease && drained === true),
    )
    await ledger.finish(job, 'done', { result: null })
  })

  test('beyond 500 workers are counted, not listed', async (t) => {
    t.after(removeLeases)
    await addLeases(600, {})
    const own = await workerRows.lease()
    const stream = await openOverview()
    t.after(() => stream.close())
    await stream.until('all parts', (frames) => frames.length >= 6)
    const { items, total } = getPart(stream, 'workers')
    assert.equal(items.length, 500)
    assert.ok(items.some(({ id }) => id === own))
    const [{ alive }] = (await database.query(
      'select count(*)::int as alive from worker_lease where expires_at > now()',
    )) as [Item]
    assert.equal(total.alive, alive)
    await database.query('delete from worker_lease where id = $1', [own])
  })
})

test('only admins may open it', async () => {
  assert.equal((await api.get(PATH)).status, 401)
  assert.equal((await api.get(PATH, { token: ann.token })).status, 403)
  const open = await startEdge(database.url, { env: { AUTH_LEVEL: 'none' } })
  assert.equal((await open.call('HEAD', PATH)).status, 200)
})

test('unchanged parts are not sent, and a failed read is repeated', async () => {
  const real = createReader({ url: database.url, applicationName: 'overview' })
  after(() => real.close())
  let down = false
  const errors: unknown[] = []
  const overview = createOverview(
    { ...real, texts: (...asked) => (down ? Promise.reject(new Error('down')) : real.texts(...asked)) },
    [3600, 3600],
    (error) => errors.push(error),
  )
  const seen: Part[] = []
  const stop = overview.watch((parts) => seen.push(...parts))
  await until('all parts', () => seen.length >= 5)
  const quiet = seen.length
  overview.scheduleRead()
  down = true
  await until('a failed read', () => {
    overview.scheduleRead()
    return errors.length > 0
  })
  const id = await ledger.add(ann.id)
  down = false
  overview.scheduleRead()
  await until('the change', () => seen.some(({ event, data }) => event === 'queued' && data.includes(id)))
  assert.deepEqual(
    seen
      .slice(quiet)
      .map(({ event }) => event)
      .sort(),
    ['queued', 'queues'],
  )
  stop()
  overview.close()
})

test('a single read stops watching when its time is over', async () => {
  const abort = new AbortController()
  const stops: string[] = []
  const overview = {
    watch: () => () => stops.push('stopped'),
    allParts: () => [],
    scheduleRead() {},
    close() {},
  }
  const text = readOverview(overview, abort.signal)
  abort.abort()
  assert.equal(await text, null)
  assert.deepEqual(stops, ['stopped'])
})

test('a slow subscriber gets the complete latest state, never a backlog', () => {
  const pushes: ((parts: readonly Part[]) => void)[] = []
  const whole: Part[] = [{ event: 'queues', data: '"all"' }]
  const overview = {
    watch: (push: (parts: readonly Part[]) => void) => {
      pushes.push(push)
      return () => {}
    },
    allParts: () => whole,
    scheduleRead: () => {},
    close: () => {},
  }
  const sent: (readonly SseFrame[])[] = []
  let ready = (): void => {}
  const stream = {
    writable: true,
    closed: false,
    send: (frames: readonly SseFrame[]) => sent.push(frames) > 0,
    onWritable: (listener: () => void) => {
      ready = listener
    },
    end: () => {},
  }
  followOverview(overview).open(stream satisfies SseStream)
  const push = pushes[0]!
  push([{ event: 'queues', data: '1' }])
  stream.writable = false
  for (const data of ['2', '3', '4']) push([{ event: 'queues', data }])
  stream.writable = true
  ready()
  ready()
  push([{ event: 'queues', data: '5' }])
  assert.deepEqual(
    sent.map(([frame]) => frame!.data),
    ['1', '"all"', '5'],
  )
})
