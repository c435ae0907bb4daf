import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import { Transcription } from '../../tasks/voice/transcription.ts'
import { Stream } from '../service.ts'
import { beginEvents, createEvents, rejectWith, transcribe, WORDS } from '../standins/transcriptions.ts'
import { until } from '../until.ts'
import { startEdge } from './harness.ts'
import {
  createRecording,
  createUpload,
  holdRequests,
  PATH,
  send,
  startTranscribing,
  waitForJobEnd,
} from './transcriptions-help.ts'

/** Recordings must be transcribed once, with their cost, despite provider failures. */

const { server, env, api, query, url, admin, newcomer } = await startTranscribing()
const user = await newcomer()
const { token } = user
afterEach(() => {
  server.answer = transcribe
})

const countProviderRequests = () => server.asked.length
// Other files of this process use the same database.
const readUsage = async (owner: number | null = user.id) =>
  query(
    `select action, model, vendor, owner_id, input_tokens::int as input, audio_seconds::float8 as audio, cost::float8 as cost, success,
      estimated from ai_usage where owner_id is not distinct from $1 order by id`,
    [owner],
  )
const readLatestUsage = async (owner?: number | null) => (await readUsage(owner)).at(-1)
const countBlobs = async () =>
  (await query('select sha256 is null as unused from blob')).filter(({ unused }) => unused)

describe('a recording', () => {
  test('is uploaded as a document and gets a text and a cost', async () => {
    const bytes = createRecording(3)
    const answer = await api.post(PATH, {
      token,
      ...createUpload(bytes, { language: 'en', prompt: 'Zoë' }, '../Gespräch 1.wav'),
    })
    assert.equal(answer.status, 200, answer.text)
    const made = Transcription.parse(answer.json)
    assert.deepEqual(
      { ...made, id: '', job_id: '', document_id: 0, created_at: '', finished_at: '' },
      {
        ...{
          id: '',
          status: 'done',
          job_id: '',
          document_id: 0,
          provider: 'openai',
          model: 'gpt-transcribe',
        },
        ...{ requested_language: 'en', language: 'en', duration_seconds: 12, cost: 0.0009, error: null },
        usage: { input_tokens: null, output_tokens: null, audio_seconds: 12 },
        ...{ created_at: '', finished_at: '', text: WORDS.join(''), segments: [] },
      },
    )
    const { fields, file } = server.asked.at(-1)!
    assert.deepEqual([fields.language, fields.prompt, file!.name], ['en', 'Zoë', 'audio.wav'])
    assert.ok(file!.bytes.equals(bytes))
    const document = (await api.get(`/api/v1/documents/${made.document_id}`, { token })).json
    assert.deepEqual(
      [document.kind, document.title, document.media_type, document.byte_size],
      ['audio', 'Gespräch 1.wav', 'audio/wav', bytes.length],
    )
    assert.deepEqual((await api.get(`${PATH}/${made.id}`, { token })).json, made)
    const [listed] = (await api.get(PATH, { token })).json
    const { text: _, segments: __, ...summary } = made
    assert.deepEqual(listed, summary)
    assert.deepEqual(await readLatestUsage(), {
      ...{ action: 'transcription', model: 'gpt-transcribe', vendor: 'openai', owner_id: user.id },
      ...{ input: 0, audio: 12, cost: 0.0009, success: true, estimated: false },
    })
    const stats = (await api.get('/api/v1/ai/usage/stats', { token })).json
    assert.deepEqual([stats.audio_seconds, stats.total_cost, stats.total_requests], [12, 0.0009, 1])
    assert.equal(stats.recent_activity[0].action, 'transcription')
    const spent = (await api.get('/api/v1/system/spending', { token: admin.token })).json
    const { audio_seconds } = spent.models.find(
      ({ model_id: id }: { model_id: string }) => id === 'gpt-transcribe',
    )
    assert.ok(audio_seconds >= 12, String(audio_seconds))
  })

  test('names an existing document and keeps its times', async () => {
    const uploaded = await api.upload(token, createRecording(), { name: 'x.bin' })
    const json = { document_id: uploaded.json.id, model: 'whisper-1' }
    const made = (await api.post(PATH, { token, json })).json
    assert.deepEqual(
      [made.document_id, made.model, made.language, made.cost],
      [uploaded.json.id, 'whisper-1', 'en', 0.0005],
    )
    assert.deepEqual(made.segments[1], {
      ...{ start: 1.5, end: 4.25, text: ' there, Zoë.', speaker: null },
      ...{ no_speech_prob: null, avg_logprob: null, compression_ratio: null },
    })
    assert.deepEqual((await api.get(`${PATH}/${made.id}`, { token })).json, made)
  })

  test('is stored once, however often it is uploaded', async () => {
    const bytes = createRecording()
    const [first, second] = [await send(api, token, bytes), await send(api, token, bytes)]
    assert.equal(first.json.document_id, second.json.document_id)
    assert.notEqual(first.json.id, second.json.id)
    await until('the second upload left nothing behind', async () => (await countBlobs()).length === 0)
  })

  test('is accepted in each format that providers support', async () => {
    const filler = Buffer.alloc(3000, 7)
    const starts: readonly [string, Buffer][] = [
      [
        'audio.mp3',
        Buffer.concat([
          Buffer.from('ID3\x04\0\0\0\0\0\0', 'latin1'),
          Buffer.from([0xff, 0xfb, 0x90, 0x64]),
          filler,
        ]),
      ],
      ['audio.flac', Buffer.concat([Buffer.from('fLaC\0\0\0\x22', 'latin1'), filler])],
      ['audio.ogg', Buffer.concat([Buffer.from('OggS'), Buffer.alloc(24), Buffer.from('OpusHead'), filler])],
      ['audio.m4a', Buffer.concat([Buffer.from([0, 0, 0, 24]), Buffer.from('ftypM4A '), filler])],
      ['audio.mp4', Buffer.concat([Buffer.from([0, 0, 0, 24]), Buffer.from('ftypisom'), filler])],
      [
        'audio.webm',
        Buffer.concat([
          Buffer.from([0x1a, 0x45, 0xdf, 0xa3, 0x87, 0x42, 0x82, 0x84]),
          Buffer.from('webm'),
          filler,
        ]),
      ],
      ['audio.mpeg', Buffer.concat([Buffer.from([0, 0, 1, 0xba, 0x44]), filler])],
    ]
    for (const [name, bytes] of starts) {
      const answer = await api.post(PATH, { token, ...createUpload(bytes, {}, 'x.txt') })
      assert.equal(answer.status, 200, `${name}: ${answer.text}`)
      assert.equal(server.asked.at(-1)!.file!.name, name)
    }
  })

  test('of 25 MiB is sent completely', async () => {
    const bytes = Buffer.concat([createRecording(), Buffer.alloc(25 * 1024 * 1024)]).subarray(
      0,
      25 * 1024 * 1024,
    )
    assert.equal((await send(api, token, bytes)).status, 200)
    assert.ok(server.asked.at(-1)!.file!.bytes.equals(bytes))
  })
})

test('uses the voice settings for missing options', async () => {
  const set = (json: object) => api.post('/voice/settings', { token: admin.token, json })
  assert.equal((await set({ stt_provider: 'mistral', stt_language: 'de' })).status, 200)
  const made = (await send(api, token, createRecording())).json
  assert.deepEqual(
    [made.provider, made.model, made.requested_language],
    ['mistral', 'voxtral-mini-latest', 'de'],
  )
  // The model's price is unknown.
  assert.deepEqual([made.cost, made.usage.audio_seconds, made.usage.input_tokens], [null, 12, 4])
  assert.equal((await readLatestUsage())!.cost, null)
  const other = (await send(api, token, createRecording(), { model: 'gpt-4o-transcribe', language: 'fr' }))
    .json
  // This model does not report the language that it detected.
  assert.deepEqual([other.requested_language, other.language, other.cost], ['fr', 'fr', 0.0006])
  assert.equal((await set({ stt_provider: 'openai', stt_language: null })).status, 200)
  assert.equal((await send(api, token, createRecording(), { language: '' })).json.requested_language, null)
})

describe('in the background', () => {
  const open = async (jobId: string): Promise<Stream> => {
    const abort = new AbortController()
    const response = await fetch(`http://127.0.0.1:${api.port}/api/v1/jobs/${jobId}/events`, {
      headers: { authorization: `Bearer ${token}` },
      signal: abort.signal,
    })
    return new Stream(response, abort)
  }

  test("the job's stream sends the words as they arrive", async () => {
    const pieces = createEvents()
    let more = (): void => {}
    server.answer = (response) => {
      beginEvents(response).write(pieces[0])
      more = () => response.end(pieces.slice(1).join(''))
    }
    const { job_id } = (await send(api, token, createRecording(), {}, '?background=true')).json
    const [pending] = (await api.get(PATH, { token })).json
    assert.deepEqual([pending.status, pending.job_id, pending.finished_at], ['pending', job_id, null])
    const stream = await open(job_id)
    const job = await until('the stream has started', async () => {
      const { json } = await api.get(`/api/v1/jobs/${job_id}`, { token })
      return json.label === 'Transcribing' && json
    })
    assert.equal(job.status, 'running')
    more()
    const frames = await stream.waitForEnd()
    const said = frames.filter(({ event }) => event === 'chunk').map(({ data }) => data.content)
    assert.ok(WORDS.join('').endsWith(said.join('')), said.join('|'))
    const { status, result } = frames.at(-1)!.data as { status: string; result: { text: string; id: string } }
    assert.deepEqual([status, result.text, result.id], ['done', WORDS.join(''), pending.id])
  })

  test('the callback URL is called', async () => {
    const callback = encodeURIComponent('https://example.com/heard')
    const answer = await send(api, token, createRecording(), {}, `?background=true&callback_url=${callback}`)
    assert.equal(answer.status, 202, answer.text)
    const told = await until('the callback of its end is pending', async () => {
      const rows = await query(`select type, url, body from webhook_delivery`)
      return rows.find(({ body }) => JSON.parse(String(body)).data.job_id === answer.json.job_id)
    })
    assert.deepEqual([told.type, told.url], ['job.done', 'https://example.com/heard'])
  })
})

describe('concurrent requests', () => {
  test('share one job for the same options; another model, language or prompt waits for it', async () => {
    const bytes = createRecording()
    const hold = holdRequests(server)
    const before = countProviderRequests()
    const jobOf = async (fields: Readonly<Record<string, string>> = {}): Promise<string> =>
      (await send(api, token, bytes, fields, '?background=true')).json.job_id
    const first = await jobOf()
    await until('the first request reached the provider', () => hold.waiting === 1)
    const same = await Promise.all([jobOf(), jobOf()])
    const others = [
      await jobOf({ model: 'whisper-1' }),
      await jobOf({ language: 'de' }),
      await jobOf({ prompt: 'x' }),
    ]
    assert.deepEqual(same, [first, first])
    assert.equal(new Set([first, ...others]).size, 4)
    // The same bytes from another owner are a separate document.
    const stranger = await newcomer()
    const foreign = (await send(api, stranger.token, bytes, {}, '?background=true')).json.job_id
    await until('both requests reached the provider', () => hold.waiting === 2)
    assert.equal(countProviderRequests() - before, 2)
    hold.go()
    for (const id of [first, ...others]) assert.equal((await waitForJobEnd(api, token, id)).status, 'done')
    assert.equal((await waitForJobEnd(api, stranger.token, foreign)).status, 'done')
    assert.equal(countProviderRequests() - before, 5)
    const made = (await api.get(`${PATH}?limit=4`, { token })).json
    assert.deepEqual(new Set(made.map((one: { job_id: string }) => one.job_id)), new Set([first, ...others]))
  })

  test('under one Idempotency-Key share one transcription', async () => {
    const bytes = createRecording()
    const before = countProviderRequests()
    const key = { 'idempotency-key': 'once' }
    const { body, headers } = createUpload(bytes, { prompt: 'a' })
    const ask = () => api.post(PATH, { token, body, headers: { ...headers, ...key } })
    const [first, second] = [await ask(), await ask()]
    assert.deepEqual([first.status, second.status], [200, 200])
    assert.deepEqual(first.json, second.json)
    assert.equal(countProviderRequests() - before, 1)
    for (const other of [
      createUpload(createRecording(), { prompt: 'a' }),
      createUpload(bytes, { prompt: 'b' }),
    ]) {
      const answer = await api.post(PATH, { token, body: other.body, headers: { ...other.headers, ...key } })
      assert.equal(answer.status, 422)
    }
    await until('the other uploads left nothing behind', async () => (await countBlobs()).length === 0)
  })
})

describe('provider failures', () => {
  const fail = (...answers: (typeof server.answer)[]): void => {
    server.answer = (response, one) => {
      const next = answers.shift() ?? transcribe
      next(response, one)
    }
  }

  test('a transient failure is retried and costs nothing', async () => {
    fail(rejectWith(503, 'overloaded'))
    const before = (await readUsage()).length
    assert.equal((await send(api, token, createRecording())).status, 200)
    assert.deepEqual(
      (await readUsage()).slice(before).map(({ cost, success, estimated }) => [cost, success, estimated]),
      [
        [0, false, false],
        [0.0009, true, false],
      ],
    )
  })

  test('an interrupted answer is requested again, and the interrupted request has an unknown cost', async () => {
    fail((response) => {
      beginEvents(response).write(createEvents()[0], () => void setImmediate(() => response.destroy()))
    })
    const before = (await readUsage()).length
    const made = (await send(api, token, createRecording())).json
    assert.equal(made.text, WORDS.join(''))
    assert.deepEqual(
      (await readUsage()).slice(before).map(({ cost, success, estimated }) => [cost, success, estimated]),
      [
        [null, false, true],
        [0.0009, true, false],
      ],
    )
    const kinds = await query(
      `select kind from job_event where job_id = $1 and kind <> 'status' order by seq`,
      [made.job_id],
    )
    assert.deepEqual(
      kinds
        .map(({ kind }) => kind)
        .filter((kind) => kind === 'chunk' || kind === 'restart')
        .slice(0, 3),
      ['chunk', 'restart', 'chunk'],
    )
  })

  test('undecodable bytes are a permanent failure', async () => {
    const undecodable = rejectWith(400, 'The audio file could not be decoded or its format is not supported.')
    fail(undecodable, undecodable)
    const before = countProviderRequests()
    const answer = await send(api, token, createRecording())
    assert.equal(answer.status, 400, answer.text)
    assert.match(answer.json.detail, /^The provider could not decode the audio/)
    assert.equal(countProviderRequests() - before, 1)
    const [{ status, error, text, segments }] = (await api.get(`${PATH}?limit=1`, { token })).json
    assert.deepEqual(
      [status, error.code, text, segments],
      ['failed', 'voice.audio_undecodable', undefined, undefined],
    )
  })

  test('a refusal contains no text of the provider', async () => {
    fail(rejectWith(401, 'sk-test is not a key'))
    const answer = await send(api, token, createRecording())
    assert.deepEqual(
      [answer.status, answer.json.detail],
      [502, 'AI provider error: it does not accept OPENAI_API_KEY'],
    )
  })

  test('characters that PostgreSQL cannot store are removed', async () => {
    fail(
      (response) =>
        void beginEvents(response).end(createEvents(['a\0b', '\ud800c'], { languages: [] }).join('')),
    )
    const { text, language } = (await send(api, token, createRecording())).json
    assert.deepEqual([text, language], ['ab\ufffdc', null])
  })

  test('a failed transcription is retried through its job', async () => {
    fail(rejectWith(400, 'no'))
    const bytes = createRecording()
    assert.equal((await send(api, token, bytes)).status, 502)
    const [{ id, job_id }] = (await api.get(`${PATH}?limit=1`, { token })).json
    const again = await api.post(`/api/v1/jobs/${job_id}/retry`, { token })
    await waitForJobEnd(api, token, again.json.job_id)
    const made = (await api.get(`${PATH}/${id}`, { token })).json
    assert.deepEqual([made.status, made.text, made.job_id], ['done', WORDS.join(''), again.json.job_id])
  })
})

test('a document deleted while it waits is not sent', async () => {
  const { id } = (await api.upload(token, createRecording())).json
  const hold = holdRequests(server)
  const ask = async (model: string): Promise<string> =>
    (await api.post(`${PATH}?background=true`, { token, json: { document_id: id, model } })).json.job_id
  const first = await ask('whisper-1')
  await until('the first request reached the provider', () => hold.waiting === 1)
  const second = await ask('gpt-transcribe')
  assert.equal((await api.call('DELETE', `/api/v1/documents/${id}`, { token })).status, 204)
  const before = countProviderRequests()
  hold.go()
  assert.equal((await waitForJobEnd(api, token, first)).status, 'done')
  const { status, error } = await waitForJobEnd(api, token, second)
  assert.deepEqual([status, error.code], ['failed', 'document.missing'])
  assert.equal(countProviderRequests(), before)
})

describe('deleting a transcription', () => {
  test('cancels a running request to the provider and keeps the recording and its usage', async () => {
    let left = (): void => {}
    const gone = new Promise<void>((resolve) => {
      left = resolve
    })
    const begun = new Promise<void>((resolve) => {
      server.answer = (response) => {
        response.on('close', left)
        beginEvents(response).write(createEvents()[0], () => resolve())
      }
    })
    const before = (await readUsage()).length
    const { job_id } = (await send(api, token, createRecording(), {}, '?background=true')).json
    const [{ id, document_id }] = (await api.get(`${PATH}?limit=1`, { token })).json
    await begun
    assert.equal((await api.call('DELETE', `${PATH}/${id}`, { token })).status, 204)
    await gone
    assert.equal((await waitForJobEnd(api, token, job_id)).status, 'cancelled')
    assert.equal((await api.get(`${PATH}/${id}`, { token })).status, 404)
    assert.equal((await api.get(`/api/v1/documents/${document_id}`, { token })).status, 200)
    assert.deepEqual(
      (await readUsage()).slice(before).map(({ cost, success, estimated }) => [cost, success, estimated]),
      [[null, false, true]],
    )
  })

  test('returns 404 if it is already deleted', async () => {
    const { id } = (await send(api, token, createRecording())).json
    assert.equal((await api.call('DELETE', `${PATH}/${id}`, { token })).status, 204)
    assert.equal((await api.call('DELETE', `${PATH}/${id}`, { token })).status, 404)
  })
})

test('a list is complete across its pages, newest first', async () => {
  const { token } = await newcomer()
  const ids: string[] = []
  for (let n = 0; n < 5; n++) ids.unshift((await send(api, token, createRecording())).json.id)
  const seen: string[] = []
  for (let path: string | undefined = `${PATH}?limit=2`; path !== undefined; ) {
    const answer = await api.get(path, { token })
    seen.push(...answer.json.map(({ id }: { id: string }) => id))
    path = /^<([^>]+)>; rel="next"$/.exec(String(answer.headers.link ?? ''))?.[1]
  }
  assert.deepEqual(seen, ids)
})

test('without authentication a transcription has no owner and is visible to every caller', async () => {
  const open = await startEdge(url, { env: { ...env, AUTH_LEVEL: 'none' } })
  const made = await open.post(PATH, createUpload(createRecording()))
  assert.equal(made.status, 200, made.text)
  assert.equal((await open.get(`${PATH}/${made.json.id}`)).status, 200)
  assert.equal((await api.get(`${PATH}/${made.json.id}`, { token })).status, 404)
  assert.equal((await readLatestUsage(null))!.owner_id, null)
  assert.equal((await open.call('DELETE', `${PATH}/${made.json.id}`)).status, 204)
})
