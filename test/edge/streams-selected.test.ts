import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { Client, type Stream } from '../service.ts'
import { startEdgeAndDatabase } from './harness.ts'
import { createLedger } from './ledger.ts'

/** The stream of several jobs can be limited to named jobs, a batch, a queue or a task. */

// Stop the 5 s polling interval. In this file an edge polls only after a notification.
mock.timers.enable({ apis: ['setInterval'] })
const { api, ...database } = await startEdgeAndDatabase()
const ledger = createLedger(database)
await api.register('admin@example.com')
const [ann, bob] = [await api.register('ann@example.com'), await api.register('bob@example.com')]

const PATH = '/api/v1/jobs/events'
const openStream = (query: string, token = ann.token, headers: Record<string, string> = {}) => {
  const client = new Client(api.port)
  client.token = token
  return client.stream(`${PATH}?${query}`, headers)
}
const getStatus = async (query: string, token = ann.token, headers: Record<string, string> = {}) =>
  (await api.get(`${PATH}?${query}`, { token, headers })).status
const statesOf = (stream: Stream) => stream.frames.map(({ data }) => [data.job_id, data.status])
const statusesOf = (stream: Stream, id: string) =>
  stream.frames.filter(({ data }) => data.job_id === id).map(({ data }) => data.status)
const end = async (id: string): Promise<void> => {
  await ledger.claim(id)
  await ledger.finish(id, 'done', { result: 1 })
}
const addBatch = (): Promise<string> =>
  ledger.add(ann.id, { name: 'jobs.batch', queue: 'system', is_batch: true, payload: { is_open: true } })

test('the stream of named jobs begins with their states and ends with their ends', async () => {
  const ended = await ledger.addFinished(ann.id)
  const [first, second] = [await ledger.add(ann.id), await ledger.add(null)]
  const other = await ledger.add(ann.id)
  const stream = await openStream(`ids=${ended},${first}&ids=${second.toUpperCase()}`)
  await stream.until('all states', (frames) => frames.length >= 3)
  assert.deepEqual(
    statesOf(stream).sort(),
    [
      [ended, 'done'],
      [first, 'queued'],
      [second, 'queued'],
    ].sort(),
  )
  for (const id of [other, first, second]) await end(id)
  const frames = await stream.waitForEnd()
  assert.deepEqual([stream.lastId, frames.at(-1)!.event], ['end', 'status'])
  for (const id of [first, second]) assert.equal(statusesOf(stream, id).at(-1), 'done')
  assert.deepEqual(statusesOf(stream, other), [])
  assert.equal(statesOf(stream).filter(([, status]) => status === 'done').length, 3)
  const query = `ids=${ended},${first},${second}`
  assert.equal(await getStatus(query, ann.token, { 'last-event-id': 'end' }), 204)
  assert.equal(await getStatus(`${query}&last_event_id=end`), 204)
  const again = await openStream(query)
  await again.waitForEnd()
  assert.deepEqual([statesOf(again).length, again.lastId], [3, 'end'])
})

test('a stream of named jobs that resumes gets the ends since, and then ends', async () => {
  const [first, second, third] = [
    await ledger.add(ann.id),
    await ledger.add(ann.id),
    await ledger.add(ann.id),
  ]
  const query = `ids=${first},${second},${third}`
  const stream = await openStream(query)
  await stream.until('all states', (frames) => frames.length >= 3)
  await end(first)
  await stream.until('the first end', () => statusesOf(stream, first).includes('done'))
  const since = Date.now() + 1
  stream.close()
  await end(second)
  const back = await openStream(`${query}&last_event_id=${stream.lastId}`)
  await back.until('the end of the second', () => statusesOf(back, second).includes('done'))
  await end(third)
  await back.waitForEnd()
  assert.equal(back.lastId, 'end')
  // All of them ended before the time of this event.
  await database.query(`update job set finished_at = to_timestamp($1 / 1000.0) where id = any($2)`, [
    since - 60_000,
    [first, second, third],
  ])
  assert.equal(await getStatus(query, ann.token, { 'last-event-id': String(since) }), 204)
  // The header takes precedence.
  const whole = await openStream(`${query}&last_event_id=end`, ann.token, { 'last-event-id': '0' })
  await whole.waitForEnd()
  assert.equal(statesOf(whole).length, 3)
})

test('a job or batch that the caller cannot see is a 404, more than 1000 ids are a 422', async () => {
  const [own, foreign] = [await ledger.add(ann.id), await ledger.add(bob.id)]
  const missing = '01a20118-fbcc-738c-80ed-00058e0e401d'
  for (const ids of [`${own},${foreign}`, `${own},${missing}`, 'x', `${own},17`])
    assert.equal(await getStatus(`ids=${ids}`), 404, ids)
  for (const batch of [foreign, missing, 'x']) assert.equal(await getStatus(`batch=${batch}`), 404, batch)
  const many = Array.from({ length: 1001 }, (_, n) => n.toString(36)).join()
  assert.equal(await getStatus(`ids=${many}`), 422)
  assert.equal(await getStatus(`ids=${Array(80).fill(own).join()}&queue=other`), 204, 'none is selected')
})

test('a stream names up to 1000 jobs', async () => {
  const ids = await ledger.addMany(ann.id, 1000)
  const stream = await openStream(`ids=${ids.join()}`)
  await stream.until('all states', (frames) => frames.length === 1000)
  await database.query(
    `update job set status = 'cancelled', finished_at = now(), seq = seq + 1 where id = any($1)`,
    [ids],
  )
  await ledger.notifyAll()
  await stream.waitForEnd()
  const ends = statesOf(stream).filter(([, status]) => status === 'cancelled')
  assert.deepEqual([ends.length, new Set(ends.map(([id]) => id)).size, stream.lastId], [1000, 1000, 'end'])
  const { status, json } = await api.get(`/api/v1/tasks/results?ids=${ids.join()}`, { token: ann.token })
  assert.deepEqual([status, json.missing.length], [200, 1000])
})

test('a queue, a task and a batch limit the stream, and all conditions must hold', async (t) => {
  const batch = await addBatch()
  const members = { name: 'documents.extract', queue: 'documents', batch_id: batch }
  const live = {
    member: await ledger.add(ann.id, members),
    otherTask: await ledger.add(ann.id, { ...members, name: 'documents.index' }),
    otherQueue: await ledger.add(ann.id, { name: 'documents.extract', queue: 'system' }),
    public: await ledger.add(null),
    bobs: await ledger.add(bob.id, { batch_id: batch }),
  }
  const open = async (query: string): Promise<Stream> => {
    const stream = await openStream(query)
    t.after(() => stream.close())
    return stream
  }
  const ended = await ledger.add(ann.id, members)
  // The edge has heard of the end before the other streams begin.
  const witness = await open('queue=documents')
  await end(ended)
  await witness.until('the end', () => statusesOf(witness, ended).includes('done'))
  const streams = {
    batch: await open(`batch=${batch}`),
    'batch task': await open(`batch=${batch}&task=documents.extract`),
    queue: await open('queue=documents'),
    task: await open('task=documents.index'),
    'queue task': await open('queue=system&task=documents.extract'),
  }
  const expected = {
    batch: ['member', 'otherTask'],
    'batch task': ['member'],
    queue: ['member', 'otherTask', 'public'],
    task: ['otherTask'],
    'queue task': ['otherQueue'],
  }
  const names = Object.keys(live) as (keyof typeof live)[]
  const seen = (stream: Stream, status: string) =>
    names.filter((name) => statusesOf(stream, live[name]).includes(status))
  for (const [name, stream] of Object.entries(streams))
    await stream.until('the live jobs', () =>
      expected[name as keyof typeof expected].every((job) => seen(stream, 'queued').includes(job as never)),
    )
  for (const id of Object.values(live)) await end(id)
  for (const [name, stream] of Object.entries(streams)) {
    const jobs = expected[name as keyof typeof expected]
    await stream.until('the ends', () => seen(stream, 'done').length === jobs.length)
    assert.deepEqual([seen(stream, 'done'), seen(stream, 'queued')], [jobs, jobs], name)
    assert.deepEqual(statusesOf(stream, ended), [], name)
    assert.equal(stream.ended, false)
  }
})

test('a resumed stream of a selection gets the ends since', async (t) => {
  const batch = await addBatch()
  const stream = await openStream(`batch=${batch}`)
  const witness = await ledger.add(ann.id, { batch_id: batch })
  await end(witness)
  await stream.until('an end', () => statusesOf(stream, witness).includes('done'))
  stream.close()
  const members = [await ledger.add(ann.id, { batch_id: batch }), await ledger.add(ann.id)]
  for (const id of members) await end(id)
  for (const query of [`batch=${batch}`, 'queue=documents']) {
    const back = await openStream(`${query}&last_event_id=${stream.lastId}`)
    t.after(() => back.close())
    await back.until('the end', () => statusesOf(back, members[0]!).includes('done'))
    if (query === 'queue=documents')
      await back.until('the other end', () => statusesOf(back, members[1]!).includes('done'))
    else assert.deepEqual(statusesOf(back, members[1]!), [])
  }
})
