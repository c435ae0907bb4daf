import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import { answerWithJson, beginEvents, transcribe } from '../standins/transcriptions.ts'
import { assertRefusal, createRecording, PATH, send, startTranscribing } from './transcriptions-help.ts'

/** Transcriptions show what was said, in the language's tag and as subtitles. */

const { server, api, admin, newcomer } = await startTranscribing()
const { token } = await newcomer()
afterEach(() => {
  server.answer = transcribe
})

const SPOKEN = { no_speech_prob: 0.02, avg_logprob: -0.21, compression_ratio: 1.4 }
const SILENT = { no_speech_prob: 0.98, avg_logprob: -1.3, compression_ratio: 0.7 }

type Segment = Readonly<Record<string, unknown>> & { readonly text: string }
const createSegments = (texts: readonly (readonly [text: string, signs: object])[]): Segment[] =>
  texts.map(([text, signs], n) => ({ start: n * 2, end: n * 2 + 2, text, ...signs }))

/** Answers with the segments, in one of the shapes of providers. */
type Shape = (segments: readonly Segment[], separator?: string) => typeof server.answer
const createAnswer = (segments: readonly Segment[], separator: string) => ({
  text: segments
    .map(({ text }) => text)
    .join(separator)
    .trim(),
  segments,
})
const writeEvents = (events: readonly object[]): string =>
  events.map((one) => `data: ${JSON.stringify(one)}\n\n`).join('')
const whole: Shape =
  (segments, separator = '') =>
  (response, asked) =>
    answerWithJson(200, {
      ...{ task: 'transcribe', language: 'english', duration: 10 },
      ...createAnswer(segments, separator),
    })(response, asked)
const streamed: Shape =
  (segments, separator = '') =>
  (response) =>
    void beginEvents(response).end(
      writeEvents([
        ...segments.map((one) => ({ type: 'transcript.text.segment', ...one })),
        { type: 'transcript.text.done', text: createAnswer(segments, separator).text },
      ]),
    )
const doneAlone: Shape =
  (segments, separator = '') =>
  (response) =>
    void beginEvents(response).end(
      writeEvents([{ type: 'transcript.text.done', ...createAnswer(segments, separator) }]),
    )

const SHAPES: readonly [what: string, model: string, shape: Shape][] = [
  ['verbose JSON', 'whisper-1', whole],
  ['JSON of Mistral', 'voxtral-mini-latest', whole],
  ['JSON instead of a stream', 'gpt-transcribe', whole],
  ['events of segments', 'gpt-4o-transcribe-diarize', streamed],
  ['one event', 'gpt-4o-transcribe', doneAlone],
  ['events instead of JSON', 'whisper-1', doneAlone],
]

describe('silence is no text', () => {
  for (const [what, model, shape] of SHAPES) {
    test(`in ${what}`, async () => {
      server.answer = shape(
        createSegments([
          [' Hello', SPOKEN],
          [' Thanks for watching!', SILENT],
          [' there.', SPOKEN],
        ]),
      )
      const made = (await send(api, token, createRecording(), { model })).json
      assert.equal(made.text, 'Hello there.')
      assert.deepEqual(
        made.segments.map(
          ({ text, no_speech_prob, avg_logprob, compression_ratio }: typeof SPOKEN & Segment) => [
            text,
            { no_speech_prob, avg_logprob, compression_ratio },
          ],
        ),
        [
          [' Hello', SPOKEN],
          [' there.', SPOKEN],
        ],
      )
      assert.deepEqual((await api.get(`${PATH}/${made.id}`, { token })).json, made)
    })

    test(`if there is nothing else, in ${what}`, async () => {
      server.answer = shape(createSegments([[' Thanks for watching!', SILENT]]))
      const answer = await send(api, token, createRecording(), { model })
      assert.deepEqual([answer.status, answer.json.text, answer.json.segments], [200, '', []])
    })
  }

  test('only if both signs say so', async () => {
    const signs = [
      { no_speech_prob: 0.6, avg_logprob: -1.5 },
      { no_speech_prob: 0.99, avg_logprob: -1 },
      { no_speech_prob: 0.99 },
      { avg_logprob: -3 },
      { no_speech_prob: null, avg_logprob: 'none' },
    ]
    const text = 'It  keeps\nits spaces.'
    server.answer = (response, asked) =>
      answerWithJson(200, { text, segments: createSegments(signs.map((one, n) => [` ${n}`, one])) })(
        response,
        asked,
      )
    const made = (await send(api, token, createRecording(), { model: 'whisper-1' })).json
    assert.equal(made.text, text)
    assert.equal(made.segments.length, signs.length)
    assert.deepEqual([made.segments[4].no_speech_prob, made.segments[4].avg_logprob], [null, null])
  })

  test('and words stay apart if segments have no spaces', async () => {
    server.answer = whole(
      createSegments([
        ['One.', SPOKEN],
        ['you', SILENT],
        ['Two.', SPOKEN],
        ['Three.', SPOKEN],
      ]),
      ' ',
    )
    const made = (await send(api, token, createRecording(), { model: 'whisper-1' })).json
    assert.equal(made.text, 'One. Two. Three.')
  })

  test('and Chinese stays together', async () => {
    server.answer = whole(
      createSegments([
        ['你好，', SPOKEN],
        ['谢谢观看', SILENT],
        ['世界。', SPOKEN],
      ]),
    )
    assert.equal(
      (await send(api, token, createRecording(), { model: 'whisper-1' })).json.text,
      '你好，世界。',
    )
  })
})

describe('a language', () => {
  test('is a BCP 47 tag in requests, and the code of the language for providers', async () => {
    for (const [asked, stored, sent] of [
      ['en', 'en', 'en'],
      ['en-us', 'en-US', 'en'],
      ['pt-BR', 'pt-BR', 'pt'],
      ['zh-hans', 'zh-Hans', 'zh'],
      ['eng', 'en', 'en'],
      ['EN', 'en', 'en'],
      ['PT-BR', 'pt-BR', 'pt'],
    ] as const) {
      const made = (await send(api, token, createRecording(), { model: 'whisper-1', language: asked })).json
      assert.deepEqual([made.requested_language, server.asked.at(-1)!.fields.language], [stored, sent], asked)
      // The stand-in answers `english`.
      assert.equal(made.language, 'en')
    }
    const { id } = (await api.upload(token, createRecording())).json
    const json = { document_id: id, language: 'pt-br', model: 'gpt-4o-transcribe' }
    const { requested_language, language } = (await api.post(PATH, { token, json })).json
    assert.deepEqual([requested_language, language], ['pt-BR', 'pt-BR'])
  })

  test('is a BCP 47 tag in the settings', async () => {
    const set = (stt_language: string | null) =>
      api.post('/voice/settings', { token: admin.token, json: { stt_language } })
    for (const tag of ['ZH-HANT-TW', 'zh-hant-tw'])
      assert.equal((await set(tag)).json.stt_language, 'zh-Hant-TW')
    const made = (await send(api, token, createRecording())).json
    assert.deepEqual([made.requested_language, server.asked.at(-1)!.fields.language], ['zh-Hant-TW', 'zh'])
    for (const wrong of ['chinese', 'Chinese', 'zh_TW', '', 'und', 'UND', `zh-${'x'.repeat(40)}`])
      assert.equal((await set(wrong)).status, 422, wrong)
    assert.equal((await set(null)).status, 200)
  })
})

describe('subtitles', () => {
  const transcribeTexts = async (segments: readonly object[]): Promise<string> => {
    server.answer = answerWithJson(200, { text: 'x', segments })
    return (await send(api, token, createRecording(), { model: 'whisper-1' })).json.id
  }
  const read = (id: string, format: string) => api.get(`${PATH}/${id}?format=${format}`, { token })

  test('have correct times beyond an hour, and no cue ends early', async () => {
    const id = await transcribeTexts([
      { start: 0, end: 1.5, text: ' Tom & <Jerry>\n\n--> next' },
      { start: 59.9996, end: 59.9996, text: 'a\r\nb' },
      { start: 3600, end: 3725.0615, text: 'x --> y' },
      { start: 360_000, end: 360_001, text: ' \n ' },
      { start: 360_000.25, end: 360_001, text: 'The end.', speaker: 'A <1>' },
    ])
    const srt = await read(id, 'srt')
    assert.equal(srt.headers['content-type'], 'application/x-subrip; charset=utf-8')
    assert.equal(
      srt.text,
      `1
00:00:00,000 --> 00:00:01,500
Tom & <Jerry>
→ next

2
00:01:00,000 --> 00:01:00,001
a
b

3
01:00:00,000 --> 01:02:05,062
x → y

4
100:00:00,250 --> 100:00:01,000
A <1>: The end.

`,
    )
    const vtt = await read(id, 'vtt')
    assert.equal(vtt.headers['content-type'], 'text/vtt; charset=utf-8')
    assert.equal(
      vtt.text,
      `WEBVTT

00:00:00.000 --> 00:00:01.500
Tom &amp; &lt;Jerry&gt;
--&gt; next

00:01:00.000 --> 00:01:00.001
a
b

01:00:00.000 --> 01:02:05.062
x --&gt; y

100:00:00.250 --> 100:00:01.000
<v A &lt;1&gt;>The end.

`,
    )
    assert.equal((await api.call('HEAD', `${PATH}/${id}?format=vtt`, { token })).status, 200)
    assert.equal((await read(id, 'json')).json.id, id)
    assert.equal((await read(id, 'ass')).status, 422)
  })

  test('of silence are empty', async () => {
    server.answer = whole(createSegments([[' Thanks for watching!', SILENT]]))
    const { id } = (await send(api, token, createRecording(), { model: 'whisper-1' })).json
    assert.deepEqual([(await read(id, 'srt')).text, (await read(id, 'vtt')).text], ['', 'WEBVTT\n\n'])
  })

  test('need segments, and belong to the owner', async () => {
    const { id } = (await send(api, token, createRecording())).json
    const other = await newcomer()
    for (const format of ['srt', 'vtt']) {
      assertRefusal(
        await read(id, format),
        409,
        'The transcription has no subtitles: its model returned no segments',
      )
      assert.equal((await api.get(`${PATH}/${id}?format=${format}`, { token: other.token })).status, 404)
    }
    server.answer = answerWithJson(400, { error: { message: 'no' } })
    await send(api, token, createRecording())
    const [failed] = (await api.get(`${PATH}?limit=1`, { token })).json
    assertRefusal(await read(failed.id, 'srt'), 409, 'The transcription has no subtitles: it is failed')
  })
})
