import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startEdgeAndDatabase } from './harness.ts'
import { createLedger } from './ledger.ts'

/** A job that has never started can get other arguments and another time. */

const { api, ...database } = await startEdgeAndDatabase()
const { query } = database
const ledger = createLedger(database)
const admin = await api.register('admin@example.com')
const ann = await api.register('ann@example.com')
const bob = await api.register('bob@example.com')
const DAY_MS = 86_400_000

const enqueue = async (fields: object = {}, token: string | undefined = ann.token): Promise<string> => {
  const json = {
    task_name: 'io_simulation_task',
    queue_type: 'load_test',
    args: { operations: 1 },
    ...fields,
  }
  const answer = await api.post('/api/v1/tasks/enqueue', { token, json })
  assert.equal(answer.status, 202, answer.text)
  return answer.json.task_id
}
const change = (id: string, json: object, token: string | undefined = ann.token) =>
  api.call('PATCH', `/api/v1/jobs/${id}`, { token, json })
const readRow = async (id: string) => {
  const [row] = await query('select status, payload, run_at from job where id = $1', [id])
  return row as { status: string; payload: Record<string, unknown>; run_at: Date }
}
const codeOf = async (answer: ReturnType<typeof change>) => {
  const { status, json } = await answer
  return [status, json.code]
}

test('its owner changes the arguments, which are parsed like those of a new task', async () => {
  const id = await enqueue({ delay_seconds: 3600 })
  const before = await readRow(id)
  const { status, json } = await change(id, { args: { operations: 3 } })
  assert.deepEqual([status, json.job_id, json.status], [200, id, 'queued'])
  const { payload, run_at, ...row } = await readRow(id)
  assert.deepEqual(
    [row.status, run_at, json.run_at],
    ['scheduled', before.run_at, before.run_at.toISOString()],
  )
  assert.deepEqual(payload, { ...before.payload, operations: 3 })
})

test('its owner changes the time, to an earlier or a later one', async () => {
  const id = await enqueue({ delay_seconds: 3600 })
  const { payload } = await readRow(id)
  const time = new Date(Date.now() + 2 * DAY_MS).toISOString()
  assert.equal((await change(id, { run_at: time })).json.run_at, time)
  assert.deepEqual(await readRow(id), { status: 'scheduled', payload, run_at: new Date(time) })
  const { json } = await change(id, { delay_seconds: 60 })
  const left = Date.parse(json.run_at) - Date.now()
  assert.ok(left > 30_000 && left <= 60_000, `${left}`)
  await change(id, { run_at: '2020-01-01T00:00:00+02:00' })
  assert.equal((await readRow(id)).status, 'available')
  await change(id, { delay_seconds: 60 })
  assert.equal((await readRow(id)).status, 'scheduled')
  await change(id, { delay_seconds: 0 })
  assert.equal((await readRow(id)).status, 'available')
})

test('a job that waits for another still does', async () => {
  const first = await enqueue({ delay_seconds: 3600 })
  const id = await ledger.add(ann.id, {
    name: 'load_test.io_simulation_task',
    queue: 'load_test',
    after: [first],
    after_outcome: 'done',
  })
  const { json } = await change(id, { args: { operations: 2 }, delay_seconds: 0 })
  assert.equal(json.status, 'waiting')
  assert.equal((await readRow(id)).payload.operations, 2)
})

test('invalid changes are rejected', async () => {
  const id = await enqueue({ delay_seconds: 3600 })
  const before = await readRow(id)
  const time = (days: number) => new Date(Date.now() + days * DAY_MS).toISOString()
  for (const json of [
    {},
    { args: null },
    { args: { operations: 'x' } },
    { args: { operations: 1, other: 1 } },
    { run_at: time(1), delay_seconds: 1 },
    { run_at: time(31) },
    { run_at: 'tomorrow' },
    { delay_seconds: -1 },
    { delay_seconds: 31 * 86_400 },
    { priority: 'high' },
  ])
    assert.equal((await change(id, json)).status, 422, JSON.stringify(json))
  const wrong = { operations: 'x' }
  const added = await api.post('/api/v1/tasks/enqueue', {
    token: ann.token,
    json: { task_name: 'io_simulation_task', queue_type: 'load_test', args: wrong },
  })
  assert.deepEqual((await change(id, { args: wrong })).json, added.json)
  assert.deepEqual(await readRow(id), before)
  assert.equal((await change(id, { run_at: time(29) })).status, 200)
})

test('only its owner and admins may change it', async () => {
  const [id, ownerless] = [
    await enqueue({ delay_seconds: 3600 }),
    await ledger.add(null, { name: 'load_test.io_simulation_task', queue: 'load_test', delay_ms: 3_600_000 }),
  ]
  const json = { delay_seconds: 60 }
  const missing = await change('01a20118-fbcc-738c-80ed-00058e0e401d', json)
  assert.deepEqual([missing.status, missing.json.code], [404, 'job.missing'])
  assert.deepEqual((await change(id, json, bob.token)).json, missing.json)
  assert.deepEqual((await change('x', json)).json, missing.json)
  assert.deepEqual(await codeOf(change(ownerless, json)), [403, 'auth.forbidden'])
  for (const any of [id, ownerless]) assert.equal((await change(any, json, admin.token)).status, 200)
})

test('a job that has started, ended or was cancelled cannot be changed', async () => {
  const json = { args: { operations: 2 } }
  const started = await enqueue()
  await ledger.claim(started)
  assert.deepEqual(await codeOf(change(started, json)), [409, 'job.started'])
  await ledger.finish(started, 'retry', { code: 'internal', detail: 'x', delay_ms: 3_600_000 })
  assert.deepEqual(await codeOf(change(started, json)), [409, 'job.started'])
  const cancelled = await enqueue({ delay_seconds: 3600 })
  await api.call('DELETE', `/api/v1/jobs/${cancelled}`, { token: ann.token })
  assert.deepEqual(await codeOf(change(cancelled, json)), [409, 'job.started'])
})

test('jobs that were not added as tasks cannot be changed', async () => {
  const extraction = await ledger.add(ann.id, { delay_ms: 3_600_000 })
  for (const json of [{ delay_seconds: 0 }, { args: { documentId: 7, force: false } }])
    assert.deepEqual(await codeOf(change(extraction, json)), [409, 'job.not_changeable'])
  const bulk = await api.post('/api/v1/jobs/bulk', {
    token: ann.token,
    json: { action: 'cancel', filter: { key: 'x' } },
  })
  const args = { action: 'cancel', filter: {}, owners: 'any' }
  assert.deepEqual(await codeOf(change(bulk.json.job_id, { args })), [409, 'job.not_changeable'])
})
