import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ModelRequest, Script } from '../standins/models.ts'
import { CHAT_PATH, joinChunks, openStream, postStream, startChatService } from './ai-help.ts'
import type { Answered } from './harness.ts'

/** Tests tools, whose calls the caller answers, and answers in JSON. */

const { models, api, query } = await startChatService()
const chat = (json: object): Promise<Answered> => api.post(CHAT_PATH, { json })
const TOOL = {
  type: 'function',
  function: {
    name: 'get_weather',
    description: 'The weather of a city',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
}
const TIME_TOOL = { type: 'function', function: { name: 'get_time' } }
const call = (id: string, city: string, index?: number) => ({
  ...(index === undefined ? {} : { index }),
  id,
  type: 'function',
  function: { name: 'get_weather', arguments: JSON.stringify({ city }) },
})
const plain = (id: string, city: string) => ({ id, name: 'get_weather', arguments: JSON.stringify({ city }) })
async function withScript<T>(
  script: Script | ((asked: ModelRequest) => Script),
  work: () => Promise<T>,
): Promise<T> {
  models.script = typeof script === 'function' ? script : () => script
  try {
    return await work()
  } finally {
    models.script = () => ({})
  }
}
const calls = (...given: readonly object[]): Script => ({
  pieces: [],
  message: { content: null, tool_calls: given },
  aside: [{ tool_calls: given }],
  finish: 'tool_calls',
})
const lastMessages = () => models.asked.at(-1)!.body.messages.slice(1)

describe('tools', () => {
  test('are sent as they are, and their calls are the answer', async () => {
    const answer = await withScript(calls(call('c1', 'Oslo'), call('c2', 'Rome')), () =>
      chat({
        message: 'Weather?',
        tools: [TOOL, TIME_TOOL],
        tool_choice: 'required',
        parallel_tool_calls: true,
      }),
    )
    assert.equal(answer.status, 200, answer.text)
    const { content, finish_reason, tool_calls } = answer.json
    assert.deepEqual([content, finish_reason], ['', 'tool_calls'])
    assert.deepEqual(tool_calls, [plain('c1', 'Oslo'), plain('c2', 'Rome')])
    const { body } = models.asked.at(-1)!
    assert.deepEqual(
      [body.tools, body.tool_choice, body.parallel_tool_calls],
      [[TOOL, TIME_TOOL], 'required', true],
    )
    const job = await query(`select result from job where name = 'ai.chat' order by created_at desc limit 1`)
    assert.deepEqual((job[0]!.result as { tool_calls: unknown }).tool_calls, tool_calls)
  })

  test('get the results of the caller, and the model goes on', async () => {
    const first = await withScript(calls(call('c1', 'Oslo'), call('c2', 'Rome')), () =>
      chat({ message: 'Weather?', tools: [TOOL] }),
    )
    const { conversation_id } = first.json
    const tool_results = [
      { tool_call_id: 'c2', content: 'sun' },
      { tool_call_id: 'c1', content: 'rain' },
    ]
    const second = await chat({ conversation_id, tool_results, tools: [TOOL] })
    assert.deepEqual([second.status, second.json.content], [200, 'Hello there'])
    assert.deepEqual(lastMessages(), [
      { role: 'user', content: 'Weather?' },
      { role: 'assistant', content: null, tool_calls: [call('c1', 'Oslo'), call('c2', 'Rome')] },
      { role: 'tool', tool_call_id: 'c2', content: 'sun' },
      { role: 'tool', tool_call_id: 'c1', content: 'rain' },
    ])
    const { json } = await api.get(`/api/v1/ai/conversations/${conversation_id}`)
    assert.deepEqual(
      json.messages.map((each: Record<string, unknown>) => [
        each.role,
        each.content,
        each.tool_calls,
        each.tool_results,
      ]),
      [
        ['user', 'Weather?', null, null],
        ['assistant', '', [plain('c1', 'Oslo'), plain('c2', 'Rome')], null],
        ['tool', '', null, tool_results],
        ['assistant', 'Hello there', null, null],
      ],
    )
    assert.equal(json.message_count, 4)
    await chat({ conversation_id, message: 'Thanks' })
    assert.deepEqual(
      lastMessages().map(({ role }) => role),
      ['user', 'assistant', 'tool', 'tool', 'assistant', 'user'],
    )
  })

  test('go back to the provider with the data that it added', async () => {
    const signed = { ...call('c1', 'Oslo'), extra_content: { google: { thought_signature: 'abc' } } }
    const first = await withScript(calls(signed), () => chat({ message: 'Weather?', tools: [TOOL] }))
    const { conversation_id } = first.json
    await chat({ conversation_id, tool_results: [{ tool_call_id: 'c1', content: 'rain' }] })
    assert.deepEqual((lastMessages()[1] as { tool_calls?: unknown }).tool_calls, [signed])
  })

  test('without results are left out of later questions', async () => {
    const first = await withScript(
      {
        ...calls(call('c1', 'Oslo')),
        pieces: ['Let me see.'],
        message: { tool_calls: [call('c1', 'Oslo')] },
      },
      () => chat({ message: 'Weather?', tools: [TOOL] }),
    )
    await chat({ conversation_id: first.json.conversation_id, message: 'Never mind' })
    assert.deepEqual(lastMessages(), [
      { role: 'user', content: 'Weather?' },
      { role: 'assistant', content: 'Let me see.' },
      { role: 'user', content: 'Never mind' },
    ])
  })

  test('come as frames of a stream, whole, whatever their pieces', async () => {
    const pieces = [
      {
        tool_calls: [
          { index: 0, id: 'c1', type: 'function', function: { name: 'get_weather', arguments: '' } },
        ],
      },
      { tool_calls: [{ index: 0, function: { arguments: '{"city":' } }] },
      {
        tool_calls: [
          { index: 1, id: 'c2', type: 'function', function: { name: 'get_weather', arguments: '{}' } },
        ],
      },
      { tool_calls: [{ index: 0, id: 'null', function: { name: null, arguments: '"Oslo"}' } }] },
    ]
    const frames = await withScript({ aside: pieces, pieces: ['Wait.'], finish: 'stop' }, async () =>
      (await postStream(api, { message: 'Weather?', tools: [TOOL] })).waitForEnd(),
    )
    assert.deepEqual(
      frames.map(({ event }) => event),
      ['connect', 'chunk', 'tool_call', 'tool_call', 'final', 'complete'],
    )
    const { message_id, conversation_id } = frames[0]!.data
    const [one, two] = frames.filter(({ event }) => event === 'tool_call').map(({ data }) => data)
    const { timestamp, ...rest } = one!
    assert.deepEqual(rest, { ...plain('c1', 'Oslo'), message_id, conversation_id })
    assert.ok(Date.parse(String(timestamp)))
    assert.deepEqual([two!.id, two!.arguments], ['c2', '{}'])
    const final = frames.at(-2)!.data
    assert.deepEqual(
      [final.content, final.finish_reason, (final.tool_calls as unknown[]).length],
      ['Wait.', 'tool_calls', 2],
    )
    // The stored turn has the calls once its job is gone.
    await query('delete from job where id = $1', [frames[0]!.data.job_id])
    const again = await (await openStream(api, `${CHAT_PATH}/stream/${message_id}`)).waitForEnd()
    assert.deepEqual(again.at(-2)!.data.tool_calls, final.tool_calls)
  })

  for (const [what, script, expected] of [
    [
      'whole calls without an index or id',
      {
        aside: [
          { tool_calls: [{ id: '', function: { name: 'a', arguments: '{"n":1}' } }] },
          { tool_calls: [{ function: { name: 'b', arguments: {} } }] },
        ],
        finish: 'stop',
      },
      [
        ['a', '{"n":1}'],
        ['b', '{}'],
      ],
    ],
    [
      'the index 0 for each call',
      { aside: [{ tool_calls: [call('x', 'Oslo', 0), call('y', 'Rome', 0)] }] },
      [
        ['get_weather', '{"city":"Oslo"}'],
        ['get_weather', '{"city":"Rome"}'],
      ],
    ],
    [
      'a function_call',
      {
        aside: [{ function_call: { name: 'a', arguments: '{"n"' } }, { function_call: { arguments: ':1}' } }],
        finish: 'function_call',
      },
      [['a', '{"n":1}']],
    ],
    [
      'arguments as an object',
      { aside: [{ tool_calls: [{ index: 0, id: 'x', function: { name: 'a', arguments: { n: 1 } } }] }] },
      [['a', '{"n":1}']],
    ],
    [
      'invalid arguments',
      { aside: [{ tool_calls: [{ index: 0, id: 'x', function: { name: 'a', arguments: '{"n":' } }] }] },
      [['a', '{"n":']],
    ],
  ] as readonly [string, Script, [string, string][]][])
    test(`a provider sends ${what}`, async () => {
      const frames = await withScript({ pieces: [], finish: 'tool_calls', ...script }, async () =>
        (await postStream(api, { message: 'Weather?', tools: [TOOL] })).waitForEnd(),
      )
      const final = frames.find(({ event }) => event === 'final')!.data
      const got = final.tool_calls as { id: string; name: string; arguments: string }[]
      assert.deepEqual(
        got.map(({ name, arguments: text }) => [name, text]),
        expected,
      )
      assert.equal(new Set(got.map(({ id }) => id)).size, expected.length)
      assert.ok(got.every(({ id }) => id !== ''))
      assert.equal(final.finish_reason, 'tool_calls')
    })

  test('are refused if they do not fit', async () => {
    const first = await withScript(calls(call('c1', 'Oslo')), () =>
      chat({ message: 'Weather?', tools: [TOOL] }),
    )
    const { conversation_id } = first.json
    const result = { tool_call_id: 'c1', content: 'rain' }
    for (const [json, detail] of [
      [
        { conversation_id, tool_results: [{ ...result, tool_call_id: 'c9' }] },
        /one result for each call of the last answer: c1/,
      ],
      [{ conversation_id, tool_results: [result, result] }, /one result for each call/],
      [{ tool_results: [result] }, /tool_results: needs a conversation_id/],
      [
        { conversation_id, message: 'x', tool_results: [result] },
        /tool_results: must not come with a message/,
      ],
      [{ message: 'x', tool_choice: 'auto' }, /tool_choice: needs tools/],
      [{ message: 'x', tools: [TOOL, TOOL] }, /tools: must not define get_weather twice/],
      [
        { message: 'x', tools: [TOOL], tool_choice: { type: 'function', function: { name: 'b' } } },
        /tool_choice: names no function/,
      ],
      [
        { message: 'x', tools: [{ type: 'function', function: { name: 'a b' } }] },
        /tools\.0\.function\.name/,
      ],
    ] as const) {
      const answer = await chat(json)
      assert.equal(answer.status, 400, answer.text)
      assert.match(answer.json.detail, detail)
    }
    assert.equal((await chat({ conversation_id, tool_results: [result] })).status, 200)
    const answered = await chat({ conversation_id, tool_results: [result] })
    assert.deepEqual(
      [answered.status, answered.json.detail],
      [400, 'The last answer of the branch asks for no tools'],
    )
    const refusal = {
      status: 400,
      body: { error: { message: 'tools is not supported in this model', param: 'tools' } },
    }
    const refused = await withScript(refusal, () => chat({ message: 'x', tools: [TOOL] }))
    assert.deepEqual(
      [refused.status, refused.json.detail],
      [502, 'AI provider error: the model refused the tools'],
    )
  })
})

describe('an answer in JSON', () => {
  const SCHEMA = {
    type: 'json_schema',
    json_schema: {
      name: 'city',
      strict: true,
      schema: { type: 'object', properties: { city: { type: 'string' } } },
    },
  }

  test('keeps the order of the keys of its schema', async () => {
    const schema = { type: 'object', properties: { reasoning: { type: 'string' }, a: { type: 'string' } } }
    const json_schema = { name: 'n', schema, strict: null, description: null }
    await withScript({ pieces: ['{}'] }, () =>
      chat({ message: 'x', response_format: { type: 'json_schema', json_schema } }),
    )
    assert.equal(
      JSON.stringify(models.asked.at(-1)!.body.response_format),
      JSON.stringify({ type: 'json_schema', json_schema: { name: 'n', schema } }),
    )
  })

  test('has its schema in the request and in the instructions', async () => {
    const answer = await withScript({ pieces: ['{"city":', '"Oslo"}'] }, () =>
      chat({ message: 'Where?', response_format: SCHEMA }),
    )
    assert.equal(answer.json.content, '{"city":"Oslo"}')
    const { body } = models.asked.at(-1)!
    assert.deepEqual(body.response_format, SCHEMA)
    assert.match(body.messages[0]!.content, /matches this JSON Schema:\n{"type":"object"/)
    await chat({ message: 'Where?', response_format: { type: 'text' } })
    assert.equal('response_format' in models.asked.at(-1)!.body, false)
  })

  test('is freed from words and fences around it, streamed or not', async () => {
    const pieces = [
      'Sure!\n``',
      '`json\n{"a":',
      ' "x`}\\',
      '"`` y"',
      ', "b": [1]\n}\n`',
      '``\nHope {this} helps',
    ]
    const expected = '{"a": "x`}\\"`` y", "b": [1]\n}'
    await withScript({ pieces }, async () => {
      const whole = await chat({ message: 'x', response_format: { type: 'json_object' } })
      assert.equal(whole.json.content, expected)
      const stream = await postStream(api, { message: 'x', response_format: { type: 'json_object' } })
      assert.equal(joinChunks(await stream.waitForEnd()), expected)
    })
  })

  test('fails the turn if it is no JSON', async () => {
    for (const pieces of [['No.'], ['{"a": 1'], ['See [this]: {"a": 1}']]) {
      const answer = await withScript({ pieces }, () => chat({ message: 'x', response_format: SCHEMA }))
      assert.equal(answer.status, 502, answer.text)
      assert.match(answer.json.detail, /its answer (is not JSON|was empty)|the answer was empty/)
    }
    // An answer that the limit has cut says so itself.
    const cut = await withScript({ pieces: ['{"a": '], finish: 'length' }, () =>
      chat({ message: 'x', response_format: SCHEMA }),
    )
    assert.deepEqual([cut.status, cut.json.finish_reason], [200, 'length'])
  })

  test('is asked for in words alone if the model refuses the parameter', async () => {
    await query(
      `insert into ai_agent (slug, name, system_prompt, model_id) values ('words', 'W', 'P', 'words-only')`,
    )
    const script = ({ body }: ModelRequest): Script =>
      'response_format' in body
        ? {
            status: 400,
            body: { error: { message: 'response_format is not supported', param: 'response_format' } },
          }
        : { pieces: ['{}'] }
    await withScript(script, async () => {
      const json = { message: 'x', agent_slug: 'words', response_format: SCHEMA }
      assert.equal((await chat(json)).json.content, '{}')
    })
  })

  test('is refused for an unknown form', async () => {
    for (const response_format of [
      { type: 'json_schema', json_schema: { name: 'a', schema: { type: 'string' } } },
      { type: 'xml' },
      { type: 'json_schema' },
      { type: 'json_schema', json_schema: { name: 'a b', schema: {} } },
    ])
      assert.equal((await chat({ message: 'x', response_format })).status, 400)
  })
})
