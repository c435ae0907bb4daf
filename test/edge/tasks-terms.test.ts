import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startEdge, startEdgeAndDatabase } from './harness.ts'
import { createLedger } from './ledger.ts'

/** Tests what callers ask of a task: key, limit, rate, priority, time, callback and dependencies. No worker runs. */

const { api, ...database } = await startEdgeAndDatabase()
const { query } = database
const everyone = await startEdge(database.url, { env: { HIGH_PRIORITY: 'everyone' } })
const ledger = createLedger(database)
const admin = await api.register('admin@example.com')
const owner = await api.register('owner@example.com')
const other = await api.register('other@example.com')

const enqueue = (more: object = {}, rest = '', token = owner.token) =>
  api.post(`/api/v1/tasks/enqueue${rest}`, {
    json: { task_name: 'io_simulation_task', queue_type: 'load_test', ...more },
    token,
  })
const idOf = async (more: object = {}, rest = ''): Promise<string> => {
  const answer = await enqueue(more, rest)
  assert.equal(answer.status, 202, JSON.stringify(answer.json))
  return answer.json.task_id
}
const row = async (id: string) => (await query('select * from job where id = $1', [id]))[0]!

test('a key names a mailbox of the caller and task, with a limit and a rate', async () => {
  const job = await row(await idOf({ key: 'customer 7', limit: 3, rate: '10/60' }))
  const mailbox = `load_test.io_simulation_task/${owner.id}/customer 7`
  assert.deepEqual([job.mailbox, job.mailbox_limit, job.key], [mailbox, 3, 'customer 7'])
  const rate = async () =>
    (await query('select starts, seconds, burst from start_rate where name = $1', [mailbox]))[0]
  assert.deepEqual(await rate(), { starts: 10, seconds: 60, burst: 1 })
  await idOf({ key: 'customer 7', rate: '5/60', burst: true })
  assert.deepEqual(await rate(), { starts: 5, seconds: 60, burst: 5 })
  const foreign = (await enqueue({ key: 'customer 7' }, '', other.token)).json.task_id
  const { mailbox: another, mailbox_limit: limit } = await row(foreign)
  assert.notEqual(another, mailbox)
  assert.equal(limit, 1000)
})

test('`join` answers with the job under way, `join_waiting` with one that has not started', async () => {
  const first = await idOf({ key: 'joined' })
  const joined = (await enqueue({ key: 'joined', when_busy: 'join', args: { operations: 9 } })).json
  assert.deepEqual([joined.task_id, joined.joined], [first, true])
  await ledger.claim(first)
  assert.equal(await idOf({ key: 'joined', when_busy: 'join' }), first)
  const second = await idOf({ key: 'joined', when_busy: 'join_waiting' })
  assert.notEqual(second, first)
  assert.equal(await idOf({ key: 'joined', when_busy: 'join_waiting' }), second)
  await ledger.finish(first, 'done', {})
  assert.equal(await idOf({ key: 'joined', when_busy: 'join' }), second)
})

test('`replace` gives the waiting job the latest arguments and moves its time, up to a maximum', async () => {
  const replace = (operations: number, delay_seconds: number) =>
    idOf({
      key: 'debounced',
      when_busy: 'replace',
      args: { operations },
      delay_seconds,
      max_delay_seconds: 100,
    })
  const first = await replace(1, 60)
  const before = await row(first)
  assert.equal(await replace(2, 90), first)
  const after = await row(first)
  assert.equal((after.payload as { operations: number }).operations, 2)
  const moved = (after.run_at as Date).getTime() - (before.run_at as Date).getTime()
  assert.ok(moved > 25_000 && moved < 60_000, `${moved}`)
  await replace(3, 1000)
  const late = await row(first)
  assert.equal((late.run_at as Date).getTime() - (late.created_at as Date).getTime(), 100_000)
  await replace(4, 0)
  assert.deepEqual(
    [(await row(first)).status, (await row(first)).payload],
    ['available', { operations: 4, duration_ms: 100 }],
  )
  await ledger.claim(first)
  const second = await replace(5, 0)
  assert.notEqual(second, first, 'a job that has started is not replaced')
})

test('a priority has a mailbox of its own; high is for admins, unless a setting allows it', async () => {
  assert.deepEqual((await enqueue({ priority: 'high' })).json.code, 'auth.forbidden')
  const low = await row(await idOf({ priority: 'low' }))
  assert.deepEqual([low.priority, low.mailbox], [1, `load_test.io_simulation_task/${owner.id}!low`])
  const high = await row((await enqueue({ priority: 'high' }, '', admin.token)).json.task_id)
  assert.equal(high.priority, -1)
  const json = { task_name: 'io_simulation_task', queue_type: 'load_test', priority: 'high' }
  assert.equal((await everyone.post('/api/v1/tasks/enqueue', { json, token: owner.token })).status, 202)
})

test('`run_at` is the earliest start', async () => {
  const at = new Date(Date.now() + 3_600_000).toISOString()
  const job = await row(await idOf({ run_at: at }))
  assert.deepEqual([job.status, (job.run_at as Date).toISOString()], ['scheduled', at])
  const past = await row(await idOf({ run_at: '2020-01-01T00:00:00Z' }))
  assert.equal(past.status, 'available')
  assert.ok((past.run_at as Date).getTime() > Date.now() - 60_000)
})

test('`after` waits for jobs, and `callback_url` is called for each task', async () => {
  const [first, second] = [await idOf(), await idOf()]
  const answer = await enqueue({ count: 2 }, `?after=${first},${second}&after=${first}&after_outcome=any`)
  assert.deepEqual([answer.status, answer.json.status, answer.json.task_ids.length], [202, 'waiting', 2])
  const { status, after, after_outcome, waits_for } = await row(answer.json.task_id)
  assert.deepEqual([status, after, after_outcome, waits_for], ['waiting', [first, second], 'any', 2])
  for (const id of [first, second]) {
    await ledger.claim(id)
    await ledger.finish(id, 'done', {})
  }
  for (const id of answer.json.task_ids) assert.equal((await row(id)).status, 'available')
  assert.equal((await enqueue({}, `?after=${first}`)).json.status, 'queued')
  const failed = await idOf()
  await ledger.claim(failed)
  await ledger.finish(failed, 'failed', { code: 'task.chosen_failure', detail: 'As asked' })
  assert.equal((await enqueue({}, `?after=${failed}`)).json.status, 'cancelled')

  const called = (await enqueue({ count: 2 }, '?background=true&callback_url=https://example.com/hook')).json
    .task_ids
  const callbacks = await query('select count(*)::int as count from job_callback where job_id = any($1)', [
    called,
  ])
  assert.equal(callbacks[0]!.count, 2)
})

test('`after` works for any operation that adds a job', async () => {
  const first = await idOf()
  const sync = await api.call('POST', `/llm/sync?background=true&after=${first}`, {
    token: admin.token,
  })
  assert.equal(sync.status, 202, JSON.stringify(sync.json))
  assert.equal((await row(sync.json.job_id)).status, 'waiting')
})

test('wrong terms are refused with their place', async () => {
  const cases: [object, string][] = [
    [{ limit: 2 }, 'limit'],
    [{ rate: '10/1' }, 'rate'],
    [{ when_busy: 'join' }, 'when_busy'],
    [{ key: '' }, 'key'],
    [{ key: 'x'.repeat(201) }, 'key'],
    [{ key: 'x', limit: 0 }, 'limit'],
    [{ key: 'x', limit: 1001 }, 'limit'],
    [{ key: 'x', rate: '10' }, 'rate'],
    [{ key: 'x', rate: '0/1' }, 'rate'],
    [{ key: 'x', rate: '1/0' }, 'rate'],
    [{ key: 'x', rate: '1/99999' }, 'rate'],
    [{ key: 'x', burst: true }, 'burst'],
    [{ key: 'x', when_busy: 'sometimes' }, 'when_busy'],
    [{ key: 'x', max_delay_seconds: 1 }, 'max_delay_seconds'],
    [{ priority: 'urgent' }, 'priority'],
    [{ run_at: 'tomorrow' }, 'run_at'],
    [{ run_at: '0000-01-01T00:00:00Z' }, 'run_at'],
    [{ run_at: '2026-12-01T00:00:00+20:00' }, 'run_at'],
    [{ key: 'x', when_busy: 'join', count: 2 }, 'count'],
    [{ run_at: new Date(Date.now() + 31 * 86_400_000).toISOString() }, 'run_at'],
    [{ run_at: '2030-01-01T00:00:00Z', delay_seconds: 1 }, 'run_at'],
  ]
  for (const [more, field] of cases) {
    const { status, json } = await enqueue(more)
    assert.deepEqual([status, json.errors?.[0].loc], [422, ['body', field]], JSON.stringify([more, json]))
  }
  const prune = { task_name: 'prune', queue_type: 'system', key: 'x' }
  assert.deepEqual((await enqueue(prune)).json.errors[0].loc, ['body', 'key'])
})

test('wrong links are refused', async () => {
  const foreign = (await enqueue({}, '', other.token)).json.task_id
  const unknown = '01a20118-fbcc-738c-80ed-00058e0e401d'
  for (const id of [foreign, unknown, 'nonsense'])
    assert.deepEqual((await enqueue({}, `?after=${id}`)).json.code, 'job.missing', id)
  const own = await idOf()
  const many = Array.from({ length: 101 }, (_, n) => `01a20118-fbcc-738c-80ed-${String(n).padStart(12, '0')}`)
  const cases: [string, string][] = [
    [`?after=${own}&after_outcome=maybe`, 'after_outcome'],
    ['?after_outcome=any', 'after_outcome'],
    [`?after=${many}`, 'after'],
    ['?callback_url=ftp://example.com', 'callback_url'],
    ['?background=perhaps', 'background'],
    ['?after=', 'after'],
  ]
  for (const [rest, field] of cases) {
    const { status, json } = await enqueue({}, rest)
    assert.deepEqual([status, json.errors?.[0].loc], [422, ['query', field]], rest)
  }
  await idOf({ key: 'busy' })
  const joined = await enqueue({ key: 'busy', when_busy: 'join' }, `?after=${own}`)
  assert.deepEqual([joined.status, joined.json.code], [409, 'job.joined'])
  const anonymous = await api.post('/llm/sync?callback_url=https://example.com', {
    token: admin.token,
  })
  assert.equal(anonymous.status, 422)
})
