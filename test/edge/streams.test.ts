import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Client, type Frame } from '../service.ts'
import { until } from '../until.ts'
import { startEdgeAndDatabase } from './harness.ts'
import { createLedger } from './ledger.ts'

/** Tests the stream of one job as browsers read it. */

const { api, ...database } = await startEdgeAndDatabase()
const ledger = createLedger(database)
await api.register('admin@example.com')
const { token, id: owner } = await api.register('owner@example.com')
const client = new Client(api.port)
client.token = token
const openStream = (id: string, lastSeen?: string) =>
  client.stream(`/api/v1/jobs/${id}/events`, lastSeen === undefined ? {} : { 'last-event-id': lastSeen })
const statesOf = (frames: readonly Frame[]) => frames.map(({ data }) => [data.status, data.label])
const idsOf = (frames: readonly Frame[]) => frames.map(({ id }) => Number(id))
const RESULT = { read: 3, unread: 0, skipped: 0 }

/** Creates a claimed job that has reached page 2. */
async function addRunningJob(): Promise<string> {
  const id = await ledger.add(owner)
  await ledger.claim(id)
  await ledger.progress(id, 'Page 1 of 3', 1, 3)
  await ledger.progress(id, 'Page 2 of 3', 2, 3)
  return id
}

test('the stream has its headers, which forbid buffering and caching', async () => {
  const id = await ledger.add(owner)
  const { response, close } = await openStream(id).then((opened) => ({
    response: opened.response,
    close: () => opened.close(),
  }))
  assert.equal(response.status, 200)
  assert.equal(response.headers.get('content-type'), 'text/event-stream; charset=utf-8')
  assert.equal(response.headers.get('cache-control'), 'no-store')
  assert.equal(response.headers.get('x-accel-buffering'), 'no')
  assert.ok(response.headers.get('x-request-id'))
  close()
})

test('sends the current state, then every change in order, one terminal frame, and ends', async () => {
  const id = await ledger.add(owner)
  const opened = await openStream(id)
  await opened.until('the first frame', (frames) => frames.length === 1)
  await ledger.claim(id)
  await ledger.progress(id, 'Page 1 of 3', 1, 3)
  await ledger.progress(id, 'Page 2 of 3', 2, 3)
  await ledger.progress(id, 'Page 3 of 3', 3, 3)
  await ledger.finish(id, 'done', { result: RESULT })
  const frames = await opened.waitForEnd()
  assert.deepEqual(statesOf(frames), [
    ['queued', ''],
    ['running', ''],
    ['running', 'Page 1 of 3'],
    ['running', 'Page 2 of 3'],
    ['running', 'Page 3 of 3'],
    ['done', 'Page 3 of 3'],
  ])
  assert.deepEqual(idsOf(frames), [0, 1, 2, 3, 4, 5])
  assert.equal(opened.broken, false, 'the server ended it in order')
  assert.deepEqual(new Set(frames.map(({ event }) => event)), new Set(['status']))
  assert.deepEqual(frames[2]!.data, {
    job_id: id,
    status: 'running',
    label: 'Page 1 of 3',
    progress: { current: 1, total: 3 },
  })
  assert.deepEqual(frames[5]!.data, {
    job_id: id,
    status: 'done',
    label: 'Page 3 of 3',
    progress: { current: 3, total: 3 },
    result: RESULT,
  })
})

test('a late subscriber starts with the current state', async () => {
  const id = await addRunningJob()
  const opened = await openStream(id)
  await opened.until('the first frame', (frames) => frames.length === 1)
  await ledger.finish(id, 'done', { result: RESULT })
  assert.deepEqual(statesOf(await opened.waitForEnd()), [
    ['running', 'Page 2 of 3'],
    ['done', 'Page 2 of 3'],
  ])
})

test('a subscriber after the end gets the terminal frame, and the stream ends', async () => {
  const id = await ledger.addFinished(owner, 'done', { result: RESULT })
  const frames = await (await openStream(id)).waitForEnd()
  assert.deepEqual(
    frames.map(({ data }) => [data.status, data.result]),
    [['done', RESULT]],
  )
})

test('failures and cancellations are terminal, too, and a failure has its reason', async () => {
  const failed = await ledger.addFinished(owner, 'failed', { code: 'job.crashed', detail: 'The thread died' })
  const [frame, ...more] = await (await openStream(failed)).waitForEnd()
  assert.deepEqual(
    [frame!.data.status, frame!.data.error, more.length],
    ['failed', { code: 'job.crashed', detail: 'The thread died' }, 0],
  )
  const waiting = await ledger.add(owner)
  const opened = await openStream(waiting)
  await opened.until('the first frame', (frames) => frames.length === 1)
  await api.call('DELETE', `/api/v1/jobs/${waiting}`, { token })
  assert.deepEqual(statesOf(await opened.waitForEnd()), [
    ['queued', ''],
    ['cancelled', ''],
  ])
})

test('a null result is sent as null', async () => {
  const id = await ledger.addFinished(owner, 'done', { result: null })
  const [frame] = await (await openStream(id)).waitForEnd()
  assert.ok('result' in frame!.data)
  assert.equal(frame!.data.result, null)
})

test('a retried job reports it and ends once', async () => {
  const id = await addRunningJob()
  const opened = await openStream(id)
  await opened.until('the first frame', (frames) => frames.length === 1)
  await ledger.finish(id, 'retry', { delay_ms: 0 })
  await ledger.claim(id)
  await ledger.finish(id, 'done', { result: RESULT })
  const frames = await opened.waitForEnd()
  assert.deepEqual(
    frames.map(({ data }) => data.status),
    ['running', 'queued', 'running', 'done'],
  )
})

test('Last-Event-ID resumes after that frame without gaps or duplicates', async () => {
  const id = await addRunningJob()
  await ledger.progress(id, 'Page 3 of 3', 3, 3)
  for (const [lastSeen, expected] of [
    ['0', [1, 2, 3, 4, 5]],
    ['1', [2, 3, 4, 5]],
    ['3', [4, 5]],
    ['4', [5]],
  ] as const) {
    if (lastSeen === '4') await ledger.finish(id, 'done', { result: RESULT })
    const opened = await openStream(id, lastSeen)
    if (lastSeen !== '4') {
      await opened.until('the missed frames', (frames) => frames.at(-1)?.id === '4')
      opened.close()
      assert.deepEqual(
        idsOf(opened.frames),
        expected.filter((n) => n < 5),
      )
    } else assert.deepEqual(idsOf(await opened.waitForEnd()), expected)
  }
})

test('a client that reconnects after a cut gets every frame exactly once', async () => {
  const id = await addRunningJob()
  const first = await openStream(id)
  await first.until('the first frame', (frames) => frames.length === 1)
  first.close()
  await ledger.progress(id, 'while away')
  await ledger.progress(id, 'still away')
  const second = await openStream(id, first.lastId)
  await second.until('both frames', (frames) => frames.length === 2)
  await ledger.finish(id, 'done', { result: RESULT })
  await second.waitForEnd()
  assert.deepEqual(idsOf([...first.frames, ...second.frames]), [3, 4, 5, 6])
})

test('a client that reconnects after the terminal frame gets 204, which stops it', async () => {
  const id = await ledger.addFinished(owner)
  const last = (await (await openStream(id)).waitForEnd()).at(-1)!.id
  for (const lastSeen of [last, String(Number(last) + 5)]) {
    const answer = await api.get(`/api/v1/jobs/${id}/events`, {
      token,
      headers: { 'last-event-id': lastSeen },
    })
    assert.deepEqual([answer.status, answer.bytes.length], [204, 0])
    assert.equal(
      (await api.get(`/api/v1/jobs/${id}/events?last_event_id=${lastSeen}`, { token })).status,
      204,
    )
  }
})

test('an unknown Last-Event-ID still gets the current state and changes', async () => {
  const id = await addRunningJob()
  for (const lastSeen of ['999999', '1795246793000', 'x', '-1', '1.5', '99999999999999999999']) {
    const opened = await openStream(id, lastSeen)
    await opened.until(`the current state after ${lastSeen}`, (frames) => frames.length === 1)
    assert.deepEqual(statesOf(opened.frames), [['running', 'Page 2 of 3']])
    opened.close()
  }
})

test('all subscribers of a job see the same frames', async () => {
  const id = await ledger.add(owner)
  const readers = await Promise.all(Array.from({ length: 20 }, () => openStream(id)))
  await Promise.all(readers.map((reader) => reader.until('the first frame', (frames) => frames.length === 1)))
  await ledger.claim(id)
  await ledger.progressMany(
    id,
    Array.from({ length: 50 }, (_, i) => `step ${i}`),
  )
  await ledger.finish(id, 'done', { result: RESULT })
  const all = await Promise.all(readers.map((reader) => reader.waitForEnd()))
  for (const frames of all) assert.deepEqual(frames, all[0])
  assert.deepEqual(
    idsOf(all[0]!),
    Array.from({ length: 53 }, (_, i) => i),
  )
})

test('a change without a notification arrives with the next one, in order', async () => {
  const id = await addRunningJob()
  const opened = await openStream(id)
  await opened.until('the first frame', (frames) => frames.length === 1)
  ledger.isQuiet = true
  await ledger.progress(id, 'unheard')
  await ledger.progress(id, 'unheard too')
  ledger.isQuiet = false
  await ledger.progress(id, 'heard')
  await opened.until('all three frames', (frames) => frames.length === 4)
  assert.deepEqual(idsOf(opened.frames), [3, 4, 5, 6])
  opened.close()
})

test('HEAD of a stream has its headers and ends', async () => {
  const answer = await api.call('HEAD', `/api/v1/jobs/${await ledger.add(owner)}/events`, { token })
  assert.deepEqual(
    [answer.status, answer.headers['content-type'], answer.bytes.length],
    [200, 'text/event-stream; charset=utf-8', 0],
  )
})

test('a disconnected subscriber is removed', async () => {
  const { hub } = api.serving.edge
  await until('no other watchers', () => hub.watcherCount === 0)
  const opened = await openStream(await ledger.add(owner))
  await until('one watcher', () => hub.watcherCount === 1)
  opened.close()
  await until('no watchers', () => hub.watcherCount === 0)
})
