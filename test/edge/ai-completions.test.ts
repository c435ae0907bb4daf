import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import OpenAI, { APIError } from 'openai'
import type { Script } from '../standins/models.ts'
import { until } from '../until.ts'
import { startChatService } from './ai-help.ts'
import { createKey } from './api-keys-help.ts'
import { startEdge } from './harness.ts'

/** Tests the endpoint of OpenAI's protocol with OpenAI's own SDK and an API key. */

const { models, api, query, url, env } = await startChatService({ OPEN_AREAS: 'jobs' })
const ann = await api.register('ann@example.com')
const { key } = await createKey(api, ann, { scopes: ['ai:write', 'ai:read'] })
const client = new OpenAI({ baseURL: `http://127.0.0.1:${api.port}/v1`, apiKey: key, maxRetries: 0 })
const MESSAGES: OpenAI.ChatCompletionMessageParam[] = [
  { role: 'system', content: 'Be brief.' },
  { role: 'user', content: 'Hello?' },
]
async function withScript<T>(script: Script, work: () => Promise<T>): Promise<T> {
  models.script = () => script
  try {
    return await work()
  } finally {
    models.script = () => ({})
  }
}
const lastBody = () => models.asked.at(-1)!.body
const TOOL: OpenAI.ChatCompletionFunctionTool = {
  type: 'function',
  function: { name: 'look', parameters: { type: 'object', properties: {} } },
}
const CALL = { id: 'c1', type: 'function' as const, function: { name: 'look', arguments: '{"at":1}' } }

describe('chat.completions.create', () => {
  test('answers with the model of an agent, and books the usage', async () => {
    const before = Math.floor(Date.now() / 1000) - 1
    const answer = await client.chat.completions.create({
      model: 'assistant',
      messages: MESSAGES,
      temperature: 0.2,
      max_tokens: 50,
      top_p: 0.5,
      stop: ['END'],
      user: 'somebody',
    })
    assert.match(answer.id, /^chatcmpl-/)
    assert.ok(answer.created >= before)
    assert.deepEqual([answer.object, answer.model], ['chat.completion', 'assistant'])
    assert.deepEqual(answer.choices, [
      {
        index: 0,
        message: { role: 'assistant', content: 'Hello there', refusal: null },
        logprobs: null,
        finish_reason: 'stop',
      },
    ])
    assert.deepEqual(answer.usage, {
      prompt_tokens: 12,
      completion_tokens: 5,
      total_tokens: 17,
      prompt_tokens_details: { cached_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: 0 },
    })
    const { messages, temperature, max_completion_tokens, top_p, stop, user } = lastBody()
    assert.match(messages[0]!.content, /\n\nBe brief\.$/)
    assert.deepEqual(messages.slice(1), [{ role: 'user', content: 'Hello?' }])
    assert.deepEqual(
      [temperature, max_completion_tokens, top_p, stop, user],
      [0.2, 50, 0.5, ['END'], undefined],
    )
    const [usage] = await query(
      'select owner_id, user_id, input_tokens::int as input, success, conversation_id from ai_usage order by id desc limit 1',
    )
    assert.deepEqual(usage, {
      owner_id: ann.id,
      user_id: String(ann.id),
      input: 12,
      success: true,
      conversation_id: null,
    })
    assert.deepEqual(await query('select from ai_conversation'), [])
  })

  test('streams chunks, then the usage if the caller asks for it', async () => {
    const read = async (include_usage: boolean) => {
      const stream = await client.chat.completions.create({
        model: 'assistant',
        messages: MESSAGES,
        stream: true,
        stream_options: { include_usage },
      })
      const chunks: OpenAI.ChatCompletionChunk[] = []
      for await (const chunk of stream) chunks.push(chunk)
      return chunks
    }
    const chunks = await withScript({ pieces: ['One', ' two', ' three'], betweenMs: 40 }, () => read(true))
    assert.deepEqual(chunks[0]!.choices[0]!.delta, { role: 'assistant', content: '' })
    assert.equal(chunks.map(({ choices: [choice] }) => choice?.delta.content ?? '').join(''), 'One two three')
    assert.ok(chunks.length > 4)
    assert.equal(chunks.at(-2)!.choices[0]!.finish_reason, 'stop')
    assert.deepEqual([chunks.at(-1)!.choices, chunks.at(-1)!.usage!.total_tokens], [[], 17])
    assert.equal(new Set(chunks.map(({ id }) => id)).size, 1)
    const plain = await read(false)
    assert.ok(plain.every(({ usage }) => usage == null))
  })

  test('takes the whole history, with calls and their results, and pictures', async () => {
    const url = 'data:image/png;base64,AAAA'
    const messages: OpenAI.ChatCompletionMessageParam[] = [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Look' },
          { type: 'image_url', image_url: { url } },
        ],
      },
      { role: 'assistant', content: null, tool_calls: [CALL] },
      { role: 'tool', tool_call_id: 'c1', content: [{ type: 'text', text: 'A cat' }] },
      { role: 'assistant', content: [{ type: 'text', text: 'A cat.' }] },
      { role: 'developer', content: 'Only facts.' },
      { role: 'user', content: 'Sure?' },
    ]
    await client.chat.completions.create({ model: 'assistant', messages, tools: [TOOL] })
    const [system, ...sent] = lastBody().messages
    assert.match(system!.content, /Only facts\.$/)
    assert.deepEqual(sent, [
      messages[0],
      messages[1],
      { role: 'tool', tool_call_id: 'c1', content: 'A cat' },
      { role: 'assistant', content: 'A cat.' },
      messages[5],
    ])
  })

  test('returns calls, whole and streamed', async () => {
    const script: Script = {
      pieces: [],
      message: { content: null, tool_calls: [CALL] },
      aside: [{ tool_calls: [{ index: 0, ...CALL }] }],
      finish: 'tool_calls',
    }
    const request = {
      model: 'assistant',
      messages: MESSAGES,
      tools: [TOOL],
      tool_choice: 'required' as const,
    }
    await withScript(script, async () => {
      const whole = await client.chat.completions.create(request)
      assert.deepEqual(whole.choices[0]!.message.tool_calls, [CALL])
      assert.deepEqual(
        [whole.choices[0]!.message.content, whole.choices[0]!.finish_reason],
        [null, 'tool_calls'],
      )
      const final = await client.chat.completions.stream(request).finalChatCompletion()
      assert.deepEqual(
        final.choices[0]!.message.tool_calls!.map(
          (call) => call.type === 'function' && [call.id, call.function.name, call.function.arguments],
        ),
        [['c1', 'look', '{"at":1}']],
      )
      const runner = client.chat.completions.runTools({
        ...request,
        tool_choice: 'auto',
        tools: [
          {
            type: 'function',
            function: {
              name: 'look',
              description: 'x',
              parameters: { type: 'object', properties: {} },
              parse: JSON.parse,
              function: () => {
                models.script = () => ({ pieces: ['Seen.'] })
                return 'a dog'
              },
            },
          },
        ],
      })
      assert.equal(await runner.finalContent(), 'Seen.')
      assert.equal(lastBody().messages.at(-1)!.content, 'a dog')
    })
  })

  test('returns JSON', async () => {
    const response_format = {
      type: 'json_schema' as const,
      json_schema: { name: 'n', strict: true, schema: { type: 'object' } },
    }
    const answer = await withScript({ pieces: ['```json\n{"a":1}\n```'] }, () =>
      client.chat.completions.create({ model: 'assistant', messages: MESSAGES, response_format }),
    )
    assert.equal(answer.choices[0]!.message.content, '{"a":1}')
  })

  test('streams frames of data alone', async () => {
    const response = await fetch(`${client.baseURL}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'assistant', messages: MESSAGES, stream: true }),
    })
    // A comment may come first, which clients skip.
    const lines = (await response.text()).split('\n\n').filter((line) => line !== ':')
    assert.deepEqual(lines.splice(-2), ['data: [DONE]', ''])
    for (const line of lines) assert.match(line, /^data: \{.*\}$/)
  })

  test('goes on after reasoning that the model did not mark', async () => {
    const stream = await withScript(
      { pieces: ['Hm, ', 'let me see</think>', 'Yes.'], betweenMs: 30 },
      async () => {
        const chunks = await client.chat.completions.create({
          model: 'assistant',
          messages: MESSAGES,
          stream: true,
        })
        let text = ''
        for await (const chunk of chunks) text += chunk.choices[0]?.delta.content ?? ''
        return text
      },
    )
    assert.match(stream, /Yes\.$/)
  })

  test('returns an empty answer that the limit cut, and tells clients not to repeat failures', async () => {
    const cut = await withScript({ pieces: [], finish: 'length' }, () =>
      client.chat.completions.create({ model: 'assistant', messages: MESSAGES }),
    )
    assert.deepEqual([cut.choices[0]!.message.content, cut.choices[0]!.finish_reason], [null, 'length'])
    const asked = models.asked.length
    const patient = new OpenAI({ baseURL: client.baseURL, apiKey: key, maxRetries: 2 })
    await withScript({ status: 400 }, () =>
      assert.rejects(patient.chat.completions.create({ model: 'assistant', messages: MESSAGES })),
    )
    assert.equal(models.asked.length, asked + 1)
  })

  test('ignores nulls, empty lists and fields that it does not know', async () => {
    const answer = await client.chat.completions.create({
      model: 'assistant',
      messages: [
        {
          role: 'user',
          content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }],
          name: 'x',
        },
        { role: 'assistant', content: '' },
        { role: 'user', content: 'And?' },
      ],
      tools: [],
      tool_choice: null,
      response_format: null,
      stream_options: null,
      max_tokens: null,
      metadata: { a: 'b' },
      store: false,
    } as never)
    assert.equal(answer.choices[0]!.message.content, 'Hello there')
    const { messages, ...rest } = lastBody()
    assert.deepEqual(messages.slice(1), [
      { role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }] },
      { role: 'user', content: 'And?' },
    ])
    assert.equal('tools' in rest, false)
  })

  test('stops the answer of a client that leaves its stream', async () => {
    const stream = await withScript({ pieces: ['One', 'two', 'three'], betweenMs: 60_000 }, async () => {
      const chunks = await client.chat.completions.create({
        model: 'assistant',
        messages: MESSAGES,
        stream: true,
      })
      for await (const chunk of chunks) if (chunk.choices[0]?.delta.content === 'One') break
      return chunks
    })
    stream.controller.abort()
    const readStatus = async () =>
      (
        await query(`select status from job where name = 'ai.completion' order by created_at desc limit 1`)
      )[0]!.status
    await until('the job is cancelled', async () => (await readStatus()) === 'cancelled')
  })

  test('ends a wait that takes too long with an error', async () => {
    const impatient = await startEdge(url, { env: { ...env, REQUEST_WAIT_SECONDS: '0' } })
    const hasty = new OpenAI({ baseURL: `http://127.0.0.1:${impatient.port}/v1`, apiKey: key, maxRetries: 2 })
    await assert.rejects(
      hasty.chat.completions.create({ model: 'assistant', messages: MESSAGES }),
      (error: APIError) => error.status === 504 && error.code === 'ai.unfinished',
    )
  })

  test('cannot be resumed, because its chunks have no ids', async () => {
    const before = models.asked.length
    const json = { model: 'assistant', messages: MESSAGES, stream: true }
    const answer = await api.post('/v1/chat/completions?last_event_id=1', { token: key, json })
    assert.deepEqual([answer.status, answer.json.errors[0].loc], [400, ['query', 'last_event_id']])
    assert.equal(models.asked.length, before)
  })

  test('reports errors as OpenAI does', async () => {
    const fails = async (request: object, using = client): Promise<APIError> =>
      using.chat.completions.create({ model: 'assistant', messages: MESSAGES, ...request } as never).then(
        () => assert.fail('it did not fail'),
        (error) => error,
      )
    const unknown = await fails({ model: 'gpt-4o' })
    assert.deepEqual([unknown.status, unknown.code, unknown.type], [404, 'agent.missing', 'not_found_error'])
    assert.match(unknown.message, /Agent not found/)
    const invalid = await fails({ temperature: 9 })
    assert.deepEqual(
      [invalid.status, invalid.param, invalid.type],
      [400, 'temperature', 'invalid_request_error'],
    )
    assert.equal((await fails({ messages: [] })).param, 'messages')
    assert.equal((await fails({ n: 2 })).param, 'n')
    const stranger = new OpenAI({ baseURL: client.baseURL, apiKey: 'mk_none', maxRetries: 0 })
    assert.deepEqual(
      [(await fails({}, stranger)).status, (await fails({}, stranger)).type],
      [401, 'authentication_error'],
    )
    const other = await createKey(api, ann, { scopes: ['jobs:read'] })
    const scoped = new OpenAI({ baseURL: client.baseURL, apiKey: other.key, maxRetries: 0 })
    assert.equal((await fails({}, scoped)).status, 403)
    await query(`update ai_agent set is_active = false where slug = 'assistant'`)
    assert.equal((await fails({})).code, 'agent.inactive')
    await query(`update ai_agent set is_active = true where slug = 'assistant'`)
    const refused = await withScript({ status: 400, body: { error: { message: 'secret words' } } }, () =>
      fails({}),
    )
    assert.deepEqual([refused.status, refused.type], [502, 'api_error'])
    assert.doesNotMatch(refused.message, /secret/)
  })

  test('ends a stream that fails with an error', async () => {
    const read = async () => {
      for await (const _ of await client.chat.completions.create({
        model: 'assistant',
        messages: MESSAGES,
        stream: true,
      }));
    }
    await withScript({ pieces: ['One', 'two'], breaks: { after: 1, does: 'cut' } }, () =>
      assert.rejects(read(), (error: APIError) => error instanceof APIError && /cut off/.test(error.message)),
    )
  })
})

describe('models', () => {
  test('are the active agents', async () => {
    await query(
      `insert into ai_agent (slug, name, system_prompt, is_active) values ('idle', 'I', 'P', false)`,
    )
    const list = await client.models.list()
    assert.deepEqual(
      list.data.map(({ id, object, owned_by }) => [id, object, owned_by]),
      [['assistant', 'model', 'millrace']],
    )
    assert.equal((await client.models.retrieve('assistant')).id, 'assistant')
    await assert.rejects(client.models.retrieve('idle'), /Agent not found/)
  })
})
