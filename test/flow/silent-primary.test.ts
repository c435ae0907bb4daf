import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../database.ts'
import { Client, startProcess } from '../service.ts'
import { until } from '../until.ts'
import { openLink } from './link.ts'

/** The database falls silent: its connections stay open but carry no data. */

const { url } = await createTestDatabase()
// A quiet machine recovers within 3 s.
const RECOVERY_TIMEOUT_MS = 8_000

const createTag = (client: Client, name: string) =>
  client.post('/api/v1/blog/tags', { name }, { 'idempotency-key': name })

test('an edge rejects requests instead of holding them, reports it and recovers by itself', async () => {
  const link = await openLink(url)
  const edge = await startProcess('edge', link.url, { AUTH_LEVEL: 'basic' })
  const client = new Client(edge.ready.port!)
  await client.register('writer@example.com')
  assert.equal((await createTag(client, 'before')).status, 201)

  link.silence()
  const startedAt = performance.now()
  const held = await Promise.all(Array.from({ length: 20 }, (_, i) => createTag(client, `during-${i}`)))
  assert.ok(performance.now() - startedAt < RECOVERY_TIMEOUT_MS)
  for (const answer of held) {
    assert.deepEqual([answer.status, answer.headers.get('retry-after')], [503, '1'])
    await answer.body?.cancel()
  }
  const ready = await client.fetch('/ready')
  assert.deepEqual([ready.status, ((await ready.json()) as { database: boolean }).database], [503, false])
  assert.equal((await client.fetch('/health')).status, 200)
  const refusals: number[] = []
  for (let n = 0; n < 5; n++) {
    const askedAt = performance.now()
    assert.equal((await createTag(client, 'refused')).status, 503)
    assert.equal((await client.fetch('/api/v1/documents')).status, 503)
    refusals.push(performance.now() - askedAt)
  }
  // Check only the fastest refusal, because a busy machine may delay the others.
  assert.ok(Math.min(...refusals) < 1_000, `at once, not after ${refusals} ms`)

  link.restore()
  const restoredAt = performance.now()
  await until(
    'the edge can write again',
    async () => (await createTag(client, 'after')).status === 201,
    RECOVERY_TIMEOUT_MS,
  )
  assert.ok(performance.now() - restoredAt < RECOVERY_TIMEOUT_MS)
  assert.equal((await client.fetch('/ready')).status, 200)
  assert.equal((await createTag(client, 'during-0')).status, 201, 'what was refused can be repeated')
})

test('processes that start before their database wait for it and log that', async () => {
  const link = await openLink(url)
  link.cut()
  const logs = { edge: [] as string[], worker: [] as string[] }
  const starting = (['edge', 'worker'] as const).map((kind) =>
    startProcess(kind, link.url, {}, [], logs[kind]),
  )
  const findWaitLines = (log: readonly string[]) =>
    log.filter((line) => line.includes('Waiting for the database'))
  await until(
    'both processes log the wait',
    () => Object.values(logs).every((log) => findWaitLines(log).length > 0),
    60_000,
  )
  link.restore()
  await Promise.all(starting)
  for (const line of Object.values(logs).flatMap(findWaitLines))
    assert.doesNotMatch(line, /\bat .*\.ts:/, 'no stack')
})
