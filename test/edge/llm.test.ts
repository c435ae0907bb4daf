import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { applyList, type ListedModel } from '../../sql/llm/models.ts'
import { startEdge, startEdgeAndDatabase } from './harness.ts'

/** Tests the catalog API, first with the built-in catalog, then with a custom one. */

const env = { AUTH_LEVEL: 'none' }
const { api, db, query, url } = await startEdgeAndDatabase({ env })
const PROVIDERS = ['anthropic', 'cohere', 'google', 'groq', 'mistral', 'openai']

interface Entry {
  readonly [field: string]: unknown
  readonly model_id: string
  readonly vendor: string
}
const listModels = async (search = ''): Promise<Entry[]> => {
  const answer = await api.get(`/llm/models${search}`)
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}
const listModelIds = async (search: string) => (await listModels(search)).map(({ model_id }) => model_id)

describe('the built-in catalog', () => {
  test('has the expected counts', async () => {
    const { top_vendors, updated_at, ...status } = (await api.get('/llm/status')).json
    assert.deepEqual(status, {
      vendor_count: 6,
      model_count: 138,
      deployment_count: 138,
      price_count: 140,
      source: 'built-in',
      refused_at: null,
      refusal: null,
    })
    assert.match(updated_at, /Z$/)
    assert.deepEqual(top_vendors[0], { name: 'openai', model_count: 51 })
    assert.equal(top_vendors.length, 6)
    const counts = top_vendors.map(({ model_count }: Entry) => model_count)
    assert.deepEqual(
      counts,
      counts.toSorted((a: number, b: number) => b - a),
    )
  })

  test('lists vendors and modalities with counts that match the lists', async () => {
    const vendors = (await api.get('/llm/vendors')).json
    assert.deepEqual(
      vendors.map(({ name }: Entry) => name),
      PROVIDERS,
    )
    assert.deepEqual(vendors[5], { name: 'openai', title: 'OpenAI', model_count: 51 })
    for (const { name, model_count } of vendors)
      assert.equal((await listModels(`?vendor=${name}&limit=200`)).length, model_count)
    const modalities = (await api.get('/llm/modalities')).json
    assert.deepEqual(
      modalities.map(({ modality }: Entry) => modality),
      ['text', 'image', 'audio', 'video'],
    )
    for (const { modality, model_count } of modalities)
      assert.equal((await listModels(`?modality=${modality}&limit=200`)).length, model_count)
  })

  test('has the facts that providers publish', async () => {
    // Price pages of the providers: openai.com/api/pricing, claude.com/pricing, ai.google.dev/gemini-api/docs/pricing,
    // groq.com/pricing, mistral.ai/pricing, cohere.com/pricing.
    const facts: readonly [string, string, number, number, number, string][] = [
      ['openai', 'gpt-4o-mini', 128_000, 0.15, 0.6, '2024-07-18'],
      ['openai', 'gpt-4.1', 1_047_576, 2, 8, '2025-04-14'],
      ['openai', 'gpt-5', 400_000, 1.25, 10, '2025-08-07'],
      ['anthropic', 'claude-haiku-4-5', 200_000, 1, 5, '2025-10-15'],
      ['google', 'gemini-2.5-flash', 1_048_576, 0.3, 2.5, '2025-06-17'],
      ['google', 'gemini-2.5-pro', 1_048_576, 1.25, 10, '2025-06-17'],
      ['groq', 'llama-3.1-8b-instant', 131_072, 0.05, 0.08, '2024-07-23'],
      ['mistral', 'mistral-nemo', 128_000, 0.15, 0.15, '2024-07-01'],
      ['cohere', 'command-a-03-2025', 256_000, 2.5, 10, '2025-03-13'],
    ]
    for (const [vendor, model_id, context_window, input_price, output_price, released_on] of facts) {
      const found = (await listModels(`?vendor=${vendor}&pattern=${model_id}&limit=200`)).find(
        (model) => model.model_id === model_id,
      )
      const { title, max_output, modalities, disabled, ...rest } = found!
      assert.deepEqual(rest, { model_id, vendor, context_window, input_price, output_price, released_on })
      assert.equal(disabled, false)
    }
  })

  test('has each default model', async () => {
    for (const provider of PROVIDERS) {
      const { json } = await (await startEdge(url, { env: { ...env, AI_PROVIDER: provider } })).get(
        '/llm/current',
      )
      assert.equal(json.provider, provider)
      assert.ok(json.context_window >= 32_000, json.model)
      assert.ok(json.input_price > 0 && json.output_price > 0, json.model)
    }
  })
})

const createListedModel = (model_id: string, more: Partial<ListedModel> = {}): ListedModel => ({
  vendor: 'openai',
  model_id,
  title: model_id.toUpperCase(),
  family: null,
  context_window: 1000,
  max_output: 100,
  input_modalities: ['text'],
  output_modalities: ['text'],
  reasoning: false,
  released_on: '2026-01-01',
  disabled: false,
  price: { input: '0.1', output: '0.30', tiers: [] },
  ...more,
})

describe('a custom catalog', () => {
  const OURS = [
    createListedModel('a%b', { released_on: '2026-01-05' }),
    createListedModel('a_b', { released_on: '2026-01-04' }),
    createListedModel('axb', { released_on: '2026-01-03', title: 'Größe \\ 100% *' }),
    createListedModel('sees', { released_on: null, input_modalities: ['text', 'image'], price: null }),
    createListedModel('speaks', { vendor: 'groq', output_modalities: ['audio'] }),
    createListedModel('gone', { disabled: true, released_on: '2026-02-01' }),
    createListedModel('same', { vendor: 'mistral', released_on: '2025-01-01' }),
    createListedModel('same', { released_on: '2025-01-01' }),
    createListedModel('same', { vendor: 'else', released_on: '2025-01-01' }),
    createListedModel('vector-embed', { family: 'gemini', released_on: '2025-01-01' }),
  ]
  const vendors = ['openai', 'groq', 'mistral', 'else'].map((id) => ({ id, name: id }))
  const apply = (day: string | null) =>
    db.one(applyList({ vendors, models: OURS }, 'https://list.example', day))

  test('is read', async () => {
    await query('truncate llm_vendor, llm_model, llm_price, llm_current')
    await apply('2026-01-01')
    assert.deepEqual(await listModels('?pattern=a%25b'), [
      {
        model_id: 'a%b',
        vendor: 'openai',
        title: 'A%B',
        context_window: 1000,
        max_output: 100,
        input_price: 0.1,
        output_price: 0.3,
        released_on: '2026-01-05',
        modalities: ['text'],
        disabled: false,
      },
    ])
    const { vendor_count, model_count, deployment_count, price_count, top_vendors } = (
      await api.get('/llm/status')
    ).json
    assert.deepEqual([vendor_count, model_count, deployment_count, price_count], [4, 9, 8, 9])
    assert.deepEqual(top_vendors[0], { name: 'openai', model_count: 6 })
    assert.deepEqual((await api.get('/llm/modalities')).json, [
      { modality: 'text', model_count: 9 },
      { modality: 'image', model_count: 1 },
      { modality: 'audio', model_count: 1 },
      { modality: 'video', model_count: 0 },
    ])
  })

  test('lists the latest first, then by vendor; undated models last', async () => {
    const order = (await listModels()).map(({ vendor, model_id }) => `${vendor}/${model_id}`)
    assert.deepEqual(order, [
      'openai/a%b',
      'openai/a_b',
      'openai/axb',
      'groq/speaks',
      'else/same',
      'mistral/same',
      'openai/same',
      'openai/vector-embed',
      'openai/sees',
    ])
    assert.deepEqual(await listModelIds('?limit=2'), ['a%b', 'a_b'])
  })

  test('has filters', async () => {
    assert.deepEqual(await listModelIds('?pattern=A_B'), ['a_b'], 'no wildcard, either case')
    assert.deepEqual(await listModelIds('?pattern=%25'), ['a%b', 'axb'], 'id or title')
    assert.deepEqual(await listModelIds(`?pattern=${encodeURIComponent('GRÖSSE')}`), [])
    assert.deepEqual(await listModelIds(`?pattern=${encodeURIComponent('größe \\ 100% *')}`), ['axb'])
    assert.deepEqual(await listModelIds(`?pattern=${encodeURIComponent("' or 1=1 --")}`), [])
    assert.equal((await listModelIds('?pattern=')).length, 9)
    assert.deepEqual(await listModelIds('?vendor=GROQ'), ['speaks'])
    assert.deepEqual(await listModelIds('?vendor=nobody'), [])
    assert.equal((await listModelIds('?vendor=')).length, 9)
    assert.deepEqual(await listModelIds('?modality=image'), ['sees'])
    assert.deepEqual(await listModelIds('?modality=audio&vendor=openai'), [])
    assert.deepEqual(await listModelIds('?include_disabled=true&limit=1'), ['gone'])
    assert.equal((await listModelIds('?include_disabled=false')).includes('gone'), false)
    const sees = (await listModels('?pattern=sees'))[0]!
    assert.deepEqual([sees.input_price, sees.output_price, sees.released_on], [null, null, null])
  })

  test('rejects values out of range', async () => {
    for (const search of [
      'limit=0',
      'limit=201',
      'limit=x',
      'modality=pdf',
      'modality=smell',
      'include_disabled=perhaps',
      `pattern=${'x'.repeat(301)}`,
    ]) {
      const answer = await api.get(`/llm/models?${search}`)
      assert.equal(answer.status, 422, search)
      assert.equal(answer.json.errors[0].loc[1], search.split('=')[0])
    }
    for (const limit of [1, 200]) assert.equal((await api.get(`/llm/models?limit=${limit}`)).status, 200)
  })

  test('has a price history', async () => {
    const of = (vendor: string, id: string) =>
      api.get(`/llm/prices?vendor=${vendor}&model_id=${encodeURIComponent(id)}`)
    const tiers = [{ over: 200_000, input: '1', output: '2', cache_read: '0.5' }]
    OURS[0] = {
      ...OURS[0]!,
      price: { input: '0.2', output: '0.4', cache_write: '0.25', reasoning: '5', tiers },
    }
    await apply('2026-02-01')
    OURS[0] = { ...OURS[0], price: null }
    await apply('2026-03-01')
    const none = {
      cache_read_price: null,
      reasoning_price: null,
      cache_write_price: null,
      input_audio_price: null,
      output_audio_price: null,
    }
    assert.deepEqual((await of('openai', 'a%b')).json, [
      { valid_from: '2026-03-01', input_price: null, output_price: null, ...none, tiers: [] },
      {
        ...none,
        valid_from: '2026-02-01',
        input_price: 0.2,
        output_price: 0.4,
        reasoning_price: 5,
        cache_write_price: 0.25,
        tiers: [
          { over: 200_000, input_price: 1, output_price: 2, cache_read_price: 0.5, reasoning_price: null },
        ],
      },
      { valid_from: '2026-01-01', input_price: 0.1, output_price: 0.3, ...none, tiers: [] },
    ])
    assert.equal((await listModels('?pattern=a%25b'))[0]!.input_price, null, 'of today')
    assert.deepEqual((await of('openai', 'sees')).json, [])
    for (const answer of [await of('openai', 'none'), await of('none', 'a%b')]) {
      assert.equal(answer.status, 404)
      assert.deepEqual(answer.json, { detail: 'Model not found in the catalog', code: 'llm.model_missing' })
    }
    assert.equal((await api.get('/llm/prices?vendor=openai')).status, 422)
  })

  test('ignores future prices', async () => {
    await query(`insert into llm_price (vendor, model_id, valid_from, input, output)
      values ('groq', 'speaks', (now() at time zone 'UTC')::date + 1, 77, 77)`)
    assert.equal((await listModels('?vendor=groq'))[0]!.input_price, 0.1)
  })
})

describe('the current model', () => {
  const choose = (json: object) => api.post('/llm/current', { json })
  const ofSettings = {
    provider: 'openai',
    model: 'gpt-4o-mini',
    temperature: 0.7,
    max_tokens: 1000,
    context_window: null,
    input_price: null,
    output_price: null,
    modalities: [],
    chosen: false,
  }

  test('is that of the settings, even if the catalog lacks it', async () => {
    assert.deepEqual((await api.get('/llm/current')).json, ofSettings)
    const settings = { AI_MODEL: 'sees', AI_TEMPERATURE: '0', AI_MAX_TOKENS: '5' }
    const other = await startEdge(url, { env: { ...env, ...settings } })
    assert.deepEqual((await other.get('/llm/current')).json, {
      ...ofSettings,
      model: 'sees',
      temperature: 0,
      max_tokens: 5,
      context_window: 1000,
      modalities: ['text', 'image'],
    })
  })

  test('can be switched on every process, and back', async () => {
    const other = await startEdge(url, { env: { ...env, AI_PROVIDER: 'mistral', AI_MODEL: 'x' } })
    const chosen = await choose({ model: 'axb', temperature: 1.25 })
    assert.equal(chosen.status, 200)
    const axb = {
      ...ofSettings,
      model: 'axb',
      temperature: 1.25,
      context_window: 1000,
      input_price: 0.1,
      output_price: 0.3,
      modalities: ['text'],
      chosen: true,
    }
    assert.deepEqual(chosen.json, axb)
    for (const edge of [api, other]) assert.deepEqual((await edge.get('/llm/current')).json, axb)
    assert.deepEqual((await choose({ model: 'a_b', max_tokens: 7 })).json, {
      ...axb,
      model: 'a_b',
      temperature: 0.7,
      max_tokens: 7,
    })
    const undone = await api.call('DELETE', '/llm/current')
    assert.deepEqual([undone.status, undone.json], [200, ofSettings])
    assert.equal((await other.get('/llm/current')).json.provider, 'mistral')
    assert.equal((await api.call('DELETE', '/llm/current')).status, 200, 'again')
  })

  test('if several providers offer it, comes from the named or current provider', async () => {
    assert.equal((await choose({ model: 'same', provider: 'mistral' })).json.provider, 'mistral')
    assert.equal((await choose({ model: 'same' })).json.provider, 'mistral')
    await api.call('DELETE', '/llm/current')
    assert.equal((await choose({ model: 'same' })).json.provider, 'openai')
    await api.call('DELETE', '/llm/current')
    const groq = await startEdge(url, { env: { ...env, AI_PROVIDER: 'groq' } })
    const answer = await groq.post('/llm/current', { json: { model: 'same' } })
    assert.equal(answer.status, 400)
    assert.deepEqual(answer.json, {
      detail: 'Several providers offer this model; specify one of: mistral, openai',
      code: 'llm.provider_needed',
    })
  })

  test('must support chat', async () => {
    const refusals: readonly [object, number, string, string][] = [
      [{ model: 'none' }, 404, 'Model not found in the catalog', 'llm.model_missing'],
      [{ model: 'axb', provider: 'groq' }, 404, 'Model not found in the catalog', 'llm.model_missing'],
      [{ model: 'gone' }, 400, 'The model is disabled: its vendor withdrew it', 'llm.model_disabled'],
      [{ model: 'speaks' }, 400, 'The model does not support text chat', 'llm.model_no_chat'],
      [{ model: 'vector-embed' }, 400, 'The model does not support text chat', 'llm.model_no_chat'],
    ]
    const before = (await api.get('/llm/current')).json
    for (const [json, status, detail, code] of refusals) {
      const answer = await choose(json)
      assert.deepEqual([answer.status, answer.json], [status, { detail, code }])
    }
    for (const more of [
      { provider: 'else' },
      { temperature: 2.01 },
      { temperature: -0.1 },
      { max_tokens: 0 },
      { max_tokens: 1.5 },
      { model: '' },
      { other: 1 },
    ])
      assert.equal((await choose({ model: 'axb', ...more })).status, 422, JSON.stringify(more))
    assert.deepEqual((await api.get('/llm/current')).json, before)
  })

  test('stays with its prices when a later list lacks it', async () => {
    await choose({ model: 'axb' })
    const rest = { vendors: [{ id: 'openai', name: 'openai' }], models: [createListedModel('new')] }
    await db.one(applyList(rest, 'https://list.example'))
    const { model, input_price } = (await api.get('/llm/current')).json
    assert.deepEqual([model, input_price], ['axb', 0.1])
  })
})
