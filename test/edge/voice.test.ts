import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { STT_MODELS, TTS_MODELS, VOICES } from '../../tasks/voice/catalog.ts'
import { createCast } from './accounts-help.ts'
import { startEdge, startEdgeAndDatabase } from './harness.ts'

/** Voice catalogs and settings, and access to them. */

const {
  api: rbac,
  url,
  query,
} = await startEdgeAndDatabase({ env: { AUTH_LEVEL: 'rbac', OPEN_AREAS: 'ai' } })
const { admin, moderator, user } = await createCast(rbac)
const env = { AUTH_LEVEL: 'none', GROQ_API_KEY: 'g' }
const api = await startEdge(url, { env })
const readCatalog = (path: string) => api.get(`/voice/catalog${path}`)
const DEFAULTS = {
  tts_provider: 'openai',
  tts_model: 'gpt-4o-mini-tts',
  tts_voice: 'alloy',
  tts_speed: 1,
  stt_provider: 'openai',
  stt_model: 'gpt-transcribe',
  stt_language: null,
}

describe('the catalogs', () => {
  const openai = {
    id: 'openai',
    name: 'OpenAI',
    requires_api_key: true,
    api_key_env_var: 'OPENAI_API_KEY',
    is_local: false,
    configured: false,
  }
  const named = (json: { id: string }[]) => json.map(({ id }) => id)

  test('list the providers of speech synthesis and recognition', async () => {
    const tts = (await readCatalog('/tts/providers')).json
    assert.deepEqual([tts[0], named(tts)], [openai, ['openai', 'mistral']])
    const stt = (await readCatalog('/stt/providers')).json
    assert.deepEqual(named(stt), ['openai', 'groq', 'mistral'])
    assert.deepEqual(
      stt.map(({ configured }: { configured: boolean }) => configured),
      [false, true, false],
    )
  })

  test('list models and voices', async () => {
    const models = (await readCatalog('/tts/openai/models')).json
    assert.deepEqual(named(models), ['gpt-4o-mini-tts', 'tts-1-hd', 'tts-1'])
    assert.deepEqual(models[2], {
      id: 'tts-1',
      name: 'TTS-1',
      provider_id: 'openai',
      quality: 'standard',
      retires_on: '2027-01-06',
    })
    const voices = (await readCatalog('/tts/openai/voices')).json
    assert.equal(voices.length, 13)
    assert.deepEqual(voices[0], {
      id: 'alloy',
      name: 'Alloy',
      provider_id: 'openai',
      category: 'general',
      gender: 'neutral',
      preview_text: 'Hello, I am Alloy. This is how I sound when I read to you.',
      models: ['gpt-4o-mini-tts', 'tts-1-hd', 'tts-1'],
    })
    assert.deepEqual(named((await readCatalog('/tts/mistral/voices')).json), [
      'en_paul_neutral',
      'gb_jane_neutral',
    ])
    assert.deepEqual(named((await readCatalog('/stt/groq/models')).json), [
      'whisper-large-v3-turbo',
      'whisper-large-v3',
    ])
  })

  test('have a summary of everything', async () => {
    const { tts, stt, settings } = (await readCatalog('/summary')).json
    const all = <T>(providers: Record<string, T[]>[], field: string) =>
      providers.flatMap((one) => one[field]!)
    assert.deepEqual(all(tts.providers, 'voices'), VOICES)
    assert.deepEqual(all(tts.providers, 'models'), TTS_MODELS)
    assert.deepEqual(all(stt.providers, 'models'), STT_MODELS)
    assert.deepEqual(settings, DEFAULTS)
  })

  test('return 404 for unknown providers', async () => {
    for (const path of [
      '/tts/groq/models',
      '/tts/groq/voices',
      '/tts/x/voices',
      '/stt/cohere/models',
      '/stt/x/models',
    ]) {
      const answer = await readCatalog(path)
      assert.deepEqual(
        [answer.status, answer.json],
        [404, { detail: 'Voice provider not found', code: 'voice.provider_missing' }],
      )
    }
  })

  test('are consistent', () => {
    assert.equal(new Set(VOICES.map(({ id }) => id)).size, VOICES.length)
    for (const { models, provider_id } of VOICES)
      for (const id of models)
        assert.ok(TTS_MODELS.some((model) => model.id === id && model.provider_id === provider_id))
  })
})

describe('the settings', { concurrency: false }, () => {
  const set = (json: object) => api.post('/voice/settings', { json })
  const now = async () => (await api.get('/voice/settings')).json

  test('start with the defaults and keep changes', async () => {
    assert.deepEqual(await now(), DEFAULTS)
    assert.deepEqual((await set({})).json, DEFAULTS)
    const changed = { ...DEFAULTS, tts_voice: 'nova', tts_speed: 1.25, stt_language: 'de' }
    const answer = await set({ tts_voice: 'nova', tts_speed: 1.25, stt_language: 'de' })
    assert.deepEqual([answer.status, answer.json], [200, changed])
    const other = await startEdge(url, { env })
    assert.deepEqual((await other.get('/voice/settings')).json, changed)
    assert.deepEqual((await set({ stt_language: null, tts_speed: 0.25 })).json, {
      ...changed,
      stt_language: null,
      tts_speed: 0.25,
    })
  })

  test('switch to the first model and voice of a new provider', async () => {
    const mistral = {
      tts_provider: 'mistral',
      tts_model: 'voxtral-mini-tts-3-0',
      tts_voice: 'en_paul_neutral',
    }
    const { tts_speed, stt_language, ...rest } = (
      await set({ tts_provider: 'mistral', stt_provider: 'groq' })
    ).json
    assert.deepEqual(rest, { ...mistral, stt_provider: 'groq', stt_model: 'whisper-large-v3-turbo' })
    const whole = { tts_provider: 'openai', tts_model: 'tts-1', tts_voice: 'onyx' }
    const { tts_provider, tts_model, tts_voice } = (await set(whole)).json
    assert.deepEqual({ tts_provider, tts_model, tts_voice }, whole)
    assert.equal((await set({ stt_provider: 'mistral', stt_model: 'voxtral-mini-latest' })).status, 200)
  })

  test('accept only compatible ids from the catalog', async () => {
    const before = await now()
    const refusals: readonly [object, string][] = [
      [{ tts_provider: 'x' }, 'tts_provider cannot be x; it must be one of openai, mistral'],
      [{ tts_provider: 'groq' }, 'tts_provider cannot be groq; it must be one of openai, mistral'],
      [{ stt_provider: 'cohere' }, 'stt_provider cannot be cohere; it must be one of openai, groq, mistral'],
      [
        { tts_model: 'voxtral-mini-tts-3-0' },
        'tts_model cannot be voxtral-mini-tts-3-0; it must be one of gpt-4o-mini-tts, tts-1-hd, tts-1',
      ],
      [{ stt_model: 'whisper-1' }, 'stt_model cannot be whisper-1; it must be one of voxtral-mini-latest'],
      [
        { tts_voice: 'marin' },
        'tts_voice cannot be marin; it must be one of alloy, ash, coral, echo, fable, nova, onyx, sage, shimmer',
      ],
      [
        { tts_provider: 'mistral', tts_voice: 'onyx' },
        'tts_voice cannot be onyx; it must be one of en_paul_neutral, gb_jane_neutral',
      ],
    ]
    for (const [change, detail] of refusals) {
      const answer = await set(change)
      assert.deepEqual([answer.status, answer.json], [400, { detail, code: 'voice.unknown' }])
    }
    assert.deepEqual(await now(), before)
    assert.equal((await set({ tts_model: 'gpt-4o-mini-tts', tts_voice: 'marin' })).status, 200)
  })

  test('reject values out of range', async () => {
    for (const change of [
      { tts_speed: 0.24 },
      { tts_speed: 4.01 },
      { tts_speed: '1' },
      { tts_speed: [] },
      { stt_language: 'english' },
      { stt_language: '' },
      { tts_voice: '' },
      { tts_voice: 5 },
      { pitch: 1 },
    ])
      assert.equal((await set(change)).status, 422, JSON.stringify(change))
    assert.equal((await set({ tts_speed: null, tts_voice: null })).status, 200)
    for (const tts_speed of [0.25, 4, 1]) assert.equal((await set({ tts_speed })).json.tts_speed, tts_speed)
  })

  test('keep all concurrent changes', async () => {
    const changes = [
      { tts_speed: 3 },
      { tts_voice: 'cedar' },
      { stt_language: 'fr' },
      { stt_provider: 'groq' },
    ]
    await Promise.all(changes.map(set))
    const { tts_speed, tts_voice, stt_language, stt_provider } = await now()
    assert.deepEqual([tts_speed, tts_voice, stt_language, stt_provider], [3, 'cedar', 'fr', 'groq'])
  })
})

describe('access by role', () => {
  const people = {
    nobody: undefined,
    user: user.token,
    moderator: moderator.token,
    admin: admin.token,
    'bad token': 'nonsense',
  }
  const reads = [
    '/catalog/tts/providers',
    '/catalog/tts/openai/models',
    '/catalog/tts/openai/voices',
    '/catalog/stt/providers',
    '/catalog/stt/openai/models',
    '/catalog/summary',
    '/settings',
  ]
  const OPEN = { nobody: 200, user: 200, moderator: 200, admin: 200, 'bad token': 401 }
  const CLOSED = { ...OPEN, nobody: 401 }
  const ADMIN = { ...CLOSED, user: 403, moderator: 403 }
  const ALL = { ...OPEN, 'bad token': 200 }
  const levels: readonly [string, string, string, Record<string, number>, Record<string, number>][] = [
    ['rbac', 'rbac', 'ai', CLOSED, ADMIN],
    ['rbac, open', 'rbac', 'voice', OPEN, OPEN],
    ['basic', 'basic', 'ai', CLOSED, CLOSED],
    ['basic, open', 'basic', 'voice', OPEN, OPEN],
    ['none', 'none', 'ai', ALL, ALL],
    ['none, open', 'none', 'voice', ALL, ALL],
  ]
  for (const [name, AUTH_LEVEL, OPEN_AREAS, read, write] of levels)
    test(name, async () => {
      const edge = await startEdge(url, { env: { AUTH_LEVEL, OPEN_AREAS } })
      const statuses = async (method: string, path: string, json?: object) => {
        const found: Record<string, number> = {}
        for (const [who, token] of Object.entries(people)) {
          const options = {
            ...(token === undefined ? {} : { token }),
            ...(json === undefined ? {} : { json }),
          }
          found[who] = (await edge.call(method, `/voice${path}`, options)).status
        }
        return found
      }
      for (const path of reads) assert.deepEqual(await statuses('GET', path), read, path)
      assert.deepEqual(await statuses('POST', '/settings', { tts_speed: 1 }), write)
      // Without a provider key, authorized callers get 503.
      const spoken = Object.fromEntries(
        Object.entries(read).map(([who, code]) => [who, code === 200 ? 503 : code]),
      )
      assert.deepEqual(await statuses('GET', '/preview/alloy'), spoken)
      assert.deepEqual(await statuses('POST', '/preview', { voice_id: 'alloy' }), spoken)
    })

  test('store the account that changed them last', async () => {
    await rbac.post('/voice/settings', { token: admin.token, json: {} })
    assert.deepEqual(await query('select updated_by from voice_settings'), [{ updated_by: admin.id }])
  })

  test('no path has the prefix /api/v1', async () => {
    assert.equal((await rbac.get('/api/v1/voice/settings', { token: admin.token })).status, 404)
  })
})
