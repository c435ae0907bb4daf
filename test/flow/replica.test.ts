import assert from 'node:assert/strict'
import { test } from 'node:test'
import { areas } from '../../edge/routes/index.ts'
import { type Answered, type Api, type CallOptions, PASSWORD } from '../edge/harness.ts'
import { until } from '../until.ts'
import { countReads, createReplicaWorld } from './replicas.ts'

/** Clients read their own writes from a list even if the standby lags. */

const { cluster, edges, pause, resume, waitForState } = await createReplicaWorld()
const [edge, other] = edges
const { token } = await edge.register('writer@example.com')
const reader = await edge.register('reader@example.com')
await waitForState('used')
await until(
  'the other edge uses the standby',
  async () => (await other.get('/ready')).json.replica.state === 'used',
)

const TAGS_PATH = '/api/v1/blog/tags'
const listNames = async (at: Api, options: CallOptions = {}): Promise<string[]> => {
  const answer = await at.get(TAGS_PATH, options)
  assert.equal(answer.status, 200, answer.text)
  return answer.json.tags.map(({ name }: { name: string }) => name).sort()
}
const createTag = async (name: string, options: CallOptions = { token }) => {
  const answer = await edge.post(TAGS_PATH, { json: { name }, ...options })
  assert.equal(answer.status, 201, answer.text)
  return answer
}
const waitForJobReplay = (id: string) =>
  until('the standby has replayed the write', async () => {
    const rows = await cluster.standby.query('select from job where id = $1', [id])
    return rows.length > 0
  })
const waitForTagReplay = (name: string) =>
  until('the standby has replayed the tag', async () => {
    const rows = await cluster.standby.query('select from blog_tag where name = $1', [name])
    return rows.length > 0
  })

test("reads lists from the standby once it has the caller's writes", async () => {
  await createTag('first')
  await waitForTagReplay('first')
  const { answer, replica, primary } = await countReads(edge, () => listNames(edge, { token }))
  assert.deepEqual([answer, replica, primary], [['first'], 1, 0])
  const rows = await cluster.standby.query(
    `select from pg_stat_activity where application_name = 'millrace-edge-replica' and query like '%blog_tag%'`,
  )
  assert.equal(rows.length, 1)
})

test('reads every list, search and statistic from the standby', async () => {
  const lists = areas.flatMap(({ prefix, routes }) =>
    routes.flatMap(({ path, reads, stream, readsDecideAccess }) =>
      reads === undefined || stream || readsDecideAccess || path.includes(':') ? [] : [prefix + path],
    ),
  )
  assert.ok(lists.length > 15, `${lists.length}`)
  for (const path of [...lists, '/api/v1/documents?search=word', '/api/v1/blog/export?format=json']) {
    const { answer, replica, primary } = await countReads(edge, () => edge.get(path, { token }))
    assert.ok([200, 422].includes(answer.status), `${path}: ${answer.status} ${answer.text}`)
    if (answer.status === 200) assert.deepEqual([path, replica > 0, primary], [path, true, 0])
  }
})

test('reads from the primary for recent writers while the standby lags: by header, cookie and memory', async () => {
  await pause()
  const written = await createTag('second')
  const position = written.headers['millrace-position'] as string
  assert.match(position, /^[0-9A-F]+\/[0-9A-F]+$/)
  assert.deepEqual(written.cookies, [], 'a client that sends a token is no browser')
  const byCookies = { headers: { cookie: `millrace_session=${token}` } }
  const browser = await createTag('third', byCookies)
  assert.match(
    browser.cookies.join(),
    /^millrace_position=[0-9A-F]+\/[0-9A-F]+; Path=\/; Max-Age=20; HttpOnly; SameSite=Lax$/,
  )
  const cookie = `millrace_position=${browser.cookie('millrace_position')}`

  const all = ['first', 'second', 'third']
  for (const [at, options, seen] of [
    [edge, { token }, all],
    [edge, { token: reader.token }, ['first']],
    [other, { token }, ['first']],
    [other, { token, headers: { 'millrace-position': position } }, all],
    [other, { token, headers: { cookie } }, all],
  ] as const) {
    const { answer, replica } = await countReads(at, () => listNames(at, options))
    assert.deepEqual([answer, replica], [seen, seen === all ? 0 : 1], JSON.stringify(options))
  }
  await resume()
  await waitForTagReplay('third')
  const { answer, replica } = await countReads(other, () => listNames(other, { token, headers: { cookie } }))
  assert.deepEqual([answer, replica], [all, 1])
})

/** Adds a job that no worker runs. Returns its id and the header with the WAL position of the write. */
async function addQueuedJob() {
  const task = { task_name: 'io_simulation_task', queue_type: 'load_test', args: { duration_ms: 1 } }
  const answer = await edge.post('/api/v1/tasks/enqueue', { token, json: task })
  assert.equal(answer.status, 202, answer.text)
  return { id: answer.json.task_id as string, headers: positionOf(answer) }
}
const positionOf = ({ headers }: Answered) => ({
  'millrace-position': headers['millrace-position'] as string,
})
const findListedStatus = async (at: Api, id: string, options: CallOptions): Promise<string | null> => {
  const { json } = await at.get('/api/v1/jobs', options)
  return json.find((job: { job_id: string }) => job.job_id === id)?.status ?? null
}

test('tracks single-statement writes and writes without a credential', async () => {
  await pause()
  const { id, headers } = await addQueuedJob()
  assert.deepEqual(
    [await findListedStatus(other, id, { token, headers }), await findListedStatus(other, id, { token })],
    ['queued', null],
  )
  const form = { username: 'reader@example.com', password: PASSWORD }
  const session = await edge.post('/api/v1/auth/token', { form })
  const sessions = await edge.get('/api/v1/auth/sessions', { token: session.json.access_token })
  assert.equal(sessions.json.length, 2)
  await resume()
})

test('callers that have read the end of a job from its record or stream see its effects', async () => {
  const [told, streamed] = [await addQueuedJob(), await addQueuedJob()]
  await waitForJobReplay(streamed.id)
  await pause()
  const stream = edge.get(`/api/v1/jobs/${streamed.id}/events`, { token })
  for (const { id } of [told, streamed]) {
    await cluster.primary.query('select job_cancel(array[$1::uuid])', [id])
    await cluster.primary.query(`select pg_notify('job_events', $1)`, [id])
  }
  assert.match((await stream).text, /"status":"cancelled"/)
  assert.equal(await findListedStatus(edge, streamed.id, { token }), 'cancelled')

  assert.equal(
    await findListedStatus(other, told.id, { token }),
    'queued',
    'an edge that has read neither the record nor the stream',
  )
  const job = await other.get(`/api/v1/jobs/${told.id}`, { token })
  assert.equal(job.json.status, 'cancelled')
  assert.equal(await findListedStatus(other, told.id, { token }), 'cancelled')
  const { answer, replica } = await countReads(other, () =>
    findListedStatus(other, told.id, { token: reader.token, headers: positionOf(job) }),
  )
  assert.deepEqual([answer, replica], [null, 0], 'another account')
  await resume()
})

test('ignores forged positions and those of other clusters', async () => {
  const given = ['x', '', '0/0', '/', `${'F'.repeat(9)}/0`, '1/2/3', '🙂', `0/${'0'.repeat(500)}`, 'null']
  const expected = await listNames(edge)
  await until('the standby has replayed everything', async () => {
    const { replica } = await countReads(edge, () => listNames(edge))
    return replica === 1
  })
  for (const text of given) {
    const headers = { 'millrace-position': encodeURI(text), cookie: `millrace_position=${encodeURI(text)}` }
    const { answer, replica } = await countReads(other, () => listNames(other, { headers }))
    assert.deepEqual([answer, replica], [expected, 1], text)
  }
  for (const text of ['FFFFFFFF/FFFFFFFF', 'ABC/0']) {
    const headers = { 'millrace-position': text }
    const { answer, replica } = await countReads(other, () => listNames(other, { headers }))
    assert.deepEqual([answer, replica], [expected, 0], text)
  }
})
