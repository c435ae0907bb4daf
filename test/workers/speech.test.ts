import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Failure } from '../../sql/errors.ts'
import type { Speech } from '../../sql/voice/previews.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import { createSpeaker } from '../../workers/providers/voice/speech.ts'
import { answerWithAudio, createAudio, startSpeechServer } from '../standins/speech.ts'

/** Tests the speech client: requests, answers, and failures that only it has (`ai-contract.test.ts`). */

const server = await startSpeechServer()
const { ai } = parseSettings({
  OPENAI_API_KEY: 'sk-hunter2',
  OPENAI_BASE_URL: server.url,
  MISTRAL_API_KEY: 'mi-hunter2',
  MISTRAL_BASE_URL: server.url,
})
const speaker = createSpeaker({ ai })
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

test('leaves out the parameter that a model refuses, and remembers it', async () => {
  const bytes = createAudio(3000)
  for (const [speech, name, message] of [
    [{ ...OPENAI_SPEECH, model: 'tts-steady' }, 'speed', 'Unsupported parameter: speed'],
    [{ ...MISTRAL_SPEECH, model: 'voxtral-steady' }, 'stream', "Extra inputs are not permitted: 'stream'"],
  ] as const) {
    server.answer = (response, body) =>
      name in body
        ? response
            .writeHead(400, { 'content-type': 'application/json' })
            .end(JSON.stringify({ error: { message } }))
        : speech.provider === 'openai'
          ? answerWithAudio(bytes)(response)
          : response.writeHead(200).end(JSON.stringify({ audio_data: bytes.toString('base64') }))
    const before = server.asked.length
    for (let n = 0; n < 2; n++) assert.ok((await readSpeech(speech)).equals(bytes))
    assert.deepEqual(
      server.asked.slice(before).map((body) => name in body),
      [true, false, false],
    )
  }
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
  test('rejects an answer without audio', async () => {
    server.answer = (response) => response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
    await assertFailsWith(readSpeech(OPENAI_SPEECH), 'ai.failed', 'its answer is not audio')
    server.answer = (response) => response.writeHead(200, { 'content-type': 'audio/mpeg' }).end()
    await assertFailsWith(readSpeech(OPENAI_SPEECH), 'ai.failed', 'it sent nothing')
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
