import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Client } from '../service.ts'
import { assertRefused, createCast } from './accounts-help.ts'
import { startEdge, startEdgeAndDatabase } from './harness.ts'
import { createLedger } from './ledger.ts'

/** Jobs of the queue `accounts` send tokens by mail and would reveal accounts, so only admins may see them. */

const { api, ...database } = await startEdgeAndDatabase()
const noAuthEdge = await startEdge(database.url, { env: { AUTH_LEVEL: 'none' } })
const { admin, moderator, user } = await createCast(api)
const ledger = createLedger(database)
const JOBS = '/api/v1/jobs'
const MAIL_JOB = {
  name: 'accounts.password-reset',
  queue: 'accounts',
  payload: { email: 'told-to-nobody@example.com' },
}
const addMailJob = (): Promise<string> => ledger.add(null, MAIL_JOB)
/** All callers except admins; the area is open, so this includes callers without a credential. */
const otherCallers = [{}, { token: user.token }, { token: moderator.token }]
const listJobIds = async (options: object, edge = api): Promise<string[]> =>
  (await edge.get(`${JOBS}?limit=1000`, options)).json.map(({ job_id }: { job_id: string }) => job_id)
const createClient = (token: string): Client => Object.assign(new Client(api.port), { token })

test('jobs for registration and password reset have no owner and are in the queue `accounts`', async () => {
  await api.post('/api/v1/auth/password-reset/request', { json: { email: user.email } })
  const rows = await database.query('select name, queue, owner_id from job order by id')
  assert.deepEqual(rows.at(-1), { name: MAIL_JOB.name, queue: 'accounts', owner_id: null })
  assert.equal(rows.filter(({ name }) => name === 'accounts.verification').length, 3)
  for (const { queue, owner_id } of rows) assert.deepEqual([queue, owner_id], ['accounts', null])
})

test('only admins see them in lists, in any state', async () => {
  const [queued, running, done, failed] = [
    await addMailJob(),
    await addMailJob(),
    await addMailJob(),
    await addMailJob(),
  ]
  await Promise.all([running, done, failed].map((id) => ledger.claim(id!)))
  await ledger.finish(done!, 'done', { result: {} })
  await ledger.finish(failed!, 'failed', { code: 'email.refused', detail: 'x' })
  for (const caller of otherCallers) {
    assert.deepEqual(await listJobIds(caller), [])
    for (const status of ['queued', 'running', 'done', 'failed', 'cancelled'])
      assert.deepEqual((await api.get(`${JOBS}?status=${status}`, caller)).json, [], status)
  }
  for (const shown of [await listJobIds({ token: admin.token }), await listJobIds({}, noAuthEdge)])
    for (const id of [queued, running, done, failed]) assert.ok(shown.includes(id!))
})

test('reading, following or cancelling one is 404 for others, like a missing job', async () => {
  const id = await addMailJob()
  for (const caller of otherCallers) {
    for (const [method, path] of [
      ['GET', `${JOBS}/${id}`],
      ['HEAD', `${JOBS}/${id}`],
      ['GET', `${JOBS}/${id}/events`],
      ['DELETE', `${JOBS}/${id}`],
    ] as const) {
      const answer = await api.call(method, path, caller)
      if (method === 'HEAD') assert.equal(answer.status, 404)
      else assertRefused(answer, 404, 'Job not found', path)
    }
    const headers = { 'last-event-id': '0' }
    assert.equal((await api.get(`${JOBS}/${id}/events`, { ...caller, headers })).status, 404)
  }
  const shown = await api.get(`${JOBS}/${id}`, { token: admin.token })
  assert.deepEqual([shown.status, shown.json.status, shown.json.queue], [200, 'queued', 'accounts'])
  assert.doesNotMatch(shown.text, /told-to-nobody/, 'not even admins see the recipient')
  assert.equal((await api.call('DELETE', `${JOBS}/${id}`, { token: admin.token })).status, 202)
})

test('the stream of all jobs includes them for admins only', async (t) => {
  const before = await addMailJob()
  const since = { 'last-event-id': '1' }
  const blind = await Promise.all(
    ['', user.token, moderator.token].map((token) => createClient(token).stream(`${JOBS}/events`, since)),
  )
  const seeing = await createClient(admin.token).stream(`${JOBS}/events`, since)
  t.after(() => {
    for (const stream of [...blind, seeing]) stream.close()
  })
  await seeing.until('the live jobs', (frames) => frames.some(({ data }) => data.job_id === before))
  const after = await addMailJob()
  for (const id of [before, after]) {
    await ledger.claim(id)
    await ledger.finish(id, 'done', { result: {} })
  }
  const isEnd = (id: string) => (frame: { data: Record<string, unknown> }) =>
    frame.data.job_id === id && frame.data.status === 'done'
  await seeing.until('both ends', (frames) => frames.some(isEnd(before)) && frames.some(isEnd(after)))
  // Add a public job last: once its frame arrives, no earlier frame is still pending.
  const open = await ledger.addFinished(null)
  for (const stream of blind) {
    await stream.until('the open job', (frames) => frames.some(isEnd(open)))
    const shown = new Set(stream.frames.map(({ data }) => data.job_id))
    assert.deepEqual([...shown], [open])
  }
  await seeing.until('the open job', (frames) => frames.some(isEnd(open)))
})

test('only admins may open the stream of one of them', async (t) => {
  const id = await addMailJob()
  const stream = await createClient(admin.token).stream(`${JOBS}/${id}/events`)
  t.after(() => stream.close())
  await ledger.claim(id)
  await ledger.finish(id, 'done', { result: {} })
  const frames = await stream.waitForEnd()
  assert.deepEqual(frames.at(-1)!.data, { job_id: id, status: 'done', label: '', result: {} })
})

test('a promotion to admin reveals them, and a demotion hides them again', async () => {
  const id = await addMailJob()
  const change = (role: string) =>
    api.call('PATCH', `/api/v1/auth/users/${user.id}/role?role=${role}`, { token: admin.token })
  await change('admin')
  assert.ok((await listJobIds({ token: user.token })).includes(id))
  await change('user')
  assert.equal((await listJobIds({ token: user.token })).includes(id), false)
})

test('webhook deliveries are hidden, too, because they reveal whose endpoint fails', async () => {
  const id = await ledger.add(null, {
    name: 'webhooks.deliver',
    queue: 'webhooks',
    payload: { endpoint_id: 1 },
  })
  for (const caller of otherCallers) {
    assert.ok(!(await listJobIds(caller)).includes(id))
    assertRefused(await api.get(`${JOBS}/${id}`, caller), 404, 'Job not found')
  }
  assert.ok((await listJobIds({ token: admin.token })).includes(id))
})
