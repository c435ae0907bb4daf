import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, test } from 'node:test'
import { Failure } from '../../sql/errors.ts'
import type { AiProvider } from '../../tasks/ai/providers.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import { createChat } from '../../workers/providers/ai/chat.ts'
import { createSpeaker } from '../../workers/providers/voice/speech.ts'
import { createTranscriber } from '../../workers/providers/voice/transcription.ts'
import { findFreePort } from '../free-port.ts'
import { stopAfterFile } from '../services.ts'
import { createAudio } from '../standins/speech.ts'
import { beginEvents, createEvents, createSilentWav } from '../standins/transcriptions.ts'
import { until } from '../until.ts'
import { holdTimers } from './held-timer.ts'

/** Every call to an AI provider fails alike: the same code, reason and retry for the same fault. */

const PROVIDER_TEXT = 'sk-hunter2 said: Hello'
const TIMEOUT_SECONDS = 77

let answer: (response: ServerResponse) => void = () => {}
let requestCount = 0
const server = createServer((request, response) => {
  response.on('error', () => {})
  request.on('error', () => {}).resume()
  request.on('end', () => {
    requestCount++
    answer(response)
  })
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
stopAfterFile(async () => {
  server.closeAllConnections()
  server.close()
})
const serverUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
const configure = (url = serverUrl, key = 'sk-hunter2') =>
  parseSettings({
    OPENAI_API_KEY: key,
    OPENAI_BASE_URL: url,
    AI_TIMEOUT_SECONDS: `${TIMEOUT_SECONDS}`,
  })

interface Adapter {
  readonly name: string
  readonly model: string
  /** Code of a failure after the first part of an answer. */
  readonly laterCode: 'ai.failed' | 'ai.interrupted'
  /** Multiple of the timeout that the adapter waits. */
  readonly patience?: number
  /** Begins a good answer: its head, and a part that the adapter passes on. Absent if only a whole answer counts. */
  readonly begin?: (response: ServerResponse) => void
  readonly call: (
    settings: ReturnType<typeof configure>,
    signal: AbortSignal,
    onOutput: () => void,
  ) => Promise<unknown>
}

const provider: AiProvider = 'openai'
const callChat =
  (isStreaming: boolean): Adapter['call'] =>
  (settings, signal, onOutput) =>
    createChat(settings).ask(
      {
        provider,
        model: 'm',
        system: '',
        messages: [{ role: 'user', content: 'Hello?' }],
        temperature: 0.5,
        maxTokens: 10,
      },
      signal,
      isStreaming ? onOutput : undefined,
    )
const callTranscriber =
  (model: string): Adapter['call'] =>
  async (settings, signal, onOutput) => {
    const recording = {
      provider,
      model,
      language: null,
      prompt: null,
      fileName: 'audio.wav',
      mediaType: 'audio/wav',
      pieces: (async function* () {
        yield createSilentWav(1)
      })(),
    }
    const outcome = await createTranscriber(settings).transcribe(recording, signal, onOutput)
    if (outcome.kind === 'failure') throw outcome.failure
    return outcome.transcript
  }
const chunk = (delta: object): string =>
  `data: ${JSON.stringify({ object: 'chat.completion.chunk', choices: [{ index: 0, delta }] })}\n\n`

const ADAPTERS: readonly Adapter[] = [
  {
    name: 'a streamed chat',
    model: 'm',
    laterCode: 'ai.interrupted',
    begin: (response) => void beginEvents(response).write(chunk({ content: 'Hello' })),
    call: callChat(true),
  },
  { name: 'a whole chat', model: 'm', laterCode: 'ai.failed', call: callChat(false) },
  {
    name: 'speech',
    model: 'tts-1',
    laterCode: 'ai.interrupted',
    begin: (response) =>
      void response.writeHead(200, { 'content-type': 'audio/mpeg' }).write(createAudio(100)),
    call: async (settings, signal, onOutput) => {
      const speech = { provider, model: 'tts-1', voice: 'alloy', speed: 1, text: 'Hello' }
      for await (const _ of createSpeaker(settings).speak(speech, signal)) onOutput()
    },
  },
  {
    name: 'a streamed transcription',
    model: 'gpt-transcribe',
    // An interrupted transcript is discarded, so it may be tried again.
    laterCode: 'ai.failed',
    begin: (response) => void beginEvents(response).write(createEvents()[0]),
    call: callTranscriber('gpt-transcribe'),
  },
  {
    name: 'a whole transcription',
    model: 'whisper-1',
    laterCode: 'ai.failed',
    patience: 2,
    call: callTranscriber('whisper-1'),
  },
]

const refuse =
  (status: number, code: string | null = null, headers: Readonly<Record<string, string>> = {}) =>
  (response: ServerResponse): void =>
    void response
      .writeHead(status, { 'content-type': 'application/json', ...headers })
      .end(JSON.stringify({ error: { message: PROVIDER_TEXT, type: 'x', code } }))

/** Asserts that a call fails, without the provider's words; returns the failure. */
async function expectFailure(calling: Promise<unknown>): Promise<Failure> {
  const error = await calling.then(
    () => assert.fail('The call did not fail'),
    (reason: unknown) => reason,
  )
  assert.ok(error instanceof Failure, String(error))
  assert.doesNotMatch(error.detail, /hunter2|Hello/)
  return error
}

for (const { name, model, laterCode, patience = 1, begin, call } of ADAPTERS) {
  const start = (signal = new AbortController().signal, onOutput = () => {}, settings = configure()) =>
    call(settings, signal, onOutput)

  describe(name, () => {
    for (const [what, fault, code, reason] of [
      ['an invalid key', refuse(401), 'ai.refused', 'it does not accept OPENAI_API_KEY'],
      [
        'a key without permission',
        refuse(403),
        'ai.refused',
        'it denied access to the model or the endpoint (HTTP status 403)',
      ],
      [
        'an unsupported country',
        refuse(403, 'unsupported_country_region_territory'),
        'ai.refused',
        'it does not serve the country or region of this service',
      ],
      ['an invalid request', refuse(400), 'ai.refused', 'it refused the request (HTTP status 400)'],
      ['an invalid field', refuse(422), 'ai.refused', 'it refused the request (HTTP status 422)'],
      ['an unknown model', refuse(404), 'ai.refused', `it has no model ${model}`],
      ['an unpaid account', refuse(402), 'ai.refused', 'the quota of the account is exhausted'],
      [
        'an exhausted quota',
        refuse(429, 'insufficient_quota'),
        'ai.refused',
        'the quota of the account is exhausted',
      ],
      ['a rate limit', refuse(429, 'rate_limit_exceeded'), 'ai.failed', 'too many requests'],
      ['a server error', refuse(500), 'ai.failed', 'HTTP status 500'],
      ['an overloaded server', refuse(529), 'ai.failed', 'HTTP status 529'],
      [
        'a cut connection',
        (response) => void response.destroy(),
        'ai.failed',
        'the connection failed (UND_ERR_SOCKET)',
      ],
    ] as readonly [string, typeof answer, string, string][])
      test(`${what}: ${reason}`, async () => {
        answer = fault
        const error = await expectFailure(start())
        assert.deepEqual(
          [error.code, error.retryable, error.detail.split(': ').at(-1)],
          [code, code === 'ai.failed', reason],
        )
      })

    test('Retry-After is passed on', async () => {
      answer = refuse(429, null, { 'retry-after': '17' })
      const { retryAfter, detail } = await expectFailure(start())
      assert.equal(retryAfter, 17)
      assert.match(detail, /too many requests; it asks to wait 17 s$/)
    })

    test('a refused connection is temporary', async () => {
      const nowhere = configure(`http://127.0.0.1:${await findFreePort()}/v1`)
      const error = await expectFailure(start(undefined, undefined, nowhere))
      assert.equal(error.code, 'ai.failed')
      assert.match(error.detail, /the connection failed \(ECONNREFUSED\)$/)
    })

    test('no request is sent without a key', async () => {
      const before = requestCount
      const error = await expectFailure(start(undefined, undefined, configure(serverUrl, '')))
      assert.deepEqual([error.code, requestCount], ['ai.missing_key', before])
    })

    test('silence before the answer ends the call', async (t) => {
      const limit = holdTimers(t, TIMEOUT_SECONDS * 1000 * patience)
      answer = () => {}
      const before = requestCount
      const calling = expectFailure(start())
      await until('the request has arrived', () => requestCount > before)
      limit.goOff()
      const error = await calling
      assert.equal(error.code, 'ai.failed')
      assert.match(error.detail, new RegExp(`it sent nothing for ${TIMEOUT_SECONDS * patience} s$`))
    })

    test('an abort ends the call with its reason and closes the request', async () => {
      const abort = new AbortController()
      const closed = Promise.withResolvers<void>()
      answer = (response) => {
        response.on('close', () => closed.resolve())
        if (begin === undefined) abort.abort('cancelled')
        else begin(response)
      }
      await assert.rejects(
        start(abort.signal, () => abort.abort('cancelled')),
        (error) => error === 'cancelled',
      )
      await closed.promise
    })

    if (begin === undefined) return

    test('silence within the answer ends the call', async (t) => {
      const limit = holdTimers(t, TIMEOUT_SECONDS * 1000)
      answer = begin
      const arrived = Promise.withResolvers<void>()
      const calling = expectFailure(start(undefined, arrived.resolve))
      await arrived.promise
      limit.goOff()
      const error = await calling
      assert.equal(error.code, laterCode)
      assert.match(error.detail, new RegExp(`it sent nothing for ${TIMEOUT_SECONDS} s$`))
    })

    test('a cut within the answer ends the call', async () => {
      let cut = (): void => {}
      answer = (response) => {
        begin(response)
        cut = () => response.destroy()
      }
      const error = await expectFailure(start(undefined, () => cut()))
      assert.equal(error.code, laterCode)
      assert.match(error.detail, /the connection (failed|broke)/)
    })
  })
}
