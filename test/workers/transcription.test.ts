import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import { Failure, fail } from '../../sql/errors.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import { STT_MODELS } from '../../tasks/voice/catalog.ts'
import type { Recording, Transcript, TranscriptionOutcome } from '../../tasks/voice/ports.ts'
import { findLanguageTag } from '../../workers/providers/voice/languages.ts'
import { createTranscriber } from '../../workers/providers/voice/transcription.ts'
import { findFreePort } from '../free-port.ts'
import {
  answerWithJson,
  beginEvents,
  createEvents,
  createSilentWav,
  rejectWith,
  startTranscriptionServer,
  transcribe,
  WORDS,
} from '../standins/transcriptions.ts'
import { until } from '../until.ts'

/** Tests the transcription client: requests, answers, and failures that only it has (`ai-contract.test.ts`). */

const server = await startTranscriptionServer()
afterEach(() => {
  server.answer = transcribe
  server.early = null
})
const { ai } = parseSettings({
  OPENAI_API_KEY: 'sk-hunter2',
  OPENAI_BASE_URL: server.url,
  GROQ_API_KEY: 'gr-hunter2',
  GROQ_BASE_URL: server.url,
  MISTRAL_API_KEY: 'mi-hunter2',
  MISTRAL_BASE_URL: server.url,
})
const transcriber = createTranscriber({ ai })

const WAV_BYTES = createSilentWav(60)
const createRecording = (model: string, more: Partial<Recording> = {}): Recording => ({
  provider: STT_MODELS.find(({ id }) => id === model)!.provider_id,
  model,
  language: null,
  prompt: null,
  fileName: 'audio.wav',
  mediaType: 'audio/wav',
  pieces: splitBuffer(WAV_BYTES),
  ...more,
})

/** Yields pieces that share one buffer, as file stores do. */
async function* splitBuffer(bytes: Buffer): AsyncGenerator<Uint8Array> {
  const shared = Buffer.alloc(100_000)
  for (let at = 0; at < bytes.length; at += shared.length)
    yield shared.subarray(0, bytes.copy(shared, 0, at, at + shared.length))
}

const neverAborted = new AbortController().signal

async function transcribeRecording(
  asked: Recording,
  by = transcriber,
  shown: string[] = [],
): Promise<TranscriptionOutcome> {
  return by.transcribe(asked, neverAborted, (text) => void shown.push(text))
}

async function readTranscript(asked: Recording, shown: string[] = []): Promise<Transcript> {
  const found = await transcribeRecording(asked, transcriber, shown)
  assert.equal(found.kind, 'transcript', found.kind === 'failure' ? found.failure.detail : '')
  return (found as Extract<TranscriptionOutcome, { kind: 'transcript' }>).transcript
}

const TEXT = WORDS.join('')
const AUDIO_USAGE = { inputTokens: null, outputTokens: null, audioSeconds: 12 }
const TOKEN_USAGE = { inputTokens: 120, outputTokens: 30, audioSeconds: null }
const NO_DOUBTS = { noSpeechProb: null, avgLogprob: null, compressionRatio: null }
const createSegments = (speakers: readonly (string | null)[] = [null, null]) => [
  { start: 0, end: 1.5, text: 'Hello', speaker: speakers[0], ...NO_DOUBTS },
  { start: 1.5, end: 4.25, text: ' there, Zoë.', speaker: speakers[1], ...NO_DOUBTS },
]

describe('requests and answers of each model', () => {
  test('gpt-transcribe streams and returns the language', async () => {
    const shown: string[] = []
    const asked = createRecording('gpt-transcribe', { language: 'en', prompt: 'Zoë "quoted"\r\nline' })
    assert.deepEqual(await readTranscript(asked, shown), {
      text: TEXT,
      language: 'en',
      durationSeconds: 12,
      segments: [],
      used: AUDIO_USAGE,
    })
    assert.deepEqual(shown, WORDS)
    const { fields, file, authorization, path } = server.asked.at(-1)!
    assert.deepEqual(fields, {
      stream: 'true',
      model: 'gpt-transcribe',
      response_format: 'json',
      language: 'en',
      prompt: 'Zoë "quoted"\r\nline',
    })
    assert.deepEqual(
      [authorization, path, file!.name, file!.type],
      ['Bearer sk-hunter2', '/v1/audio/transcriptions', 'audio.wav', 'audio/wav'],
    )
    assert.ok(file!.bytes.equals(WAV_BYTES))
  })

  test('gpt-4o-transcribe counts tokens and returns no language', async () => {
    for (const model of ['gpt-4o-transcribe', 'gpt-4o-mini-transcribe'])
      assert.deepEqual(await readTranscript(createRecording(model)), {
        text: TEXT,
        language: null,
        durationSeconds: null,
        segments: [],
        used: TOKEN_USAGE,
      })
  })

  test('gpt-4o-transcribe-diarize separates speakers', async () => {
    const { fields: _, ...found } = {
      ...(await readTranscript(createRecording('gpt-4o-transcribe-diarize'))),
      fields: null,
    }
    assert.deepEqual(found.segments, createSegments(['A', 'B']))
    assert.deepEqual([found.text, found.used], [TEXT, TOKEN_USAGE])
    assert.equal(server.asked.at(-1)!.fields.chunking_strategy, 'auto')
  })

  test('Whisper returns segments, language and duration, at OpenAI and Groq', async () => {
    for (const [model, seconds, key] of [
      ['whisper-1', 5, 'sk'],
      ['whisper-large-v3', 4.25, 'gr'],
      ['whisper-large-v3-turbo', 4.25, 'gr'],
    ] as const) {
      assert.deepEqual(await readTranscript(createRecording(model)), {
        text: TEXT,
        language: 'en',
        durationSeconds: 4.25,
        segments: createSegments(),
        used: { inputTokens: null, outputTokens: null, audioSeconds: seconds },
      })
      const { fields, authorization } = server.asked.at(-1)!
      assert.equal(authorization, `Bearer ${key}-hunter2`)
      assert.deepEqual(fields, {
        model,
        response_format: 'verbose_json',
        'timestamp_granularities[]': 'segment',
      })
    }
  })

  test('Mistral returns segments unless the request names the language', async () => {
    const found = await readTranscript(createRecording('voxtral-mini-latest'))
    assert.deepEqual(found.segments, createSegments())
    assert.deepEqual(found.used, { inputTokens: 4, outputTokens: 30, audioSeconds: 12 })
    assert.deepEqual(server.asked.at(-1)!.fields, {
      model: 'voxtral-mini-latest',
      timestamp_granularities: 'segment',
    })
    assert.deepEqual(
      (await readTranscript(createRecording('voxtral-mini-latest', { language: 'de' }))).segments,
      [],
    )
    assert.deepEqual(server.asked.at(-1)!.fields, { model: 'voxtral-mini-latest', language: 'de' })
  })

  test('every model of the catalog transcribes', async () => {
    for (const { id } of STT_MODELS) assert.equal((await readTranscript(createRecording(id))).text, TEXT, id)
  })
})

test('shows the first words before the last ones arrive', async () => {
  let more = (): void => {}
  server.answer = (response) => {
    const [first, ...rest] = createEvents()
    beginEvents(response).write(first)
    more = () => response.end(rest.join(''))
  }
  const found = await transcriber.transcribe(createRecording('gpt-transcribe'), neverAborted, () => more())
  assert.equal(found.kind, 'transcript')
})

test('returns an empty text for silence', async () => {
  server.answer = (response) => void beginEvents(response).end(createEvents([]).join(''))
  assert.equal((await readTranscript(createRecording('gpt-transcribe'))).text, '')
})

test('sends the language of a tag in the form that providers expect', async () => {
  for (const [tag, code] of [
    ['en-US', 'en'],
    ['pt-BR', 'pt'],
    ['zh-Hans', 'zh'],
    ['fil', 'tl'],
    ['nb', 'no'],
    ['yue', 'yue'],
  ] as const)
    for (const { id } of STT_MODELS) {
      await readTranscript(createRecording(id, { language: tag }))
      assert.equal(server.asked.at(-1)!.fields.language, code, `${id} ${tag}`)
    }
})

test('recognizes language tags and Whisper’s language names', () => {
  for (const [named, code] of [
    ['en', 'en'],
    ['English', 'en'],
    ['german', 'de'],
    ['haitian creole', 'ht'],
    ['bengali', 'bn'],
    ['hebrew', 'he'],
    ['cantonese', 'yue'],
    ['tagalog', 'fil'],
    ['tl', 'fil'],
    ['eng', 'en'],
    ['pt_br', 'pt-BR'],
    ['zh-hans-cn', 'zh-Hans-CN'],
    ['und', null],
    ['Klingon of the north', null],
    ['', null],
    [null, null],
  ] as const)
    assert.equal(findLanguageTag(named), code, String(named))
})

describe('failures', () => {
  const beginThen =
    (rest: (response: ReturnType<typeof beginEvents>) => void) =>
    (response: Parameters<typeof beginEvents>[0]) => {
      beginEvents(response).write(createEvents()[0], () => rest(response))
    }
  type FailureCase = readonly [
    what: string,
    answer: typeof server.answer,
    code: string,
    reason: string,
    isFree: boolean,
  ]
  const PROVIDER_TEXT = 'sk-hunter2 said: Hello'
  const commonCases: readonly FailureCase[] = [
    [
      'a rate limit',
      rejectWith(429, PROVIDER_TEXT, 'rate_limit_exceeded'),
      'ai.failed',
      'too many requests',
      true,
    ],
    ['a large file', rejectWith(413, PROVIDER_TEXT), 'ai.refused', 'the file is too large for it', true],
    [
      'no answer',
      (response) => void response.destroy(),
      'ai.failed',
      'the connection failed (UND_ERR_SOCKET)',
      false,
    ],
    [
      'a long recording',
      rejectWith(
        400,
        'audio duration 2115.8 seconds is longer than 1500 seconds which is the maximum for this model',
        'invalid_value',
      ),
      'ai.refused',
      'the recording is too long for the model',
      true,
    ],
    [
      'a short recording',
      rejectWith(400, 'Audio file is too short. Minimum audio length is 0.1 seconds.', 'audio_too_short'),
      'ai.refused',
      'the recording is too short',
      true,
    ],
    ...[
      'The audio file could not be decoded or its format is not supported.',
      'Audio file might be corrupted or unsupported',
      'This model does not support the format you provided.',
      "Invalid file format. Supported formats: ['flac', 'm4a', 'mp3']",
      'could not process file - is it a valid media file?',
    ].map(
      (text): FailureCase => [
        'an undecodable file',
        rejectWith(400, text),
        'voice.audio_undecodable',
        'its format is unsupported',
        true,
      ],
    ),
  ]
  const streamingCases: readonly FailureCase[] = [
    ['a truncated stream', beginThen((r) => r.end()), 'ai.failed', 'the connection was closed', false],
    [
      'a broken connection',
      beginThen((r) => void setImmediate(() => r.destroy())),
      'ai.failed',
      'the connection failed (UND_ERR_SOCKET)',
      false,
    ],
    [
      'invalid JSON',
      beginThen((r) => r.end('data: {"type": \n\n')),
      'ai.failed',
      'its answer could not be read',
      false,
    ],
    [
      'no text',
      (r) => void beginEvents(r).end('data: {"type":"transcript.text.done"}\n\n'),
      'ai.failed',
      'its answer could not be read',
      false,
    ],
    [
      'an error event',
      beginThen((r) => r.end('data: {"error": {"message": "sk-hunter2"}}\n\n')),
      'ai.failed',
      'it reported an error (without a code)',
      false,
    ],
    [
      'a huge text',
      (r) => void beginEvents(r).end(createEvents(['x'.repeat(9_000_000), 'y'.repeat(9_000_000)]).join('')),
      'ai.refused',
      'its answer is too large',
      false,
    ],
  ]
  const wholeAnswerCases: readonly FailureCase[] = [
    ['HTML', answerWithJson(200, '<html>'), 'ai.failed', 'its answer could not be read', false],
    ['no text', answerWithJson(200, {}), 'ai.failed', 'its answer could not be read', false],
    [
      'impossible times',
      answerWithJson(200, { text: '', segments: [{ start: -1, end: 'x', text: '' }] }),
      'ai.failed',
      'its answer could not be read',
      false,
    ],
    [
      'a huge text',
      answerWithJson(200, { text: 'x'.repeat(17_000_000) }),
      'ai.refused',
      'its answer is too large',
      false,
    ],
  ]
  for (const [model, cases] of [
    ['gpt-transcribe', [...commonCases, ...streamingCases]],
    ['whisper-1', [...commonCases, ...wholeAnswerCases]],
  ] as const)
    for (const [what, answer, code, reason, isFree] of cases)
      test(`${model}, ${what}: ${reason}`, async () => {
        server.answer = answer
        assertFailure(await transcribeRecording(createRecording(model)), code, reason, isFree)
      })

  for (const [model, what, answer] of [
    ['gpt-transcribe', 'JSON in place of events', answerWithJson(200, { text: 'Hello' })],
    [
      'whisper-1',
      'events in place of JSON',
      (r) => void beginEvents(r).end(createEvents(['Hello']).join('')),
    ],
    [
      'gpt-transcribe',
      'impossible usage',
      answerWithJson(200, { text: 'Hello', usage: { input_tokens: -1, output_tokens: 9e15, seconds: 'x' } }),
    ],
  ] as readonly [string, string, typeof server.answer][])
    test(`${model} reads ${what}`, async () => {
      server.answer = answer
      const outcome = await transcribeRecording(createRecording(model))
      assert.ok(outcome.kind === 'transcript')
      assert.equal(outcome.transcript.text, 'Hello')
      assert.deepEqual(outcome.transcript.used.outputTokens ?? null, null)
    })

  test('reports that a refused connection cost nothing', async () => {
    const nobody = {
      ...ai,
      endpoints: {
        ...ai.endpoints,
        openai: { apiKey: 'k', baseUrl: `http://127.0.0.1:${await findFreePort()}/v1` },
      },
    }
    const found = await transcribeRecording(
      createRecording('gpt-transcribe'),
      createTranscriber({ ai: nobody }),
    )
    assertFailure(found, 'ai.failed', 'the connection failed (ECONNREFUSED)', true)
  })

  test('stops the upload after an early refusal', async () => {
    server.early = (response) => rejectWith(401, PROVIDER_TEXT)(response, null as never)
    let closed = false
    async function* endless(): AsyncGenerator<Uint8Array> {
      try {
        for (;;) yield new Uint8Array(65_536)
      } finally {
        closed = true
      }
    }
    const found = await transcribeRecording(createRecording('gpt-transcribe', { pieces: endless() }))
    assertFailure(found, 'ai.refused', 'it does not accept OPENAI_API_KEY', true)
    await until('the upload has stopped reading', () => closed)
  })

  test('rethrows an error from reading the recording', async () => {
    async function* broken(): AsyncGenerator<Uint8Array> {
      yield WAV_BYTES.subarray(0, 1000)
      throw fail('document.bytes_missing')
    }
    const asked = server.asked.length
    await assert.rejects(transcribeRecording(createRecording('gpt-transcribe', { pieces: broken() })), {
      code: 'document.bytes_missing',
    })
    assert.equal(server.asked.length, asked)
  })
})

function assertFailure(found: TranscriptionOutcome, code: string, reason: string, isFree: boolean): void {
  assert.ok(found.kind === 'failure', 'it is a failure')
  const { failure } = found
  assert.ok(failure instanceof Failure)
  assert.deepEqual([failure.code, found.isFree], [code, isFree], failure.detail)
  assert.ok(failure.detail.includes(reason), failure.detail)
  assert.doesNotMatch(failure.detail, /hunter2|Hello/)
}
