import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertRefused, createCast } from './accounts-help.ts'
import { startEdgeAndDatabase } from './harness.ts'
import { type Caller, createWorkerHelp } from './worker-queues-help.ts'

/** Declared tasks of worker queues: schemas, limits, tries and secrets. */

const { api, query } = await startEdgeAndDatabase({ env: { QUOTA_WORKER_QUEUES: '3' } })
const { newcomer } = await createCast(api)
const { send, addQueue, add, claim, take, reported, report, readJob } = createWorkerHelp(api)
const ARGS = {
  type: 'object',
  required: ['url'],
  properties: {
    url: { type: 'string', format: 'uri' },
    sizes: { type: 'array', items: { type: 'integer' } },
  },
  additionalProperties: false,
}

const declare = async (who: Caller, queue: string, fields: object, task = 'work') => {
  const answer = await send(who, 'PUT', `/api/v1/worker-queues/${queue}/tasks/${task}`, fields)
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}
const enqueue = (who: Caller, queue: string, args: object) =>
  send(who, 'POST', '/api/v1/tasks/enqueue', { queue_type: queue, task_name: 'work', args })

test('a task is declared, read, changed and removed', async () => {
  const user = await newcomer()
  const queue = await addQueue(user, { open: false })
  const undeclared = `The queue ${queue} has no task named work; declare it, or open the queue for undeclared tasks`
  assertRefused(await enqueue(user, queue, {}), 400, undeclared)
  const fields = {
    args: ARGS,
    max_tries: 5,
    timeout_seconds: 60,
    stall_seconds: 10,
    limit: 2,
    secrets: ['url'],
  }
  const declared = await declare(user, queue, fields)
  assert.deepEqual(declared, { name: 'work', result: null, ...fields })
  const { json } = await send(user, 'GET', `/api/v1/worker-queues/${queue}`)
  assert.deepEqual(json.tasks, [declared])
  await declare(user, queue, {})
  const { json: read } = await send(user, 'GET', `/api/v1/worker-queues/${queue}/tasks/work`)
  assert.deepEqual([read.args, read.max_tries, read.secrets], [null, null, []])
  await add(user, queue)
  assert.equal((await send(user, 'DELETE', `/api/v1/worker-queues/${queue}/tasks/work`)).status, 204)
  assertRefused(await enqueue(user, queue, {}), 400, undeclared)
  const kinds = await query(`select kind from audit_event where data ->> 'queue' = $1 order by id`, [queue])
  assert.deepEqual(
    kinds.map(({ kind }) => kind),
    ['created', 'task_declared', 'task_declared', 'task_removed'].map((kind) => `worker_queue.${kind}`),
  )
})

describe('arguments are checked when a job is added', () => {
  test('by their place', async () => {
    const user = await newcomer()
    const queue = await addQueue(user)
    await declare(user, queue, { args: ARGS })
    await add(user, queue, { url: 'https://example.com/', sizes: [1] })
    const wrong = [
      [{}, ['body', 'args', 'url'], "must have required property 'url'"],
      [{ url: 'https://a.b', sizes: [1, 'x'] }, ['body', 'args', 'sizes', 1], 'must be integer'],
      [{ url: 'no' }, ['body', 'args', 'url'], 'must match format "uri"'],
      [{ url: 'https://a.b', x: 1 }, ['body', 'args'], 'must NOT have additional properties: x'],
    ] as const
    for (const [args, loc, msg] of wrong) {
      const answer = await enqueue(user, queue, args)
      assert.deepEqual([answer.status, answer.json.errors], [422, [{ loc, msg, type: 'json_schema' }]])
    }
    const jobs = [{ queue_type: queue, task_name: 'work', args: { url: 'https://a.b' } }]
    const batch = await send(user, 'POST', '/api/v1/batches', {
      jobs: [...jobs, { ...jobs[0], args: {} }],
    })
    assert.deepEqual(batch.json.errors[0].loc, ['body', 'jobs', 1, 'args', 'url'])
    const schedule = { name: 's', cron: '0 0 * * *', queue_type: queue, task_name: 'work', args: {} }
    assert.equal((await send(user, 'POST', '/api/v1/schedules', schedule)).json.errors[0].loc[2], 'url')
    const id = await add(user, queue, { url: 'https://example.com/' }, { delay_seconds: 60 })
    const changed = await send(user, 'PATCH', `/api/v1/jobs/${id}`, { args: { url: 1 } })
    assert.equal(changed.status, 422, changed.text)
    assert.equal(
      (await send(user, 'PATCH', `/api/v1/jobs/${id}`, { args: { url: 'https://c.d' } })).status,
      200,
    )
  })
})

test('schemas that are not valid, refer elsewhere or are too large are refused', async () => {
  const user = await newcomer()
  const queue = await addQueue(user)
  let deep: object = {}
  for (let n = 0; n < 50; n++) deep = { items: deep }
  const wrong = [
    [{ type: 'text' }, /schema is invalid/],
    [{ $ref: 'https://example.com/a.json' }, /must not refer to another schema/],
    [{ $ref: 'other.json' }, /must not refer to another schema/],
    [{ $ref: '#/$defs/none' }, /can't resolve reference/],
    [{ $schema: 'http://json-schema.org/draft-07/schema#' }, /\$schema must be/],
    [{ $async: true }, /\$async/],
    [{ description: 'x'.repeat(65_536) }, /at most 64 KiB/],
    [deep, /nested at most/],
  ] as const
  for (const [args, message] of wrong)
    for (const field of ['args', 'result']) {
      const answer = await send(user, 'PUT', `/api/v1/worker-queues/${queue}/tasks/work`, { [field]: args })
      assert.equal(answer.status, 422, answer.text)
      assert.deepEqual(answer.json.errors[0].loc, ['body', field])
      assert.match(answer.json.errors[0].msg, message)
    }
  const declared = await claim(user, queue, { tasks: ['a', { name: 'work', args: { $ref: 'x' } }] })
  assert.deepEqual(declared.json.errors[0].loc, ['body', 'tasks', 1, 'args'])
})

test('workers declare tasks when they claim, and results are checked', async () => {
  const user = await newcomer()
  const queue = await addQueue(user, { open: false })
  await take(user, queue, { tasks: [{ name: 'work', result: { type: 'integer' }, timeout_seconds: 5 }] })
  const id = await add(user, queue)
  const { lease, jobs } = await take(user, queue, { tasks: ['work'] })
  assert.ok(Date.parse(jobs[0]!.deadline) < Date.now() + 10_000)
  const { json } = await report(user, lease, [{ job_id: id, attempt: 1, done: { result: 'x' } }])
  assert.deepEqual(json.items, [{ job_id: id, status: 'invalid', reason: 'The result must be integer' }])
  assert.equal((await readJob(user, id)).status, 'running')
  const large = { job_id: id, attempt: 1, event: { kind: 'big', data: 'x'.repeat(65_537) } }
  const huge = { job_id: id, attempt: 1, done: { result: 'x'.repeat(2 ** 20) } }
  assert.deepEqual(await reported(user, lease, [large, huge]), ['invalid', 'invalid'])
  assert.deepEqual(await reported(user, lease, [{ job_id: id, attempt: 1, done: { result: 7 } }]), ['ok'])
})

test('a limit holds for a task, and for each key', async () => {
  const user = await newcomer()
  const queue = await addQueue(user)
  await declare(user, queue, { limit: 2 })
  for (let n = 0; n < 3; n++) await add(user, queue)
  for (let n = 0; n < 3; n++) await add(user, queue, {}, { key: 'k' })
  const { jobs, lease } = await take(user, queue)
  assert.equal(jobs.length, 4)
  const waiting = claim(user, queue, { wait_seconds: 30, max: 100 })
  await reported(user, lease, [{ job_id: jobs[0]!.job_id, attempt: 1, done: {} }])
  assert.equal((await waiting).json.jobs.length, 1)
})

test('secrets are masked, also after the declaration is gone', async () => {
  const user = await newcomer()
  const queue = await addQueue(user, { open: false })
  await declare(user, queue, { secrets: ['card', 'deep.pin'] })
  const id = await add(user, queue, { card: '4242', deep: { pin: 1, x: 2 }, text: 'a' })
  const details = async () => (await send(user, 'GET', `/api/v1/jobs/${id}/details`)).json
  assert.deepEqual((await details()).payload, { card: '***', deep: { pin: '***', x: 2 }, text: 'a' })
  const { lease } = await take(user, queue)
  const log = { level: 'warn', message: 'Careful', data: {} }
  await reported(user, lease, [{ job_id: id, attempt: 1, log }])
  assert.deepEqual(
    (await details()).log.map(({ at: _, ...line }: { at: string }) => line),
    [{ ...log, attempt: 1 }],
  )
  await send(user, 'DELETE', `/api/v1/worker-queues/${queue}/tasks/work`)
  assert.equal((await details()).payload, '***')
})

test('the quota limits the queues of an account', async () => {
  const user = await newcomer()
  for (let n = 0; n < 3; n++) await addQueue(user)
  const answer = await send(user, 'POST', '/api/v1/worker-queues', { name: 'one-too-many' })
  assert.deepEqual([answer.status, answer.json.code], [429, 'quota.worker_queues'])
})
