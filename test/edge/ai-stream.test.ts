import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Frame, Stream } from '../service.ts'
import { until } from '../until.ts'
import {
  CHAT_PATH,
  joinChunks,
  openStream,
  postStream,
  sequenceNumbersOf,
  startChatService,
} from './ai-help.ts'
import { startEdge } from './harness.ts'

/** Streamed answers. */

// Must exceed the time for which a busy machine may stall this process. Otherwise every answer would time out.
const TIMEOUT_SECONDS = '4'
const { models, api, query, env, url } = await startChatService({ AI_TIMEOUT_SECONDS: TIMEOUT_SECONDS })
const otherEdge = await startEdge(url, { env })
const admin = await api.register('admin@example.com')
/** Cancels a job as the admin, because turns of anonymous callers have no owner. */
const cancelJob = (jobId: unknown) => api.call('DELETE', `/api/v1/jobs/${jobId}`, { token: admin.token })
const SLOW_SCRIPT = { pieces: ['One', ' two', ' three', ' four'], betweenMs: 40 }
const eventsOf = (stream: Stream): string[] => stream.frames.map(({ event }) => event)
const readMessage = async (messageId: unknown) =>
  (await query('select status, content from ai_message where id = $1', [messageId]))[0]
const streamAnswer = async (
  script: ReturnType<typeof models.script>,
  json: object = {},
): Promise<readonly Frame[]> => {
  models.script = () => script
  const stream = await postStream(api, { message: 'Hello?', ...json })
  return stream.waitForEnd()
}

describe('POST /ai/chat/stream', () => {
  test('sends connect, chunks, final and complete, each with its fields', async () => {
    const frames = await streamAnswer(SLOW_SCRIPT)
    const [connect, ...rest] = frames
    const { message_id, conversation_id, job_id } = connect!.data
    assert.deepEqual(
      [connect!.event, Object.keys(connect!.data)],
      ['connect', ['conversation_id', 'message_id', 'job_id']],
    )
    assert.match(String(job_id), /^[0-9a-f-]{36}$/)
    const chunks = rest.slice(0, -2)
    for (const { event, data } of chunks) {
      assert.equal(event, 'chunk')
      const { content, timestamp, ...others } = data
      assert.deepEqual(others, { is_final: false, is_delta: true, message_id, conversation_id })
      assert.match(String(timestamp), /^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
      assert.equal(typeof content, 'string')
    }
    assert.equal(joinChunks(frames), 'One two three four')
    const final = frames.at(-2)!
    const { timestamp, response_time_ms, ...others } = final.data
    assert.deepEqual(
      [final.event, others],
      [
        'final',
        {
          content: 'One two three four',
          is_final: true,
          is_delta: false,
          message_id,
          conversation_id,
          provider: 'openai',
          model: 'gpt-4o-mini',
          finish_reason: 'stop',
          usage: {
            input_tokens: 12,
            cached_tokens: 0,
            output_tokens: 5,
            reasoning_tokens: 0,
            cost: 0.0000048,
            estimated: false,
          },
        },
      ],
    )
    assert.ok(Number(response_time_ms) >= 100 && !Number.isNaN(Date.parse(String(timestamp))))
    assert.deepEqual([frames.at(-1)!.event, frames.at(-1)!.data], ['complete', { status: 'completed' }])
    assert.deepEqual(await readMessage(message_id), { status: 'complete', content: 'One two three four' })
    const sorted = [...sequenceNumbersOf(frames)].sort((a, b) => a - b)
    assert.deepEqual(sequenceNumbersOf(frames), [...new Set(sorted)])
    assert.deepEqual(models.asked.at(-1)!.body.stream_options, { include_usage: true })
  })

  test('the answer is complete and exact however its bytes are split', async () => {
    const text = 'Zwölf Boxkämpfer 👩‍👩‍👧 jagen 検索 "Viktor"\n\tquer\\'
    const aside = [
      { reasoning_content: 'hm' },
      { tool_calls: [{ index: 0, function: { name: 'f', arguments: '{' } }] },
    ]
    const frames = await streamAnswer({ pieces: [text.slice(0, 17), text.slice(17)], bytesEach: 7, aside })
    assert.equal(joinChunks(frames), text)
    assert.equal(frames.at(-2)!.data.content, text)
  })

  test('a character split across two pieces is joined', async () => {
    const frames = await streamAnswer({ pieces: ['a\ud83d', '\udc4db', '\0c\udc4d'] })
    assert.equal(joinChunks(frames), 'a👍bc\ufffd')
    assert.equal(frames.at(-2)!.data.content, 'a👍bc\ufffd')
  })

  test('an error before the first byte sets the status', async () => {
    for (const [json, status] of [
      [{}, 400],
      [{ message: 'x', conversation_id: 'y' }, 400],
      [{ message: 'x', conversation_id: '01a00000-0000-7000-8000-000000000000' }, 400],
      [{ message: 'x', agent_slug: 'nobody' }, 404],
    ] as const) {
      const answer = await api.post(`${CHAT_PATH}/stream`, { json })
      assert.equal(answer.status, status)
      assert.equal(typeof answer.json.detail, 'string')
    }
  })

  test('a later failure sends an error event and ends the stream', async () => {
    const frames = await streamAnswer({ status: 401 })
    assert.deepEqual(
      frames.map(({ event }) => event),
      ['connect', 'error'],
    )
    assert.deepEqual(frames[1]!.data, {
      detail: 'AI provider error: it does not accept OPENAI_API_KEY',
      code: 'ai.refused',
    })
  })

  for (const [does, reason] of [
    ['cut', /the connection (failed|broke)/],
    ['end', /the connection was closed/],
    ['garbage', /its answer could not be read/],
    ['error', /HTTP status 500|the connection broke|refused/],
    ['hang', new RegExp(`it sent nothing for ${TIMEOUT_SECONDS} s`)],
  ] as const) {
    test(`after the first piece nothing is retried: ${does}`, async () => {
      const before = models.asked.length
      const frames = await streamAnswer({ ...SLOW_SCRIPT, betweenMs: 5, breaks: { after: 2, does } })
      const { event, data } = frames.at(-1)!
      assert.equal(event, 'error')
      assert.match(String(data.detail), /^AI provider error: the answer was cut off: /)
      assert.match(String(data.detail), reason)
      assert.equal(models.asked.length, before + 1)
      // The message keeps the partial answer that its subscribers have seen.
      assert.equal(joinChunks(frames), 'One two')
      assert.deepEqual(await readMessage(frames[0]!.data.message_id), {
        status: 'failed',
        content: 'One two',
      })
      const [used] = await query(
        'select success, estimated, output_tokens::int as output from ai_usage order by id desc limit 1',
      )
      assert.deepEqual(used, { success: false, estimated: true, output: 2 })
    })
  }

  test('a failure before the first piece is retried without the client noticing', async () => {
    let tries = 0
    models.script = () => (++tries === 1 ? { status: 503 } : SLOW_SCRIPT)
    const stream = await postStream(api, { message: 'Hello?' })
    const frames = await stream.waitForEnd()
    assert.deepEqual(
      [...new Set(frames.map(({ event }) => event))],
      ['connect', 'chunk', 'final', 'complete'],
    )
    assert.equal(tries, 2)
  })

  test('responds 202 in the background', async () => {
    models.script = () => ({})
    const answer = await api.post(`${CHAT_PATH}/stream?background=true`, { json: { message: 'x' } })
    assert.deepEqual([answer.status, Object.keys(answer.json)], [202, ['job_id']])
  })

  test('the same Idempotency-Key replays the same stream from its beginning', async () => {
    models.script = () => SLOW_SCRIPT
    const asked = () => models.asked.filter(({ body }) => body.messages.at(-1)!.content === 'Again').length
    const headers = { 'idempotency-key': 'one stream' }
    const [one, two] = await Promise.all([
      postStream(api, { message: 'Again' }, headers).then((stream) => stream.waitForEnd()),
      until('the first turn has started', () => asked() > 0).then(() =>
        postStream(otherEdge, { message: 'Again' }, headers).then((stream) => stream.waitForEnd()),
      ),
    ])
    assert.deepEqual(two, one)
    assert.equal(asked(), 1)
    // The answer outlives its job.
    await query('delete from job where id = $1', [one[0]!.data.job_id])
    const late = await (await postStream(api, { message: 'Again' }, headers)).waitForEnd()
    assert.deepEqual(
      late.map(({ event }) => event),
      ['connect', 'final', 'complete'],
    )
    assert.equal(late[1]!.data.content, 'One two three four')
  })
})

describe('GET /ai/chat/stream', () => {
  test('reads the question from the query', async () => {
    models.script = () => SLOW_SCRIPT
    const stream = await openStream(api, `${CHAT_PATH}/stream?message=Hi&conversation_id=&user_id=carol`)
    await stream.waitForEnd()
    assert.equal(joinChunks(stream.frames), 'One two three four')
    assert.equal(models.asked.at(-1)!.body.messages.at(-1)!.content, 'Hi')
    assert.equal((await api.get(`${CHAT_PATH}/stream`)).status, 400)
  })

  test('HEAD starts no turn', async () => {
    const before = await query('select count(*)::int as n from job')
    const answer = await api.call('HEAD', `${CHAT_PATH}/stream?message=Hi`)
    assert.deepEqual([answer.status, answer.text], [200, ''])
    assert.deepEqual(await query('select count(*)::int as n from job'), before)
  })

  test('a client that reconnects resumes on any process and starts no other turn', async () => {
    models.script = () => ({ ...SLOW_SCRIPT, pieces: [...'abcdefghijklmnop'], betweenMs: 30 })
    const before = models.asked.length
    const path = `${CHAT_PATH}/stream?message=Hi`
    const seen: Frame[] = []
    let stream = await openStream(api, path)
    for (let turn = 0; turn < 4; turn++) {
      // On a busy machine the answer may end before the last rounds. Those rounds reconnect to a finished stream.
      const hasChunk = () => stream.frames.some(({ event }) => event === 'chunk')
      await until('a chunk', () => hasChunk() || stream.ended)
      stream.close()
      seen.push(...stream.frames)
      stream = await openStream(turn % 2 === 0 ? otherEdge : api, path, { 'last-event-id': seen.at(-1)!.id })
    }
    seen.push(...(await stream.waitForEnd()))
    assert.equal(joinChunks(seen), 'abcdefghijklmnop')
    assert.deepEqual(
      sequenceNumbersOf(seen),
      [...new Set(sequenceNumbersOf(seen))].sort((a, b) => a - b),
    )
    assert.equal(models.asked.length, before + 1)
    // All frames are delivered, so the server answers 204, which makes an EventSource stop reconnecting.
    const again = await api.get(path, { headers: { 'last-event-id': seen.at(-1)!.id } })
    assert.equal(again.status, 204)
    assert.equal((await api.get(`${path}&last_event_id=${seen.at(-1)!.id}`)).status, 204)
    // The client has seen `final` but not `complete`.
    const rest = await (await openStream(api, path, { 'last-event-id': seen.at(-2)!.id })).waitForEnd()
    assert.deepEqual(rest, [seen.at(-1)])
  })
})

describe('GET /ai/chat/stream/{message_id}', () => {
  test('all subscribers see the same frames, whenever they connect', async () => {
    models.script = () => SLOW_SCRIPT
    const first = await postStream(api, { message: 'Hi' })
    await first.until('a chunk', (frames) => frames.length > 1)
    const path = `${CHAT_PATH}/stream/${first.frames[0]!.data.message_id}`
    const readers = await Promise.all([
      openStream(api, path),
      openStream(otherEdge, path),
      openStream(otherEdge, path),
    ])
    const all = await Promise.all([first, ...readers].map((stream) => stream.waitForEnd()))
    const late = await (await openStream(otherEdge, path)).waitForEnd()
    for (const frames of [...all.slice(1), late]) assert.deepEqual(frames, all[0])
  })

  test('403 for another user, 404 for an unknown answer, 400 for no id', async () => {
    const [connect] = await streamAnswer(SLOW_SCRIPT, { user_id: 'alice' })
    const path = `${CHAT_PATH}/stream/${connect!.data.message_id}`
    assert.equal((await api.get(path)).status, 403)
    assert.equal((await api.get(`${path}?user_id=alice`)).status, 200)
    assert.equal((await api.get(`${CHAT_PATH}/stream/01a00000-0000-7000-8000-000000000000`)).status, 404)
    assert.equal((await api.get(`${CHAT_PATH}/stream/17`)).status, 400)
    const stranger = { headers: { 'last-event-id': connect!.id } }
    assert.equal((await api.get(`${CHAT_PATH}/stream?message=x`, stranger)).status, 403)
    assert.equal((await api.get(`${CHAT_PATH}/stream?message=x&last_event_id=${connect!.id}`)).status, 403)
  })
})

describe('stopping a turn', () => {
  test('closing the stream does not stop it', async () => {
    models.script = () => SLOW_SCRIPT
    const stream = await postStream(api, { message: 'Hi' })
    await stream.until('a chunk', (frames) => frames.length > 1)
    stream.close()
    const id = stream.frames[0]!.data.message_id
    await until('the turn is answered', async () => (await readMessage(id))!.status === 'complete')
    assert.equal((await readMessage(id))!.content, 'One two three four')
  })

  test('DELETE of the job stops it, also after a resume, and keeps the partial answer', async () => {
    models.script = () => ({ pieces: Array.from({ length: 5000 }, (_, i) => `${i} `), betweenMs: 10 })
    const stream = await postStream(api, { message: 'Hi' })
    await stream.until('a chunk', (frames) => frames.length > 3)
    stream.close()
    const seen = [...stream.frames]
    const { message_id, job_id } = seen[0]!.data
    const back = await openStream(otherEdge, `${CHAT_PATH}/stream/${message_id}`, {
      'last-event-id': seen.at(-1)!.id,
    })
    await back.until('another chunk', (frames) => frames.length > 0)
    assert.equal((await cancelJob(job_id)).status, 202)
    seen.push(...(await back.waitForEnd()))
    assert.deepEqual(
      [seen.at(-1)!.event, seen.at(-1)!.data],
      ['error', { detail: 'The answer was stopped', code: 'turn.stopped' }],
    )
    const { status, content } = (await readMessage(message_id))!
    assert.deepEqual([status, content], ['stopped', joinChunks(seen)])
    await until('the request to the provider is closed', () => models.open === 0)
    assert.deepEqual(eventsOf(back).at(-1), 'error')
    const again = await api.get(`${CHAT_PATH}/stream/${message_id}`, {
      headers: { 'last-event-id': seen.at(-1)!.id },
    })
    assert.equal(again.status, 204)
  })

  test('a waiting turn is stopped without a request to the provider', async () => {
    // The first turn hangs for longer than the test waits for the second one.
    models.script = () => ({ ...SLOW_SCRIPT, breaks: { after: 2, does: 'hang' } })
    const first = await postStream(api, { message: 'Hi' })
    await first.until('connect', (frames) => frames.length > 0)
    const { conversation_id } = first.frames[0]!.data
    const before = models.asked.length
    const second = await postStream(api, { message: 'And?', conversation_id })
    await second.until('connect', (frames) => frames.length > 0)
    await cancelJob(second.frames[0]!.data.job_id)
    assert.deepEqual(
      (await second.waitForEnd()).map(({ event }) => event),
      ['connect', 'error'],
    )
    await cancelJob(first.frames[0]!.data.job_id)
    await first.waitForEnd()
    assert.ok(models.asked.length - before <= 1)
    const [used] = await query('select count(*)::int as n from ai_usage where message_id = $1', [
      second.frames[0]!.data.message_id,
    ])
    assert.equal(used!.n, 0)
  })
})
