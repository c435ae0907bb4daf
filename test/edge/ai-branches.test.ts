import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { until } from '../until.ts'
import { CHAT_PATH, joinChunks, openStream, postStream, startChatService } from './ai-help.ts'
import type { Answered } from './harness.ts'

/** Tests versions of questions and answers, and branches of conversations. */

const { models, api, query } = await startChatService()
const AI = '/api/v1/ai'
let answers = 0
models.script = () => ({ pieces: [`A${++answers}`] })

const chat = (json: object, token?: string): Promise<Answered> =>
  api.post(CHAT_PATH, { json, ...(token && { token }) })
async function say(json: object): Promise<{ id: string; answer: string; content: string }> {
  const answer = await chat(json)
  assert.equal(answer.status, 200, answer.text)
  return { id: answer.json.conversation_id, answer: answer.json.message_id, content: answer.json.content }
}
interface Shown {
  readonly id: string
  readonly role: string
  readonly content: string
  readonly parent_id: string | null
  readonly versions: readonly string[]
}
async function read(id: string): Promise<Shown[]> {
  const answer = await api.get(`${AI}/conversations/${id}`)
  assert.equal(answer.status, 200, answer.text)
  assert.equal(answer.json.message_count, answer.json.messages.length)
  return answer.json.messages
}
const contentsOf = (messages: readonly Shown[]): string[] => messages.map(({ content }) => content)
/** The messages of the last request to the model, without the system prompt. */
const lastAsked = (): string[] =>
  models.asked
    .at(-1)!
    .body.messages.slice(1)
    .map(({ content }) => content)

describe('a turn at another place', () => {
  test('answers a question again, and keeps both answers', async () => {
    const first = await say({ message: 'Q1' })
    const second = await say({ message: 'Q2', conversation_id: first.id })
    const again = await say({ regenerate_id: second.answer, conversation_id: first.id })
    assert.notEqual(again.content, second.content)
    assert.deepEqual(lastAsked(), ['Q1', first.content, 'Q2'])
    const shown = await read(first.id)
    assert.deepEqual(contentsOf(shown), ['Q1', first.content, 'Q2', again.content])
    assert.deepEqual(shown[3]!.versions, [second.answer, again.answer])
    assert.equal(shown[3]!.parent_id, shown[2]!.id)
    const third = await say({ message: 'Q3', conversation_id: first.id })
    assert.deepEqual(lastAsked(), ['Q1', first.content, 'Q2', again.content, 'Q3'])
    // The question of an answer in the middle: what follows it leaves the branch.
    const early = await say({ regenerate_id: first.answer, conversation_id: first.id })
    assert.deepEqual(lastAsked(), ['Q1'])
    assert.deepEqual(contentsOf(await read(first.id)), ['Q1', early.content])
    assert.ok(third.answer !== early.answer)
  })

  test('replaces a question by an edited one, the first one included', async () => {
    const first = await say({ message: 'Q1' })
    const { id } = first
    await say({ message: 'Q2', conversation_id: id })
    const [q1, , q2] = await read(id)
    const edited = await say({ message: 'Q2 edited', edit_id: q2!.id, conversation_id: id })
    assert.deepEqual(lastAsked(), ['Q1', first.content, 'Q2 edited'])
    const shown = await read(id)
    assert.deepEqual(contentsOf(shown), ['Q1', first.content, 'Q2 edited', edited.content])
    assert.deepEqual(shown[2]!.versions, [q2!.id, shown[2]!.id])
    const root = await say({ message: 'Q1 edited', edit_id: q1!.id, conversation_id: id })
    assert.deepEqual(lastAsked(), ['Q1 edited'])
    const roots = await read(id)
    assert.deepEqual(contentsOf(roots), ['Q1 edited', root.content])
    assert.deepEqual(roots[0]!.versions, [q1!.id, roots[0]!.id])
    assert.equal(roots[0]!.parent_id, null)
  })

  test('continues any answer, and shows the branch that a caller selects', async () => {
    const first = await say({ message: 'Q1' })
    const { id } = first
    const old = await say({ message: 'Q2', conversation_id: id })
    const other = await say({ message: 'Q2b', parent_id: first.answer, conversation_id: id })
    assert.deepEqual(lastAsked(), ['Q1', first.content, 'Q2b'])
    assert.deepEqual(contentsOf(await read(id)), ['Q1', first.content, 'Q2b', other.content])
    const patch = (active: string): Promise<Answered> =>
      api.call('PATCH', `${AI}/conversations/${id}`, { json: { active_message_id: active } })
    assert.equal((await patch(old.answer)).status, 200)
    const shown = await read(id)
    assert.deepEqual(contentsOf(shown), ['Q1', first.content, 'Q2', old.content])
    await say({ message: 'Q3', conversation_id: id })
    assert.deepEqual(lastAsked(), ['Q1', first.content, 'Q2', old.content, 'Q3'])
    // A message in the middle selects the branch to its latest end.
    assert.equal((await patch(shown[2]!.id)).status, 200)
    assert.equal((await read(id)).length, 6)
    assert.equal((await patch(first.answer)).status, 200)
    assert.deepEqual(contentsOf(await read(id)).slice(2), ['Q2b', other.content])
    assert.equal((await patch('01a00000-0000-7000-8000-000000000000')).status, 404)
    assert.equal((await api.call('PATCH', `${AI}/conversations/${id}`, { json: {} })).status, 400)
  })

  test('shows the former answer again if a new version fails without content', async () => {
    const first = await say({ message: 'Q1' })
    const { id } = first
    models.script = () => ({ status: 400 })
    assert.equal((await chat({ regenerate_id: first.answer, conversation_id: id })).status, 502)
    models.script = () => ({ pieces: [`A${++answers}`] })
    assert.deepEqual(contentsOf(await read(id)), ['Q1', first.content])
    const second = await say({ message: 'Q2', conversation_id: id })
    assert.deepEqual(lastAsked(), ['Q1', first.content, 'Q2'])
    // The whole branch after the former answer is shown again.
    models.script = () => ({ status: 400 })
    assert.equal((await chat({ regenerate_id: first.answer, conversation_id: id })).status, 502)
    models.script = () => ({ pieces: [`A${++answers}`] })
    assert.deepEqual(contentsOf(await read(id)), ['Q1', first.content, 'Q2', second.content])
  })

  test('regenerates as a stream, which resumes by its id', async () => {
    const first = await say({ message: 'Q1' })
    const stream = await postStream(api, { regenerate_id: first.answer, conversation_id: first.id })
    const frames = await stream.waitForEnd()
    assert.equal(frames.at(-1)!.event, 'complete')
    const repeated = await openStream(api, `${CHAT_PATH}/stream/${frames[0]!.data.message_id}`)
    assert.equal(joinChunks(await repeated.waitForEnd()), joinChunks(frames))
  })

  test('continues a pending answer, and waits for it', async () => {
    const first = await say({ message: 'Q1' })
    models.script = () => ({ pieces: ['slow'], firstMs: 300 })
    const slow = chat({ message: 'Q2', conversation_id: first.id })
    await until(
      'the answer is pending',
      async () => (await query(`select from ai_message where status = 'pending'`)).length === 1,
    )
    const next = chat({ message: 'Q3', conversation_id: first.id })
    assert.deepEqual([(await slow).status, (await next).status], [200, 200])
    models.script = () => ({ pieces: [`A${++answers}`] })
    assert.deepEqual(lastAsked(), ['Q1', first.content, 'Q2', 'slow', 'Q3'])
  })

  test('is refused for a message of another conversation, of the wrong kind, or unknown', async () => {
    const first = await say({ message: 'Q1' })
    const other = await say({ message: 'Q1' })
    const [question] = await read(first.id)
    const at = { conversation_id: first.id }
    for (const [json, field] of [
      [{ ...at, message: 'x', parent_id: other.answer }, 'parent_id'],
      [{ ...at, message: 'x', parent_id: question!.id }, 'parent_id'],
      [{ ...at, message: 'x', edit_id: first.answer }, 'edit_id'],
      [{ ...at, regenerate_id: other.answer }, 'regenerate_id'],
    ] as const) {
      const answer = await chat(json)
      assert.deepEqual(
        [answer.status, answer.json.detail],
        [400, `Invalid ${field}: the conversation has no such message`],
      )
    }
    assert.equal((await read(first.id)).length, 2)
    for (const [json, field] of [
      [{}, 'message'],
      [{ ...at }, 'message'],
      [{ ...at, message: 'x', regenerate_id: first.answer }, 'regenerate_id'],
      [{ message: 'x', edit_id: question!.id }, 'edit_id'],
      [{ regenerate_id: first.answer }, 'regenerate_id'],
      [{ ...at, message: 'x', edit_id: question!.id, parent_id: first.answer }, 'edit_id'],
      [{ ...at, regenerate_id: first.answer, document_ids: [1] }, 'document_ids'],
    ] as const) {
      const answer = await chat(json)
      assert.deepEqual([answer.status, answer.json.errors?.[0]?.loc], [400, ['body', field]], answer.text)
    }
  })
})

describe('POST /ai/conversations/{id}/branch', () => {
  test('copies the messages up to one into a conversation of its own', async () => {
    const first = await say({ message: 'Q1' })
    await say({ message: 'Q2', conversation_id: first.id })
    const copied = await api.post(`${AI}/conversations/${first.id}/branch`, {
      json: { message_id: first.answer, title: 'Another way' },
    })
    assert.equal(copied.status, 201, copied.text)
    assert.deepEqual([copied.json.title, copied.json.message_count], ['Another way', 2])
    const next = await say({ message: 'Q2b', conversation_id: copied.json.id })
    assert.deepEqual(lastAsked(), ['Q1', first.content, 'Q2b'])
    assert.deepEqual(contentsOf(await read(copied.json.id)), ['Q1', first.content, 'Q2b', next.content])
    assert.equal((await read(first.id)).length, 4)
    // The copy of an answer has no job, but can be read again.
    const [, answer] = await read(copied.json.id)
    const frames = await (await openStream(api, `${CHAT_PATH}/stream/${answer!.id}`)).waitForEnd()
    assert.deepEqual(
      frames.map(({ event }) => event),
      ['connect', 'final', 'complete'],
    )
  })

  test('is for those who may read the conversation', async () => {
    const [ann, bob] = [await api.register('ann@example.com'), await api.register('bob@example.com')]
    const own = await chat({ message: 'Q1' }, bob.token)
    const path = `${AI}/conversations/${own.json.conversation_id}/branch`
    const json = { message_id: own.json.message_id }
    assert.equal((await api.post(path, { json })).status, 403)
    const carl = await api.register('carl@example.com')
    assert.equal((await api.post(path, { json, token: carl.token })).status, 403)
    const copied = await api.post(path, { json, token: bob.token })
    assert.deepEqual([copied.status, copied.json.title], [201, 'Q1'])
    const [row] = await query('select owner_id from ai_conversation where id = $1', [copied.json.id])
    assert.equal(row!.owner_id, bob.id)
    const other = await say({ message: 'Q1' })
    assert.equal((await api.post(path, { json: { message_id: other.answer }, token: bob.token })).status, 404)
    assert.ok(ann.id)
  })

  test('refuses a branch with a pending answer', async () => {
    models.script = () => ({ pieces: ['slow'], firstMs: 500 })
    const slow = postStream(api, { message: 'Q1' })
    const stream = await slow
    await stream.until('the turn has begun', (frames) => frames.length > 0)
    const [connect] = stream.frames
    const { conversation_id, message_id } = connect!.data
    const refused = await api.post(`${AI}/conversations/${conversation_id}/branch`, { json: { message_id } })
    assert.equal(refused.status, 409, refused.text)
    await stream.waitForEnd()
    models.script = () => ({ pieces: [`A${++answers}`] })
  })
})
