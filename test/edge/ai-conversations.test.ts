import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { runPurge } from '../purge.ts'
import { startModelServer } from '../standins/models.ts'
import { until } from '../until.ts'
import { CHAT_PATH, createModelEnv, postStream, startChatWorker } from './ai-help.ts'
import { type Answered, startEdge, startEdgeAndDatabase } from './harness.ts'

/**
 * Tests the ownership of conversations with accounts, without a credential in an open area, and without authentication.
 */

const models = await startModelServer()
after(() => models.stop())
const env = createModelEnv(models)
const { api, url, query, db } = await startEdgeAndDatabase({ env })
const closedEdge = await startEdge(url, { env: { ...env, OPEN_AREAS: 'jobs' } })
const noAuthEdge = await startEdge(url, { env: { ...env, AUTH_LEVEL: 'none' } })
await startChatWorker(url, env)
const admin = await api.register('admin@example.com')
const alice = await api.register('alice@example.com')
const bob = await api.register('bob@example.com')
const AI = '/api/v1/ai'
const UNKNOWN_ID = '01a00000-0000-7000-8000-000000000000'

const startConversation = async (json: object = {}, token?: string): Promise<string> => {
  const answer = await api.post(CHAT_PATH, { json: { message: 'Hello?', ...json }, ...(token && { token }) })
  assert.equal(answer.status, 200, answer.text)
  return answer.json.conversation_id
}
const list = async (path = '', token?: string): Promise<Answered> =>
  api.get(`${AI}/conversations${path}`, token === undefined ? {} : { token })
const idsOf = (answer: Answered): string[] => answer.json.map(({ id }: { id: string }) => id)

describe('GET /ai/conversations', () => {
  test('lists summaries, latest first', async () => {
    const one = await startConversation({ user_id: 'lister' })
    const two = await startConversation({ user_id: 'lister', message: 'Second' })
    await startConversation({ user_id: 'lister', conversation_id: one })
    const answer = await list('?user_id=lister')
    assert.deepEqual(idsOf(answer), [one, two])
    const [first] = answer.json
    const { last_activity, ...rest } = first
    assert.deepEqual(rest, {
      id: one,
      title: 'Hello?',
      message_count: 4,
      provider: 'openai',
      model: 'gpt-4o-mini',
    })
    assert.ok(!Number.isNaN(Date.parse(last_activity)))
    assert.deepEqual(idsOf(await list('?user_id=lister&limit=1')), [one])
    assert.deepEqual((await list('?user_id=nobody')).json, [])
  })

  test('pages can be followed by cursor, also by an admin', async () => {
    const dan = await api.register('dan@example.com')
    const started: string[] = []
    for (const by of [{ token: dan.token }, { name: String(dan.id) }, { token: dan.token }])
      started.unshift(await startConversation(by.name === undefined ? {} : { user_id: by.name }, by.token))
    const followed = async (path: string | undefined, token?: string): Promise<string[]> => {
      if (path === undefined) return []
      const answer = await api.get(path, token === undefined ? {} : { token })
      const next = /^<(.+)>; rel="next"$/.exec(String(answer.headers.link ?? ''))?.[1]
      return [...idsOf(answer), ...(await followed(next, token))]
    }
    const path = `${AI}/conversations?limit=1&user_id=${dan.id}`
    assert.deepEqual(await followed(path, admin.token), started)
    assert.deepEqual(await followed(path, dan.token), [started[0], started[2]])
    assert.deepEqual(await followed(path), [started[1]])
    assert.deepEqual(idsOf(await noAuthEdge.get(`${AI}/conversations?user_id=${dan.id}`)), started)
  })

  for (const path of ['?limit=0', '?limit=201', '?limit=x', '?user_id=', '?limit=-1', '?cursor=x'])
    test(`400 for ${path}`, async () => {
      const answer = await list(path)
      assert.deepEqual([answer.status, answer.json.errors[0].loc[0]], [400, 'query'])
    })

  test('shows an account only its own conversations, whatever user_id it sends', async () => {
    const own = await startConversation({}, alice.token)
    const [row] = await query('select user_id, owner_id from ai_conversation where id = $1', [own])
    assert.deepEqual(row, { user_id: String(alice.id), owner_id: alice.id })
    const impostor = await startConversation({ user_id: String(alice.id) })
    assert.deepEqual(idsOf(await list('', alice.token)), [own])
    assert.deepEqual(idsOf(await list(`?user_id=${alice.id}`)), [impostor])
    assert.equal((await api.get(`${AI}/conversations/${own}?user_id=${alice.id}`)).status, 403)
    assert.equal(
      (await api.post(CHAT_PATH, { json: { message: 'x', user_id: String(alice.id), conversation_id: own } }))
        .status,
      403,
    )
    assert.equal((await list(`?user_id=${bob.id}`, alice.token)).status, 403)
    assert.deepEqual(idsOf(await list(`?user_id=${alice.id}`, admin.token)), [impostor, own])
    await query('delete from ai_conversation where id = $1', [impostor])
  })
})

describe('GET /ai/conversations/{id}', () => {
  test('returns the whole conversation', async () => {
    const id = await startConversation({ user_id: 'reader' })
    const answer = await api.get(`${AI}/conversations/${id}?user_id=reader`)
    assert.equal(answer.status, 200)
    const { created_at, updated_at, messages, metadata, ...rest } = answer.json
    assert.deepEqual(rest, {
      id,
      title: 'Hello?',
      provider: 'openai',
      model: 'gpt-4o-mini',
      message_count: 2,
      pending_message_id: null,
      usage: { input_tokens: 12, output_tokens: 5, cost: messages[1].usage.cost, unpriced_answers: 0 },
      next: null,
    })
    assert.deepEqual([messages[0].usage, messages[0].model], [null, null])
    assert.ok(messages[1].usage.cost > 0)
    assert.equal(messages[1].model, 'gpt-4o-mini')
    assert.ok(Date.parse(updated_at) >= Date.parse(created_at))
    assert.deepEqual(
      messages.map(({ role, content, status }: Record<string, string>) => [role, content, status]),
      [
        ['user', 'Hello?', 'complete'],
        ['assistant', 'Hello there', 'complete'],
      ],
    )
    assert.ok(messages.every(({ timestamp }: { timestamp: string }) => !Number.isNaN(Date.parse(timestamp))))
    assert.equal(metadata.user_id, 'reader')
    assert.ok(metadata.last_response_time_ms > 0)
  })

  test('names the answer that a turn is writing', async () => {
    models.script = () => ({ pieces: ['Slow', ' answer'], firstMs: 300 })
    const stream = await postStream(api, { message: 'Hello?', user_id: 'hasty' })
    await stream.until('the turn began', (frames) => frames.length > 0)
    const { data } = stream.frames[0]!
    const read = () => api.get(`${AI}/conversations/${data.conversation_id}?user_id=hasty`)
    assert.equal((await read()).json.pending_message_id, data.message_id)
    await stream.waitForEnd()
    models.script = () => ({})
    const { json } = await read()
    assert.deepEqual([json.pending_message_id, json.messages.at(-1).id], [null, data.message_id])
  })

  test('omits an empty answer and marks an interrupted one', async () => {
    models.script = () => ({ status: 401 })
    const failed = await api.post(CHAT_PATH, { json: { message: 'Hello?', user_id: 'unlucky' } })
    models.script = () => ({ pieces: ['Par', 'tial'], breaks: { after: 1, does: 'end' } })
    assert.equal(failed.status, 502)
    const [{ id }] = (await list('?user_id=unlucky')).json
    const stream = await postStream(api, { message: 'Again', user_id: 'unlucky', conversation_id: id })
    await stream.waitForEnd()
    models.script = () => ({})
    const { messages, message_count } = (await api.get(`${AI}/conversations/${id}?user_id=unlucky`)).json
    assert.deepEqual(
      messages.map(({ role, content, status }: Record<string, string>) => [role, content, status]),
      [
        ['user', 'Hello?', 'complete'],
        ['user', 'Again', 'complete'],
        ['assistant', 'Par', 'failed'],
      ],
    )
    assert.equal(message_count, 3)
  })

  test('pages of messages come newest first, each page oldest first', async () => {
    const id = await startConversation({ user_id: 'long' })
    for (let turn = 2; turn <= 3; turn++)
      await startConversation({ user_id: 'long', conversation_id: id, message: `Turn ${turn}` })
    const path = `${AI}/conversations/${id}?user_id=long`
    const contents = (answer: Answered): string[] =>
      answer.json.messages.map(({ content }: { content: string }) => content)
    const all = contents(await api.get(path))
    assert.equal(all.length, 6)
    const pages: string[][] = []
    let next: string | null = ''
    while (next !== null) {
      const answer: Answered = await api.get(`${path}&limit=4${next && `&cursor=${next}`}`)
      assert.deepEqual([answer.status, answer.json.message_count], [200, 6])
      pages.push(contents(answer))
      next = answer.json.next
    }
    assert.deepEqual(pages, [all.slice(2), all.slice(0, 2)])
    for (const search of ['limit=0', 'limit=1001', 'cursor=x'])
      assert.equal((await api.get(`${path}&${search}`)).status, 400, search)
  })

  test('403 for another user, 404 for an unknown id, 400 for an invalid id', async () => {
    const id = await startConversation({ user_id: 'x' })
    assert.equal((await api.get(`${AI}/conversations/${id}`)).status, 403)
    assert.equal((await api.get(`${AI}/conversations/${id}`, { token: bob.token })).status, 403)
    assert.equal((await api.get(`${AI}/conversations/${UNKNOWN_ID}`)).status, 404)
    assert.equal((await api.get(`${AI}/conversations/17`)).status, 400)
    // Admins need no `user_id`, but a wrong one is still rejected.
    assert.equal((await api.get(`${AI}/conversations/${id}`, { token: admin.token })).status, 200)
    assert.equal((await api.get(`${AI}/conversations/${id}?user_id=y`, { token: admin.token })).status, 403)
  })
})

describe('PATCH and DELETE /ai/conversations/{id}', () => {
  test('changes the title', async () => {
    const id = await startConversation({ user_id: 'p' })
    const path = `${AI}/conversations/${id}`
    const answer = await api.call('PATCH', `${path}?user_id=p`, { json: { title: ' New ' } })
    assert.deepEqual([answer.status, answer.json.title, answer.json.message_count], [200, 'New', 2])
    for (const [json, status] of [
      [{}, 400],
      [{ title: ' ' }, 400],
      [{ title: 'x'.repeat(201) }, 400],
      [{ title: 'x', model: 'y' }, 400],
    ] as const)
      assert.equal((await api.call('PATCH', `${path}?user_id=p`, { json })).status, status)
    assert.equal((await api.call('PATCH', path, { json: { title: 'x' } })).status, 403)
    assert.equal(
      (await api.call('PATCH', `${AI}/conversations/${UNKNOWN_ID}`, { json: { title: 'x' } })).status,
      404,
    )
  })

  test('deleting a conversation stops its turns and keeps its usage', async () => {
    const id = await startConversation({ user_id: 'd' })
    models.script = () => ({ pieces: Array(5000).fill('x'), betweenMs: 10 })
    const stream = await postStream(api, { message: 'Long', user_id: 'd', conversation_id: id })
    await stream.until('a chunk', (frames) => frames.length > 1)
    const path = `${AI}/conversations/${id}`
    assert.equal((await api.call('DELETE', path)).status, 403)
    assert.equal((await api.call('DELETE', `${path}?user_id=d`)).status, 204)
    models.script = () => ({})
    assert.equal((await stream.waitForEnd()).at(-1)!.event, 'error')
    assert.equal((await api.get(`${path}?user_id=d`)).status, 404)
    assert.equal((await api.call('DELETE', `${path}?user_id=d`)).status, 404)
    await until('the usage has both turns', async () => {
      const [row] = await query('select count(*)::int as n from ai_usage where conversation_id = $1', [id])
      return row!.n === 2
    })
  })

  test('deleting an account deletes its conversations and keeps their usage', async () => {
    const carol = await api.register('carol@example.com')
    const id = await startConversation({}, carol.token)
    await api.call('DELETE', `/api/v1/auth/users/${carol.id}`, { token: admin.token })
    await runPurge(db)
    assert.deepEqual(await query('select id from ai_conversation where id = $1', [id]), [])
    const [row] = await query('select owner_id, user_id from ai_usage where conversation_id = $1', [id])
    assert.deepEqual(row, { owner_id: null, user_id: String(carol.id) })
  })
})

describe('access to conversations', () => {
  test('a closed area rejects callers without a credential, except for the version', async () => {
    for (const [method, path] of [
      ['POST', CHAT_PATH],
      ['POST', `${CHAT_PATH}/stream`],
      ['GET', `${CHAT_PATH}/stream?message=x`],
      ['GET', `${CHAT_PATH}/stream/${UNKNOWN_ID}`],
      ['GET', `${AI}/conversations`],
      ['GET', `${AI}/agents`],
      ['PATCH', `${AI}/agents/assistant`],
      ['GET', `${AI}/usage/stats`],
      ['GET', `${AI}/health`],
    ] as const)
      assert.equal(
        (await closedEdge.call(method, path, method === 'GET' ? {} : { json: { message: 'x' } })).status,
        401,
        path,
      )
    assert.equal((await closedEdge.get('/ai/version')).status, 200)
    const own = await closedEdge.post(CHAT_PATH, { json: { message: 'x' }, token: bob.token })
    assert.equal(own.status, 200)
    assert.equal(
      (await closedEdge.post(CHAT_PATH, { json: { message: 'x', user_id: 'z' }, token: bob.token })).status,
      403,
    )
  })

  test('an admin may act for an account, which then owns the conversation', async () => {
    const id = await startConversation({ user_id: String(bob.id) }, admin.token)
    assert.ok(idsOf(await list('', bob.token)).includes(id))
  })

  test('without authentication the caller is the user that the request names', async () => {
    const id = (await noAuthEdge.post(CHAT_PATH, { json: { message: 'x', user_id: 'free' } })).json
      .conversation_id
    assert.deepEqual(idsOf(await noAuthEdge.get(`${AI}/conversations?user_id=free`)), [id])
    assert.equal((await noAuthEdge.get(`${AI}/conversations/${id}`)).status, 403)
    assert.equal((await noAuthEdge.get(`${AI}/conversations/${id}?user_id=free`)).status, 200)
  })

  test('a page of another site cannot ask questions with the cookies of its visitors', async () => {
    const headers = { cookie: `millrace_session=${alice.token}`, 'sec-fetch-site': 'cross-site' }
    assert.equal((await api.get(`${CHAT_PATH}/stream?message=x`, { headers })).status, 403)
    assert.equal((await api.post(CHAT_PATH, { json: { message: 'x' }, headers })).status, 403)
  })
})
