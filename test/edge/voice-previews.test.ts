import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import { answerSlowly, answerWithAudio, createAudio } from '../standins/speech.ts'
import { until } from '../until.ts'
import { startEdge, startEdgeAndDatabase } from './harness.ts'
import { startSpeech, startVoiceWorker } from './voice-help.ts'

/** Voice previews are synthesized once and then served from the cache. */

const { server, env: reach } = await startSpeech()
const env = { AUTH_LEVEL: 'none', WORKER_MAX_TRIES: '2', ...reach }
const { api, query, url } = await startEdgeAndDatabase({ env })
await startVoiceWorker(url, env)
afterEach(() => {
  server.answer = answerWithAudio(createAudio(5000))
})

let texts = 0
const createText = (): string => `Text-${++texts}`
const requestPreview = (json: object, path = '/voice/preview') => api.post(path, { json })
const countRequests = () => server.asked.length
const countJobs = async () =>
  Number((await query(`select count(*) as n from job where name = 'voice.preview'`))[0]!.n)

describe('a preview', () => {
  test('is synthesized once and cached', async () => {
    const bytes = createAudio(70_000, 7)
    server.answer = answerWithAudio(bytes)
    const first = await requestPreview({ voice_id: 'alloy' })
    assert.equal(first.status, 200, first.text)
    assert.equal(first.headers['content-type'], 'audio/mpeg')
    assert.equal(first.headers['x-content-type-options'], 'nosniff')
    assert.ok(first.bytes.equals(bytes))
    const { path: _, authorization: __, ...body } = server.asked.at(-1)!
    assert.deepEqual(body, {
      model: 'gpt-4o-mini-tts',
      voice: 'alloy',
      input: 'Hello, I am Alloy. This is how I sound when I read to you.',
      speed: 1,
      response_format: 'mp3',
    })
    const before = countRequests()
    const again = await requestPreview({ voice_id: 'alloy' })
    assert.ok(again.bytes.equals(bytes))
    assert.equal(again.headers['content-length'], '70000')
    assert.equal(again.headers.etag, first.headers.etag)
    const inBrowser = await api.get('/voice/preview/alloy')
    assert.ok(inBrowser.bytes.equals(bytes))
    assert.equal(countRequests(), before)
  })

  test('is synthesized without a speed if the model refuses one', async () => {
    const bytes = createAudio(3000, 3)
    server.answer = (response, body) =>
      'speed' in body
        ? response
            .writeHead(400, { 'content-type': 'application/json' })
            .end(JSON.stringify({ error: { message: 'Unknown parameter: speed', param: 'speed' } }))
        : answerWithAudio(bytes)(response)
    const answer = await requestPreview({
      voice_id: 'fable',
      model: 'tts-1-hd',
      text: createText(),
      speed: 2,
    })
    assert.equal(answer.status, 200, answer.text)
    assert.ok(answer.bytes.equals(bytes))
  })

  test('names the pause that the provider asks for', async () => {
    server.answer = (response) => response.writeHead(429, { 'retry-after': '60' }).end('{}')
    const answer = await requestPreview({ voice_id: 'alloy', text: createText() })
    assert.equal(answer.status, 502, answer.text)
    const seconds = Number(answer.headers['retry-after'])
    assert.ok(seconds > 50 && seconds <= 60, String(seconds))
  })

  test('is cached by voice, model, speed and text', async () => {
    const text = createText()
    const wants = [
      { voice_id: 'alloy', text },
      { voice_id: 'ash', text },
      { voice_id: 'alloy', text, model: 'tts-1' },
      { voice_id: 'alloy', text, speed: 1.25 },
      { voice_id: 'alloy', text: `${text}.` },
    ]
    const tags = new Set<unknown>()
    for (const [n, want] of wants.entries()) {
      const before = countRequests()
      const bytes = createAudio(3000 + n, n + 1)
      server.answer = answerWithAudio(bytes)
      const answer = await requestPreview(want)
      assert.ok(answer.bytes.equals(bytes))
      tags.add(answer.headers.etag)
      assert.equal(countRequests(), before + 1)
    }
    assert.equal(tags.size, wants.length)
    for (const [n, want] of wants.entries()) {
      const { voice_id, ...how } = want
      const search = new URLSearchParams(how as never)
      const answer = await api.get(`/voice/preview/${voice_id}?${search}`)
      assert.equal(answer.bytes.length, 3000 + n)
    }
  })

  test('uses the settings if the voice supports them', async () => {
    const set = await api.post('/voice/settings', { json: { tts_model: 'tts-1', tts_speed: 2 } })
    assert.equal(set.status, 200, set.text)
    await requestPreview({ voice_id: 'nova' })
    assert.deepEqual([server.asked.at(-1)!.model, server.asked.at(-1)!.speed], ['tts-1', 2])
    await requestPreview({ voice_id: 'marin', text: createText() })
    assert.equal(server.asked.at(-1)!.model, 'gpt-4o-mini-tts')
    await query('delete from voice_settings')
  })

  test('supports ranges and conditional requests', async () => {
    const text = createText()
    const bytes = createAudio(10_000, 3)
    server.answer = answerWithAudio(bytes)
    const whole = await requestPreview({ voice_id: 'echo', text })
    const etag = whole.headers.etag!
    const get = (headers: Record<string, string>, method = 'GET') =>
      api.call(method, `/voice/preview/echo?text=${encodeURIComponent(text)}`, { headers })
    const part = await get({ range: 'bytes=100-199' })
    assert.equal(part.status, 206)
    assert.equal(part.headers['content-range'], 'bytes 100-199/10000')
    assert.ok(part.bytes.equals(bytes.subarray(100, 200)))
    const last = await get({ range: 'bytes=-1' })
    assert.ok(last.bytes.equals(bytes.subarray(9999)))
    assert.equal((await get({ range: 'bytes=0-', 'if-range': etag })).status, 206)
    assert.equal((await get({ range: 'bytes=0-', 'if-range': '"other"' })).status, 200)
    const beyond = await get({ range: 'bytes=10000-' })
    assert.deepEqual([beyond.status, beyond.headers['content-range']], [416, 'bytes */10000'])
    const known = await get({ 'if-none-match': etag })
    assert.deepEqual([known.status, known.bytes.length, known.headers.etag], [304, 0, etag])
    const head = await get({}, 'HEAD')
    assert.deepEqual([head.status, head.bytes.length, head.headers['content-length']], [200, 0, '10000'])
    assert.equal(head.headers['accept-ranges'], 'bytes')
    const headers = { range: 'bytes=0-1', 'if-none-match': etag }
    const posted = await api.post('/voice/preview', { json: { voice_id: 'echo', text }, headers })
    assert.deepEqual([posted.status, posted.bytes.length], [200, 10_000])
  })

  test('answers a range of an uncached preview once the preview is complete', async () => {
    const bytes = createAudio(8000, 6)
    server.answer = answerWithAudio(bytes)
    const get = (text: string, range: string) =>
      api.get(`/voice/preview/nova?text=${text}`, { headers: { range } })
    const text = createText()
    const two = await get(text, 'bytes=0-1')
    assert.deepEqual([two.status, two.headers['content-range']], [206, 'bytes 0-1/8000'])
    assert.ok(two.bytes.equals(bytes.subarray(0, 2)))
    assert.ok((await get(text, 'bytes=2-')).bytes.equals(bytes.subarray(2)))
    const whole = await get(createText(), 'bytes=0-')
    assert.deepEqual([whole.status, whole.bytes.length], [200, 8000])
    server.answer = (response) => response.writeHead(400).end()
    assert.equal((await get(createText(), 'bytes=5-9')).status, 502)
  })

  test('has a new ETag after it is synthesized again', async () => {
    const want = { voice_id: 'onyx', text: createText() }
    const first = await requestPreview(want)
    await query('delete from voice_preview')
    const second = await requestPreview(want)
    assert.notEqual(first.headers.etag, second.headers.etag)
  })

  test('HEAD does not synthesize anything', async () => {
    const before = countRequests()
    const head = await api.call('HEAD', `/voice/preview/fable?text=${createText()}`)
    assert.deepEqual([head.status, head.headers['content-type']], [200, 'audio/mpeg'])
    assert.equal(countRequests(), before)
  })

  test('runs as a background job and is then cached', async () => {
    const want = { voice_id: 'sage', text: createText() }
    const answer = await requestPreview(want, '/voice/preview?background=true')
    assert.equal(answer.status, 202)
    const { job_id } = answer.json
    assert.equal(answer.headers.location, `/api/v1/jobs/${job_id}`)
    const job = await until('the job is done', async () => {
      const { json } = await api.get(`/api/v1/jobs/${job_id}`)
      return json.status === 'done' && json
    })
    assert.deepEqual(job.result, { byte_size: 5000 })
    const before = countRequests()
    assert.equal((await requestPreview(want, '/voice/preview?background=true')).bytes.length, 5000)
    assert.equal(countRequests(), before)
    assert.equal((await requestPreview(want, '/voice/preview?background=perhaps')).status, 422)
  })

  test('supports callbacks for signed-in callers', async () => {
    const callback = `callback_url=${encodeURIComponent('https://example.com/spoken')}`
    const path = `/voice/preview?background=true&${callback}`
    const want = { voice_id: 'sage', text: createText() }
    assert.equal((await requestPreview(want, path)).status, 409)
    assert.equal((await requestPreview(want, `/voice/preview?${callback}`)).status, 422)
    const before = await countJobs()
    const signing = await startEdge(url, { env: reach })
    const { token } = await signing.register('caller@example.com')
    const answer = await signing.post(path, { token, json: want })
    assert.equal(answer.status, 202, answer.text)
    assert.equal(await countJobs(), before + 1)
    const told = await until('the callback is queued', async () => {
      const [row] = await query(`select type, url, body from webhook_delivery`)
      return row ?? false
    })
    assert.deepEqual([told.type, told.url], ['job.done', 'https://example.com/spoken'])
    assert.equal(JSON.parse(String(told.body)).data.job_id, answer.json.job_id)
  })
})

describe('a preview is rejected', () => {
  test('for an unknown voice', async () => {
    const before = await countJobs()
    for (const answer of [
      await requestPreview({ voice_id: 'nobody' }),
      await api.get('/voice/preview/nobody'),
    ])
      assert.deepEqual(
        [answer.status, answer.json],
        [404, { detail: 'Voice not found', code: 'voice.voice_missing' }],
      )
    assert.equal(await countJobs(), before)
  })

  test('for a model that does not support the voice', async () => {
    const answer = await requestPreview({ voice_id: 'marin', model: 'tts-1' })
    assert.deepEqual(
      [answer.status, answer.json],
      [400, { detail: 'model cannot be tts-1; it must be one of gpt-4o-mini-tts', code: 'voice.unknown' }],
    )
  })

  test('without a provider key', async () => {
    const before = await countJobs()
    const detail =
      'AI service error: Missing API key for mistral provider. Set MISTRAL_API_KEY environment variable.'
    const answers = [
      await requestPreview({ voice_id: 'gb_jane_neutral' }),
      await api.get('/voice/preview/gb_jane_neutral'),
      await requestPreview({ voice_id: 'gb_jane_neutral' }, '/voice/preview?background=true'),
    ]
    for (const answer of answers)
      assert.deepEqual([answer.status, answer.json], [503, { detail, code: 'ai.missing_key' }])
    assert.equal((await api.call('HEAD', '/voice/preview/gb_jane_neutral')).status, 503)
    assert.equal(await countJobs(), before)
  })

  test('for values out of range', async () => {
    const bodies: readonly [object, string][] = [
      [{}, 'voice_id'],
      [{ voice_id: '' }, 'voice_id'],
      [{ voice_id: 5 }, 'voice_id'],
      [{ voice_id: 'alloy', text: ' ' }, 'text'],
      [{ voice_id: 'alloy', text: 'x'.repeat(1001) }, 'text'],
      [{ voice_id: 'alloy', speed: 0.2 }, 'speed'],
      [{ voice_id: 'alloy', speed: 4.1 }, 'speed'],
    ]
    for (const [body, field] of bodies) {
      const answer = await requestPreview(body)
      assert.deepEqual([answer.status, answer.json.errors[0].loc[1]], [422, field])
    }
    for (const search of ['speed=0', 'speed=fast', 'speed=5', 'text=', `text=${'x'.repeat(1001)}`])
      assert.equal((await api.get(`/voice/preview/alloy?${search}`)).status, 422, search)
  })

  test('if the provider refuses, with a reason that does not quote the provider', async () => {
    server.answer = (response) => response.writeHead(401).end('{"error": {"message": "bad sk-test"}}')
    const answer = await requestPreview({ voice_id: 'alloy', text: createText() })
    assert.deepEqual(
      [answer.status, answer.json],
      [502, { detail: 'AI provider error: it does not accept OPENAI_API_KEY', code: 'ai.refused' }],
    )
  })

  test('a slow preview returns the id of its job', async () => {
    const hasty = await startEdge(url, { env: { ...env, REQUEST_WAIT_SECONDS: '0' } })
    const speech = answerSlowly(server)
    const answer = await hasty.get(`/voice/preview/alloy?text=${createText()}`)
    assert.equal(answer.status, 202)
    assert.match(answer.json.job_id, /^[0-9a-f-]{36}$/)
    speech.write(createAudio(2000))
    speech.end()
    await until('the job is done', async () => {
      const { json } = await api.get(`/api/v1/jobs/${answer.json.job_id}`)
      return json.status === 'done'
    })
  })
})
