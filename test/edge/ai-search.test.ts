import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { CHAT_PATH, postStream, startChatService } from './ai-help.ts'
import { type Account, createEmail } from './harness.ts'

/** Tests the search of conversations by titles and messages, with its snippets, and the access to it. */

const { api, models, query } = await startChatService()
const LIST = '/api/v1/ai/conversations'
const register = (): Promise<Account> => api.register(createEmail())

/** Asks a question, which the model answers with a text. Returns the conversation and the answer's id. */
async function converse(token: string | undefined, message: string, answer: string, more: object = {}) {
  models.script = () => ({ pieces: [answer] })
  const { status, json, text } = await api.post(CHAT_PATH, {
    ...(token && { token }),
    json: { message, ...more },
  })
  models.script = () => ({})
  assert.equal(status, 200, text)
  return json as { conversation_id: string; message_id: string }
}
type Found = { id: string; title: string; match?: { message_id: string | null; snippet: string } }
async function search(
  words: string,
  token?: string,
  more: Readonly<Record<string, string>> = {},
): Promise<Found[]> {
  const answer = await api.get(
    `${LIST}?${new URLSearchParams({ search: words, ...more })}`,
    token ? { token } : {},
  )
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}
const idsOf = (found: readonly Found[]): string[] => found.map(({ id }) => id)

describe('a search of conversations', async () => {
  const { token } = await register()
  const boats = await converse(
    token,
    'How do I varnish a boat?',
    'Sand the hull, then apply four thin coats of varnish.',
  )
  const taxes = await converse(
    token,
    'When are taxes due?',
    'Your invoice INV-40718 is due on 31 March 2026.',
  )
  await converse(token, 'And the interest?', 'Interest is 0.5 % a month for late varnish invoices.', {
    conversation_id: taxes.conversation_id,
  })
  const asia = await converse(token, '東京の天気はどうですか', '今日は晴れです。')
  const [boat, tax, tokyo] = [boats.conversation_id, taxes.conversation_id, asia.conversation_id]

  for (const [words, expected] of [
    ['hull', [boat]],
    ['HULL coats', [boat]],
    ['varnish', [tax, boat]],
    ['varn', [tax, boat]],
    ['"thin coats"', [boat]],
    ['"coats thin"', []],
    ['varnish -hull', [tax]],
    ['inv40718', [tax]],
    ['2026-03-31', [tax]],
    ['taxes interest', [tax]],
    ['taxes hull', []],
    ['天気', [tokyo]],
    ['晴れ', [tokyo]],
    ['-hull', []],
    ['!!!', []],
    ['absent', []],
  ] as const)
    test(`${words} finds ${expected.length}, newest first`, async () => {
      assert.deepEqual(idsOf(await search(words, token)), expected)
    })

  test('shows the message with most words and a snippet of it, or the title', async () => {
    const [found] = await search('hull thin', token)
    assert.equal(found!.match!.message_id, boats.message_id)
    assert.match(found!.match!.snippet, /Sand the hull/)
    const [question] = await query(`select id from ai_message where conversation_id = $1 and role = 'user'`, [
      boat,
    ])
    assert.equal((await search('boat', token))[0]!.match!.message_id, question!.id)
    await api.call('PATCH', `${LIST}/${boat}`, { token, json: { title: 'Woodwork' } })
    const [titled] = await search('woodwork', token)
    assert.deepEqual([titled!.title, titled!.match], ['Woodwork', { message_id: null, snippet: 'Woodwork' }])
    await api.call('PATCH', `${LIST}/${boat}`, { token, json: { title: 'How do I varnish a boat?' } })
    assert.deepEqual(await search('woodwork', token), [])
    assert.equal((await api.get(LIST, { token })).json[0].match, undefined)
  })

  test('is sorted, limited in time and paged like the list', async () => {
    assert.deepEqual(idsOf(await search('varnish', token, { sort: 'updated_at' })), [boat, tax])
    const future = new Date(Date.now() + 60_000).toISOString()
    assert.deepEqual(await search('varnish', token, { from: future }), [])
    const first = await api.get(`${LIST}?search=varnish&limit=1`, { token })
    assert.deepEqual(idsOf(first.json), [tax])
    const [, cursor] = /[?&]cursor=([^&>]+)/.exec(String(first.headers.link)) ?? []
    const second = await api.get(`${LIST}?search=varnish&limit=1&cursor=${cursor}`, { token })
    assert.deepEqual(idsOf(second.json), [boat])
  })

  test('finds nothing of others; admins may name the account', async () => {
    const other = await register()
    assert.deepEqual(await search('varnish', other.token), [])
    const admin = await register()
    await query(`update account set role = 'admin' where id = $1`, [admin.id])
    const owner = (await query('select owner_id from ai_conversation where id = $1', [boat]))[0]!.owner_id
    assert.deepEqual(idsOf(await search('hull', admin.token, { user_id: String(owner) })), [boat])
    const refused = await api.get(`${LIST}?search=hull&user_id=${owner}`, { token: other.token })
    assert.equal(refused.status, 403)
    await converse(undefined, 'Where is the anchor?', 'On deck.', { user_id: 'sailor' })
    assert.equal((await search('anchor', undefined, { user_id: 'sailor' })).length, 1)
    assert.deepEqual(await search('anchor', undefined, { user_id: 'pirate' }), [])
  })

  test('forgets deleted conversations, and finds the part of an answer that failed', async () => {
    const gone = await converse(token, 'A zeppelin?', 'Airship.')
    assert.equal((await search('zeppelin', token)).length, 1)
    assert.equal((await api.call('DELETE', `${LIST}/${gone.conversation_id}`, { token })).status, 204)
    assert.deepEqual(await search('zeppelin', token), [])
    const left = await query('select from ai_text where conversation_id = $1', [gone.conversation_id])
    assert.equal(left.length, 0)
    models.script = () => ({ pieces: ['A gyroscope', ' spins'], breaks: { after: 1, does: 'cut' } })
    const stream = await postStream(api, { message: 'Cut?' }, { authorization: `Bearer ${token}` })
    await stream.waitForEnd()
    models.script = () => ({})
    const [cut] = await search('gyroscope', token)
    assert.equal(cut!.match!.snippet, 'A gyroscope')
  })

  test('has a length limit', async () => {
    assert.equal((await api.get(`${LIST}?search=${'x'.repeat(501)}`, { token })).status, 400)
  })
})
