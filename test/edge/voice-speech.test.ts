import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import { answerSlowly, answerWithAudio, createAudio } from '../standins/speech.ts'
import { until } from '../until.ts'
import { createCast } from './accounts-help.ts'
import { createKey } from './api-keys-help.ts'
import { startEdge, startEdgeAndDatabase } from './harness.ts'
import { startSpeech, startVoiceWorker } from './voice-help.ts'

/** Texts of any length are spoken in pieces, streamed, and stored for their owner. */

const { server, env: reach } = await startSpeech()
const env = { WORKER_MAX_TRIES: '2', ...reach }
const { api, query, url } = await startEdgeAndDatabase({ env })
await startVoiceWorker(url, env)
const { admin, newcomer } = await createCast(api)
const user = await newcomer()
const { token } = user

const PATH = '/voice/speech'
const AUDIO_BYTES = 6000
/** The audio for a text. */
const speak = (text: unknown): Buffer => createAudio(AUDIO_BYTES, String(text).length)
const speakAll: typeof server.answer = (response, { input }) => answerWithAudio(speak(input))(response)
server.answer = speakAll
afterEach(() => {
  server.answer = speakAll
})

let texts = 0
const createSentence = (words: number): string => `Sentence ${++texts} has ${'many '.repeat(words)}words.`
/** Returns a text of about 9,500 characters, which needs three pieces. */
const createLongText = (): string => Array.from({ length: 38 }, () => createSentence(45)).join(' ')
const post = (json: object, search = '', who = token) => api.post(`${PATH}${search}`, { token: who, json })
const get = (id: string, headers: Record<string, string> = {}, who = token) =>
  api.get(`${PATH}/${id}`, { token: who, headers })
const idOf = (headers: Readonly<Record<string, unknown>>): string =>
  /^\/voice\/speech\/([0-9a-f-]{36})$/.exec(String(headers['content-location']))![1]!
const asked = (from: number): string[] => server.asked.slice(from).map(({ input }) => String(input))
const endOf = (id: string) =>
  until('the job has ended', async () => {
    const { json } = await api.get(`/api/v1/jobs/${id}`, { token })
    return ['done', 'failed', 'cancelled'].includes(json.status) && json
  })
const readUsage = () =>
  query(
    `select model, owner_id, cost::float8 as cost, success, estimated from ai_usage where action = 'speech' order by id`,
  )

describe('a speech', () => {
  test('is streamed in pieces that end with sentences, and joined', async () => {
    const [text, before, used] = [createLongText(), server.asked.length, (await readUsage()).length]
    const answer = await post({ text, voice_id: 'ash', model: 'tts-1', speed: 1.5, language: 'en-US' })
    assert.equal(answer.status, 200, answer.text)
    assert.equal(answer.headers['content-type'], 'audio/mpeg')
    const pieces = asked(before)
    assert.ok(pieces.length >= 3)
    assert.equal(pieces.join(' '), text)
    for (const piece of pieces) {
      assert.ok(piece.length <= 4096)
      assert.match(piece, /words\.$/)
    }
    const { path: _, authorization: __, input: ___, ...body } = server.asked.at(-1)!
    assert.deepEqual(body, { model: 'tts-1', voice: 'ash', speed: 1.5, response_format: 'mp3' })
    const bytes = Buffer.concat(pieces.map(speak))
    assert.ok(answer.bytes.equals(bytes))

    const id = idOf(answer.headers)
    const stored = await get(id)
    assert.deepEqual([stored.status, stored.headers['content-length']], [200, String(bytes.length)])
    assert.ok(stored.bytes.equals(bytes))
    const part = await get(id, { range: 'bytes=5990-6009' })
    assert.deepEqual([part.status, part.headers['content-range']], [206, `bytes 5990-6009/${bytes.length}`])
    assert.ok(part.bytes.equals(bytes.subarray(5990, 6010)))
    assert.equal((await get(id, { 'if-none-match': String(stored.headers.etag) })).status, 304)
    const again = await post({ text, voice_id: 'ash', model: 'tts-1', speed: 1.5, language: 'en-us' })
    assert.ok(again.bytes.equals(bytes))
    assert.equal(idOf(again.headers), id)
    assert.equal(server.asked.length, before + pieces.length)
    assert.deepEqual((await endOf(id)).result, { id, byte_size: bytes.length })
    const usage = (await readUsage()).slice(used)
    assert.deepEqual(
      usage,
      pieces.map((piece) => ({
        ...{ model: 'tts-1', owner_id: user.id, cost: (piece.length * 15) / 1_000_000 },
        ...{ success: true, estimated: false },
      })),
    )
    const stats = (await api.get('/api/v1/ai/usage/stats', { token })).json
    assert.equal(stats.total_requests, pieces.length)
  })

  test('begins before its end is made, also for those who come late', async () => {
    const text = createLongText()
    const before = server.asked.length
    const slow = answerSlowly(server)
    const early = post({ text })
    await slow.begun
    const [{ job_id }] = (await query('select job_id from voice_preview where text = $1', [text])) as [
      { job_id: string },
    ]
    server.answer = speakAll
    slow.write(createAudio(5000))
    await until('the first bytes are stored', async () => {
      const [row] = await query(
        `select count(*)::int as n from voice_preview_chunk c join voice_preview p using (digest) where p.job_id = $1`,
        [job_id],
      )
      return Number(row!.n) > 0
    })
    const late = get(job_id)
    const range = get(job_id, { range: 'bytes=0-1' })
    const same = post({ text })
    slow.end()
    const answers = await Promise.all([early, late, same])
    const bytes = Buffer.concat([createAudio(5000), ...asked(before).slice(1).map(speak)])
    for (const answer of answers) assert.ok(answer.bytes.equals(bytes))
    assert.equal((await range).status, 206)
    assert.equal(asked(before).join(' '), text)
  })

  test('is not paid twice for pieces that are complete', async () => {
    const [text, before, used] = [createLongText(), server.asked.length, (await readUsage()).length]
    let calls = 0
    server.answer = (response, body) => {
      if (++calls === 2) response.writeHead(503).end('{}')
      else speakAll(response, body)
    }
    const { job_id } = (await post({ text, model: 'tts-1-hd', voice_id: 'nova' }, '?background=true')).json
    const job = await endOf(job_id)
    assert.equal(job.status, 'done', JSON.stringify(job))
    const pieces = [...new Set(asked(before))]
    assert.equal(calls, pieces.length + 1)
    assert.ok((await get(job_id)).bytes.equals(Buffer.concat(pieces.map(speak))))
    assert.deepEqual(
      (await readUsage()).slice(used).map(({ success, estimated }) => [success, estimated]),
      [[true, false], [false, true], ...pieces.slice(1).map(() => [true, false])],
    )
  })

  test('can be cancelled, and continues if it is requested again', async () => {
    const text = createLongText()
    const before = server.asked.length
    let calls = 0
    server.answer = (response, body) => {
      if (++calls > 1) response.writeHead(200, { 'content-type': 'audio/mpeg' }).flushHeaders()
      else speakAll(response, body)
    }
    const accepted = await post({ text }, '?background=true')
    assert.deepEqual(
      [accepted.status, accepted.headers.location],
      [202, `/api/v1/jobs/${accepted.json.job_id}`],
    )
    const { job_id } = accepted.json
    await until('the second piece was requested', () => calls === 2)
    const shown = await until('its progress is stored', async () => {
      const { json } = await api.get(`/api/v1/jobs/${job_id}`, { token })
      return json.progress.current === 1 && json
    })
    assert.equal(shown.label, 'Synthesizing')
    assert.ok(shown.progress.total >= 3)
    assert.ok((await api.call('DELETE', `/api/v1/jobs/${job_id}`, { token })).status < 300)
    assert.equal((await endOf(job_id)).status, 'cancelled')
    const cancelled = await get(job_id)
    assert.deepEqual([cancelled.status, cancelled.json.code], [409, 'job.cancelled'])
    server.answer = speakAll
    const answer = await post({ text })
    assert.equal(answer.status, 200, answer.text)
    const pieces = [...new Set(asked(before))]
    assert.ok(answer.bytes.equals(Buffer.concat(pieces.map(speak))))
    // The second piece was requested twice.
    assert.equal(server.asked.length, before + pieces.length + 1)
    assert.equal(idOf(answer.headers) === job_id, false)
  })

  test('that is incomplete exists while its job is kept', async () => {
    server.answer = (response) => response.writeHead(400).end('{}')
    const accepted = await post({ text: createSentence(9) }, '?background=true')
    const { job_id } = accepted.json
    assert.equal((await endOf(job_id)).status, 'failed')
    assert.equal((await get(job_id)).status, 502)
    await query('delete from job where id = $1', [job_id])
    const gone = await get(job_id)
    assert.deepEqual([gone.status, gone.json.code], [404, 'voice.speech_missing'])
    server.answer = speakAll
    assert.equal((await post({ text: createSentence(9) })).status, 200)
  })

  test('is booked by its own calls if it is requested again after a failure', async () => {
    const ask = { text: createSentence(4), model: 'tts-1', voice_id: 'ash' }
    server.answer = (response) => response.writeHead(400).end('{}')
    const failed = await post(ask)
    assert.equal(failed.status, 502, failed.text)
    const used = (await readUsage()).length
    server.answer = speakAll
    assert.equal((await post(ask)).status, 200)
    await until('the usage is booked', async () => (await readUsage()).length > used)
    assert.deepEqual(
      (await readUsage()).slice(used).map(({ success, estimated }) => [success, estimated]),
      [[true, false]],
    )
  })

  test('that is stored has a job and a callback if requested', async () => {
    const text = createSentence(6)
    const id = idOf((await post({ text })).headers)
    const before = server.asked.length
    const callback = `callback_url=${encodeURIComponent('https://example.com/spoken')}`
    const accepted = await post({ text }, `?background=true&${callback}`)
    assert.equal(accepted.status, 202, accepted.text)
    const { job_id } = accepted.json
    assert.notEqual(job_id, id)
    assert.equal((await endOf(job_id)).status, 'done')
    const told = await query(
      `select url from webhook_delivery where body::json -> 'data' ->> 'job_id' = $1`,
      [job_id],
    )
    assert.deepEqual(told, [{ url: 'https://example.com/spoken' }])
    assert.ok((await get(job_id)).bytes.equals(speak(text)))
    const waited = await post({ text })
    assert.deepEqual([waited.status, idOf(waited.headers)], [200, job_id])
    assert.equal(server.asked.length, before)
  })

  test('has no tags between its pieces', async () => {
    const frame = Buffer.alloc(417, 0x55)
    frame.set([0xff, 0xfb, 0x90, 0xc4])
    const info = Buffer.from(frame)
    info.write('Xing', 21)
    const tag = Buffer.concat([Buffer.from('ID3\x04\0\0\0\0\x01\x10', 'latin1'), Buffer.alloc(144, 1)])
    const end = Buffer.alloc(128)
    end.write('TAG')
    const sound = Buffer.concat(Array.from({ length: 20 }, () => frame))
    server.answer = answerWithAudio(Buffer.concat([tag, info, sound, end]))
    const before = server.asked.length
    const answer = await post({ text: createLongText() })
    const count = server.asked.length - before
    assert.ok(answer.bytes.equals(Buffer.concat(Array.from({ length: count }, () => sound))))
    // A text of one piece is passed on as it is.
    const short = await post({ text: createSentence(3) })
    assert.equal(short.bytes.length, tag.length + info.length + sound.length + end.length)
  })

  test('of other scripts stays within the limit of tokens', async () => {
    const before = server.asked.length
    const text = `${'这是一个很长的句子。'.repeat(400)}${'长'.repeat(3000)}`
    const answer = await post({ text, language: 'zh-Hans', model: 'gpt-4o-mini-tts' })
    assert.equal(answer.status, 200, answer.text)
    assert.equal(asked(before).join(''), text)
    for (const piece of asked(before)) assert.ok(Buffer.byteLength(piece) <= 5500)
    assert.match(asked(before)[0]!, /。$/)
  })
})

describe('a speech belongs to its owner', () => {
  test('and is not shared with others', async () => {
    const text = createSentence(5)
    const id = idOf((await post({ text })).headers)
    const [before, other] = [server.asked.length, await newcomer()]
    assert.deepEqual(
      [(await get(id, {}, other.token)).status, (await get(id, {}, admin.token)).status],
      [404, 200],
    )
    const own = await post({ text }, '', other.token)
    assert.notEqual(idOf(own.headers), id)
    assert.equal(server.asked.length, before + 1)
    assert.equal((await api.call('DELETE', `${PATH}/${id}`, { token: other.token })).status, 404)
    assert.equal((await api.call('DELETE', `${PATH}/${id}`, { token })).status, 204)
    assert.equal((await get(id)).status, 404)
    assert.equal((await get(idOf(own.headers), {}, other.token)).status, 200)
    const closed = await startEdge(url, { env: { ...env, OPEN_AREAS: 'rag' } })
    assert.equal((await closed.post(PATH, { json: { text } })).status, 401)
    assert.equal((await closed.get(`${PATH}/${id}`)).status, 401)
  })

  test('and is cancelled when it is deleted', async () => {
    answerSlowly(server)
    const before = server.asked.length
    const { job_id } = (await post({ text: createLongText() }, '?background=true')).json
    await until('it was requested', () => server.asked.length > before)
    assert.equal((await api.call('DELETE', `${PATH}/${job_id}`, { token })).status, 204)
    assert.equal((await endOf(job_id)).status, 'cancelled')
  })
})

test('a speech of callers without an account works where the area is open', async () => {
  for (const more of [{ OPEN_AREAS: 'voice' }, { AUTH_LEVEL: 'none' }]) {
    const open = await startEdge(url, { env: { ...env, ...more } })
    const text = createSentence(4)
    const answer = await open.post(PATH, { json: { text } })
    assert.equal(answer.status, 200, answer.text)
    assert.ok((await open.get(`${PATH}/${idOf(answer.headers)}`)).bytes.equals(speak(text)))
    assert.equal((await get(idOf(answer.headers))).status, 404)
  }
})

describe('a speech is refused', () => {
  test('for values out of range', async () => {
    const long = await startEdge(url, { env: { ...env, MAX_SPEECH_CHARACTERS: '10' } })
    const answer = await long.post(PATH, { token, json: { text: 'Hello there' } })
    assert.deepEqual(
      [answer.status, answer.json.detail],
      [422, 'The text has 11 characters; at most 10 can be spoken (MAX_SPEECH_CHARACTERS)'],
    )
    for (const [more, field] of [
      [{ text: '' }, 'text'],
      [{ text: 'x'.repeat(1_000_001) }, 'text'],
      [{ speed: 5 }, 'speed'],
      [{ language: 'english' }, 'language'],
    ] as const) {
      const { status, json } = await post({ text: 'Hello', ...more })
      assert.deepEqual([status, json.errors[0].loc], [422, ['body', field]])
    }
  })

  test('for unknown voices, models and providers', async () => {
    const cases: readonly [object, number, RegExp][] = [
      [{ voice_id: 'nobody' }, 404, /^Voice not found$/],
      [
        { model: 'x' },
        400,
        /^model cannot be x; it must be one of gpt-4o-mini-tts, tts-1-hd, tts-1, voxtral/,
      ],
      [{ provider: 'groq' }, 400, /^provider cannot be groq; it must be one of openai, mistral$/],
      [
        { provider: 'mistral', voice_id: 'ash' },
        400,
        /^provider cannot be mistral; it must be one of openai$/,
      ],
      [{ provider: 'mistral' }, 503, /MISTRAL_API_KEY/],
      [{ voice_id: 'marin', model: 'tts-1' }, 400, /^model cannot be tts-1/],
    ]
    for (const [more, status, detail] of cases) {
      const answer = await post({ text: 'Hello', ...more })
      assert.equal(answer.status, status, answer.text)
      assert.match(answer.json.detail, detail)
    }
  })

  test('over the quota of the account', async () => {
    const small = await startEdge(url, { env: { ...env, QUOTA_SPEECH_CHARACTERS: '20' } })
    const { token } = await newcomer()
    const ask = (text: string) => small.post(PATH, { token, json: { text } })
    assert.equal((await ask('Hello there')).status, 200)
    const answer = await ask('Hello again')
    assert.deepEqual([answer.status, answer.json.code], [429, 'quota.speech_characters'])
    assert.equal((await ask('Hello there')).status, 200)
    const quotas = (await small.get('/api/v1/auth/me/quotas', { token })).json.quotas
    assert.equal(quotas.find(({ kind }: { kind: string }) => kind === 'speech_characters').used, 11)
  })

  test('over the budget of the API key', async () => {
    const account = await newcomer()
    const { id, key } = await createKey(api, account, { scopes: ['*:write'], budget: { day_cost: 0.05 } })
    const readBudget = async () =>
      (await api.get('/api/v1/ai/usage/budget', { token: key })).json.key.find(
        ({ kind }: { kind: string }) => kind === 'day_cost',
      )
    const ask = (text: string) => post({ text, voice_id: 'ash', model: 'tts-1' }, '', key)
    const slow = answerSlowly(server)
    const pending = ask('x'.repeat(4000))
    await slow.begun
    assert.ok(Math.abs((await readBudget()).reserved - 0.06) < 1e-9)
    assert.equal((await ask(createLongText())).status, 429)
    slow.write(createAudio(5000))
    slow.end()
    assert.equal((await pending).status, 200)
    await until('the usage is booked to the key', async () => {
      const { used, reserved } = await readBudget()
      return Math.abs(used - 0.06) < 1e-9 && reserved === 0
    })
    const [usage] = await query('select action from ai_usage where key_id = $1', [id])
    assert.equal(usage!.action, 'speech')
    assert.equal((await ask('x'.repeat(4000))).status, 200)
  })

  test('by the provider, with its reason', async () => {
    server.answer = (response) => response.writeHead(401).end('{"error": {"message": "bad sk-test"}}')
    const answer = await post({ text: createSentence(2) })
    assert.deepEqual(
      [answer.status, answer.json.detail],
      [502, 'AI provider error: it does not accept OPENAI_API_KEY'],
    )
  })
})
