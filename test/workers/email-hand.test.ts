import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { inspect } from 'node:util'
import PostalMime, { type Email } from 'postal-mime'
import { Failure } from '../../sql/errors.ts'
import type { EmailMessage, ProviderRequest } from '../../tasks/comms/ports.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import { createMailer, type Mailer } from '../../workers/providers/comms/email.ts'
import { neverAnswers } from '../standins/http.ts'
import { type MailMode, type MailStandIn, startMailServer } from '../standins/smtp.ts'
import { until } from '../until.ts'

/** Submitting a mail has three outcomes: accepted, certainly not accepted, or unknown. */

// The limits suit a busy machine. `HANGING_LIMITS` has a shorter one, for servers that never answer.
const LIMITS = { connectMs: 10_000, silentMs: 10_000, maxWaitMs: 0 }
const HANGING_LIMITS = { ...LIMITS, silentMs: 1000 }
const servers: MailStandIn[] = []
after(async () => {
  for (const server of servers) await server.stop()
})

async function openMailer(
  mode: MailMode = 'take',
  more = {},
): Promise<{ server: MailStandIn; mailer: Mailer }> {
  const server = await startMailServer()
  servers.push(server)
  server.mode = () => mode
  const env = { EMAIL_SMTP_URL: server.url, EMAIL_PROVIDER_FROM_EMAIL: 'service@example.com' }
  const limits = neverAnswers(mode) ? HANGING_LIMITS : LIMITS
  return { server, mailer: createMailer(parseSettings(env), { ...limits, ...more }) }
}

const createMessage = (more: Partial<EmailMessage> = {}): EmailMessage => ({
  id: randomUUID(),
  to: ['reader@example.com'],
  subject: 'A subject',
  text: 'The text.\n',
  ...more,
})

function createRequest(signal = new AbortController().signal): ProviderRequest & { begun: number } {
  const made = { signal, begun: 0, begin: () => Promise.resolve(void made.begun++) }
  return made
}

async function expectFailure(mailer: Mailer, on: ProviderRequest = createRequest()): Promise<Failure> {
  const error = await mailer.send(createMessage(), on).then(
    (handed) => assert.fail(`It did not fail: ${inspect(handed)}`),
    (error: unknown) => error,
  )
  assert.ok(error instanceof Failure, inspect(error))
  return error
}

describe('a submitted mail', () => {
  test('has copies, a reply address and another sender, and hides blind copies', async () => {
    const { server, mailer } = await openMailer()
    const seen: string[] = []
    server.mode = (recipient) => {
      seen.push(recipient)
      return 'take'
    }
    const one = createMessage({
      to: ['a@example.com', 'b@example.com'],
      cc: ['c@example.com'],
      bcc: ['hidden@example.com'],
      replyTo: 'answers@example.com',
      from: 'other@mail.example.org',
      html: '<p>The text.</p>',
      dateMs: Date.parse('2026-01-02T03:04:05Z'),
    })
    const handed = await mailer.send(one, createRequest())
    assert.deepEqual(handed, { kind: 'taken', providerId: null, status: 'sent', detail: null })
    const mail = await PostalMime.parse(server.raw[0]!)
    const addresses = (list: Email['to']) => list?.map(({ address }) => address)
    assert.deepEqual(addresses(mail.to), ['a@example.com', 'b@example.com'])
    assert.deepEqual(addresses(mail.cc), ['c@example.com'])
    assert.deepEqual(addresses(mail.replyTo), ['answers@example.com'])
    assert.deepEqual([mail.from?.address, mail.date], ['other@mail.example.org', '2026-01-02T03:04:05.000Z'])
    assert.equal(mail.messageId, `<${one.id}@mail.example.org>`)
    assert.ok(!server.raw[0]!.includes('hidden@'))
    assert.equal(server.requests, 1)
  })

  test('is identical to the last byte at each attempt', async () => {
    const { server, mailer } = await openMailer()
    const one = createMessage({ html: '<p>x</p>', dateMs: 1_767_323_045_000 })
    for (let n = 0; n < 3; n++) await mailer.send(one, createRequest())
    assert.equal(new Set(server.raw).size, 1)
    assert.deepEqual([server.taken.length, new Set(server.taken).size], [3, 1])
  })

  test('reports the recipients that were rejected', async () => {
    const { server, mailer } = await openMailer()
    server.unknownRecipients.add('nobody@example.com')
    const one = createMessage({ to: ['a@example.com', 'nobody@example.com'], cc: ['b@example.com'] })
    const refused = { address: 'nobody@example.com', status: 'failed', detail: 'SMTP status 550' }
    const accepted = (address: string) => ({ address, status: 'sent', detail: null })
    assert.deepEqual(await mailer.send(one, createRequest()), {
      kind: 'partly',
      recipients: [accepted('a@example.com'), refused, accepted('b@example.com')],
    })
    const alone = { ...one, pending: ['nobody@example.com', 'b@example.com'] }
    assert.deepEqual(await mailer.send(alone, createRequest()), {
      kind: 'partly',
      recipients: [refused, accepted('b@example.com')],
    })
    const nobody = createMessage({ to: ['nobody@example.com'], bcc: ['Nobody@example.com'] })
    server.unknownRecipients.add('Nobody@example.com')
    assert.deepEqual(await mailer.send(nobody, createRequest()), {
      kind: 'partly',
      recipients: [refused, { ...refused, address: 'Nobody@example.com' }],
    })
  })

  test('begins its request only when just the end of its content is missing', async () => {
    const { server, mailer } = await openMailer()
    let seenAtBegin = -1
    const on: ProviderRequest = {
      signal: new AbortController().signal,
      begin: () => {
        seenAtBegin = server.requests
        assert.equal(server.taken.length, 0)
        return Promise.resolve()
      },
    }
    await mailer.send(createMessage({ text: 'x'.repeat(300_000) }), on)
    assert.deepEqual([seenAtBegin, server.taken.length], [1, 1])
  })

  test('is not accepted if it must not begin, but the next one is', async () => {
    const { server, mailer } = await openMailer()
    const refusal = new Error('superseded')
    const on = { signal: new AbortController().signal, begin: () => Promise.reject(refusal) }
    await assert.rejects(mailer.send(createMessage(), on), (error) => error === refusal)
    assert.equal((await mailer.send(createMessage(), createRequest())).kind, 'taken')
    assert.equal(server.taken.length, 1)
  })
})

describe('a mail whose attempt ends while its request is being recorded', () => {
  for (const [what, limits, reason] of [
    ['by an abort', {}, /^stopping$/],
    ['by its time limit', { totalMs: 300 }, /no answer in time/],
  ] as const) {
    test(`${what} is not accepted after it was reported so`, async () => {
      const { server, mailer } = await openMailer('take', limits)
      const abort = new AbortController()
      const recorded = Promise.withResolvers<void>()
      const begin = (): Promise<void> => {
        if (what === 'by an abort') abort.abort('stopping')
        setTimeout(recorded.resolve, 600)
        return recorded.promise
      }
      const error = await mailer
        .send(createMessage(), { signal: abort.signal, begin })
        .catch((reason) => reason)
      assert.match(error instanceof Failure ? error.detail : String(error), reason)
      await recorded.promise
      const next = createMessage()
      await mailer.send(next, createRequest())
      assert.equal(server.taken.length, 1)
      assert.match(server.taken[0]!, new RegExp(next.id))
    })
  }
})

test('a mail whose connection breaks during the recording keeps its reported outcome', async () => {
  const { server, mailer } = await openMailer('take', { silentMs: 1000 })
  let isRecorded = false
  const begin = async (): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>()
    setTimeout(resolve, 2000)
    await promise
    isRecorded = true
  }
  assert.equal((await expectFailure(mailer, { ...createRequest(), begin })).code, 'email.failed')
  assert.ok(isRecorded)
  assert.equal(server.taken.length, 0)
})

describe('a mail that was certainly not accepted', () => {
  for (const [mode, code] of [
    [{ status: 550, at: 'rcpt' }, 'email.refused'],
    [{ status: 554, at: 'data' }, 'email.refused'],
    [{ status: 451, at: 'rcpt' }, 'email.failed'],
    [{ status: 452, at: 'data' }, 'email.failed'],
    [{ status: 421, at: 'data' }, 'email.failed'],
  ] as const) {
    test(`${JSON.stringify(mode)}: ${code}`, async () => {
      const { server, mailer } = await openMailer(mode)
      const error = await expectFailure(mailer)
      assert.deepEqual([error.code, server.taken.length], [code, 0])
      assert.doesNotMatch(error.detail, /words of the server|reader@/)
    })
  }

  test('after a cut within its content, whatever part had arrived', async () => {
    const { server, mailer } = await openMailer('half')
    const one = createMessage({ text: 'x'.repeat(500_000) })
    const handed = await mailer.send(one, createRequest()).catch((error: Failure) => error)
    if (handed instanceof Failure) assert.equal(handed.code, 'email.failed')
    else assert.equal(handed.kind, 'unknown')
    assert.equal(server.taken.length, 0)
  })

  test('without a server', async () => {
    const { server, mailer } = await openMailer()
    await server.stop()
    const on = createRequest()
    assert.equal((await expectFailure(mailer, on)).code, 'email.failed')
    assert.equal(on.begun, 0)
  })
})

describe('a mail that may have been accepted', () => {
  for (const mode of ['cut after', 'cut before', 'hang after', 'hang before'] as const) {
    test(`${mode} accepting it`, async () => {
      const { server, mailer } = await openMailer(mode)
      const on = createRequest()
      const handed = await mailer.send(createMessage(), on)
      assert.ok(handed.kind === 'unknown' && !handed.answered, inspect(handed))
      assert.deepEqual([on.begun, server.requests], [1, 1], 'nothing repeats it')
      assert.equal(server.taken.length, mode.endsWith('after') ? 1 : 0)
    })
  }

  test('a duplicate answer counts once, and does not affect other mails', async () => {
    const { server, mailer } = await openMailer('twice')
    for (let n = 1; n <= 6; n++) {
      const one = createMessage()
      const handed = await mailer.send(one, createRequest()).catch((error: Failure) => error)
      const taken = server.taken.filter((id) => id.includes(one.id)).length
      if (handed instanceof Failure) assert.deepEqual([handed.code, taken], ['email.failed', 0])
      else assert.ok(handed.kind === 'unknown' || taken === 1, inspect(handed))
    }
    assert.equal(new Set(server.taken).size, server.taken.length)
  })

  test('an abort waits a moment for a mail that is out, but not before', async () => {
    const { server, mailer } = await openMailer('hang after')
    const abort = new AbortController()
    const sending = mailer.send(createMessage(), createRequest(abort.signal))
    await until('the request has begun', () => server.taken.length === 1)
    abort.abort('cancelled')
    assert.equal((await sending).kind, 'unknown')
    const aborted = createRequest(AbortSignal.abort('stopping'))
    await assert.rejects(mailer.send(createMessage(), aborted), (error) => error === 'stopping')
    assert.equal(aborted.begun, 0)
  })
})

describe('repeatable sends', () => {
  const mailerOf = (env: Record<string, string>) => createMailer(parseSettings(env), LIMITS)
  test('are those to Resend’s relay, which has keys, and to files', () => {
    const from = { EMAIL_PROVIDER_FROM_EMAIL: 'a@example.com' }
    assert.equal(mailerOf({ ...from, EMAIL_PROVIDER_API_KEY: 're_x' }).isIdempotent, true)
    assert.equal(mailerOf({ ...from, EMAIL_SMTP_URL: 'smtp://smtp.resend.com:587' }).isIdempotent, true)
    assert.equal(mailerOf({ EMAIL_SMTP_URL: 'outbox:' }).isIdempotent, true)
    assert.equal(mailerOf({ ...from, EMAIL_SMTP_URL: 'smtp://mail.example.com' }).isIdempotent, false)
    assert.equal(mailerOf({ ...from, EMAIL_SMTP_URL: 'smtp://notresend.com' }).isIdempotent, false)
  })

  test('a server that does not answer gets no more requests after five failures', async (t) => {
    t.mock.timers.enable({ apis: ['Date'], now: Date.now() })
    const { server, mailer } = await openMailer()
    await server.stop()
    for (let n = 0; n < 5; n++) assert.equal((await expectFailure(mailer)).retryAfter, undefined)
    const error = await expectFailure(mailer)
    assert.deepEqual([error.code, error.retryable, error.retryAfter], ['provider.paused', true, 5])
  })
})
