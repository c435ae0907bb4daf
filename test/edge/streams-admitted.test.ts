import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Client, type Stream } from '../service.ts'
import { until } from '../until.ts'
import { createCast, logIn } from './accounts-help.ts'
import {
  type Account,
  type Api,
  createCuttableConnection,
  startEdge,
  startEdgeAndDatabase,
} from './harness.ts'
import { createLedger } from './ledger.ts'

/** A stream must end on every edge process when its subscriber loses access, and the reconnect must be rejected. */

const { api, ...database } = await startEdgeAndDatabase()
const otherEdge = await startEdge(database.url, { env: { OPEN_AREAS: 'ai' } })
const ledger = createLedger(database)
const { admin, newcomer } = await createCast(api)
const change = (id: number, what: string) =>
  api.call('PATCH', `/api/v1/auth/users/${id}/${what}`, { token: admin.token })

/** Opens both kinds of stream and waits for their first frames. */
async function openStreams(t: TestContext, { id, token }: Account, edge: Api = otherEdge): Promise<Stream[]> {
  const job = await ledger.add(id)
  const client = Object.assign(new Client(edge.port), { token })
  const streams = await Promise.all(
    ['/events', `/${job}/events`].map((path) => client.stream(`/api/v1/jobs${path}`)),
  )
  t.after(() => {
    for (const stream of streams) stream.close()
  })
  for (const stream of streams) await stream.until('the first frame', (frames) => frames.length > 0)
  return streams
}

async function assertEnd(streams: readonly Stream[]): Promise<void> {
  for (const stream of streams) {
    await stream.waitForEnd()
    assert.equal(stream.broken, false, 'in order')
  }
}

for (const what of ['deactivate', 'role?role=moderator'])
  test(`${what} ends the streams of the account`, async (t) => {
    const account = await newcomer()
    const streams = await openStreams(t, account)
    assert.equal((await change(account.id, what)).status, 200)
    await assertEnd(streams)
  })

test('a deletion ends the streams of the account', async (t) => {
  const account = await newcomer()
  const streams = await openStreams(t, account)
  await api.call('DELETE', `/api/v1/auth/users/${account.id}`, { token: admin.token })
  await assertEnd(streams)
})

test('the end of a session ends its streams only', async (t) => {
  const account = await newcomer()
  const elsewhere = { ...account, token: (await logIn(api, account.email)).json.access_token }
  const [own, foreign] = [await openStreams(t, account), await openStreams(t, elsewhere)]
  const sessions = (await api.get('/api/v1/auth/sessions', { token: account.token })).json
  const { id } = sessions.find(({ is_current }: { is_current: boolean }) => !is_current)
  await api.call('DELETE', `/api/v1/auth/sessions/${id}`, { token: account.token })
  await assertEnd(foreign)
  for (const stream of own) assert.equal(stream.ended, false)
})

test('changes that affect no permissions keep all streams open', async (t) => {
  const [account, bystander] = [await newcomer(), await newcomer()]
  const streams = [...(await openStreams(t, account)), ...(await openStreams(t, bystander))]
  await change(account.id, 'role?role=user')
  await api.call('PATCH', `/api/v1/auth/users/${account.id}?full_name=X`, { token: account.token })
  await logIn(otherEdge, account.email)
  await api.post('/api/v1/auth/logout', { token: account.token })
  const job = await ledger.add(account.id)
  await streams[0]!.until('a later frame', (frames) => frames.some(({ data }) => data.job_id === job))
  for (const stream of streams) assert.equal(stream.ended, false)
})

test('a demoted admin receives no further jobs of others', async (t) => {
  const account = await newcomer()
  await change(account.id, 'role?role=admin')
  const streams = await openStreams(t, account)
  await change(account.id, 'role?role=user')
  await assertEnd(streams)
  const [again] = await openStreams(t, account)
  const jobs = new Set(again!.frames.map(({ data }) => data.job_id))
  const foreign = await ledger.add(admin.id)
  const own = await ledger.add(account.id)
  await again!.until('its own job', (frames) => frames.some(({ data }) => data.job_id === own))
  assert.equal(
    again!.frames.some(({ data }) => data.job_id === foreign),
    false,
  )
  assert.ok(jobs.size > 0)
})

test('changes during a lost database connection end streams after the reconnect', async (t) => {
  const line = await createCuttableConnection(database.url)
  const edge = await startEdge(line.url)
  const [victim, bystander] = [await newcomer(), await newcomer()]
  const [gone, kept] = [await openStreams(t, victim, edge), await openStreams(t, bystander, edge)]
  await line.cut()
  await change(victim.id, 'deactivate')
  await line.restore()
  await assertEnd(gone)
  for (const stream of kept) assert.equal(stream.ended, false)
})

test('anonymous streams stay open after account changes', async (t) => {
  const client = new Client(api.port)
  const stream = await client.stream('/api/v1/jobs/events')
  t.after(() => stream.close())
  await change((await newcomer()).id, 'deactivate')
  const job = await ledger.add(null)
  await until('the stream continues', () => stream.frames.some(({ data }) => data.job_id === job))
})
