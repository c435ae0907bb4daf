import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createScheduleHelp } from '../tasks/schedule-help.ts'
import { assertRefused, createCast } from './accounts-help.ts'
import { type Account, type Answered, startEdgeAndDatabase } from './harness.ts'

/** Accounts have schedules of their own. */

const { api, ...database } = await startEdgeAndDatabase({ env: { QUOTA_SCHEDULES: '3' } })
const { query } = database
const { run, listMessageTimes } = createScheduleHelp(database)
const { admin, newcomer } = await createCast(api)
const SCHEDULES = '/api/v1/schedules'
const NIGHTLY = {
  ...{ name: 'Nightly', cron: '30 2 * * *', time_zone: 'Europe/Berlin' },
  ...{ task_name: 'noop', args: { echo: 'hello' } },
}

const send = (
  who: Account,
  method: 'POST' | 'GET' | 'PATCH' | 'DELETE',
  path = '',
  json?: object,
): Promise<Answered> =>
  api.call(method, `${SCHEDULES}${path}`, { token: who.token, ...(json === undefined ? {} : { json }) })

async function create(who: Account, more: object = {}) {
  const answer = await send(who, 'POST', '', { ...NIGHTLY, ...more })
  assert.equal(answer.status, 201, answer.text)
  return answer.json
}
const readAudit = (id: string) =>
  query(
    `select kind, actor_id, account_id, data ? 'args' as has_args from audit_event where data ->> 'schedule' = $1 order by id`,
    [id],
  )

test('an account creates, reads, lists, changes and deletes a schedule', async () => {
  const user = await newcomer()
  const created = await create(user)
  const { id, next_runs, created_at, updated_at, next_run_at, ...rest } = created
  assert.deepEqual(rest, {
    ...{ owner_id: user.id, is_built_in: false, name: 'Nightly', task_name: 'noop', queue_type: 'system' },
    ...{ args: { echo: 'hello' }, cron: '30 2 * * *', every_seconds: null, time_zone: 'Europe/Berlin' },
    ...{ start_at: null, end_at: null, overlap: 'skip', catch_up: 'none', paused_at: null, paused_by: null },
    ...{ last_run_at: null, last_job: null, recent_jobs: [], last_skip: null },
  })
  assert.equal(created_at, updated_at)
  assert.deepEqual([next_runs.length, next_runs[0]], [5, next_run_at])
  for (const at of next_runs)
    assert.match(
      new Date(at).toLocaleTimeString('de', { timeZone: 'Europe/Berlin', timeStyle: 'short' }),
      /^0[23]:(30|00)$/,
    )
  assert.deepEqual(await listMessageTimes(id), [next_run_at])
  assert.deepEqual((await send(user, 'GET', `/${id}`)).json, created)
  assert.deepEqual((await send(user, 'GET')).json, [created])

  const changed = await send(user, 'PATCH', `/${id}`, {
    every_seconds: 3600,
    overlap: 'queue',
    name: 'Hourly',
  })
  assert.equal(changed.status, 200, changed.text)
  const { cron, every_seconds, overlap, name } = changed.json
  assert.deepEqual(
    { cron, every_seconds, overlap, name },
    { cron: null, every_seconds: 3600, overlap: 'queue', name: 'Hourly' },
  )
  assert.equal(Date.parse(changed.json.next_run_at) - Date.parse(created_at), 3_600_000)
  assert.deepEqual(await listMessageTimes(id), [changed.json.next_run_at])

  assert.equal((await send(user, 'DELETE', `/${id}`)).status, 204)
  assertRefused(await send(user, 'GET', `/${id}`), 404, 'Schedule not found')
  assert.deepEqual([await listMessageTimes(id), (await send(user, 'GET')).json], [[], []])
  const event = (kind: string) => ({
    kind: `schedule.${kind}`,
    actor_id: user.id,
    account_id: user.id,
    has_args: false,
  })
  assert.deepEqual(await readAudit(id), ['created', 'updated', 'deleted'].map(event))
})

test('lists are read by cursor, oldest first; admins see all', async () => {
  const user = await newcomer()
  const ids = []
  for (const name of ['a', 'b', 'c']) ids.push((await create(user, { name })).id)
  const first = await send(user, 'GET', '?limit=2')
  assert.deepEqual(
    first.json.map(({ id }: { id: string }) => id),
    ids.slice(0, 2),
  )
  const next = /^<\/api\/v1\/schedules(\?.+)>; rel="next"$/.exec(String(first.headers.link))![1]!
  const second = await send(user, 'GET', next)
  assert.deepEqual(
    [second.json.map(({ id }: { id: string }) => id), second.headers.link],
    [ids.slice(2), undefined],
  )
  const all = (await send(admin, 'GET')).json.map(({ id }: { id: string }) => id)
  for (const id of ids) assert.ok(all.includes(id))
})

test('a run has its own job, and the last one is shown', async () => {
  const user = await newcomer()
  const { id } = await create(user)
  const now = await send(user, 'POST', `/${id}/run`)
  assert.equal(now.status, 202, now.text)
  assert.equal(now.headers.location, `/api/v1/jobs/${now.json.job_id}`)
  const [job] = await query('select name, owner_id, payload, request_id from job where id = $1', [
    now.json.job_id,
  ])
  assert.deepEqual(job, {
    ...{ name: 'system.noop', owner_id: user.id, payload: { echo: 'hello' } },
    request_id: now.headers['x-request-id'],
  })
  const last = { job_id: now.json.job_id, status: 'queued', error: null, finished_at: null }
  assert.deepEqual((await send(user, 'GET', `/${id}`)).json.last_job, last)

  // The next time finds that job still queued.
  await query(`update schedule set next_at = date_trunc('milliseconds', now()) where id = $1`, [id])
  assert.equal((await run(id)).skipped, 'overlap')
  const { last_skip, last_job } = (await send(user, 'GET', `/${id}`)).json
  assert.deepEqual([last_skip.reason, last_job], ['overlap', last])
})

test('the jobs of the last 20 runs are shown, oldest first', async () => {
  const user = await newcomer()
  const { id } = await create(user)
  const ids: string[] = []
  for (let i = 0; i < 22; i++) ids.push((await send(user, 'POST', `/${id}/run`)).json.job_id)
  const { recent_jobs } = (await send(user, 'GET', `/${id}`)).json
  assert.deepEqual(
    recent_jobs.map((job: { job_id: string }) => job.job_id),
    ids.slice(2),
  )
  assert.equal(recent_jobs[0].status, 'queued')
})

test('a paused schedule has no message, and a resumed one has', async () => {
  const user = await newcomer()
  const { id, next_run_at } = await create(user)
  const paused = await send(user, 'POST', `/${id}/pause`)
  assert.deepEqual(
    [paused.json.paused_by, paused.json.next_run_at, paused.json.next_runs],
    [user.id, null, []],
  )
  assert.deepEqual(await listMessageTimes(id), [])
  assert.equal((await send(user, 'POST', `/${id}/run`)).status, 202)
  const renamed = await send(user, 'PATCH', `/${id}`, { cron: '31 2 * * *' })
  assert.deepEqual([renamed.status, renamed.json.next_run_at], [200, null])
  await send(user, 'PATCH', `/${id}`, { cron: '30 2 * * *' })
  const resumed = await send(user, 'POST', `/${id}/resume`)
  assert.equal(resumed.json.next_run_at, next_run_at)
  assert.deepEqual(await listMessageTimes(id), [next_run_at])
})

test('a change of other fields keeps the next time, and a change of its times replaces it', async () => {
  const user = await newcomer()
  const { id } = await create(user, { every_seconds: 60, cron: undefined })
  // The time has come, but its message has not run yet.
  await query(`update schedule set next_at = next_at - interval '2 min' where id = $1`, [id])
  const [due] = await query('select iso(next_at) as at from schedule where id = $1', [id])
  assert.equal((await send(user, 'PATCH', `/${id}`, { name: 'Renamed' })).json.next_run_at, due!.at)
  const later = new Date(Date.now() + 3_600_000).toISOString()
  const changed = await send(user, 'PATCH', `/${id}`, { start_at: later })
  assert.deepEqual([changed.json.next_run_at, await listMessageTimes(id)], [later, [later]])
  assert.deepEqual(await run(id, { at: due!.at as string }), { job_id: null, skipped: 'stale' })
  const cleared = await send(user, 'PATCH', `/${id}`, { start_at: null })
  assert.ok(Date.parse(cleared.json.next_run_at) < Date.now() + 61_000)
})

test('concurrent changes leave one message, for the time that is shown', async () => {
  const user = await newcomer()
  const { id } = await create(user)
  const changes = await Promise.all([
    ...Array.from({ length: 6 }, (_, n) => send(user, 'PATCH', `/${id}`, { cron: `${n} ${n} * * *` })),
    send(user, 'POST', `/${id}/pause`),
    send(user, 'POST', `/${id}/resume`),
    send(user, 'POST', `/${id}/run`),
  ])
  for (const { status, text } of changes) assert.ok(status < 300, text)
  await send(user, 'POST', `/${id}/resume`)
  const { next_run_at } = (await send(user, 'GET', `/${id}`)).json
  assert.ok(next_run_at !== null)
  assert.deepEqual(await listMessageTimes(id), [next_run_at])
})

test('an Idempotency-Key creates one schedule', async () => {
  const user = await newcomer()
  const ask = () =>
    api.post(SCHEDULES, { token: user.token, json: NIGHTLY, headers: { 'idempotency-key': 'once' } })
  assert.deepEqual((await ask()).json, (await ask()).json)
  assert.equal((await send(user, 'GET')).json.length, 1)
})

test('a quota limits the schedules of an account', async () => {
  const user = await newcomer()
  for (const _ of [1, 2, 3]) await create(user)
  const refused = await send(user, 'POST', '', NIGHTLY)
  assert.deepEqual([refused.status, refused.json.code], [429, 'quota.schedules'])
  assert.equal((await send(user, 'GET')).json.length, 3)
  await query(`insert into account_quota (account_id, kind, quota) values ($1, 'schedules', 4)`, [user.id])
  await create(user)
})

test('an API key needs the scope', async () => {
  const user = await newcomer()
  const createKey = async (scopes: string[]): Promise<Account> => {
    const key = await api.post('/api/v1/auth/keys', { token: user.token, json: { name: 'k', scopes } })
    assert.equal(key.status, 201, key.text)
    return { ...user, token: key.json.key }
  }
  const [reader, writer] = [await createKey(['schedules:read']), await createKey(['schedules:write'])]
  assert.equal((await send(reader, 'POST', '', NIGHTLY)).status, 403)
  await create(writer)
  assert.equal((await send(reader, 'GET')).json.length, 1)
})

test('the purge of an account deletes its schedules', async () => {
  const user = await newcomer()
  const { id } = await create(user)
  await query('delete from account where id = $1', [user.id])
  assertRefused(await send(admin, 'GET', `/${id}`), 404, 'Schedule not found')
})

describe('refusals', () => {
  for (const [what, more, field] of [
    ['neither cron nor interval', { cron: undefined }, 'cron'],
    ['both', { every_seconds: 60 }, 'cron'],
    ['four cron fields', { cron: '* * * *' }, 'cron'],
    ['a value out of range', { cron: '60 * * * *' }, 'cron'],
    ['an unknown name', { cron: '@reboot' }, 'cron'],
    ['a short interval', { cron: undefined, every_seconds: 59 }, 'every_seconds'],
    ['a long interval', { cron: undefined, every_seconds: 31_536_001 }, 'every_seconds'],
    ['an unknown zone', { time_zone: 'Europe/Atlantis' }, 'time_zone'],
    ['an offset as a zone', { time_zone: '+02:00' }, 'time_zone'],
    ['no name', { name: '' }, 'name'],
    ['a wrong argument', { args: { echo: 1 } }, 'args'],
    ['an unknown argument', { args: { ecco: 'x' } }, 'args'],
    ['a start in the year 10000', { start_at: '9999-12-31T23:00:00-15:00' }, 'start_at'],
    ['an end in the year 0', { end_at: '0001-01-01T00:00:00+15:00' }, 'end_at'],
    ['a wrong overlap', { overlap: 'join' }, 'overlap'],
  ] as const)
    test(what, async () => {
      const answer = await send(admin, 'POST', '', { ...NIGHTLY, ...more })
      assert.equal(answer.status, 422, answer.text)
      assert.equal(answer.json.code, 'request.invalid')
      assert.ok(answer.json.errors[0].loc.includes(field), answer.text)
    })

  for (const [what, more, status, code] of [
    ['a day that does not exist', { cron: '0 0 30 2 *' }, 422, 'schedule.never'],
    ['an end before the first time', { end_at: '2020-01-01T00:00:00Z' }, 422, 'schedule.never'],
    [
      'an end before the start',
      { start_at: '2100-01-01T00:00:00Z', end_at: '2100-01-01T00:00:00Z' },
      422,
      'schedule.never',
    ],
    ['an unknown task', { task_name: 'nothing' }, 400, 'task.unknown'],
    ['an unknown queue', { queue_type: 'nothing' }, 400, 'task.unknown_queue'],
  ] as const)
    test(what, async () => {
      const answer = await send(admin, 'POST', '', { ...NIGHTLY, ...more })
      assert.deepEqual([answer.status, answer.json.code], [status, code], answer.text)
    })

  test('the same for a change, which then changes nothing', async () => {
    const user = await newcomer()
    const created = await create(user, { start_at: '2099-01-01T00:00:00Z' })
    for (const [change, status] of [
      [{ cron: '0 0 30 2 *' }, 422],
      [{ cron: '0 1 * * *', every_seconds: 60 }, 422],
      [{ end_at: '2098-01-01T00:00:00Z' }, 422],
      [{ end_at: '2099-01-01T00:00:00Z' }, 422],
      [{ time_zone: 'x' }, 422],
      [{ args: { echo: 1 } }, 422],
      [{ task_name: 'prune' }, 422],
      [{ task_name: 'nothing' }, 400],
      [{ is_built_in: true }, 422],
    ] as const) {
      const answer = await send(user, 'PATCH', `/${created.id}`, change)
      assert.equal(answer.status, status, `${JSON.stringify(change)} ${answer.text}`)
    }
    assert.deepEqual((await send(user, 'GET', `/${created.id}`)).json, created)
  })

  test('of another account, as if it did not exist', async () => {
    const { id } = await create(await newcomer())
    const other = await newcomer()
    for (const answer of [
      await send(other, 'GET', `/${id}`),
      await send(other, 'PATCH', `/${id}`, { name: 'mine' }),
      await send(other, 'DELETE', `/${id}`),
      ...(await Promise.all(['run', 'pause', 'resume'].map((what) => send(other, 'POST', `/${id}/${what}`)))),
    ])
      assertRefused(answer, 404, 'Schedule not found')
    assert.equal((await send(admin, 'PATCH', `/${id}`, { name: 'theirs' })).status, 200)
  })

  test('a run beyond the quota of waiting jobs', async () => {
    const user = await newcomer()
    const { id } = await create(user)
    await query(`insert into account_quota (account_id, kind, quota) values ($1, 'waiting_jobs', 1)`, [
      user.id,
    ])
    assert.equal((await send(user, 'POST', `/${id}/run`)).status, 202)
    assert.equal((await send(user, 'POST', `/${id}/run`)).json.code, 'quota.waiting_jobs')
  })

  test('a run with arguments that its task no longer accepts', async () => {
    const user = await newcomer()
    const { id } = await create(user)
    await query(`update schedule set args = '{"echo": 1}' where id = $1`, [id])
    assert.equal((await send(user, 'POST', `/${id}/run`)).status, 422)
  })
})
