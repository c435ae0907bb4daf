import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import pg from 'pg'
import { Client, type Stream } from '../service.ts'
import { startEdgeAndDatabase } from './harness.ts'
import { createLedger } from './ledger.ts'

/** Tests the stream with the frames of all jobs that the caller may see. */

// Stop the 5 s polling interval. In this file an edge polls only after a notification.
mock.timers.enable({ apis: ['setInterval'] })
const { api, ...database } = await startEdgeAndDatabase()
const ledger = createLedger(database)
const admin = await api.register('admin@example.com')
const [ann, bob] = [await api.register('ann@example.com'), await api.register('bob@example.com')]
const openStream = (token = ann.token, lastSeen?: string): Promise<Stream> => {
  const client = new Client(api.port)
  client.token = token
  return client.stream('/api/v1/jobs/events', lastSeen === undefined ? {} : { 'last-event-id': lastSeen })
}
const framesOf = (stream: Stream, id: string) => stream.frames.filter(({ data }) => data.job_id === id)
const statusesOf = (stream: Stream, id: string) => framesOf(stream, id).map(({ data }) => data.status)

/**
 * Waits until all earlier events have reached the streams, because frames come in event order. The first job may still
 * be in a stream's initial state, and the second comes after it.
 */
async function settle(...streams: readonly Stream[]): Promise<void> {
  for (const _ of ['begun', 'followed']) await waitForMarker(await ledger.addFinished(null), streams)
}

/** Waits until the edge has polled and the stream has the resulting frames. */
async function waitForPoll(stream: Stream): Promise<void> {
  ledger.isQuiet = true
  const marker = await ledger.addFinished(null)
  ledger.isQuiet = false
  await ledger.notifyAll()
  await waitForMarker(marker, [stream])
}

const waitForMarker = (marker: string, streams: readonly Stream[]): Promise<unknown> =>
  Promise.all(
    streams.map((stream) => stream.until('the marker', () => statusesOf(stream, marker).includes('done'))),
  )

test('starts with the live jobs in their current state, without ended ones', async (t) => {
  const ended = await ledger.addFinished(ann.id)
  // Wait for this stream first: pending notifications would otherwise reach the new stream, although their jobs have
  // finished.
  const earlier = await openStream()
  await settle(earlier)
  earlier.close()
  const waiting = await ledger.add(ann.id)
  const running = await ledger.add(ann.id)
  await ledger.claim(running)
  await ledger.progress(running, 'Page 1 of 2', 1, 2)
  const stream = await openStream()
  t.after(() => stream.close())
  assert.equal(stream.response.headers.get('content-type'), 'text/event-stream; charset=utf-8')
  await stream.until('both jobs', (frames) => frames.length === 2)
  await settle(stream)
  assert.deepEqual(
    [statusesOf(stream, waiting), statusesOf(stream, running), statusesOf(stream, ended)],
    [['queued'], ['running'], []],
  )
  assert.deepEqual(framesOf(stream, running)[0]!.data, {
    job_id: running,
    status: 'running',
    label: 'Page 1 of 2',
    progress: { current: 1, total: 2 },
  })
  await ledger.finish(running, 'done', { result: null })
  await api.call('DELETE', `/api/v1/jobs/${waiting}`, { token: ann.token })
  await stream.until(
    'both jobs ended',
    () => statusesOf(stream, waiting).at(-1) === 'cancelled' && statusesOf(stream, running).at(-1) === 'done',
  )
})

test('sends new jobs, changes and one terminal frame for each, and continues', async (t) => {
  const stream = await openStream()
  t.after(() => stream.close())
  const ids = [await ledger.add(ann.id), await ledger.add(ann.id), await ledger.add(ann.id)]
  for (const [i, id] of ids.entries()) {
    await ledger.claim(id)
    await ledger.progress(id, `step of ${i}`)
    await ledger.finish(
      id,
      i === 0 ? 'failed' : 'done',
      i === 0 ? { code: 'internal', detail: 'x' } : { result: { i } },
    )
    await ledger.notify(id)
  }
  const last = ['failed', 'done', 'done']
  await stream.until('all jobs ended', () => ids.every((id, i) => statusesOf(stream, id).at(-1) === last[i]))
  await ledger.notify(...ids)
  await settle(stream)
  for (const id of ids) {
    assert.equal(
      statusesOf(stream, id).filter((status) => status === 'done' || status === 'failed').length,
      1,
    )
    const seen = statusesOf(stream, id)
    assert.deepEqual(
      seen,
      [...seen].sort(
        (a, b) =>
          ['queued', 'running', 'failed', 'done'].indexOf(a!) -
          ['queued', 'running', 'failed', 'done'].indexOf(b!),
      ),
    )
  }
  assert.deepEqual(framesOf(stream, ids[1]!).at(-1)!.data.result, { i: 1 })
  assert.equal(stream.ended, false)
})

test('each caller sees only visible jobs', async (t) => {
  const streams = {
    ann: await openStream(),
    bob: await openStream(bob.token),
    admin: await openStream(admin.token),
    nobody: await openStream(''),
  }
  t.after(() => {
    for (const stream of Object.values(streams)) stream.close()
  })
  const jobs = {
    anns: await ledger.add(ann.id),
    bobs: await ledger.add(bob.id),
    nobodys: await ledger.add(null),
  }
  const later = await Promise.all(Object.values(streams).map(() => openStream(ann.token)))
  for (const id of Object.values(jobs)) {
    await ledger.claim(id)
    await ledger.finish(id, 'done', { result: null })
  }
  const ended = (stream: Stream, id: string) => statusesOf(stream, id).includes('done')
  await streams.admin.until('all three jobs', () =>
    Object.values(jobs).every((id) => ended(streams.admin, id)),
  )
  await Promise.all(
    [...Object.values(streams), ...later].map((stream) =>
      stream.until('the public job', () => ended(stream, jobs.nobodys)),
    ),
  )
  await settle(...Object.values(streams), ...later)
  for (const stream of later) stream.close()
  const sees = (stream: Stream) =>
    Object.entries(jobs)
      .filter(([, id]) => framesOf(stream, id).length > 0)
      .map(([name]) => name)
  assert.deepEqual(
    Object.fromEntries(Object.entries(streams).map(([name, stream]) => [name, sees(stream)])),
    {
      ann: ['anns', 'nobodys'],
      bob: ['bobs', 'nobodys'],
      admin: ['anns', 'bobs', 'nobodys'],
      nobody: ['nobodys'],
    },
  )
  assert.deepEqual([...new Set(later.flatMap(sees))].sort(), ['anns', 'nobodys'])
})

test('ids increase, and a client that resumes gets the jobs that ended meanwhile', async () => {
  const [first, witness] = [await openStream(), await openStream()]
  const id = await ledger.add(ann.id)
  await ledger.claim(id)
  await first.until('the job runs', () => statusesOf(first, id).includes('running'))
  first.close()
  const ids = first.frames.map((frame) => Number(frame.id))
  assert.deepEqual(
    ids,
    [...ids].sort((a, b) => a - b),
  )
  await ledger.finish(id, 'done', { result: 7 })
  await witness.until('its end', () => statusesOf(witness, id).includes('done'))
  witness.close()
  const [again, fresh] = [await openStream(ann.token, first.lastId), await openStream()]
  await again.until('its end', () => statusesOf(again, id).includes('done'))
  assert.deepEqual(statusesOf(again, id), ['done'])
  await settle(again, fresh)
  assert.deepEqual(statusesOf(fresh, id), [], 'which is no news to who was not here before')
  again.close()
  fresh.close()
})

test('a client that resumes gets an end that was in progress at the last frame', async (t) => {
  const [stream, witness] = [await openStream(), await openStream()]
  const id = await ledger.add(ann.id)
  const attempt = await ledger.claim(id)
  const worker = new pg.Client({ connectionString: database.url })
  await worker.connect()
  t.after(() => worker.end())
  await worker.query('begin')
  await worker.query('select job_finish($1::jsonb, 2, 5)', [
    JSON.stringify([{ id, attempt, outcome: 'done' }]),
  ])
  const other = await ledger.addFinished(ann.id)
  await stream.until('another end', () => statusesOf(stream, other).includes('done'))
  stream.close()
  await worker.query('commit')
  await ledger.notify(id)
  await witness.until('its end', () => statusesOf(witness, id).includes('done'))
  witness.close()
  const again = await openStream(ann.token, stream.lastId)
  t.after(() => again.close())
  await again.until('its end', () => statusesOf(again, id).includes('done'))
})

test('a notification with too many ids to list reaches the stream of all jobs, too', async (t) => {
  const stream = await openStream()
  t.after(() => stream.close())
  const ids = await Promise.all(Array.from({ length: 5 }, () => ledger.add(ann.id)))
  await stream.until('the jobs wait', () => ids.every((id) => statusesOf(stream, id).includes('queued')))
  ledger.isQuiet = true
  for (const id of ids) {
    await ledger.claim(id)
    await ledger.finish(id, 'done', { result: null })
  }
  ledger.isQuiet = false
  await ledger.notifyAll()
  await stream.until('the jobs ended', () => ids.every((id) => statusesOf(stream, id).includes('done')))
  await waitForPoll(stream)
  for (const id of ids)
    assert.equal(statusesOf(stream, id).filter((status) => status === 'done').length, 1, 'once')
})

test('more simultaneous ends than one page are each sent once', async (t) => {
  const stream = await openStream()
  t.after(() => stream.close())
  const ids = await ledger.addMany(ann.id, 1100)
  const before = String(Date.now())
  await database.query(
    `update job set status = 'cancelled', finished_at = now(), seq = seq + 1 where id = any($1)`,
    [ids],
  )
  await ledger.notifyAll()
  const ends = (stream: Stream) =>
    stream.frames.filter(({ data }) => data.status === 'cancelled' && ids.includes(data.job_id as string))
  await stream.until('all jobs', () => ends(stream).length >= 1100)
  await waitForPoll(stream)
  assert.equal(new Set(ends(stream).map(({ data }) => data.job_id)).size, ends(stream).length)
  // This job is behind more jobs of others than one page covers.
  const last = await ledger.addFinished(bob.id)
  const [back, other] = [await openStream(ann.token, before), await openStream(bob.token, before)]
  t.after(() => {
    back.close()
    other.close()
  })
  await back.until('all jobs again', () => ends(back).length === 1100)
  await other.until('the only public job', () => statusesOf(other, last).includes('done'))
  assert.equal(ends(other).length, 0)
})

test('events during a lost database connection are recovered', async (t) => {
  const all = await openStream()
  const watched = await ledger.add(ann.id)
  const client = new Client(api.port)
  client.token = ann.token
  const one = await client.stream(`/api/v1/jobs/${watched}/events`)
  t.after(() => {
    all.close()
    one.close()
  })
  await one.until('the job waits', (frames) => frames.length === 1)
  ledger.isQuiet = true
  await ledger.claim(watched)
  await ledger.finish(watched, 'done', { result: null })
  ledger.isQuiet = false
  await database.query(
    // Restrict this to the current database, because edges of other tests use the same server.
    `select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and application_name = 'millrace-edge-listen'`,
  )
  await one.until('the stream of the job', () => one.ended)
  await all.until('the stream of all', () => statusesOf(all, watched).includes('done'))
})
