import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { Failure } from '../../sql/errors.ts'
import type { Question } from '../../tasks/ai/ports.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import type { Recording } from '../../tasks/voice/ports.ts'
import type { ModelStarts } from '../../workers/providers/ai/ai-calls.ts'
import { createChat } from '../../workers/providers/ai/chat.ts'
import { createEmbedder } from '../../workers/providers/ai/embeddings.ts'
import { transcribe } from '../../workers/providers/ai/models.ts'
import { createMailer } from '../../workers/providers/comms/email.ts'
import { createTelephony } from '../../workers/providers/comms/telephony.ts'
import { createStartLimits, type StartLimit, type StartWait } from '../../workers/providers/start-limit.ts'
import { createSpeaker } from '../../workers/providers/voice/speech.ts'
import { createTranscriber } from '../../workers/providers/voice/transcription.ts'
import { createTestDatabase } from '../database.ts'
import { startModelServer } from '../standins/models.ts'
import { startMailServer } from '../standins/smtp.ts'
import { createTwilioEnv, startTwilio } from '../standins/twilio.ts'
import { createFaultyDatabase } from './parts.ts'

/** Requests to providers start at their configured rate. */

const database = await createTestDatabase()
const { signal } = new AbortController()

/** Creates the limit of text messages. Sets the time of its next start, in ms from now. */
async function openLimit(rate: string, nextMs = 0): Promise<StartLimit> {
  const { sms } = createStartLimits(parseSettings({ RATE_LIMIT_SMS: rate }), database.db)
  await database.query(
    `insert into start_rate (name, starts, seconds, burst, next_at) values ('provider:sms', $2, $3, 1, now() + make_interval(secs => $1))
     on conflict (name) do update set starts = excluded.starts, seconds = excluded.seconds, next_at = excluded.next_at, line_at = default`,
    [nextMs / 1000, ...rate.split('/').map(Number)],
  )
  return sms!
}

const expectFailure = (entering: Promise<void>): Promise<Failure> =>
  entering.then(
    () => assert.fail('It started'),
    (error: unknown) => (error instanceof Failure ? error : assert.fail(String(error))),
  )

describe('a limit', () => {
  test('is absent by default, and costs no statement', async () => {
    const db = createFaultyDatabase(database.db, () => new Error('Unexpected'))
    assert.deepEqual(createStartLimits(parseSettings({}), db), { sms: null, email: null, models: null })
    assert.deepEqual(db.calls, [])
  })

  test('is one statement for a start that is due', async () => {
    const db = createFaultyDatabase(database.db, () => new Error('Unexpected'))
    const limits = createStartLimits(parseSettings({ RATE_LIMIT_AI_PROVIDER: '10/1' }), db)
    await limits.models!.openai.enter('release', signal)
    await limits.models!.mistral.enter('release', signal)
    assert.deepEqual(
      db.calls.map(({ name }) => name),
      ['start_rate_reserve', 'start_rate_reserve'],
    )
    const rows = await database.query(
      `select name, starts, seconds, burst from start_rate where name like 'provider:ai:%' order by name`,
    )
    assert.deepEqual(rows, [
      { name: 'provider:ai:mistral', starts: 10, seconds: 1, burst: 1 },
      { name: 'provider:ai:openai', starts: 10, seconds: 1, burst: 1 },
    ])
  })

  test('releases a job until its turn, without a try', async () => {
    const limit = await openLimit('1/60', 20_000)
    const [first, second] = [
      await expectFailure(limit.enter('release', signal)),
      await expectFailure(limit.enter('release', signal)),
    ]
    assert.deepEqual([first.code, first.retry], ['provider.rate_limited', 'free'])
    assert.match(first.detail, /^RATE_LIMIT_SMS allows the next request to the provider in \d\d s$/)
    assert.ok(first.retryAfter! <= 20 && first.retryAfter! > 10, `${first.retryAfter} s`)
    assert.ok(second.retryAfter! <= 80 && second.retryAfter! > 70, `${second.retryAfter} s`)
  })

  test('lets a request of a person start before all other work', async () => {
    const limit = await openLimit('10/1', 2000)
    const order: string[] = []
    const stays = [1, 2, 3].map(async (n) => {
      await limit.enter('stay', signal)
      order.push(`stays ${n}`)
    })
    await expectFailure(limit.enter('release', signal))
    await limit.enter('first', signal)
    order.push('first')
    await Promise.all(stays)
    assert.deepEqual([order[0], order.length], ['first', 4])
  })

  test('lets a person wait for half a minute at most, and names the time in whole seconds', async () => {
    const limit = await openLimit('1/1', 40_500)
    const failure = await expectFailure(limit.enter('first', signal))
    assert.ok(Number.isInteger(failure.retryAfter) && failure.retryAfter! > 30 && failure.retryAfter! <= 41)
  })

  for (const wait of ['first', 'stay'] as const)
    test(`ends the wait of a request with "${wait}" on its signal`, async () => {
      const limit = await openLimit('1/1', 20_000)
      const abort = new AbortController()
      const entering = limit.enter(wait, abort.signal)
      abort.abort('cancelled')
      await assert.rejects(entering, (reason) => reason === 'cancelled')
      await assert.rejects(limit.enter(wait, abort.signal), (reason) => reason === 'cancelled')
    })
})

/** Creates a limit that notes each start. */
function createNotingLimit(entered: StartWait[]): StartLimit {
  return { enter: async (wait) => void entered.push(wait) }
}

describe('text messages and emails', () => {
  const request = { signal, begin: () => Promise.resolve() }

  test('take a start each, and calls take none', async () => {
    const server = await startTwilio()
    after(() => server.stop())
    const entered: StartWait[] = []
    const settings = parseSettings(createTwilioEnv(server.url))
    const telephony = createTelephony(settings, undefined, createNotingLimit(entered))
    const message = { id: 'one', to: '+491711234567', body: 'Hello' }
    await telephony.sms(message, request)
    await telephony.sms(message, { ...request, isUrgent: true })
    await telephony.call({ id: 'two', to: message.to, scriptUrl: 'https://example.com/' }, request)
    assert.deepEqual([entered, server.requests], [['release', 'first'], 3])
  })

  test('are not begun without a start', async () => {
    const server = await startMailServer()
    after(() => server.stop())
    const limit = await openLimit('1/60', 20_000)
    const mailer = createMailer(
      parseSettings({ EMAIL_SMTP_URL: server.url, EMAIL_PROVIDER_FROM_EMAIL: 'a@example.com' }),
      {},
      limit,
    )
    let begun = 0
    const begin = () => Promise.resolve(void begun++)
    const mail = { id: 'one', to: ['b@example.com', 'c@example.com'], subject: 'S', text: 'T' }
    await assert.rejects(mailer.send(mail, { signal, begin }), { code: 'provider.rate_limited' })
    await openLimit('1/60')
    const sent = await mailer.send(mail, { signal, begin })
    assert.deepEqual([sent.kind, begun], ['taken', 1])
    await assert.rejects(mailer.send(mail, { signal, begin }), { code: 'provider.rate_limited' })
  })
})

describe('requests to a model', async () => {
  const server = await startModelServer()
  after(() => server.stop())
  const env = {
    OPENAI_API_KEY: 'sk-test',
    OPENAI_BASE_URL: server.url,
    RAG_EMBEDDINGS: 'openai',
    AI_TIMEOUT_SECONDS: '1',
  }
  const settings = parseSettings(env)
  const createStarts = (wait: StartWait, limit: StartLimit): ModelStarts => ({
    limits: { openai: limit } as ModelStarts['limits'],
    wait,
  })
  const question: Question = {
    provider: 'openai',
    model: 'm',
    system: '',
    messages: [{ role: 'user', content: 'Hello?' }],
    temperature: 0,
    maxTokens: 10,
  }

  test('take a start each, even those that repeat a refused one', async () => {
    const entered: StartWait[] = []
    const chat = createChat(settings, createStarts('first', createNotingLimit(entered)))
    const asked = server.asked.length
    server.script = ({ body }) =>
      'temperature' in body
        ? {
            status: 400,
            body: { error: { message: 'Unsupported parameter: temperature', param: 'temperature' } },
          }
        : {}
    await chat.ask(question, signal)
    server.script = () => ({})
    assert.deepEqual([entered, server.asked.length - asked], [['first', 'first'], 2])
  })

  test('wait longer than the provider may be silent', async () => {
    const limit = await openLimit('1/1', 1500)
    const chat = createChat(settings, createStarts('first', limit))
    assert.equal((await chat.ask(question, signal)).text, 'Hello there')
  })

  test('fail as the limit says', async () => {
    const refused = createStarts('release', await openLimit('1/60', 20_000))
    const isRefused = { code: 'provider.rate_limited', retry: 'free' }
    const asked = server.asked.length
    await assert.rejects(createChat(settings, refused).ask(question, signal), isRefused)
    await assert.rejects(createEmbedder(settings, refused)(['a', 'b'], signal), isRefused)
    const speech = { provider: 'openai', model: 'tts-1', voice: 'alloy', text: 'Hi', speed: 1 }
    const speaking = createSpeaker(settings, refused).speak(speech, signal)
    await assert.rejects(speaking[Symbol.asyncIterator]().next(), isRefused)
    async function* read() {}
    const recording: Recording = {
      ...{ provider: 'openai', model: 'whisper-1', language: null, prompt: null },
      ...{ fileName: 'a.mp3', mediaType: 'audio/mpeg', pieces: read() },
    }
    const outcome = await createTranscriber(settings, refused).transcribe(recording, signal, () => {})
    assert.ok(outcome.kind === 'failure' && outcome.isFree && outcome.failure.code === isRefused.code)
    const model = {
      provider: 'openai',
      name: 'm',
      apiKey: 'k',
      baseUrl: server.url,
      timeoutSeconds: 5,
    } as const
    const reading = transcribe(model, Buffer.from('png'), { signal, timeoutMs: 1000, starts: refused })
    await assert.rejects(reading, isRefused)
    assert.equal(server.asked.length, asked, 'the provider gets no request')
  })
})
