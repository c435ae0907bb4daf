import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import { MAX_AUDIO_BYTES } from '../../tasks/voice/recognition.ts'
import { createRecordingIn, createToneWav, ENCODINGS, measureWav, type Pause } from '../recordings.ts'
import { Stream } from '../service.ts'
import {
  answerWithJson,
  beginEvents,
  createEvents,
  rejectWith,
  type TranscriptionRequest,
  transcribe,
} from '../standins/transcriptions.ts'
import { until } from '../until.ts'
import {
  assertRefusal,
  createUpload,
  PATH,
  send,
  startTranscribing,
  waitForJobEnd,
} from './transcriptions-help.ts'

/** Recordings over the limit of providers are cut at pauses, transcribed in pieces and joined. */

const { server, api, query, newcomer } = await startTranscribing()
const { token } = await newcomer()
afterEach(() => {
  server.answer = transcribe
})

// 16,000 samples of 16 bits a second: at most 819 s fit into a piece.
const SECONDS = 900
const PAUSES: readonly Pause[] = [[760, 760.6]]
let seeds = 0
const createLongWav = (): Buffer => createToneWav(SECONDS + ++seeds, PAUSES)

const durationOf = ({ file }: TranscriptionRequest): number => measureWav(file!.bytes).duration

/** Answers a piece of WAV as Whisper does: with its duration, and a segment for all of it. */
const answerPiece: typeof server.answer = (response, asked) => {
  const duration = durationOf(asked)
  const text = ` ${Math.round(duration)} seconds.`
  const segments = [{ start: 0.5, end: duration, text, no_speech_prob: 0.1, avg_logprob: -0.2 }]
  const usage = { type: 'duration', seconds: Math.ceil(duration) }
  answerWithJson(200, { language: 'english', duration, text: text.trim(), segments, usage })(response, asked)
}

const readUsage = async (jobId: string) =>
  (await query(`select data from job_event where job_id = $1 and kind = 'usage' order by seq`, [jobId])).map(
    ({ data }) => data as { cost: string | null; success: boolean; audio_seconds: number },
  )

describe('a recording over 25 MiB', () => {
  test('is cut at pauses and joined, with its times, usage and cost', async () => {
    server.answer = answerPiece
    const before = server.asked.length
    const wav = createLongWav()
    assert.ok(wav.length > MAX_AUDIO_BYTES)
    const answer = await send(api, token, wav, { model: 'whisper-1', prompt: 'Zoë' })
    assert.equal(answer.status, 200, answer.text)
    const asked = server.asked.slice(before)
    assert.equal(asked.length, 2)
    for (const { file, fields } of asked) {
      assert.deepEqual([file!.name, file!.type, fields.prompt], ['audio.wav', 'audio/wav', 'Zoë'])
      assert.ok(file!.bytes.length <= MAX_AUDIO_BYTES)
    }
    const lengths = asked.map(durationOf)
    const starts = [0, lengths[0]!]
    assert.ok(starts[1]! > 760.2 && starts[1]! < 760.4, `${starts}`)
    const sound = asked.map(({ file }) => file!.bytes.subarray(file!.bytes.indexOf('data') + 8))
    assert.ok(Buffer.concat(sound).equals(wav.subarray(44)))

    const made = answer.json
    assert.equal(made.text, lengths.map((one) => `${Math.round(one)} seconds.`).join(' '))
    assert.deepEqual(
      made.segments.map(({ start, end }: { start: number; end: number }) => [start, end]),
      starts.map((start, n) => [round(start + 0.5), round(start + lengths[n]!)]),
    )
    assert.equal(made.duration_seconds, SECONDS + seeds)
    const seconds = lengths.reduce((sum, one) => sum + Math.ceil(one), 0)
    assert.deepEqual(made.usage, { input_tokens: null, output_tokens: null, audio_seconds: seconds })
    assert.ok(Math.abs(made.cost - (seconds * 0.36) / 3600) < 1e-9)
    assert.deepEqual([made.language, made.status], ['en', 'done'])
    assert.deepEqual((await api.get(`${PATH}/${made.id}`, { token })).json, made)
    assert.deepEqual(
      (await readUsage(made.job_id)).map(({ audio_seconds }) => audio_seconds),
      lengths.map((one) => Math.ceil(one)),
    )
    assert.equal((await query('select from voice_transcription_piece')).length, 0)
    const srt = (await api.get(`${PATH}/${made.id}?format=srt`, { token })).text
    assert.equal(srt.split(' --> ').length, 3)
  })

  test('pays once for each piece, although a later one fails', async () => {
    let calls = 0
    server.answer = (response, asked) =>
      ++calls === 2 ? rejectWith(503, 'overloaded')(response, asked) : answerPiece(response, asked)
    const made = (await send(api, token, createLongWav(), { model: 'whisper-1' })).json
    assert.equal(made.status, 'done', JSON.stringify(made))
    assert.equal(calls, 3)
    assert.deepEqual(
      (await readUsage(made.job_id)).map(({ success, cost }) => [success, cost === '0']),
      [
        [true, false],
        [false, true],
        [true, false],
      ],
    )
    assert.equal(made.segments.length, 2)
  })

  test('keeps its answers for a retry by hand', async () => {
    let calls = 0
    server.answer = (response, asked) =>
      ++calls === 2 ? rejectWith(400, 'no')(response, asked) : answerPiece(response, asked)
    assert.equal((await send(api, token, createLongWav(), { model: 'whisper-1' })).status, 502)
    const [{ id, job_id }] = (await api.get(`${PATH}?limit=1`, { token })).json
    const again = (await api.post(`/api/v1/jobs/${job_id}/retry`, { token })).json
    await waitForJobEnd(api, token, again.job_id)
    const made = (await api.get(`${PATH}/${id}`, { token })).json
    assert.deepEqual([made.status, made.segments.length, calls], ['done', 2, 3])
  })

  test('streams its text and shows its progress, and can be cancelled', async () => {
    let calls = 0
    let release = (): void => {}
    server.answer = (response) => {
      calls++
      if (calls === 1) return void beginEvents(response).end(createEvents(['One.']).join(''))
      release = () => beginEvents(response).end(createEvents(['Two.']).join(''))
    }
    const { job_id } = (await send(api, token, createLongWav(), {}, '?background=true')).json
    await until('the second piece has arrived', () => calls === 2)
    const job = await until('the progress is known', async () => {
      const { json } = await api.get(`/api/v1/jobs/${job_id}`, { token })
      return json.progress?.current > 0 && json
    })
    assert.deepEqual([job.label, job.progress], ['Transcribing', { current: 760, total: SECONDS + seeds }])
    const abort = new AbortController()
    const response = await fetch(`http://127.0.0.1:${api.port}/api/v1/jobs/${job_id}/events`, {
      headers: { authorization: `Bearer ${token}` },
      signal: abort.signal,
    })
    const stream = new Stream(response, abort)
    release()
    const frames = await stream.waitForEnd()
    const said = frames.filter(({ event }) => event === 'chunk').map(({ data }) => data.content)
    // The stream begins with the first text that arrives after its start.
    assert.ok('One. Two.'.endsWith(said.join('')) && said.join('').includes(' Two.'), said.join('|'))
    const { result } = frames.at(-1)!.data as { result: { text: string } }
    assert.equal(result.text, 'One. Two.')
    assert.equal(calls, 2)

    server.answer = (response) => {
      calls++
      if (calls === 4) return
      beginEvents(response).end(createEvents(['One.']).join(''))
    }
    const other = (await send(api, token, createLongWav(), {}, '?background=true')).json.job_id
    await until('its second piece has arrived', () => calls === 4)
    assert.ok((await api.call('DELETE', `/api/v1/jobs/${other}`, { token })).status < 300)
    assert.equal((await waitForJobEnd(api, token, other)).status, 'cancelled')
    assert.equal(calls, 4)
  })

  test('tells speakers of different pieces apart', async () => {
    server.answer = (response) =>
      void beginEvents(response).end(
        [
          { type: 'transcript.text.segment', start: 0, end: 1, text: 'Hi.', speaker: 'A' },
          { type: 'transcript.text.done', text: 'Hi.' },
        ]
          .map((one) => `data: ${JSON.stringify(one)}\n\n`)
          .join(''),
      )
    const made = (await send(api, token, createLongWav(), { model: 'gpt-4o-transcribe-diarize' })).json
    assert.deepEqual(
      made.segments.map(({ speaker }: { speaker: string }) => speaker),
      ['A', 'A (2)'],
    )
    // No usage is known.
    assert.deepEqual([made.cost, made.usage.input_tokens], [null, null])
  })

  for (const [format, name] of [
    ['mp3', 'audio.mp3'],
    ['m4a', 'audio.m4a'],
    ['webm', 'audio.ogg'],
  ] as const)
    test(`is cut as ${format}, too`, async () => {
      const before = server.asked.length
      const recording = await createRecordingIn(ENCODINGS[format], 2000, [[1000, 1001]])
      const padded = Buffer.concat([
        recording,
        Buffer.alloc(Math.max(0, MAX_AUDIO_BYTES + 1 - recording.length)),
      ])
      const answer = await send(api, token, padded, { model: 'gpt-4o-transcribe' })
      assert.equal(answer.status, 200, answer.text)
      const asked = server.asked.slice(before)
      assert.deepEqual([...new Set(asked.map(({ file }) => file!.name))], [name])
      assert.ok(asked.length >= 2)
    })
})

describe('a recording of at most 25 MiB', () => {
  const sendAndList = async (bytes: Buffer, model: string) => {
    const before = server.asked.length
    const answer = await send(api, token, bytes, { model })
    assert.equal(answer.status, 200, answer.text)
    assert.ok(bytes.length <= MAX_AUDIO_BYTES)
    return { made: answer.json, asked: server.asked.slice(before) }
  }

  test('is cut if it is longer than the model accepts', async () => {
    const recording = await createRecordingIn(ENCODINGS.webm, 1900, [[1000, 1001]])
    for (const model of ['gpt-transcribe', 'gpt-4o-transcribe-diarize', 'voxtral-mini-latest']) {
      const { made, asked } = await sendAndList(recording, model)
      assert.deepEqual(
        asked.map(({ file }) => file!.name),
        ['audio.ogg', 'audio.ogg'],
      )
      assert.ok(Math.abs(made.duration_seconds - 1900) < 0.1, `${made.duration_seconds}`)
    }
    const { asked } = await sendAndList(recording, 'whisper-1')
    assert.deepEqual(
      asked.map(({ file }) => [file!.name, file!.bytes.equals(recording)]),
      [['audio.webm', true]],
    )
  })

  test('is sent unchanged and once if it is not', async () => {
    // The headers of a piece would not fit below the limit.
    const large = createToneWav(819, [])
    assert.ok(large.length > MAX_AUDIO_BYTES - 64 * 1024)
    for (const [recording, name] of [
      [await createRecordingIn(ENCODINGS.webm, 600, []), 'audio.webm'],
      [large, 'audio.wav'],
    ] as const) {
      const { made, asked } = await sendAndList(recording, 'gpt-transcribe')
      assert.deepEqual(
        asked.map(({ file }) => [file!.name, file!.bytes.equals(recording)]),
        [[name, true]],
      )
      // The provider's own duration.
      assert.equal(made.duration_seconds, 12)
    }
  })

  test('is sent unchanged if it cannot be cut', async () => {
    for (const [head, name] of [
      [Buffer.from('fLaC\0\0\0\x22', 'latin1'), 'audio.flac'],
      [Buffer.from([0, 0, 1, 0xba, 0x44]), 'audio.mpeg'],
    ] as const) {
      const recording = Buffer.concat([head, Buffer.alloc(2_000_000, 7)])
      const { asked } = await sendAndList(recording, 'gpt-transcribe')
      assert.deepEqual(
        asked.map(({ file }) => [file!.name, file!.bytes.equals(recording)]),
        [[name, true]],
      )
    }
  })
})

describe('a recording that cannot be cut is refused', () => {
  const cannot =
    /^The recording has more than 26214400 bytes or is too long for the model, and cannot be cut: /
  test('by its type, before it is stored', async () => {
    const bytes = Buffer.concat([Buffer.from([0, 0, 1, 0xba, 0x44]), Buffer.alloc(MAX_AUDIO_BYTES)])
    const answer = await send(api, token, bytes)
    assertRefusal(answer, 413, cannot)
    assert.match(
      answer.json.detail,
      /its type is video\/MP2P\. FLAC, MP3, MP4, M4A, Ogg, WAV and WebM can be cut$/,
    )
    const { id } = (await api.upload(token, bytes)).json
    assertRefusal(await api.post(PATH, { token, json: { document_id: id } }), 413, cannot)
  })

  test('by its bytes, without a call to the provider', async () => {
    const before = server.asked.length
    const bytes = Buffer.concat([Buffer.from('fLaC\0\0\0\x22', 'latin1'), Buffer.alloc(MAX_AUDIO_BYTES, 7)])
    const answer = await api.post(PATH, { token, ...createUpload(bytes) })
    assertRefusal(answer, 413, cannot)
    assert.equal(server.asked.length, before)
    const [failed] = (await api.get(`${PATH}?limit=1`, { token })).json
    assert.deepEqual([failed.status, failed.error.code], ['failed', 'voice.audio_too_large'])
  })
})

const round = (seconds: number): number => Math.round(seconds * 1000) / 1000
