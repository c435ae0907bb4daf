import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { until } from '../until.ts'
import { CHAT_PATH, startChatService } from './ai-help.ts'
import type { Answered } from './harness.ts'

/** Tests blocking chat requests with an edge, a worker, the real SDK and a stand-in for the provider. */

const { models, api, query } = await startChatService({
  AI_HISTORY_MESSAGES: '4',
  AI_HISTORY_TOKENS: '1000',
})
const askQuestion = (more: object = {}, headers = {}): Promise<Answered> =>
  api.post(CHAT_PATH, { json: { message: 'Hello?', ...more }, headers })
const readUsage = async () =>
  (
    await query(
      `select *, input_tokens::int as input, output_tokens::int as output from ai_usage order by id desc limit 1`,
    )
  )[0]!
const readMessages = (id: string) =>
  query('select role, status, content from ai_message where conversation_id = $1 order by ordinal', [id])
const withScript = async <T>(script: typeof models.script, work: () => Promise<T>): Promise<T> => {
  models.script = script
  try {
    return await work()
  } finally {
    models.script = () => ({})
  }
}

describe('POST /ai/chat', () => {
  test('answers, stores both messages, and reports the usage', async () => {
    const answer = await askQuestion({ message: `Who are you? ${'x'.repeat(60)}` })
    assert.equal(answer.status, 200)
    const { message_id, conversation_id, response_time_ms, ...rest } = answer.json
    assert.deepEqual(rest, {
      content: 'Hello there',
      finish_reason: 'stop',
      usage: {
        input_tokens: 12,
        cached_tokens: 0,
        output_tokens: 5,
        reasoning_tokens: 0,
        cost: 0.0000048,
        estimated: false,
      },
    })
    assert.ok(response_time_ms > 0)
    const [row] = await query('select * from ai_conversation where id = $1', [conversation_id])
    assert.deepEqual(
      [row!.user_id, row!.owner_id, row!.title, row!.provider, row!.model],
      ['api-user', null, `Who are you? ${'x'.repeat(37)}`, 'openai', 'gpt-4o-mini'],
    )
    assert.deepEqual(await readMessages(conversation_id), [
      { role: 'user', status: 'complete', content: `Who are you? ${'x'.repeat(60)}` },
      { role: 'assistant', status: 'complete', content: 'Hello there' },
    ])
    const used = await readUsage()
    assert.deepEqual(
      [used.message_id, used.user_id, used.input, used.output, used.estimated, used.success, used.cost],
      [message_id, 'api-user', 12, 5, false, true, '0.0000048'],
    )
    const { body, authorization, path } = models.asked.at(-1)!
    assert.deepEqual([authorization, path], ['Bearer sk-test', '/v1/chat/completions'])
    assert.deepEqual(
      [body.model, body.temperature, body.max_completion_tokens, body.stream],
      ['gpt-4o-mini', 0.7, 1000, false],
    )
    assert.equal(body.messages[0]!.role, 'system')
  })

  test('a title is truncated between characters', async () => {
    const { conversation_id } = (await askQuestion({ message: '👍'.repeat(60) })).json
    const [row] = await query('select title from ai_conversation where id = $1', [conversation_id])
    assert.equal(row!.title, '👍'.repeat(50))
  })

  test('earlier messages are sent along within the limits', async () => {
    const { conversation_id } = (await askQuestion({ message: 'one' })).json
    for (const message of ['two', 'three', 'four'])
      assert.equal((await askQuestion({ message, conversation_id })).json.conversation_id, conversation_id)
    const sent = models.asked.at(-1)!.body.messages.slice(1)
    assert.deepEqual(
      sent.map(({ role, content }) => [role, content]),
      [
        ['user', 'two'],
        ['assistant', 'Hello there'],
        ['user', 'three'],
        ['assistant', 'Hello there'],
        ['user', 'four'],
      ],
    )
    await askQuestion({ message: 'word '.repeat(990), conversation_id })
    assert.equal(models.asked.at(-1)!.body.messages.length, 2, 'the question alone takes all tokens')
  })

  test('the turns of a conversation run one at a time, in request order', async () => {
    const { conversation_id } = (await askQuestion()).json
    await withScript(
      ({ body }) => ({ pieces: [`re: ${body.messages.at(-1)!.content}`], firstMs: 30 }),
      async () => {
        const begun = [1, 2, 3].map((n) => askQuestion({ message: `question ${n}`, conversation_id }))
        const max = { open: 0 }
        const watch = setInterval(() => {
          max.open = Math.max(max.open, models.open)
        }, 2)
        const answers = await Promise.all(begun)
        clearInterval(watch)
        assert.deepEqual(
          answers.map(({ status }) => status),
          [200, 200, 200],
        )
        assert.equal(max.open, 1)
      },
    )
    const said = (await readMessages(conversation_id)).map(({ content }) => content as string)
    assert.equal(said.length, 8)
  })

  for (const [what, json] of [
    ['no message', { message: undefined }],
    ['an empty message', { message: '' }],
    ['white space', { message: ' \n' }],
    ['a message that is no text', { message: 5 }],
    ['too long a message', { message: 'x'.repeat(100_001) }],
    ['NUL', { message: 'a\0b' }],
    ['a conversation_id that is no UUID', { conversation_id: '17' }],
    ['an empty user_id', { user_id: '' }],
    ['a slug that is none', { agent_slug: 'No Slug' }],
    ['an unknown field', { collection: 'docs' }],
  ] as const) {
    test(`400 for ${what}`, async () => {
      const answer = await askQuestion(json)
      assert.equal(answer.status, 400)
      assert.equal(typeof answer.json.detail, 'string')
      assert.equal(answer.json.errors[0].loc[0], 'body')
    })
  }

  test("400 for an unknown conversation, 403 for another user's, 404 for an unknown agent", async () => {
    const unknown = await askQuestion({ conversation_id: '01a00000-0000-7000-8000-000000000000' })
    assert.deepEqual(
      [unknown.status, unknown.json.detail],
      [400, 'Invalid conversation_id: there is no such conversation'],
    )
    const { conversation_id } = (await askQuestion({ user_id: 'alice' })).json
    assert.equal((await askQuestion({ user_id: 'bob', conversation_id })).status, 403)
    assert.equal((await askQuestion({ conversation_id })).status, 403)
    assert.equal(
      (await askQuestion({ user_id: 'alice', conversation_id: conversation_id.toUpperCase() })).status,
      200,
    )
    assert.equal((await askQuestion({ agent_slug: 'nobody' })).status, 404)
  })

  test('the same Idempotency-Key asks the model once', async () => {
    const before = models.asked.length
    const [one, two] = [
      await askQuestion({}, { 'idempotency-key': 'once' }),
      await askQuestion({}, { 'idempotency-key': 'once' }),
    ]
    assert.deepEqual([one.status, two.json], [200, one.json])
    assert.equal(models.asked.length, before + 1)
    assert.equal((await askQuestion({ message: 'Other' }, { 'idempotency-key': 'once' })).status, 422)
  })

  test('202 in the background; the job and the conversation later have the answer', async () => {
    const answer = await api.post(`${CHAT_PATH}?background=true`, { json: { message: 'Later' } })
    assert.equal(answer.status, 202)
    const { job_id } = answer.json
    const job = await until('the job is done', async () => {
      const { json } = await api.get(`/api/v1/jobs/${job_id}`)
      return json.status === 'done' && json
    })
    assert.equal(job.result.content, 'Hello there')
  })
})

describe('provider errors', () => {
  for (const [what, script, detail, requests, input] of [
    ['401', { status: 401 }, 'it does not accept OPENAI_API_KEY', 1, 0],
    ['500', { status: 500 }, 'HTTP status 500', 2, 0],
    ['nothing said', { pieces: [''], finish: 'content_filter' }, 'its filter blocked the answer', 1, 12],
    ['nothing but blanks', { pieces: ['\n', ' \n'] }, 'the answer was empty', 1, 12],
  ] as const) {
    test(`502 for ${what}; the question is stored and the usage has a failure`, async () => {
      const before = models.asked.length
      const answer = await withScript(
        () => script,
        () => askQuestion({ user_id: 'unlucky' }),
      )
      assert.deepEqual(
        [answer.status, answer.json],
        [502, { detail: `AI provider error: ${detail}`, code: requests === 2 ? 'ai.failed' : 'ai.refused' }],
      )
      assert.equal(models.asked.length - before, requests)
      const used = await readUsage()
      assert.deepEqual([used.user_id, used.success, used.input], ['unlucky', false, input])
      const sides = await readMessages(used.conversation_id as string)
      assert.deepEqual(
        sides.map(({ role, status }) => [role, status]),
        [
          ['user', 'complete'],
          ['assistant', 'failed'],
        ],
      )
    })
  }

  test('a refused or unanswered question is not sent along with later ones', async () => {
    const { conversation_id } = (await askQuestion({ message: 'good' })).json
    const refusing: typeof models.script = ({ body }) =>
      body.messages.some(({ content }) => String(content).includes('bad')) ? { status: 400 } : {}
    await withScript(refusing, async () => {
      assert.equal((await askQuestion({ message: 'bad', conversation_id })).status, 502)
      assert.equal((await askQuestion({ message: 'also bad', conversation_id })).status, 502)
      assert.equal((await askQuestion({ message: 'plain', conversation_id })).status, 200)
      assert.equal((await askQuestion({ message: 'and then?', conversation_id })).status, 200)
    })
    assert.deepEqual(
      models.asked
        .at(-1)!
        .body.messages.slice(1)
        .map(({ content }) => content),
      ['good', 'Hello there', 'plain', 'Hello there', 'and then?'].slice(-5),
    )
    const kept = await readMessages(conversation_id)
    assert.equal(kept.filter(({ role }) => role === 'user').length, 5, 'the questions are kept')
  })

  test('429 is retried after its Retry-After', async () => {
    let first = true
    const beganAt = Date.now()
    const answer = await withScript(
      () => {
        const script = first ? { status: 429, headers: { 'retry-after': '1' } } : {}
        first = false
        return script
      },
      () => askQuestion(),
    )
    assert.equal(answer.status, 200)
    assert.ok(Date.now() - beganAt >= 950)
    assert.equal((await readUsage()).success, true)
  })

  test('missing token counts are estimated and marked as such', async () => {
    const text = 'The quick brown fox jumps over the lazy dog.'
    await withScript(
      () => ({ pieces: [text], usage: null }),
      () => askQuestion(),
    )
    const used = await readUsage()
    assert.deepEqual([used.output, used.estimated], [10, true])
    assert.ok((used.input as number) > 5)
  })

  test('NUL and unpaired surrogates are removed from the answer', async () => {
    const answer = await withScript(
      () => ({ pieces: ['a\0b\ud83d'] }),
      () => askQuestion(),
    )
    assert.equal(answer.json.content, 'ab\ufffd')
  })
})

test('an agent of another provider uses the protocol of that provider', async () => {
  await query(
    `insert into ai_agent (slug, name, system_prompt, model_id, temperature, max_tokens)
     values ('french', 'F', 'Réponds en français.', 'mistral/mistral-small-latest', 0, 77)`,
  )
  const { status, json } = await askQuestion({ agent_slug: 'french' })
  assert.equal(status, 200)
  const { body, authorization } = models.asked.at(-1)!
  const { messages, ...others } = body
  assert.deepEqual(
    [authorization, others],
    [
      'Bearer key of mistral',
      { model: 'mistral-small-latest', max_tokens: 77, temperature: 0, stream: false },
    ],
  )
  assert.deepEqual(messages[0], { role: 'system', content: 'Réponds en français.' })
  const [row] = await query('select provider, model from ai_conversation where id = $1', [
    json.conversation_id,
  ])
  assert.deepEqual(row, { provider: 'mistral', model: 'mistral-small-latest' })
})
