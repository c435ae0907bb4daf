import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { inspect } from 'node:util'
import { Failure } from '../../sql/errors.ts'
import { parseSettings } from '../../tasks/platform/settings/settings.ts'
import { createDomains } from '../../workers/providers/comms/domains.ts'
import { type Mode, neverAnswers } from '../standins/http.ts'
import {
  createResendDomain,
  KEY,
  type ResendStandIn,
  SEND_ONLY_KEY_ERROR,
  startResend,
} from '../standins/resend.ts'

// The limits suit a busy machine. `HANGING_LIMITS` has a shorter one, for servers that never answer.
const LIMITS = { answerMs: 10_000, freshMs: 300_000, staleMs: 5000, retryMs: 30_000, maxWaitMs: 0 }
const HANGING_LIMITS = { ...LIMITS, answerMs: 300 }
const servers: ResendStandIn[] = []
after(async () => {
  for (const server of servers) await server.stop()
})
const signal = new AbortController().signal

async function createAccount(env: Record<string, string> = {}, mode: Mode = 'take') {
  const server = await startResend()
  servers.push(server)
  server.mode = () => mode
  const settings = parseSettings({
    EMAIL_PROVIDER_API_KEY: KEY,
    EMAIL_PROVIDER_FROM_EMAIL: 'service@example.com',
    EMAIL_PROVIDER_API_BASE_URL: `${server.url}/`,
    ...env,
  })
  const limits = neverAnswers(mode) ? HANGING_LIMITS : LIMITS
  return { server, ...createDomains(settings.email, limits) }
}

async function expectFailure(asking: Promise<unknown>): Promise<Failure> {
  const error = await asking.then(
    (value) => assert.fail(`It did not fail: ${inspect(value)}`),
    (error: unknown) => error,
  )
  assert.ok(error instanceof Failure, inspect(error))
  assert.ok(!inspect(error, { depth: 10 }).includes(KEY))
  return error
}

describe('the domains of an account', () => {
  test('are listed from all pages', async () => {
    const { server, domains } = await createAccount()
    server.domains.push(
      createResendDomain('a.example'),
      createResendDomain('b.example', 'pending'),
      createResendDomain('c.example'),
    )
    server.pageSize = 2
    const names = (await domains.list(signal)).map(({ name, status }) => [name, status])
    assert.deepEqual(names, [
      ['a.example', 'verified'],
      ['b.example', 'pending'],
      ['c.example', 'verified'],
    ])
    assert.equal(server.asked.length, 2)
    const [first] = await domains.list(signal)
    const { id, name, status, region, created_at } = server.domains[0]!
    assert.deepEqual(first, { id, name, status, region, created_at })
  })

  test('include an added one, once', async () => {
    const { server, domains } = await createAccount()
    const added = await domains.add('mail.example', 'eu-west-1', signal)
    assert.deepEqual([added.name, added.status, added.region], ['mail.example', 'not_started', 'eu-west-1'])
    assert.deepEqual(added.records[0], {
      purpose: 'SPF',
      type: 'MX',
      name: 'send',
      value: 'feedback-smtp.us-east-1.amazonses.com',
      ttl: 'Auto',
      priority: 10,
      status: 'not_started',
    })
    assert.deepEqual([added.records[1]!.ttl, added.records[1]!.priority], ['60', null])
    const again = await domains.add('mail.example', undefined, signal)
    assert.deepEqual([again.id, again.records.length, server.domains.length], [added.id, 2, 1])
  })

  test('are checked by name', async () => {
    const { server, domains } = await createAccount()
    server.domains.push(createResendDomain('mail.example', 'failed'))
    const checked = await domains.check('mail.example', signal)
    assert.deepEqual([checked?.status, checked?.records.length], ['pending', 2])
    assert.equal(await domains.check('other.example', signal), null)
    assert.ok(server.asked.includes(`POST /domains/${server.domains[0]!.id}/verify`))
  })

  test('require a key', async () => {
    const { domains } = createDomains(parseSettings({}).email)
    for (const asking of [
      domains.list(signal),
      domains.add('x.example', undefined, signal),
      domains.check('x.example', signal),
    ])
      assert.equal((await expectFailure(asking)).code, 'domain.not_configured')
  })
})

describe('errors of the provider', () => {
  const cases: readonly [string, Mode, string, boolean, RegExp][] = [
    ['a key that may only send', SEND_ONLY_KEY_ERROR, 'domain.refused', false, /may only send/],
    ['a bad key', { status: 401, body: { name: 'missing_api_key' } }, 'domain.refused', false, /the key$/],
    [
      'a refusal',
      { status: 403, body: { name: 'validation_error', message: `Upgrade\n${KEY} to add more` } },
      'domain.refused',
      false,
      /: Upgrade \*\*\* to add more$/,
    ],
    ['no words', { status: 422, body: '<html>' }, 'domain.refused', false, /HTTP status 422$/],
    [
      'a redirect',
      { status: 302, headers: { location: 'https://evil.example' } },
      'domain.failed',
      true,
      /./,
    ],
    ['500', 'error before', 'domain.failed', true, /HTTP status 500$/],
    ['a cut', 'cut before', 'domain.failed', true, /./],
    ['a hang', 'hang before', 'domain.failed', true, /no answer in time$/],
    ['garbage', 'garbage', 'domain.failed', true, /could not be read$/],
  ]
  for (const [name, mode, code, again, detail] of cases) {
    test(name, async () => {
      const { domains } = await createAccount({}, mode)
      const error = await expectFailure(domains.list(signal))
      assert.deepEqual([error.code, error.retryable], [code, again])
      assert.match(error.detail, detail)
    })
  }

  test('429: no request is made before the given time', async (t) => {
    t.mock.timers.enable({ apis: ['Date'], now: Date.now() })
    const { server, domains } = await createAccount({}, { status: 429, headers: { 'retry-after': '3' } })
    assert.equal((await expectFailure(domains.list(signal))).retryAfter, 3)
    t.mock.timers.tick(1500)
    assert.equal((await expectFailure(domains.list(signal))).retryAfter, 2)
    assert.equal(server.asked.length, 1)
  })

  test('five failures without an answer: no more requests are made', async (t) => {
    t.mock.timers.enable({ apis: ['Date'], now: Date.now() })
    const { server, domains } = await createAccount({}, 'cut before')
    for (let n = 0; n < 5; n++) await expectFailure(domains.list(signal))
    assert.match((await expectFailure(domains.list(signal))).detail, /retry in 5 s$/)
    assert.equal(server.asked.length, 5)
  })

  test('an abort is reported as an abort', async () => {
    const { domains } = await createAccount({}, 'hang before')
    await assert.rejects(domains.list(AbortSignal.abort('cancelled')), (error) => error === 'cancelled')
  })
})

describe('a sender', () => {
  test('must have a verified domain, in any case, but not a subdomain', async () => {
    const { server, checkSender } = await createAccount()
    server.domains.push(createResendDomain('Example.com'), createResendDomain('new.example', 'pending'))
    for (const good of ['a@example.com', 'A@EXAMPLE.COM', 'try@resend.dev']) await checkSender(good, signal)
    for (const bad of ['a@new.example', 'a@mail.example.com', 'a@other.example']) {
      const error = await expectFailure(checkSender(bad, signal))
      assert.deepEqual([error.code, error.retryable], ['email.sender_unverified', false])
      assert.match(error.detail, new RegExp(bad.slice(2)))
    }
    assert.equal(server.asked.length, 1, 'the list is kept')
  })

  test('is checked once for many callers, and again when the domain may have been verified', async (t) => {
    let now = performance.now()
    t.mock.method(performance, 'now', () => now)
    const { server, checkSender } = await createAccount()
    server.domains.push(createResendDomain('example.com', 'pending'))
    const all = await Promise.allSettled(
      Array.from({ length: 20 }, () => checkSender('a@example.com', signal)),
    )
    assert.ok(all.every(({ status }) => status === 'rejected'))
    assert.equal(server.asked.length, 1)
    server.domains[0]!.status = 'verified'
    await expectFailure(checkSender('a@example.com', signal))
    now += 5001
    await checkSender('a@example.com', signal)
    assert.equal(server.asked.length, 2)
  })

  for (const [name, mode] of [
    ['of a key that may only send', SEND_ONLY_KEY_ERROR],
    ['while the list can not be had', 'error before'],
    ['while the provider is silent', 'hang before'],
  ] as const) {
    test(`${name} is not checked, and not requested again immediately`, async () => {
      const { server, checkSender } = await createAccount({}, mode)
      await checkSender('a@anything.example', signal)
      await checkSender('a@anything.example', signal)
      assert.equal(server.asked.length, 1)
    })
  }

  test('is not checked without a key, or if mail goes to files', async () => {
    await createDomains(parseSettings({}).email).checkSender('a@x.example', signal)
    const { server, checkSender } = await createAccount({ EMAIL_SMTP_URL: 'outbox:' })
    await checkSender('a@x.example', signal)
    assert.equal(server.asked.length, 0)
  })

  test('stops waiting on an abort', async () => {
    const { checkSender } = await createAccount({}, 'hang before')
    const abort = new AbortController()
    const checking = checkSender('a@x.example', abort.signal)
    abort.abort('cancelled')
    await assert.rejects(checking, (error) => error === 'cancelled')
  })
})
