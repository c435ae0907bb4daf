import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Moment } from '../../edge/pipeline/request/schemas.ts'
import { updateAgent } from '../../sql/ai/conversations.ts'
import { readModelFacts } from '../../sql/llm/models.ts'
import { until } from '../until.ts'
import { CHAT_PATH, startChatService } from './ai-help.ts'
import { type Answered, startEdge } from './harness.ts'

/** Tests agents, usage statistics, health and version. */

const { models, api, url, db, query, env } = await startChatService({
  AI_TEMPERATURE: '0.3',
  AI_MAX_TOKENS: '500',
})
const otherEdge = await startEdge(url, { env })
const closedEdge = await startEdge(url, { env: { ...env, OPEN_AREAS: 'jobs' } })
const admin = await api.register('admin@example.com')
const user = await api.register('user@example.com')
const AI = '/api/v1/ai'
const change = (json: unknown, slug = 'assistant', token?: string): Promise<Answered> =>
  (token === undefined ? api : closedEdge).call('PATCH', `${AI}/agents/${slug}`, {
    json,
    ...(token && { token }),
  })
const askAgent = (more: object = {}, at = api): Promise<Answered> =>
  at.post(CHAT_PATH, { json: { message: 'Hello?', ...more } })

describe('GET and PATCH /ai/agents', () => {
  test('returns the built-in agent', async () => {
    const answer = await api.get(`${AI}/agents`)
    assert.equal(answer.status, 200)
    const agent = answer.json.find(({ slug }: { slug: string }) => slug === 'assistant')
    assert.deepEqual(agent, {
      slug: 'assistant',
      name: 'Assistant',
      description: 'Answers in conversations that name no other agent',
      category: 'general',
      model_id: null,
      fallback_model_id: null,
      temperature: 0.3,
      max_tokens: 500,
      system_prompt: 'You are a helpful assistant.',
      is_active: true,
      tools: [],
      memory_modules: [],
      knowledge_base_ids: [],
    })
  })

  test('a change applies from the next turn, on every process', async () => {
    const changes = {
      name: 'Poet',
      description: '',
      category: 'art',
      model_id: 'gpt-x',
      temperature: 1.5,
      max_tokens: 9,
      system_prompt: 'Rhyme.',
    }
    const answer = await change(changes)
    assert.equal(answer.status, 200)
    for (const [key, value] of Object.entries(changes)) assert.equal(answer.json[key], value, key)
    assert.equal((await askAgent({}, otherEdge)).status, 200)
    const { body } = models.asked.at(-1)!
    assert.deepEqual(
      [body.model, body.temperature, body.max_completion_tokens, body.messages[0]!.content],
      ['gpt-x', 1.5, 9, 'Rhyme.'],
    )
    assert.equal((await change({ model_id: null })).json.model_id, null)
    await askAgent()
    assert.equal(models.asked.at(-1)!.body.model, 'gpt-4o-mini')
  })

  test('queued and running turns keep the model of their request', async () => {
    models.script = () => ({ firstMs: 300 })
    const first = (await askAgent()).json
    const asked = models.asked.length
    const begun = (message: string) =>
      api.post(`${CHAT_PATH}?background=true`, { json: { message, conversation_id: first.conversation_id } })
    const [one, two] = [await begun('One?'), await begun('Two?')]
    assert.deepEqual([one.status, two.status], [202, 202])
    // Change the agent before the second turn starts.
    assert.equal((await change({ model_id: 'gpt-later', system_prompt: 'Later.' })).status, 200)
    await until('both turns are answered', async () => {
      const ended = await query('select from job where id = any($1) and finished_at is not null', [
        [one.json.job_id, two.json.job_id],
      ])
      return ended.length === 2
    })
    models.script = () => ({})
    const bodies = models.asked.slice(asked).map(({ body }) => body)
    assert.deepEqual(
      bodies.map(({ model }) => model),
      ['gpt-4o-mini', 'gpt-4o-mini'],
    )
    const stored = await query('select model from ai_message where job_id = any($1)', [
      [one.json.job_id, two.json.job_id],
    ])
    assert.deepEqual(stored, [{ model: 'gpt-4o-mini' }, { model: 'gpt-4o-mini' }])
    await change({ model_id: null, system_prompt: 'You are a helpful assistant.' })
  })

  test('two concurrent changes both apply', async () => {
    const answer = await db.transaction(async (tx) => {
      await tx.run(updateAgent('assistant', { description: 'Changed first' }))
      const second = change({ category: 'changed' })
      await until('the second change waits for the first', async () => {
        const waiting = await query(`select from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock' and query like '%ai_agent%'`)
        return waiting.length > 0
      })
      return { second }
    })
    const { description, category } = (await answer.second).json
    assert.deepEqual([description, category], ['Changed first', 'changed'])
  })

  for (const [what, json] of [
    ['nothing', {}],
    ['a temperature below 0', { temperature: -0.1 }],
    ['a temperature above 2', { temperature: 2.1 }],
    ['a temperature that is none', { temperature: 'hot' }],
    ['no tokens', { max_tokens: 0 }],
    ['half a token', { max_tokens: 1.5 }],
    ['no prompt', { system_prompt: ' ' }],
    ['a name that is empty', { name: '' }],
    ['is_active that is no boolean', { is_active: 'yes' }],
    ['another slug', { slug: 'x' }],
    ['tools', { tools: [] }],
  ] as const)
    test(`400 for ${what}`, async () => assert.equal((await change(json)).status, 400))

  test('404 for an unknown slug', async () =>
    assert.equal((await change({ name: 'x' }, 'nobody')).status, 404))

  test('only admins may call it if the area is not open', async () => {
    assert.equal((await change({ category: 'general' }, 'assistant', user.token)).status, 403)
    assert.equal((await change({ category: 'general' }, 'assistant', admin.token)).status, 200)
  })

  test('an inactive agent does not answer', async () => {
    await query(
      `insert into ai_agent (slug, name, system_prompt, is_active) values ('idle', 'I', 'p', false)`,
    )
    assert.equal((await askAgent({ agent_slug: 'idle' })).status, 400)
    await change({ is_active: false })
    const answer = await askAgent()
    const health = (await api.get(`${AI}/health`)).json
    await change({ is_active: true })
    assert.deepEqual([answer.status, health.agent_ready, health.status], [503, false, 'unhealthy'])
  })
})

describe('GET /ai/usage/stats', () => {
  const stats = (path = '', token?: string): Promise<Answered> =>
    api.get(`${AI}/usage/stats${path}`, token === undefined ? {} : { token })

  test('the success rate without requests is 1', async () => {
    assert.deepEqual((await stats('?user_id=nobody')).json, {
      total_tokens: 0,
      input_tokens: 0,
      output_tokens: 0,
      audio_seconds: 0,
      total_cost: 0,
      unpriced_requests: 0,
      estimated_requests: 0,
      total_requests: 0,
      success_rate: 100,
      models: [],
      recent_activity: [],
    })
  })

  test('returns sums, models and the latest requests, with exact costs', async () => {
    await query(`insert into llm_vendor (id, name) values ('openai', 'OpenAI') on conflict do nothing`)
    await query(`delete from llm_price where model_id = 'gpt-4o-mini'`)
    await query(
      `insert into llm_model (vendor, model_id, title, context_window, max_output, input_modalities, output_modalities, modalities, reasoning, disabled)
       values ('openai', 'priced', 'P', 1000, 100, '{text}', '{text}', '{text}', false, false)`,
    )
    await query(
      `insert into llm_price (vendor, model_id, valid_from, input, output, cache_read) values ('openai', 'priced', '2020-01-01', 0.1, 0.3, 0.05)`,
    )
    assert.ok((await db.one(readModelFacts('openai', 'priced'))).price)
    await query(
      `insert into ai_agent (slug, name, system_prompt, model_id) values ('priced', 'P', 'p', 'priced')`,
    )
    models.script = () => ({
      usage: { prompt_tokens: 7, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 2 } },
    })
    await askAgent({ user_id: 'spender', agent_slug: 'priced' })
    await askAgent({ user_id: 'spender', agent_slug: 'priced' })
    await askAgent({ user_id: 'spender' })
    models.script = () => ({ status: 401 })
    await askAgent({ user_id: 'spender' })
    models.script = () => ({})
    const answer = await stats('?user_id=spender&recent_limit=3')
    // 5 x 0.1 + 2 x 0.05 + 3 x 0.3 = 1.5 per million, twice. Compared as text because a JSON number would be rounded.
    assert.match(answer.text, /"total_cost" ?: ?0\.0000030+[,}]|"total_cost" ?: ?0\.000003[,}]/)
    const { models: byModel, recent_activity: recent, ...rest } = answer.json
    assert.deepEqual(rest, {
      total_tokens: 30,
      input_tokens: 21,
      output_tokens: 9,
      audio_seconds: 0,
      total_cost: 0.000003,
      unpriced_requests: 2,
      estimated_requests: 0,
      total_requests: 4,
      success_rate: 75,
    })
    assert.deepEqual(byModel, [
      {
        model_id: 'gpt-4o-mini',
        vendor: 'openai',
        requests: 2,
        tokens: 10,
        audio_seconds: 0,
        cost: null,
        unpriced_requests: 2,
        percentage: 50,
      },
      {
        model_id: 'priced',
        vendor: 'openai',
        requests: 2,
        tokens: 20,
        audio_seconds: 0,
        cost: 0.000003,
        unpriced_requests: 0,
        percentage: 50,
      },
    ])
    assert.equal(recent.length, 3)
    const { timestamp, ...latest } = recent[0]
    assert.ok(!Number.isNaN(Date.parse(timestamp)))
    assert.deepEqual(latest, {
      model: 'gpt-4o-mini',
      vendor: 'openai',
      input_tokens: 0,
      output_tokens: 0,
      audio_seconds: 0,
      cost: null,
      estimated: false,
      success: false,
      action: 'chat',
    })
    assert.equal(recent[2].cost, 0.0000015)
    const from = new Date(Date.now() + 60_000).toISOString()
    assert.equal((await stats(`?user_id=spender&start_time=${from}`)).json.total_requests, 0)
    assert.equal((await stats(`?user_id=spender&end_time=${from}`)).json.total_requests, 4)
    assert.ok((await stats()).json.total_requests >= 4)
    // A time without a zone is UTC.
    assert.equal((await stats(`?user_id=spender&start_time=${from.slice(0, -1)}`)).json.total_requests, 0)
    assert.equal((await stats(`?user_id=spender&end_time=${from.slice(0, -1)}`)).json.total_requests, 4)
    assert.equal((await stats('?user_id=spender&start_time=2020-01-01T00:00')).json.total_requests, 4)
  })

  test('a time without a zone is UTC', () => {
    for (const [given, meant] of [
      ['2026-01-01T10:00:00', '2026-01-01T10:00:00Z'],
      ['2026-01-01T10:00:00.123456', '2026-01-01T10:00:00.123456Z'],
      ['2026-01-01T10:00', '2026-01-01T10:00Z'],
      ['2026-01-01T10:00:00Z', '2026-01-01T10:00:00Z'],
      ['2026-01-01T10:00:00-05:00', '2026-01-01T10:00:00-05:00'],
    ])
      assert.equal(Moment.parse(given), meant)
    for (const wrong of ['2026-01-01', '10:00', '2026-13-01T00:00:00', 'now'])
      assert.ok(!Moment.safeParse(wrong).success, wrong)
  })

  test('an account sees its own usage; an admin sees all usage or that of one account', async () => {
    await api.post(CHAT_PATH, { json: { message: 'x' }, token: user.token })
    await api.post(CHAT_PATH, { json: { message: 'x', user_id: String(user.id) } })
    assert.equal(
      (await stats('', user.token)).json.total_requests,
      1,
      'not what others who call themselves so used',
    )
    assert.equal((await stats(`?user_id=${user.id}`)).json.total_requests, 1)
    assert.equal((await stats(`?user_id=${user.id}`, admin.token)).json.total_requests, 2)
    assert.equal((await stats('?user_id=spender', user.token)).status, 403)
    assert.equal((await stats('?user_id=spender', admin.token)).json.total_requests, 4)
    assert.ok((await stats('', admin.token)).json.total_requests > 4)
  })

  for (const path of [
    '?recent_limit=201',
    '?recent_limit=-1',
    '?start_time=yesterday',
    '?end_time=2026-01-01',
    '?user_id=',
  ])
    test(`400 for ${path}`, async () => assert.equal((await stats(path)).status, 400))
})

describe('health and version', () => {
  test('health is ok', async () => {
    const { total_conversations, ...rest } = (await api.get(`${AI}/health`)).json
    assert.deepEqual(rest, {
      service: 'ai',
      status: 'healthy',
      enabled: true,
      provider: 'openai',
      model: 'gpt-4o-mini',
      agent_ready: true,
      configuration_valid: true,
      validation_errors: [],
    })
    assert.ok(total_conversations > 0)
  })

  test('health and chat name a missing key, and a disabled provider is reported as disabled', async () => {
    const keyless = await startEdge(url, { env: { OPEN_AREAS: 'ai', AI_PROVIDER: 'anthropic' } })
    const health = (await keyless.get(`${AI}/health`)).json
    const detail = 'Missing API key for anthropic provider. Set ANTHROPIC_API_KEY environment variable.'
    assert.deepEqual(
      [health.status, health.provider, health.configuration_valid, health.validation_errors],
      ['unhealthy', 'anthropic', false, [detail]],
    )
    for (const path of [CHAT_PATH, `${CHAT_PATH}/stream`]) {
      const answer = await keyless.post(path, { json: { message: 'x' } })
      assert.deepEqual(
        [answer.status, answer.json],
        [503, { detail: `AI service error: ${detail}`, code: 'ai.missing_key' }],
      )
    }
    const off = await startEdge(url, { env: { ...env, AI_ENABLED: 'false' } })
    assert.equal((await askAgent({}, off)).status, 503)
    const { enabled, status, configuration_valid } = (await off.get(`${AI}/health`)).json
    assert.deepEqual([enabled, status, configuration_valid], [false, 'unhealthy', true])
  })

  test('the version route also exists without the prefix', async () => {
    const answer = await api.get('/ai/version')
    assert.equal(answer.status, 200)
    const { version, ...rest } = answer.json
    assert.match(version, /^\d+\.\d+\.\d+$/)
    assert.deepEqual(rest, {
      service: 'ai',
      engine: 'millrace',
      features: [
        'chat',
        'conversation_management',
        'multi_provider_support',
        'health_monitoring',
        'api_endpoints',
        'cli_commands',
      ],
      providers_supported: ['openai', 'anthropic', 'google', 'groq', 'mistral', 'cohere'],
    })
    assert.equal((await api.get('/api/v1/ai/version')).status, 404)
  })
})
