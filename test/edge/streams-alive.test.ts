import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { z } from 'zod'
import { area, route } from '../../edge/pipeline/route.ts'
import { areas } from '../../edge/routes/index.ts'
import { Client } from '../service.ts'
import { until } from '../until.ts'
import { Client as Raw, request } from './fixtures/raw.ts'
import { startEdge, startEdgeAndDatabase } from './harness.ts'
import { createLedger } from './ledger.ts'

/** Heartbeat comments must keep streams open until their process stops. */

// An edge sets its intervals at startup. From here on the test triggers them.
mock.timers.enable({ apis: ['setInterval'] })
const { api, ...database } = await startEdgeAndDatabase()
const ledger = createLedger(database)
// Register an admin first, who would also see the job for its own verification mail.
await api.register('admin@example.com')
const { token, id: owner } = await api.register('owner@example.com')
const createClient = (port: number): Client => Object.assign(new Client(port), { token })
const id = await ledger.add(owner)

test('a comment every 15 seconds keeps an idle stream open', async (t) => {
  for (const path of ['/api/v1/jobs/events', `/api/v1/jobs/${id}/events`]) {
    const stream = await createClient(api.port).stream(path)
    t.after(() => stream.close())
    await stream.until('the first frame', (frames) => frames.length === 1)
    const before = stream.comments
    mock.timers.tick(14_999)
    await new Promise((resolve) => setTimeout(resolve, 40))
    assert.equal(stream.comments, before)
    mock.timers.tick(1)
    await until('one comment', () => stream.comments === before + 1)
    mock.timers.tick(30_000)
    await until('two more comments', () => stream.comments >= before + 3)
    assert.equal(stream.frames.length, 1, 'which is no frame')
    stream.close()
    await until('the watcher is gone', () => api.serving.edge.hub.watcherCount === 0)
  }
})

test('a lost notification is recovered within five seconds, on both kinds of stream', async (t) => {
  const job = await ledger.add(owner)
  const [one, all] = [
    await createClient(api.port).stream(`/api/v1/jobs/${job}/events`),
    await createClient(api.port).stream('/api/v1/jobs/events'),
  ]
  t.after(() => {
    one.close()
    all.close()
  })
  await one.until('the first frame', (frames) => frames.length === 1)
  await all.until('the first frames', (frames) => frames.some(({ data }) => data.job_id === job))
  ledger.isQuiet = true
  await ledger.claim(job)
  await ledger.finish(job, 'done', { result: null })
  ledger.isQuiet = false
  mock.timers.tick(5_000)
  await one.until('the end', () => one.ended)
  await all.until('the end', (frames) =>
    frames.some(({ data }) => data.job_id === job && data.status === 'done'),
  )
})

test('a stopping process ends its streams and asks clients to reconnect soon', async () => {
  const stopping = await startEdge(database.url)
  const stream = await createClient(stopping.port).stream(`/api/v1/jobs/${id}/events`)
  await stream.until('the first frame', (frames) => frames.length === 1)
  const raw = stopping.raw(
    `GET /api/v1/jobs/${id}/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n\r\n`,
    30_000,
  )
  await until('both streams are open', () => stopping.serving.edge.hub.watcherCount === 2)
  await stopping.serving.stop()
  await until('the process ended', () => stream.ended)
  assert.equal(stream.broken, false)
  assert.deepEqual(
    stream.frames.map(({ data }) => data.status),
    ['queued'],
    'without a frame that would be taken for the end of the job',
  )
  assert.match(await raw, /retry: 1000\n\n/)
  await assert.rejects(stopping.get('/health'))
})

test('a stopping process answers accepted connections once and redirects stream clients', async (t) => {
  const stopping = await startEdge(database.url, { lingers: true })
  const [asking, reading] = [await Raw.connect(t, stopping.port), await Raw.connect(t, stopping.port)]
  for (const client of [asking, reading]) await client.send(request('GET /health')).waitForText('"ok"')
  let stopped = false
  const stop = stopping.serving.stop().then(() => {
    stopped = true
  })
  await until('the process rejects new connections', () =>
    Raw.connect(t, stopping.port).then(
      ({ socket }) => {
        // Close this accepted connection, because the edge would wait for it.
        socket.destroy()
        return false
      },
      () => true,
    ),
  )
  await asking.send(request('GET /health')).waitForText('Connection: close')
  await asking.waitForClose()
  assert.equal(stopped, false, 'it waits for the other')
  const authorization = `Bearer ${token}`
  await reading.send(request(`GET /api/v1/jobs/${id}/events`, { authorization })).waitForText('\r\n0\r\n\r\n')
  assert.match(reading.text, /\r\nConnection: close\r\n[\s\S]*retry: 1000/)
  assert.doesNotMatch(reading.text, /event: status/)
  reading.socket.end()
  await stop
})

test('a stream resumes on another process', async (t) => {
  const [first, second] = [await startEdge(database.url), await startEdge(database.url)]
  const job = await ledger.add(owner)
  await ledger.claim(job)
  const before = await createClient(first.port).stream(`/api/v1/jobs/${job}/events`)
  await before.until('the job runs', (frames) => frames.length === 1)
  await first.serving.stop()
  await ledger.progress(job, 'meanwhile')
  const after = await createClient(second.port).stream(`/api/v1/jobs/${job}/events`, {
    'last-event-id': before.lastId,
  })
  t.after(() => after.close())
  await after.until('the missed frames', (frames) => frames.length === 1)
  await ledger.finish(job, 'done', { result: null })
  const frames = await after.waitForEnd()
  assert.deepEqual(
    [...before.frames, ...frames].map((frame) => Number(frame.id)),
    [1, 2, 3],
  )
})

test('pending requests are answered before the process exits', async () => {
  const [begun, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const slow = route({
    method: 'get',
    path: '/slow',
    summary: 'slow',
    response: z.string(),
    handle: async () => {
      begun.resolve()
      await gate.promise
      return 'done'
    },
  })
  const stopping = await startEdge(database.url, {
    areas: [...areas, area('slow', '', { auth: 'public' }, [slow])],
  })
  const answer = stopping.get('/slow')
  await begun.promise
  const stopped = stopping.serving.stop()
  setTimeout(() => gate.resolve(), 50)
  assert.deepEqual([(await answer).status, (await answer).json], [200, 'done'])
  await stopped
})
