import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ModelRequest, Script } from '../standins/models.ts'
import { CHAT_PATH, joinChunks, postStream, startChatService } from './ai-help.ts'
import { startEdge } from './harness.ts'

/** Tests the fallback model: which failures lead to it, and what then names it. */

const { api, models, query, url, env } = await startChatService({
  ...{ AI_PROVIDER: 'mistral', AI_MODEL: 'front-1', AI_FALLBACK_MODEL: 'openai/gpt-4o-mini' },
  ...{ GROQ_API_KEY: 'key of groq', GROQ_BASE_URL: 'http://127.0.0.1:9/v1' },
})
const FALLBACK = { provider: 'openai', model: 'gpt-4o-mini' }

/** Plays a script for the first model; the others answer. Returns the result and the models that were asked. */
async function playFirst<T>(script: Script, work: () => Promise<T>): Promise<{ result: T; asked: string[] }> {
  const before = models.asked.length
  models.script = ({ body }: ModelRequest) => (body.model === 'front-1' ? script : {})
  try {
    const result = await work()
    return { result, asked: models.asked.slice(before).map(({ body }) => body.model) }
  } finally {
    models.script = () => ({})
  }
}
const ask = (more: object = {}) => api.post(CHAT_PATH, { json: { message: 'Hello?', ...more } })
const error = (message: string, more: object = {}) => ({ error: { message, type: 'x', ...more } })

describe('the fallback model answers', () => {
  for (const [what, script] of [
    ['the provider fails', { status: 500 }],
    ['it is overloaded', { status: 503 }],
    ['it asks for a long pause', { status: 429, headers: { 'retry-after': '60' } }],
    ['it refuses too many requests without a time', { status: 429 }],
    ['it breaks the connection', { breaks: { after: 0, does: 'cut' } }],
    ['its answer cannot be read', { breaks: { after: 0, does: 'garbage' } }],
    ['it does not know the model', { status: 404, body: error('The model front-1 does not exist') }],
    [
      'the model is invalid',
      { status: 400, body: error('Invalid model: front-1', { type: 'invalid_model' }) },
    ],
    ['the model was withdrawn', { status: 400, body: error('x', { code: 'model_decommissioned' }) }],
    ['it does not accept the key', { status: 401 }],
    ['the account has no credit', { status: 402 }],
    ['it denies access', { status: 403 }],
  ] as readonly [string, Script][])
    test(`if ${what}`, async () => {
      const { result, asked } = await playFirst(script, ask)
      assert.equal(result.status, 200, result.text)
      assert.deepEqual(asked, ['front-1', 'gpt-4o-mini'])
      const { conversation_id, message_id } = result.json
      const conversation = (await api.get(`/api/v1/ai/conversations/${conversation_id}`)).json
      const [stored] = await query('select provider, model from ai_message where id = $1', [message_id])
      const [usage] = await query(
        'select vendor as provider, model, input_tokens::int as input, cost::float8 as cost, success from ai_usage where message_id = $1',
        [message_id],
      )
      assert.deepEqual([conversation.provider, conversation.model], ['openai', 'gpt-4o-mini'])
      assert.deepEqual(stored, FALLBACK)
      assert.deepEqual(usage, { ...FALLBACK, input: 12, cost: 0.0000048, success: true })
    })

  test('if nothing listens at the address of the provider', async () => {
    await query(
      `insert into ai_agent (slug, name, system_prompt, model_id) values ('unreachable', 'U', 'P', 'groq/g-1')`,
    )
    const { result, asked } = await playFirst({}, () => ask({ agent_slug: 'unreachable' }))
    assert.deepEqual([result.status, asked], [200, ['gpt-4o-mini']], result.text)
  })

  test('with a stream that names it', async () => {
    const overloaded = `data: ${JSON.stringify(error('Overloaded', { code: 503 }))}\n\n`
    const { result: frames } = await playFirst({ raw: [overloaded] }, async () =>
      (await postStream(api, { message: 'Hello?' })).waitForEnd(),
    )
    assert.equal(joinChunks(frames), 'Hello there')
    const { provider, model } = frames.find(({ event }) => event === 'final')!.data
    assert.deepEqual({ provider, model }, FALLBACK)
  })

  test('with that of the agent, which comes before that of the settings', async () => {
    const changed = await api.call('PATCH', '/api/v1/ai/agents/assistant', {
      json: { fallback_model_id: 'back-2' },
    })
    assert.deepEqual([changed.status, changed.json.fallback_model_id], [200, 'back-2'], changed.text)
    const own = await playFirst({ status: 500 }, ask)
    assert.deepEqual(own.asked, ['front-1', 'back-2'])
    await api.call('PATCH', '/api/v1/ai/agents/assistant', { json: { fallback_model_id: null } })
    assert.deepEqual((await playFirst({ status: 500 }, ask)).asked, ['front-1', 'gpt-4o-mini'])
  })
})

describe('the first model stays', () => {
  for (const [what, script, status] of [
    ['the request is refused', { status: 400 }, 502],
    [
      'the conversation is too long',
      { status: 400, body: error('x', { code: 'context_length_exceeded' }) },
      502,
    ],
    ['the filter blocks the request', { status: 400, body: error('x', { code: 'content_filter' }) }, 502],
    ['the answer is empty', { pieces: [] }, 502],
  ] as readonly [string, Script, number][])
    test(`if ${what}`, async () => {
      const { result, asked } = await playFirst(script, ask)
      assert.deepEqual([result.status, asked], [status, ['front-1']], result.text)
    })

  test('after the first piece', async () => {
    const { result: frames, asked } = await playFirst({ breaks: { after: 1, does: 'cut' } }, async () =>
      (await postStream(api, { message: 'Hello?' })).waitForEnd(),
    )
    assert.equal(frames.at(-1)!.event, 'error')
    assert.deepEqual(asked, ['front-1'])
  })

  test('for a short pause; the fallback answers the last attempt', async () => {
    const { result, asked } = await playFirst({ status: 429, headers: { 'retry-after': '0' } }, ask)
    assert.equal(result.status, 200, result.text)
    assert.deepEqual(asked, ['front-1', 'front-1', 'gpt-4o-mini'])
  })

  test('if the fallback is the same model', async () => {
    await query(
      `insert into ai_agent (slug, name, system_prompt, fallback_model_id) values ('same', 'S', 'P', 'mistral/front-1')`,
    )
    const { result, asked } = await playFirst({ status: 404, body: error('No model') }, () =>
      ask({ agent_slug: 'same' }),
    )
    assert.deepEqual([result.status, asked], [502, ['front-1']])
  })

  test('if the fallback has no key, which the health names', async () => {
    await query(
      `insert into ai_agent (slug, name, system_prompt, fallback_model_id) values ('keyless', 'K', 'P', 'cohere/c')`,
    )
    const { result, asked } = await playFirst({ status: 401 }, () => ask({ agent_slug: 'keyless' }))
    assert.deepEqual([result.status, asked], [502, ['front-1']])
    assert.match(result.json.detail, /does not accept MISTRAL_API_KEY/)
    const keyless = await startEdge(url, { env: { ...env, AI_FALLBACK_MODEL: 'cohere/c' } })
    const { status, configuration_valid, validation_errors } = (await keyless.get('/api/v1/ai/health')).json
    assert.deepEqual(
      [status, configuration_valid, validation_errors],
      [
        'healthy',
        false,
        ['Missing API key for the fallback provider cohere. Set COHERE_API_KEY environment variable.'],
      ],
    )
  })
})

test('if both fail, the failure is that of the fallback, and the usage counts once', async () => {
  models.script = ({ body }) => (body.model === 'front-1' ? { status: 500 } : { status: 401 })
  const answer = await ask({ user_id: 'both' })
  models.script = () => ({})
  assert.equal(answer.status, 502)
  assert.match(answer.json.detail, /does not accept OPENAI_API_KEY/)
  const usage = await query(`select vendor, success from ai_usage where user_id = 'both'`)
  assert.deepEqual(usage, [{ vendor: 'openai', success: false }])
})
