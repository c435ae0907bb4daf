import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { describe, test } from 'node:test'
import { Failure } from '../../sql/errors.ts'
import type { Speech } from '../../sql/voice/previews.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import { createSpeaker } from '../../workers/providers/voice/speech.ts'
import { answerWithAudio, createAudio, startSpeechServer } from '../standins/speech.ts'
import { until } from '../until.ts'
import { holdTimers } from './held-timer.ts'

/** Tests the speech client: requests, answers and failures. */

const server = await startSpeechServer()
const { ai } = parseSettings({
  OPENAI_API_KEY: 'sk-hunter2',
  OPENAI_BASE_URL: server.url,
  MISTRAL_API_KEY: 'mi-hunter2',
  MISTRAL_BASE_URL: server.url,
})
const speaker = createSpeaker({ ai })
const TIMEOUT_SECONDS = 77
const impatientSpeaker = createSpeaker({ ai: { ...ai, timeoutSeconds: TIMEOUT_SECONDS } })
const OPENAI_SPEECH: Speech = {
  provider: 'openai',
  model: 'tts-1',
  voice: 'alloy',
  speed: 1.5,
  text: 'Hallo – 世界',
}
const MISTRAL_SPEECH: Speech = {
  ...OPENAI_SPEECH,
  provider: 'mistral',
  model: 'voxtral-mini-tts-3-0',
  voice: 'gb_jane_neutral',
}

async function readSpeech(
  speech: Speech,
  by = speaker,
  signal = new AbortController().signal,
): Promise<Buffer> {
  const pieces: Uint8Array[] = []
  for await (const piece of by.speak(speech, signal)) pieces.push(piece)
  return Buffer.concat(pieces)
}

test('sends the expected request and returns the audio unchanged', async () => {
  const bytes = createAudio(100_000)
  server.answer = answerWithAudio(bytes)
  assert.ok((await readSpeech(OPENAI_SPEECH)).equals(bytes))
  assert.deepEqual(server.asked.at(-1), {
    model: 'tts-1',
    voice: 'alloy',
    input: 'Hallo – 世界',
    speed: 1.5,
    response_format: 'mp3',
    authorization: 'Bearer sk-hunter2',
    path: '/v1/audio/speech',
  })
})

test('decodes the JSON answer of Mistral', async () => {
  const bytes = createAudio(3000)
  server.answer = (response) =>
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ audio_data: bytes.toString('base64') }))
  assert.ok((await readSpeech(MISTRAL_SPEECH)).equals(bytes))
  assert.deepEqual(server.asked.at(-1), {
    model: 'voxtral-mini-tts-3-0',
    voice_id: 'gb_jane_neutral',
    input: 'Hallo – 世界',
    response_format: 'mp3',
    stream: false,
    authorization: 'Bearer mi-hunter2',
    path: '/v1/audio/speech',
  })
})

test('yields the first piece before the last one is made', async () => {
  let more = (): void => {}
  server.answer = (response) => {
    response.writeHead(200, { 'content-type': 'audio/mpeg' }).write(createAudio(10))
    more = () => response.end(createAudio(20))
  }
  const pieces = speaker.speak(OPENAI_SPEECH, new AbortController().signal)[Symbol.asyncIterator]()
  assert.equal((await pieces.next()).value.length, 10)
  more()
  assert.equal((await pieces.next()).value.length, 20)
  assert.equal((await pieces.next()).done, true)
})

describe('failures', () => {
  const status =
    (code: number, headers = {}) =>
    (response: ServerResponse): void => {
      response
        .writeHead(code, { 'content-type': 'application/json', ...headers })
        .end(JSON.stringify({ error: { message: 'sk-hunter2 said: Hallo', code: 'x' } }))
    }
  const head = { 'content-type': 'audio/mpeg' }
  const cases: readonly [string, typeof server.answer, string, string][] = [
    ['an invalid key', status(401), 'ai.refused', 'it does not accept OPENAI_API_KEY'],
    ['a key without permission', status(403), 'ai.refused', 'it does not accept OPENAI_API_KEY'],
    ['an invalid request', status(400), 'ai.refused', 'it refused the request (HTTP status 400)'],
    ['an unknown resource', status(404), 'ai.refused', 'it refused the request (HTTP status 404)'],
    ['a rate limit', status(429, { 'retry-after': '7' }), 'ai.failed', 'too many requests'],
    ['a server error', status(500), 'ai.failed', 'HTTP status 500'],
    ['a server error', status(503), 'ai.failed', 'HTTP status 503'],
    ['no audio', status(200), 'ai.failed', 'its answer is not audio'],
    ['an empty answer', (r) => r.writeHead(200, head).end(), 'ai.failed', 'it sent nothing'],
    ['no answer', (r) => r.destroy(), 'ai.failed', 'the connection failed (UND_ERR_SOCKET)'],
    [
      'an interrupted answer',
      (r) => r.writeHead(200, head).write(createAudio(100), () => setImmediate(() => r.destroy())),
      'ai.interrupted',
      'the connection failed (UND_ERR_SOCKET)',
    ],
  ]
  for (const [what, answer, code, reason] of cases)
    test(`${what}: ${reason}`, async () => {
      server.answer = answer
      await assertFailsWith(readSpeech(OPENAI_SPEECH), code, reason)
    })

  test('passes Retry-After on', async () => {
    server.answer = status(429, { 'retry-after': '7' })
    await assert.rejects(readSpeech(OPENAI_SPEECH), { retryAfter: 7 })
  })

  test('times out before the first piece and after it', async (t) => {
    const limit = holdTimers(t, TIMEOUT_SECONDS * 1000)
    const reason = `it sent nothing for ${TIMEOUT_SECONDS} s`
    const asked = server.asked.length
    server.answer = () => {}
    const unheard = assertFailsWith(readSpeech(OPENAI_SPEECH, impatientSpeaker), 'ai.failed', reason)
    await until('the request has arrived', () => server.asked.length > asked)
    limit.goOff()
    await unheard
    server.answer = (response) => void response.writeHead(200, head).write(createAudio(10))
    const cut = assertFailsWith(readSpeech(OPENAI_SPEECH, impatientSpeaker), 'ai.interrupted', reason)
    await until('a piece has arrived', () => limit.restarts > 0)
    limit.goOff()
    await cut
  })

  test('rejects a Mistral answer without audio', async () => {
    for (const body of ['{}', 'null', '{"audio_data": 5}']) {
      server.answer = (response) => response.writeHead(200, { 'content-type': 'application/json' }).end(body)
      await assertFailsWith(readSpeech(MISTRAL_SPEECH), 'ai.failed', 'its answer is not audio')
    }
    server.answer = (response) =>
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"audio_data": ""}')
    await assertFailsWith(readSpeech(MISTRAL_SPEECH), 'ai.failed', 'it sent nothing')
  })

  test('sends no request without a key', async () => {
    const asked = server.asked.length
    await assert.rejects(readSpeech({ ...OPENAI_SPEECH, provider: 'groq' }), { code: 'ai.missing_key' })
    assert.equal(server.asked.length, asked)
  })

  test('closes the request when the job is aborted', async () => {
    const abort = new AbortController()
    let left = (): void => {}
    const gone = new Promise<void>((resolve) => {
      left = resolve
    })
    server.answer = (response) => {
      response.on('close', left)
      response.writeHead(200, head).write(createAudio(10), () => abort.abort('cancelled'))
    }
    await assert.rejects(readSpeech(OPENAI_SPEECH, speaker, abort.signal), (error) => error === 'cancelled')
    await gone
  })
})

async function assertFailsWith(work: Promise<unknown>, code: string, reason: string): Promise<void> {
  await assert.rejects(work, (error) => {
    assert.ok(error instanceof Failure, String(error))
    assert.equal(error.code, code)
    assert.ok(error.detail.endsWith(reason), error.detail)
    assert.doesNotMatch(error.detail, /hunter2|Hallo/)
    return true
  })
}
