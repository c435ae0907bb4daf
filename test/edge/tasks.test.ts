import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startEdge, startEdgeAndDatabase } from './harness.ts'
import { createLedger } from './ledger.ts'

/** Tests the routes of `/tasks`; no worker runs. */

const { api, ...database } = await startEdgeAndDatabase()
const { query } = database
const noAuthEdge = await startEdge(database.url, { env: { AUTH_LEVEL: 'none' } })
const closedEdge = await startEdge(database.url, { env: { OPEN_AREAS: ',' } })
const ledger = createLedger(database)
const admin = await api.register('admin@example.com')
const owner = await api.register('owner@example.com')
const other = await api.register('other@example.com')
const ENQUEUE_PATH = '/api/v1/tasks/enqueue'
const enqueue = (json: unknown, token: string | undefined = owner.token) =>
  api.post(ENQUEUE_PATH, { json, ...(token === undefined ? {} : { token }) })
const getResult = (id: string, token?: string) =>
  api.get(`/api/v1/tasks/result/${id}`, token === undefined ? {} : { token })
const createIoTask = (more: object = {}) => ({
  task_name: 'io_simulation_task',
  queue_type: 'load_test',
  ...more,
})

test('a task is queued, and its result shows its state', async () => {
  const answer = await enqueue(createIoTask())
  assert.equal(answer.status, 202)
  const { task_id, queued_at, ...rest } = answer.json
  assert.deepEqual(rest, { task_name: 'io_simulation_task', queue_type: 'load_test', status: 'queued' })
  assert.ok(Math.abs(Date.now() - Date.parse(queued_at)) < 60_000)
  const [row] = await query('select name, queue, owner_id, status from job where id = $1', [task_id])
  assert.deepEqual(row, {
    name: 'load_test.io_simulation_task',
    queue: 'load_test',
    owner_id: owner.id,
    status: 'available',
  })
  const seen = (await getResult(task_id, owner.token)).json
  assert.deepEqual([seen.status, seen.result, seen.error, seen.started_at], ['queued', null, null, null])
  assert.deepEqual(
    [seen.task_id, seen.task_name, seen.queue_type],
    [task_id, 'io_simulation_task', 'load_test'],
  )
})

test('reports every state of a task', async () => {
  const added = async () => (await enqueue(createIoTask())).json.task_id as string
  const [running, done, failed, cancelled] = [await added(), await added(), await added(), await added()]
  await Promise.all([running, done, failed].map((id) => ledger.claim(id)))
  await ledger.finish(done, 'done', { result: { total_ms: 1 } })
  await ledger.finish(failed, 'failed', { code: 'task.chosen_failure', detail: 'as asked' })
  assert.equal((await api.call('DELETE', `/api/v1/jobs/${cancelled}`, { token: owner.token })).status, 202)
  const states = await Promise.all(
    [running, done, failed, cancelled].map(async (id) => {
      const { status, result: value, error, finished_at } = (await getResult(id, owner.token)).json
      return [status, value, error?.code ?? null, finished_at !== null]
    }),
  )
  assert.deepEqual(states, [
    ['running', null, null, false],
    ['completed', { total_ms: 1 }, null, true],
    ['failed', null, 'task.chosen_failure', true],
    ['failed', null, 'job.cancelled', true],
  ])
})

test('a result expires even before pruning', async () => {
  const { task_id } = (await enqueue(createIoTask())).json
  await ledger.claim(task_id)
  await ledger.finish(task_id, 'done', { result: { total_ms: 1 } })
  const ended = (seconds: number) =>
    query('update job set finished_at = now() - make_interval(secs => $2) where id = $1', [task_id, seconds])
  await ended(3500)
  assert.equal((await getResult(task_id, owner.token)).json.status, 'completed')
  await ended(3601)
  assert.equal((await getResult(task_id, owner.token)).status, 404)
})

test('the default queue is system', async () => {
  const answer = await enqueue({ task_name: 'cpu_intensive_task' })
  assert.equal(answer.json.queue_type, 'system')
  const [row] = await query('select name from job where id = $1', [answer.json.task_id])
  assert.equal(row!.name, 'system.cpu_intensive_task')
})

test('unknown tasks and queues are rejected with the known names', async () => {
  const task = await enqueue(createIoTask({ task_name: 'no_such_task' }))
  assert.equal(task.status, 400)
  assert.match(task.json.detail, /no_such_task.*cpu_intensive_task, failure_testing_task, io_simulation_task/)
  const queue = await enqueue(createIoTask({ queue_type: 'documents' }))
  assert.equal(queue.status, 400)
  assert.match(queue.json.detail, /documents.*load_test, system/)
  // The task `prune` belongs to the queue `system`, not to the requested one.
  assert.equal((await enqueue(createIoTask({ task_name: 'prune' }))).status, 400)
  assert.equal((await enqueue({ task_name: 'prune' })).status, 202)
  // Names of inherited object properties must not count as tasks.
  for (const name of ['constructor', '__proto__', ''])
    assert.equal((await enqueue(createIoTask({ task_name: name }))).status, 400, name)
})

test('an invalid body is rejected with the problems', async () => {
  const cases: [object, (string | number)[]][] = [
    [{ queue_type: 'load_test' }, ['body', 'task_name']],
    [createIoTask({ count: 0 }), ['body', 'count']],
    [createIoTask({ count: 10_001 }), ['body', 'count']],
    [createIoTask({ count: 1.5 }), ['body', 'count']],
    [createIoTask({ delay_seconds: -1 }), ['body', 'delay_seconds']],
    [createIoTask({ delay_seconds: 2_592_001 }), ['body', 'delay_seconds']],
    [createIoTask({ args: [] }), ['body', 'args']],
    [createIoTask({ args: { duration_ms: 60_001 } }), ['body', 'args', 'duration_ms']],
    [createIoTask({ args: { operations: 0 } }), ['body', 'args', 'operations']],
    [
      createIoTask({ task_name: 'failure_testing_task', args: { probability: 1.1 } }),
      ['body', 'args', 'probability'],
    ],
    [
      createIoTask({ task_name: 'memory_operations_task', args: { megabytes: 513 } }),
      ['body', 'args', 'megabytes'],
    ],
    [
      createIoTask({ task_name: 'cpu_intensive_task', args: { duration_ms: 0 } }),
      ['body', 'args', 'duration_ms'],
    ],
    [
      createIoTask({ task_name: 'load_test_orchestrator', args: { args: { operations: 'x' } } }),
      ['body', 'args', 'args', 'operations'],
    ],
    [
      createIoTask({ task_name: 'load_test_orchestrator', args: { task_name: 'load_test_orchestrator' } }),
      ['body', 'args', 'task_name'],
    ],
  ]
  const before = await query('select count(*)::int as n from job')
  for (const [body, loc] of cases) {
    const answer = await enqueue(body)
    assert.equal(answer.status, 422, JSON.stringify(body))
    assert.deepEqual(answer.json.errors[0].loc, loc)
  }
  assert.equal((await enqueue(createIoTask({ args: { nothing: 1 } }))).status, 422)
  assert.equal((await enqueue({ ...createIoTask(), more: 1 })).status, 422)
  assert.deepEqual(await query('select count(*)::int as n from job'), before)
})

test('several tasks are added together or not at all, each with its own id', async () => {
  const answer = await enqueue(createIoTask({ count: 10_000 }))
  assert.equal(answer.status, 202)
  const { task_id, task_ids } = answer.json
  assert.equal(new Set(task_ids).size, 10_000)
  assert.equal(task_ids[0], task_id)
  const [row] = await query(
    `select count(*)::int as n, count(distinct xmin::text)::int as transactions from job where id = any($1::uuid[])`,
    [task_ids],
  )
  assert.deepEqual(row, { n: 10_000, transactions: 1 })
  await query('delete from job where id = any($1::uuid[])', [task_ids])
})

test('a delayed task waits until its time', async () => {
  const { task_id } = (await enqueue(createIoTask({ delay_seconds: 3600 }))).json
  const [row] = await query(
    'select extract(epoch from run_at - created_at)::float8 as s from job where id = $1',
    [task_id],
  )
  assert.ok(Math.abs((row!.s as number) - 3600) < 60, String(row!.s))
})

test('the same Idempotency-Key adds a task once', async () => {
  const headers = { 'idempotency-key': 'once' }
  const [first, again] = [
    await api.post(ENQUEUE_PATH, { json: createIoTask(), token: owner.token, headers }),
    await api.post(ENQUEUE_PATH, { json: createIoTask(), token: owner.token, headers }),
  ]
  assert.deepEqual([first.status, again.status], [202, 202])
  assert.equal(again.json.task_id, first.json.task_id)
  const another = await api.post(ENQUEUE_PATH, {
    json: createIoTask({ count: 2 }),
    token: owner.token,
    headers,
  })
  assert.equal(another.status, 422)
})

test('a task is visible to its owner and admins; one without an owner to all callers', async () => {
  const { task_id } = (await enqueue(createIoTask())).json
  const seen = async (id: string) =>
    Promise.all([owner, admin, other].map(async ({ token }) => (await getResult(id, token)).status))
  assert.deepEqual(await seen(task_id), [200, 200, 404])
  assert.equal((await getResult(task_id)).status, 404)
  const open = await api.post(ENQUEUE_PATH, { json: createIoTask() })
  assert.equal(open.status, 202)
  assert.deepEqual(await seen(open.json.task_id), [200, 200, 200])
  assert.equal((await getResult(open.json.task_id)).status, 200)
})

test('ids of missing tasks, other jobs and invalid ids give the same 404', async () => {
  const foreign = await ledger.add(owner.id)
  for (const id of [foreign, '01900000-0000-7000-8000-000000000000', 'x', "'"]) {
    const answer = await getResult(encodeURIComponent(id), admin.token)
    assert.deepEqual(
      [answer.status, answer.json],
      [404, { detail: 'Task not found, or its result has expired', code: 'task.missing' }],
    )
  }
})

test('the list has tasks and queues with waiting and running counts', async () => {
  await query(`delete from job where queue in ('load_test', 'system')`)
  const first = (await enqueue(createIoTask())).json.task_id
  await enqueue(createIoTask())
  await enqueue(createIoTask({ delay_seconds: 60 }))
  await ledger.claim(first)
  const { tasks, queues } = (await api.get('/api/v1/tasks', { token: owner.token })).json
  assert.deepEqual(
    tasks
      .filter(({ task_name }: { task_name: string }) => /io_sim|prune/.test(task_name))
      .map(({ args: _, ...task }: { args: unknown }) => task),
    [
      { task_name: 'io_simulation_task', queue_types: ['load_test', 'system'] },
      { task_name: 'prune', queue_types: ['system'] },
    ],
  )
  assert.deepEqual(
    queues.map(({ queue_type, depth, running }: Record<string, unknown>) => [queue_type, depth, running]),
    [
      ['load_test', 2, 1],
      ['system', 0, 0],
    ],
  )
  assert.ok(queues[0].oldest_seconds >= 0)
  assert.equal(queues[1].oldest_seconds, null)
})

test("the list has an argument schema for each task, and an invalid argument's error names the valid ones", async () => {
  const { tasks } = (await api.get('/api/v1/tasks', { token: owner.token })).json
  for (const { task_name, args } of tasks) {
    assert.deepEqual([args.type, args.additionalProperties], ['object', false], task_name)
    if (task_name === 'prune') continue
    const names = Object.keys(args.properties)
    assert.ok(names.length > 0, task_name)
    const refused = await enqueue({ task_name, args: { colour: 'red' } })
    assert.equal(refused.status, 422)
    const { msg } = refused.json.errors.find(({ type }: { type: string }) => type === 'unrecognized_keys')
    assert.equal(msg, `has no colour; its fields are ${names.join(', ')}`)
  }
})

test('many results come in the order of their ids, and others are missing', async () => {
  const getResults = (query: string, token: string | undefined = owner.token) =>
    api.get(`/api/v1/tasks/results?${query}`, token === undefined ? {} : { token })
  const ids: string[] = (await enqueue(createIoTask({ count: 3 }))).json.task_ids
  await ledger.claim(ids[1]!)
  await ledger.finish(ids[1]!, 'done', { result: { n: 1 } })
  const foreign: string = (await enqueue(createIoTask(), other.token)).json.task_id
  const unlisted = await ledger.add(owner.id)
  const old: string = (await enqueue(createIoTask())).json.task_id
  await query(
    `update job set status = 'done', finished_at = now() - interval '1 year', seq = seq + 1 where id = $1`,
    [old],
  )
  const [first, second, third] = ids
  const answer = await getResults(
    `ids=${third},${foreign},${first!.toUpperCase()}&ids=x,${second}&ids=${unlisted},${old}`,
  )
  assert.equal(answer.status, 200)
  const { results, missing } = answer.json
  assert.deepEqual(
    results.map(({ task_id, status, result }: Record<string, unknown>) => [task_id, status, result]),
    [
      [third, 'queued', null],
      [first, 'queued', null],
      [second, 'completed', { n: 1 }],
    ],
  )
  assert.deepEqual(missing, [foreign, 'x', unlisted, old])
  assert.deepEqual(results[2], (await getResult(second!, owner.token)).json)
  assert.deepEqual((await getResults(`ids=${foreign}`, admin.token)).json.missing, [])
  assert.deepEqual((await getResults('ids=')).json, { results: [], missing: [] })
  const many = Array.from({ length: 1001 }, (_, n) => n.toString(36)).join()
  assert.equal((await getResults(`ids=${many}`)).status, 422)
  assert.equal((await getResults('')).status, 422)
})

test('anonymous callers are admitted only if the area is open', async () => {
  assert.equal((await noAuthEdge.post(ENQUEUE_PATH, { json: createIoTask() })).status, 202)
  assert.equal((await noAuthEdge.get('/api/v1/tasks')).status, 200)
  for (const [method, path] of [
    ['post', ENQUEUE_PATH],
    ['get', '/api/v1/tasks'],
    ['get', '/api/v1/tasks/result/x'],
    ['get', '/api/v1/tasks/results?ids=x'],
  ] as const) {
    const answer = await closedEdge[method](path, method === 'post' ? { json: createIoTask() } : {})
    assert.deepEqual([answer.status, answer.headers['www-authenticate']], [401, 'Bearer realm="Millrace"'])
  }
  assert.equal(
    (await closedEdge.post(ENQUEUE_PATH, { json: createIoTask(), token: owner.token })).status,
    202,
  )
})

test('concurrent requests each get their own task', async () => {
  const answers = await Promise.all(Array.from({ length: 60 }, () => enqueue(createIoTask())))
  const ids = answers.map(({ json }) => json.task_id)
  assert.equal(new Set(ids).size, 60)
  const [row] = await query(
    `select count(*)::int as n, count(distinct xmin::text)::int as transactions from job where id = any($1::uuid[])`,
    [ids],
  )
  assert.equal(row!.n, 60)
  assert.ok((row!.transactions as number) < 60, `${row!.transactions} transactions`)
})
