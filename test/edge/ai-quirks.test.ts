import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { AI_PROVIDERS } from '../../tasks/ai/providers.ts'
import { type ModelRequest, type Script, startModelServer } from '../standins/models.ts'
import { CHAT_PATH, createModelEnv, joinChunks, postStream, startChatWorker } from './ai-help.ts'
import { type Answered, startEdgeAndDatabase } from './harness.ts'

/**
 * Plays the quirks of model providers over HTTP, with an edge, a worker, the real SDK and a stand-in.
 * `workers/providers/ai/README.md` has the table.
 */

const models = await startModelServer()
after(() => models.stop())
const env = {
  ...createModelEnv(models),
  ...Object.fromEntries(
    AI_PROVIDERS.flatMap((name) => [
      [`${name.toUpperCase()}_API_KEY`, `key of ${name}`],
      [`${name.toUpperCase()}_BASE_URL`, models.url],
    ]),
  ),
}
const { api, query, url } = await startEdgeAndDatabase({ env })
await startChatWorker(url, env)

let agents = 0
/** Adds an agent for a model, so that each test has a model that no other test has taught. */
async function addAgent(modelId: string, temperature = 0.7, maxTokens = 1000): Promise<string> {
  const slug = `agent-${++agents}`
  await query(
    `insert into ai_agent (slug, name, system_prompt, model_id, temperature, max_tokens) values ($1, 'A', 'P', $2, $3, $4)`,
    [slug, modelId, temperature, maxTokens],
  )
  return slug
}
const ask = (more: object = {}): Promise<Answered> =>
  api.post(CHAT_PATH, { json: { message: 'Hello?', ...more } })
async function withScript<T>(script: Script | typeof models.script, work: () => Promise<T>): Promise<T> {
  models.script = typeof script === 'function' ? script : () => script
  try {
    return await work()
  } finally {
    models.script = () => ({})
  }
}
const countAsked = async (work: () => Promise<unknown>): Promise<readonly ModelRequest[]> => {
  const before = models.asked.length
  await work()
  return models.asked.slice(before)
}
/** Streams a turn to its end; returns its chunks and its last frames. */
async function stream(more: object = {}) {
  const opened = await postStream(api, { message: 'Hello?', ...more })
  const frames = await opened.waitForEnd()
  return {
    text: joinChunks(frames),
    final: frames.find(({ event }) => event === 'final')?.data,
    error: frames.find(({ event }) => event === 'error')?.data,
    events: frames.map(({ event }) => event),
  }
}
const readLastUsage = async () =>
  (
    await query(
      'select *, input_tokens::int as input, output_tokens::int as output from ai_usage order by id desc limit 1',
    )
  )[0]!

describe('a refused parameter is left out and remembered', () => {
  const say = (message: string, more: object = {}) => ({
    error: { message, type: 'invalid_request_error', ...more },
  })
  for (const [what, model, name, status, body] of [
    ['field param', 'openai/q-1', 'temperature', 400, say('Unsupported value', { param: 'temperature' })],
    ['message', 'anthropic/q-1', 'temperature', 400, say('`temperature` is deprecated for this model.')],
    [
      'stream options',
      'openai/q-2',
      'stream_options',
      400,
      say('Unknown parameter: stream_options', { param: null }),
    ],
    [
      'list of Google',
      'google/q-1',
      'stream_options',
      400,
      [
        {
          error: {
            code: 400,
            message: 'Invalid JSON payload. Unknown name "stream_options": Cannot find field.',
          },
        },
      ],
    ],
    [
      'FastAPI',
      'mistral/q-1',
      'max_tokens',
      422,
      {
        detail: [
          { type: 'extra_forbidden', loc: ['body', 'max_tokens'], msg: 'Extra inputs are not permitted' },
        ],
      },
    ],
    [
      'a part of a field',
      'google/q-2',
      'stream_options',
      422,
      {
        detail: [
          { type: 'extra_forbidden', loc: ['body', 'stream_options', 'include_usage'], msg: 'Extra inputs' },
        ],
      },
    ],
    ['a name of its own', 'google/q-3', 'max_tokens', 400, say('Unknown name "maxOutputTokens"')],
    [
      'message of Cohere',
      'cohere/q-1',
      'temperature',
      422,
      { message: "unknown field: parameter 'temperature'" },
    ],
    ['message of Groq', 'groq/q-1', 'temperature', 400, say("property 'temperature' is unsupported")],
  ] as const)
    test(`${what}: ${name} of ${model}`, async () => {
      const agent_slug = await addAgent(model)
      const script = ({ body: asked }: ModelRequest): Script => (name in asked ? { status, body } : {})
      await withScript(script, async () => {
        const first = await countAsked(async () => {
          assert.equal((await stream({ agent_slug })).text, 'Hello there')
        })
        assert.deepEqual(
          first.map(({ body: asked }) => name in asked),
          [true, false],
        )
        const second = await countAsked(async () => {
          assert.equal((await stream({ agent_slug })).text, 'Hello there')
        })
        assert.deepEqual(
          second.map(({ body: asked }) => name in asked),
          [false],
        )
      })
    })

  test('the other name of the length is tried', async () => {
    const agent_slug = await addAgent('mistral/length', 0.7, 99)
    const refusal = say("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
    const asked = await countAsked(() =>
      withScript(
        ({ body }) => ('max_tokens' in body ? { status: 400, body: refusal } : {}),
        async () => assert.equal((await ask({ agent_slug })).status, 200),
      ),
    )
    assert.deepEqual(
      asked.map(({ body }) => [body.max_tokens, body.max_completion_tokens]),
      [
        [99, undefined],
        [undefined, 99],
      ],
    )
  })

  test('several parameters are refused one after the other, the stream among them', async () => {
    const agent_slug = await addAgent('openai/strict')
    const allowed = new Set(['model', 'messages'])
    const asked = await countAsked(() =>
      withScript(
        ({ body }) => {
          const param = Object.keys(body).find((key) => !allowed.has(key) && body[key] !== false)
          return param === undefined ? {} : { status: 400, body: say('Unsupported', { param }) }
        },
        async () => assert.equal((await stream({ agent_slug })).text, 'Hello there'),
      ),
    )
    assert.ok(asked.length <= 6, `${asked.length} requests`)
  })

  test('a value out of range is left out once', async () => {
    const agent_slug = await addAgent('anthropic/ranged', 1.5)
    const script = ({ body }: ModelRequest): Script =>
      Number(body.temperature ?? 0) > 1 ? { status: 400, body: say('temperature: range: 0..1') } : {}
    await withScript(script, async () => {
      assert.equal((await ask({ agent_slug })).status, 200)
      await query('update ai_agent set temperature = 0.5 where slug = $1', [agent_slug])
      const [request] = await countAsked(() => ask({ agent_slug }))
      assert.equal(request!.body.temperature, 0.5)
    })
  })

  for (const model of ['anthropic/claude-opus-4-7', 'anthropic/claude-sonnet-5', 'openai/gpt-5'])
    test(`the catalog says that ${model} accepts no temperature`, async () => {
      const agent_slug = await addAgent(model)
      const asked = await countAsked(() => ask({ agent_slug }))
      assert.deepEqual(
        asked.map(({ body }) => 'temperature' in body),
        [false],
      )
    })

  test('nothing is remembered unless the retry succeeds', async () => {
    const agent_slug = await addAgent('openai/quoting')
    const refusal = { status: 400, body: say('Invalid text: Is the temperature high?') }
    await withScript(refusal, async () => assert.equal((await ask({ agent_slug })).status, 502))
    const [request] = await countAsked(() => ask({ agent_slug }))
    assert.equal(request!.body.temperature, 0.7)
  })

  test('another refusal stays one', async () => {
    const agent_slug = await addAgent('openai/refusing')
    const body = say('The image is invalid', { param: 'messages' })
    const asked = await countAsked(() =>
      withScript({ status: 400, body }, async () => assert.equal((await ask({ agent_slug })).status, 502)),
    )
    assert.equal(asked.length, 1)
  })
})

describe('the finish reason', () => {
  for (const [given, reason] of [
    ['stop', 'stop'],
    ['length', 'length'],
    ['max_tokens', 'length'],
    ['model_length', 'length'],
    ['MAX_TOKENS', 'length'],
    ['content_filter', 'content_filter'],
    ['SAFETY', 'content_filter'],
    ['end_turn', 'stop'],
    ['banana', 'other'],
  ] as const)
    test(`${given} is in the answer, the frame, the conversation and the job`, async () => {
      await withScript({ finish: given }, async () => {
        const { json } = await ask()
        assert.equal(json.finish_reason, reason)
        const { final } = await stream({ conversation_id: json.conversation_id })
        assert.equal(final!.finish_reason, reason)
        const { messages } = (await api.get(`/api/v1/ai/conversations/${json.conversation_id}`)).json
        assert.deepEqual(
          messages.map((one: Record<string, unknown>) => [one.status, one.finish_reason]),
          [
            ['complete', null],
            ['complete', reason],
            ['complete', null],
            ['complete', reason],
          ],
        )
        const [job] = await query(`select result ->> 'finish_reason' as reason from job where name = 'ai.chat'
          order by created_at desc limit 1`)
        assert.equal(job!.reason, reason)
      })
    })

  test('error fails the turn', async () => {
    await withScript({ finish: 'error' }, async () => {
      const answer = await ask()
      assert.deepEqual([answer.status, answer.json.code], [502, 'ai.failed'])
      const { error } = await stream()
      assert.equal(error!.code, 'ai.interrupted')
    })
  })
})

describe('the usage', () => {
  const big = Number.MAX_SAFE_INTEGER - 1
  for (const [what, usage] of [
    ['absurd', { prompt_tokens: big, completion_tokens: 5, total_tokens: big + 5 }],
    ['beyond the context window', { prompt_tokens: 200_000, completion_tokens: 5, total_tokens: 200_005 }],
    ['beyond the answer', { prompt_tokens: 12, completion_tokens: 60_000, total_tokens: 60_012 }],
    ['negative', { prompt_tokens: -12, completion_tokens: 5, total_tokens: -7 }],
    ['fractional', { prompt_tokens: 1.5, completion_tokens: 5, total_tokens: 6.5 }],
    ['text', { prompt_tokens: '12', completion_tokens: '5' }],
    ['of no object', 'many'],
  ] as const)
    test(`${what} is counted here, and the statistics stay readable`, async () => {
      const answer = await withScript({ usage: usage as object }, () => ask())
      assert.equal(answer.status, 200)
      const { input, output, estimated } = await readLastUsage()
      assert.ok(Number(input) < 1000 && Number(output) < 1000, `${input} ${output}`)
      assert.equal(estimated, true)
      assert.equal((await api.get('/api/v1/ai/usage/stats')).status, 200)
    })

  test('hidden reasoning counts for Google only', async () => {
    const usage = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 400 }
    await withScript({ usage }, async () => {
      await ask()
      assert.equal((await readLastUsage()).output, 10)
      await ask({ agent_slug: await addAgent('google/gemini-2.5-flash') })
      assert.equal((await readLastUsage()).output, 300)
    })
  })

  test('sums of any size keep the statistics readable', async () => {
    for (let n = 0; n < 3; n++)
      await query(
        `insert into ai_usage (user_id, action, vendor, model, input_tokens, output_tokens, estimated, success)
         values ('huge', 'chat', 'openai', 'm', $1, $1, false, true)`,
        [big],
      )
    const { status, json } = await api.get('/api/v1/ai/usage/stats?user_id=huge')
    assert.equal(status, 200)
    assert.equal(json.total_tokens, Number.MAX_SAFE_INTEGER)
  })
})

describe('reasoning within the text', () => {
  for (const [what, pieces, text, reasoning] of [
    ['whole', ['<think>They greet.</think>\n\nHello'], 'Hello', 'They greet.'],
    ['in parts', ['<th', 'ink>They ', 'greet.</', 'thi', 'nk>', '\n\nHel', 'lo'], 'Hello', 'They greet.'],
    ['letter by letter', [...'<think>Hm</think>Hello'], 'Hello', 'Hm'],
    ['thinking', ['<thinking>Hm</thinking>Hello'], 'Hello', 'Hm'],
    ['in the middle', ['One ', '<think>Hm</think>two'], 'One two', 'Hm'],
    ['opened by the prompt', ['They greet.', '\n</think>\n', 'Hello'], 'Hello', 'They greet.'],
    ['twice', ['<think>A</think>One <think>B</think>two'], 'One two', 'AB'],
    ['in code', ['Use `<think>` here'], 'Use `<think>` here', undefined],
    ['no tag', ['1 < 2 and <b>x</b> <thin'], '1 < 2 and <b>x</b> <thin', undefined],
  ] as const)
    test(`${what} is apart, and is not sent back`, async () => {
      const { json, first } = await withScript({ pieces }, async () => {
        const first = await stream()
        return { first, json: (await ask()).json }
      })
      assert.deepEqual([first.text, first.final!.content, first.final!.reasoning], [text, text, reasoning])
      assert.deepEqual([json.content, json.reasoning], [text, reasoning])
      const { messages } = (await api.get(`/api/v1/ai/conversations/${json.conversation_id}`)).json
      assert.deepEqual([messages[1].content, messages[1].reasoning], [text, reasoning ?? null])
      await ask({ conversation_id: json.conversation_id })
      assert.equal(models.asked.at(-1)!.body.messages[2]!.content, text)
    })

  test('without an end it is no answer', async () => {
    const { status, json } = await withScript({ pieces: ['<think>Hm, ', 'well'], finish: 'length' }, () =>
      ask(),
    )
    assert.deepEqual(
      [status, json.detail],
      [502, 'AI provider error: it reached the token limit before any text'],
    )
  })

  test('in a field of its own', async () => {
    const { final } = await withScript(
      { aside: [{ reasoning_content: 'They ' }, { reasoning_content: 'greet.' }] },
      () => stream(),
    )
    assert.deepEqual([final!.content, final!.reasoning], ['Hello there', 'They greet.'])
  })
})

describe('the other of two shapes', () => {
  const message = { role: 'assistant', content: 'Hello there' }
  const whole = JSON.stringify({ choices: [{ index: 0, message, finish_reason: 'stop' }] })
  const chunk = (choice: object) => `data: ${JSON.stringify({ choices: [{ index: 0, ...choice }] })}\n\n`
  const piece = (content: string) => chunk({ delta: { content } })
  const end = chunk({ delta: {}, finish_reason: 'stop' })
  for (const [what, raw, headers] of [
    ['a JSON answer', [whole], { 'content-type': 'application/json' }],
    ['a JSON answer after blanks', ['\n', '\n', whole], { 'content-type': 'application/json' }],
    ['a JSON answer that calls itself a stream', [whole], {}],
    ['a message in place of deltas', [chunk({ message, finish_reason: 'stop' })], {}],
    [
      'messages that grow',
      ['Hello', 'Hello there'].map((content) => chunk({ message: { content } })).concat(end),
      {},
    ],
    [
      'a last message that repeats all deltas',
      [piece('Hello'), piece(' there'), chunk({ delta: { content: '' }, message, finish_reason: 'stop' })],
      {},
    ],
    ['an answer with an empty error', [JSON.stringify({ ...JSON.parse(whole), error: {} })], {}],
    ['a stream that only [DONE] ends', [piece('Hello'), piece(' there'), 'data: [DONE]\n\n'], {}],
    ['a stream whose last event has no blank line', [piece('Hello there'), end.trimEnd()], {}],
    [
      'a stream with CRLF and comments',
      [`: hi\r\n\r\n${piece('Hello there').replaceAll('\n', '\r\n')}`, end],
      {},
    ],
    ['a stream without a content type', [piece('Hello there'), end], { 'content-type': 'text/plain' }],
  ] as const)
    test(`${what} is an answer, streamed or not`, async () => {
      await withScript({ raw, headers }, async () => {
        const asked = await countAsked(async () => {
          const { text, final } = await stream()
          assert.deepEqual([text, final!.content], ['Hello there', 'Hello there'])
        })
        assert.equal(asked.length, 1)
        assert.equal((await ask()).json.content, 'Hello there')
      })
    })

  for (const [what, body, code, reason, requests] of [
    ['a rate limit', { error: { code: 429, message: 'x' } }, 'ai.failed', 'too many requests', 2],
    [
      'an overload',
      { type: 'error', error: { type: 'overloaded_error', message: 'x' } },
      'ai.failed',
      'it reported an error (overloaded_error)',
      2,
    ],
    ['a text', { error: 'no capacity' }, 'ai.failed', 'it reported an error (without a code)', 2],
    [
      'an invalid request',
      { error: { type: 'invalid_request_error', message: 'x' } },
      'ai.refused',
      'it reported an error (invalid_request_error)',
      1,
    ],
    [
      'an overflow',
      { error: { code: 400, message: 'prompt is too long: 200251 tokens > 200000 maximum' } },
      'ai.refused',
      'the conversation is too long for the model',
      1,
    ],
    [
      'a quota',
      { error: { type: 'insufficient_quota' } },
      'ai.refused',
      'the quota of the account is exhausted',
      1,
    ],
  ] as const)
    for (const form of ['data', 'event', 'json'] as const)
      test(`${what} within an answer, as ${form}`, async () => {
        const text = JSON.stringify(body)
        const raw = [
          form === 'json' ? text : form === 'data' ? `data: ${text}\n\n` : `event: error\ndata: ${text}\n\n`,
        ]
        await withScript({ raw }, async () => {
          const asked = await countAsked(async () => {
            const { error } = await stream()
            assert.deepEqual(error, { code, detail: `AI provider error: ${reason}` })
          })
          assert.equal(asked.length, requests)
        })
      })

  test('an error after a part of the answer names its kind', async () => {
    const error = 'data: {"error": {"code": 429}}\n\n'
    const { text, error: frame } = await withScript({ raw: [piece('Hello'), error] }, () => stream())
    assert.equal(text, 'Hello')
    assert.deepEqual(frame, {
      code: 'ai.interrupted',
      detail: 'AI provider error: the answer was cut off: too many requests',
    })
  })
})

describe('a pause that the provider asks for', () => {
  for (const [what, headers, seconds] of [
    ['seconds', { 'retry-after': '120' }, 120],
    ['a day', { 'retry-after': '86400' }, 86_400],
    ['milliseconds', { 'retry-after-ms': '65000' }, 65],
    ['a fraction', { 'retry-after': '6.5' }, 7],
    ['a date', () => ({ 'retry-after': new Date(Date.now() + 3_600_000).toUTCString() }), 3600],
  ] as const)
    for (const status of [429, 503])
      test(`${what} with ${status} ends the turn and names the time`, async () => {
        const beganAt = Date.now()
        const answer = await withScript(
          { status, headers: typeof headers === 'function' ? headers() : headers },
          () => ask(),
        )
        assert.ok(Date.now() - beganAt < 5000)
        assert.equal(answer.status, 502)
        const [, named] = /it asks to wait (\d+) s$/.exec(answer.json.detail) ?? []
        assert.ok(Math.abs(Number(named) - seconds) < 60, answer.json.detail)
        assert.ok(
          Math.abs(Number(answer.headers['retry-after']) - seconds) < 60,
          answer.headers['retry-after'],
        )
        const { conversation_id } = await readLastUsage()
        assert.equal((await ask({ conversation_id })).status, 200)
      })

  test('is in the error frame of a stream, and not in other failures', async () => {
    const { error } = await withScript({ status: 429, headers: { 'retry-after': '90' } }, () => stream())
    const { retry_after } = error as { retry_after: number }
    assert.ok(retry_after > 80 && retry_after <= 90, String(retry_after))
    const answer = await withScript({ status: 400 }, () => ask())
    assert.deepEqual([answer.status, answer.headers['retry-after']], [502, undefined])
  })
})

describe('a refusal is named by what it proves', () => {
  const over = 'the conversation is too long for the model'
  for (const [status, body, reason] of [
    [
      403,
      { error: { message: 'Forbidden' } },
      'it denied access to the model or the endpoint (HTTP status 403)',
    ],
    [
      400,
      { error: { message: 'API key not valid. Please pass a valid API key.' } },
      'it does not accept OPENAI_API_KEY',
    ],
    [404, '<html>nginx</html>', 'it refused the request (HTTP status 404)'],
    [
      404,
      { error: { message: 'The model `x` does not exist', code: 'model_not_found' } },
      'it has no model gpt-4o-mini',
    ],
    [400, { error: { message: "This model's maximum context length is 8192 tokens." } }, over],
    [
      400,
      { error: { message: 'input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000' } },
      over,
    ],
    [
      400,
      [
        {
          error: { message: 'The input token count (1048577) exceeds the maximum number of tokens allowed' },
        },
      ],
      over,
    ],
    [
      400,
      { object: 'error', message: 'Prompt contains 40000 tokens, too large for model with 32768 maximum' },
      over,
    ],
    [400, { message: 'too many tokens: total number of tokens in the prompt cannot exceed 128000' }, over],
    [413, { error: { type: 'request_too_large' } }, over],
    [400, { error: { code: 'content_filter', message: 'x' } }, 'its filter blocked the request'],
  ] as const)
    test(`${status} ${JSON.stringify(body).slice(0, 60)}`, async () => {
      const asked = await countAsked(async () => {
        const answer = await withScript({ status, body }, () => ask())
        assert.deepEqual([answer.status, answer.json.detail], [502, `AI provider error: ${reason}`])
      })
      assert.equal(asked.length, 1)
    })
})
