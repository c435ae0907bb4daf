import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { inspect } from 'node:util'
import { Failure } from '../../sql/errors.ts'
import type { ProviderRequest, SubmitResult } from '../../tasks/comms/ports.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import { createTelephony, type Telephony } from '../../workers/providers/comms/telephony.ts'
import { type Mode, neverAnswers } from '../standins/http.ts'
import {
  ACCOUNT,
  createTwilioEnv,
  SENDER,
  startTwilio,
  TOKEN,
  type TwilioStandIn,
} from '../standins/twilio.ts'
import { until } from '../until.ts'

const TO = '+491711234567'
const ID = '018f0000-0000-7000-8000-000000000001'
// The first limit allows for a busy machine. Tests of hanging servers use the shorter one below.
const LIMITS = { answerMs: 10_000, concurrency: 4, maxWaitMs: 0 }
const HANGING_LIMITS = { ...LIMITS, answerMs: 300 }

const servers: TwilioStandIn[] = []
after(async () => {
  for (const server of servers) await server.stop()
})

async function openTelephony(
  mode: Mode = 'take',
  env: Record<string, string> = {},
  limits = neverAnswers(mode) ? HANGING_LIMITS : LIMITS,
) {
  const server = await startTwilio()
  servers.push(server)
  server.mode = () => mode
  const telephony = createTelephony(parseSettings({ ...createTwilioEnv(server.url), ...env }), limits)
  return { server, telephony }
}

function createRequest(signal = new AbortController().signal): ProviderRequest & { begun: number } {
  const made = { signal, begun: 0, begin: () => Promise.resolve(void made.begun++) }
  return made
}

const sendByKind = {
  sms: (via: Telephony, to = TO, on: ProviderRequest = createRequest()) =>
    via.sms({ id: ID, to, body: 'Grüße' }, on),
  call: (via: Telephony, to = TO, on: ProviderRequest = createRequest()) =>
    via.call({ id: ID, to, scriptUrl: 'https://example.com/script', timeout: 30 }, on),
}

/** Asserts that a request fails without revealing a secret to the client or the log; returns the failure. */
async function expectFailure(sending: Promise<SubmitResult>): Promise<Failure> {
  const error = await sending.then(
    (handed) => assert.fail(`It did not fail: ${inspect(handed)}`),
    (error: unknown) => error,
  )
  assert.ok(error instanceof Failure, inspect(error))
  const basic = Buffer.from(`${ACCOUNT}:${TOKEN}`).toString('base64')
  for (const secret of [TOKEN, basic]) assert.ok(!inspect(error, { depth: 10 }).includes(secret))
  assert.ok(!error.detail.includes(ACCOUNT), error.detail)
  return error
}

for (const [kind, send] of Object.entries(sendByKind)) {
  describe(`${kind} through the SDK`, () => {
    test('sends the expected parameters', async () => {
      const { server, telephony } = await openTelephony()
      const on = createRequest()
      const handed = await send(telephony, TO, on)
      const [one] = server.taken
      assert.deepEqual(handed, { kind: 'taken', providerId: one!.sid, status: 'queued', detail: null })
      assert.deepEqual([one!.to, one!.from, server.requests, on.begun], [TO, SENDER, 1, 1])
      const parameters = Object.fromEntries(one!.parameters)
      assert.deepEqual(
        parameters,
        kind === 'sms'
          ? { To: TO, From: SENDER, Body: 'Grüße' }
          : { To: TO, From: SENDER, Url: 'https://example.com/script', Timeout: '30' },
      )
    })

    test('requests status callbacks at a public https URL', async () => {
      const { server, telephony } = await openTelephony('take', {
        PUBLIC_BASE_URL: 'https://mill.example.com/base',
      })
      await send(telephony)
      const url = `https://mill.example.com/base/api/v1/comms/webhooks/twilio?send_id=${ID}`
      assert.equal(server.taken[0]!.parameters.get('StatusCallback'), url)
    })

    for (const [status, code, detail] of [
      [400, 21211, 'the number is not valid (error 21211)'],
      [400, 21610, 'the number has unsubscribed from the sender (error 21610)'],
      [400, 99999, 'HTTP status 400 (error 99999)'],
      [401, 20003, 'it does not accept the credentials (error 20003)'],
      [403, 20404, 'the account or the requested resource does not exist (error 20404)'],
    ] as const) {
      test(`treats a refusal (${status}, ${code}) as permanent and explains it without the provider’s words`, async () => {
        const body = { code, message: `words with ${TOKEN} and ${ACCOUNT}`, status }
        const { server, telephony } = await openTelephony({ status, body })
        const error = await expectFailure(send(telephony))
        assert.deepEqual([error.code, error.retryable], ['telephony.refused', false])
        assert.equal(error.detail, `The telephony provider refused the request: ${detail}`)
        assert.equal(server.requests, 1)
      })
    }

    test('treats wrong credentials as permanent', async () => {
      const { telephony } = await openTelephony('take', { TELEPHONY_AUTH_TOKEN: 'another' })
      const error = await expectFailure(send(telephony))
      assert.match(error.detail, /does not accept the credentials/)
    })

    test('fails on 429 and sends no request until Retry-After has passed', async (t) => {
      t.mock.timers.enable({ apis: ['Date'], now: Date.now() })
      const { server, telephony } = await openTelephony({ status: 429, headers: { 'retry-after': '7' } })
      const error = await expectFailure(send(telephony))
      assert.deepEqual([error.code, error.retryable, error.retryAfter], ['telephony.failed', true, 7])
      const on = createRequest()
      t.mock.timers.tick(1500)
      const another = await expectFailure(send(telephony, '+491711234568', on))
      assert.equal(another.retryAfter, 6)
      assert.deepEqual([server.requests, on.begun], [1, 0])
    })

    for (const [status, code] of [
      [400, 21611],
      [400, 10004],
      [403, 14107],
      [408, null],
      [425, null],
      [429, 21611],
    ] as const)
      test(`fails as transient if the provider is busy (${status}, ${code})`, async () => {
        const body = code === null ? {} : { code, message: 'words', status }
        const { telephony } = await openTelephony({ status, body, headers: { 'retry-after': '3' } })
        const error = await expectFailure(send(telephony))
        assert.deepEqual([error.code, error.retryable, error.retryAfter], ['telephony.failed', true, 3])
      })

    test('reports how long a provider asks to wait with HTTP 503', async () => {
      const { telephony } = await openTelephony({ status: 503, headers: { 'retry-after': '120' } })
      const handed = await send(telephony)
      assert.deepEqual(handed, {
        kind: 'unknown',
        reason: 'HTTP status 503',
        answered: true,
        retryAfter: 120,
      })
    })

    for (const mode of ['error before', 'error after'] as const) {
      test(`reports an unknown outcome with an answer for HTTP 500 (${mode} acceptance)`, async () => {
        const { server, telephony } = await openTelephony(mode)
        const handed = await send(telephony)
        assert.deepEqual(handed, { kind: 'unknown', reason: 'HTTP status 500', answered: true })
        assert.equal(server.requests, 1, 'the SDK does not repeat it')
      })
    }

    for (const mode of ['cut before', 'cut after', 'hang before', 'hang after', 'garbage'] as const) {
      test(`reports an unknown outcome for "${mode}"`, async () => {
        const { server, telephony } = await openTelephony(mode)
        const handed = await send(telephony)
        assert.ok(handed.kind === 'unknown' && !handed.answered, inspect(handed))
        assert.ok(handed.reason.length > 5)
        assert.equal(server.requests, 1)
      })
    }

    test('accepts a duplicate answer, or reports an unknown outcome if the first answer is corrupted', async () => {
      const { server, telephony } = await openTelephony('twice')
      for (let n = 1; n <= 5; n++) {
        const handed = await send(telephony)
        assert.ok(handed.kind === 'taken' || !handed.answered, inspect(handed))
        assert.equal(server.taken.length, n)
      }
    })

    test('fails as transient if the server is unreachable', async () => {
      const { server, telephony } = await openTelephony()
      await server.stop()
      const error = await expectFailure(send(telephony))
      assert.deepEqual([error.code, error.retryable], ['telephony.failed', true])
      assert.match(error.detail, /ECONNREFUSED$/)
    })

    test('sends nothing if the request is refused or aborted before it begins', async () => {
      const { server, telephony } = await openTelephony()
      const refusal = new Error('superseded')
      const on = { signal: new AbortController().signal, begin: () => Promise.reject(refusal) }
      await assert.rejects(send(telephony, TO, on), (error) => error === refusal)
      const aborted = createRequest(AbortSignal.abort('cancelled'))
      await assert.rejects(send(telephony, TO, aborted), (error) => error === 'cancelled')
      assert.deepEqual([server.requests, aborted.begun], [0, 0])
    })

    test('reports an unknown outcome if a running request is aborted', async () => {
      const { server, telephony } = await openTelephony('hang after', {}, { ...LIMITS, answerMs: 60_000 })
      const abort = new AbortController()
      const sending = send(telephony, TO, createRequest(abort.signal))
      await until('the server has received the request', () => server.requests === 1)
      abort.abort('cancelled')
      const handed = await sending
      assert.equal(handed.kind === 'unknown' && handed.reason, 'the attempt was cut short')
    })

    test('rejects requests if a setting is missing', async () => {
      for (const name of ['TELEPHONY_ACCOUNT_SID', 'TELEPHONY_AUTH_TOKEN', 'TELEPHONY_PHONE_NUMBER']) {
        const { telephony } = await openTelephony('take', { [name]: '' })
        const error = await expectFailure(send(telephony))
        assert.equal(error.code, 'telephony.not_configured')
        assert.match(error.detail, new RegExp(name))
      }
    })
  })
}

describe('lookups in the provider’s list', () => {
  const find = (via: Telephony, sinceMs: number, signal = new AbortController().signal) =>
    via.findSms({ id: ID, to: TO, body: 'Grüße' }, sinceMs, signal)

  test('find accepted messages and calls since the given time', async () => {
    const { server, telephony } = await openTelephony()
    const startedAt = Date.now() - 1000
    await sendByKind.sms(telephony)
    await telephony.sms({ id: ID, to: TO, body: 'another' }, createRequest())
    await sendByKind.sms(telephony, '+491711234568')
    await sendByKind.sms(telephony)
    await sendByKind.call(telephony)
    const [first, , , second, call] = server.taken
    assert.deepEqual(
      (await find(telephony, startedAt)).map(({ providerId }) => providerId).sort(),
      [first!.sid, second!.sid].sort(),
    )
    assert.deepEqual(await find(telephony, Date.now() + 60_000), [])
    const message = { id: ID, to: TO, scriptUrl: 'https://example.com/script' }
    const calls = await telephony.findCall(message, startedAt, new AbortController().signal)
    assert.deepEqual(calls, [{ providerId: call!.sid, status: 'queued' }])
  })

  test('ignore the prefix of a trial account', async () => {
    const { server, telephony } = await openTelephony()
    await telephony.sms(
      { id: ID, to: TO, body: 'Sent from your Twilio trial account - Grüße ' },
      createRequest(),
    )
    assert.equal((await find(telephony, Date.now() - 5000))[0]!.providerId, server.taken[0]!.sid)
  })

  for (const mode of ['error before', 'cut before', 'hang before', 'garbage', { status: 429 }] as const) {
    test(`fail on "${typeof mode === 'string' ? mode : mode.status}"`, async () => {
      const { server, telephony } = await openTelephony(
        'take',
        {},
        neverAnswers(mode) ? HANGING_LIMITS : LIMITS,
      )
      server.listMode = () => mode
      await assert.rejects(find(telephony, 0), (error) => error instanceof Failure || error instanceof Error)
    })
  }
})

describe('a provider that is down', () => {
  test('gets no requests after five failures, then a single probe', async (t) => {
    t.mock.timers.enable({ apis: ['Date'], now: Date.now() })
    const { server, telephony } = await openTelephony('error before')
    for (let n = 0; n < 5; n++) assert.equal((await sendByKind.sms(telephony)).kind, 'unknown')
    const error = await expectFailure(sendByKind.sms(telephony))
    assert.deepEqual([error.code, error.retryable, error.retryAfter], ['provider.paused', true, 5])
    assert.equal(server.requests, 5)

    t.mock.timers.tick(5001)
    server.mode = () => 'take'
    const [probe, others] = [sendByKind.sms(telephony), expectFailure(sendByKind.call(telephony))]
    assert.equal((await others).code, 'provider.paused')
    assert.equal((await probe).kind, 'taken')
    assert.equal((await sendByKind.call(telephony)).kind, 'taken', 'and it is back')
  })

  test('delays a request during a short pause, unless the request is aborted', async () => {
    const { server, telephony } = await openTelephony(
      { status: 429, headers: { 'retry-after': '1' } },
      {},
      {
        ...LIMITS,
        maxWaitMs: 5000,
      },
    )
    const since = Date.now()
    await expectFailure(sendByKind.sms(telephony))
    server.mode = () => 'take'
    const abort = new AbortController()
    const on = createRequest(abort.signal)
    const [waiting, aborted] = [sendByKind.sms(telephony), sendByKind.call(telephony, TO, on)]
    abort.abort('cancelled')
    await assert.rejects(aborted, (error) => error === 'cancelled')
    assert.equal((await waiting).kind, 'taken')
    assert.ok(Date.now() - since >= 1000)
    assert.deepEqual([server.taken.length, on.begun], [1, 0])
  })

  test('limits concurrent requests and does not begin the others', async () => {
    const { server, telephony } = await openTelephony(
      'hang after',
      {},
      { ...LIMITS, answerMs: 60_000, concurrency: 2 },
    )
    const abort = new AbortController()
    const requests = Array.from({ length: 5 }, () => createRequest(abort.signal))
    const sending = requests.map((on) => sendByKind.sms(telephony, TO, on))
    await until('two requests have arrived', () => server.requests === 2)
    assert.deepEqual(
      requests.map(({ begun }) => begun),
      [1, 1, 0, 0, 0],
    )
    abort.abort('stopping')
    const ends = await Promise.allSettled(sending)
    assert.deepEqual(
      ends.map(({ status }) => status),
      ['fulfilled', 'fulfilled', 'rejected', 'rejected', 'rejected'],
    )
  })
})
