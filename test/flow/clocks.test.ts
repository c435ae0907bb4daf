import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { createTestDatabase } from '../database.ts'
import { startEdge } from '../edge/harness.ts'
import { createEvent, signEvent, WEBHOOK_SECRET } from '../payment-events.ts'
import { Client, startProcess } from '../service.ts'
import { createLineLog } from './line-log.ts'

/** Edges with wrong clocks use the time of the database. */

const { url, query } = await createTestDatabase()
const env = { PROVIDER_SECRET_KEY: 'sk_test_standin', PROVIDER_WEBHOOK_SECRET: WEBHOOK_SECRET }

/**
 * Creates a root folder whose entry point shifts the clock and then loads the real entry point. Shifting the clock in a
 * preload would disable the compile cache and cost 0.5 s of CPU per start.
 */
function createShiftedRoot(ms: number): URL {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-clock-'))
  after(() => rmSync(folder, { recursive: true, force: true }))
  mkdirSync(join(folder, 'edge'))
  const code = `const Real = Date
    globalThis.Date = class extends Real {
      constructor(...given) { if (given.length === 0) super(Real.now() + ${ms}); else super(...given) }
      static now() { return Real.now() + ${ms} }
    }
    await import(${JSON.stringify(new URL('../../edge/main.ts', import.meta.url).href)})`
  writeFileSync(join(folder, 'edge/main.ts'), code)
  return pathToFileURL(`${folder}/`)
}

const HOUR_MS = 3_600_000
const { log, lines } = createLineLog()
const right = { ready: await startEdge(url, { env, log }), log: lines }
const [ahead, behind] = await Promise.all([
  startProcess('edge', url, env, [], [], createShiftedRoot(HOUR_MS)),
  startProcess('edge', url, env, [], [], createShiftedRoot(-HOUR_MS)),
])
const edges = { right, ahead, behind }
const clients = Object.fromEntries(
  Object.entries(edges).map(([name, { ready }]) => [name, new Client(ready.port!)]),
) as Record<keyof typeof edges, Client>
await clients.right.register('owner@example.com')

test('a token of any edge is valid at every other one', async () => {
  for (const [name, client] of Object.entries(clients)) {
    const body = new URLSearchParams({ username: 'owner@example.com', password: 'correct horse' })
    const signedIn = await client.fetch('/api/v1/auth/token', { method: 'POST', body })
    assert.equal(signedIn.status, 200)
    const { access_token: token } = (await signedIn.json()) as { access_token: string }
    for (const other of Object.values(clients)) {
      other.token = token
      const me = await other.fetch('/api/v1/auth/me')
      assert.equal(me.status, 200, `a token of the one ${name}`)
    }
  }
})

test('measures a delay by the clock of the database', async () => {
  for (const client of Object.values(clients)) {
    const json = { task_name: 'io_simulation_task', queue_type: 'load_test', delay_seconds: 600 }
    const { task_id: id } = (await (await client.post('/api/v1/tasks/enqueue', json)).json()) as {
      task_id: string
    }
    const [row] = await query(
      'select extract(epoch from run_at - created_at)::int as delay from job where id = $1',
      [id],
    )
    assert.equal(row!.delay, 600)
  }
})

test('measures the age of a signed event by the clock of the database', async () => {
  const body = JSON.stringify(createEvent('of.nothing', { id: 'x' }))
  const headers = { 'content-type': 'application/json', 'stripe-signature': signEvent(body) }
  for (const client of Object.values(clients)) {
    const answer = await client.fetch('/api/v1/payment/webhook', { method: 'POST', headers, body })
    assert.equal(answer.status, 200, await answer.text())
  }
})

test('an edge with a wrong clock logs it and keeps serving', async () => {
  const offsets = { right: 0, ahead: -3600, behind: 3600 }
  for (const [name, client] of Object.entries(clients)) {
    const ready = await client.fetch('/ready')
    assert.equal(ready.status, 200)
    const { clock_offset_seconds: offset } = (await ready.json()) as { clock_offset_seconds: number }
    assert.ok(Math.abs(offset - offsets[name as keyof typeof offsets]) <= 2, `${name}: ${offset} s`)
  }
  const warnsOfOffset = (log: readonly string[]) =>
    log.some((line) => line.includes('The clock offset to the database crossed 10 s'))
  assert.deepEqual(
    [warnsOfOffset(right.log), warnsOfOffset(ahead.log), warnsOfOffset(behind.log)],
    [false, true, true],
  )
})
