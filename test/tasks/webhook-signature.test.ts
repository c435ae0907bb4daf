import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { createWebhookSecret, hasValidSignature, signWebhook } from '../../tasks/webhooks/signature.ts'
import { validateWebhookUrl } from '../../tasks/webhooks/url.ts'

/** Signatures of webhooks, and the URLs that they may have. */

const [first, second, other] = [createWebhookSecret(), createWebhookSecret(), createWebhookSecret()]
const message = { id: 'msg_1', timestamp: Math.floor(Date.now() / 1000), body: '{"type":"job.done"}' }

describe('the signature', () => {
  test('is accepted by the reference implementation', () => {
    const headers = signWebhook(message, [first])
    assert.match(first, /^whsec_[A-Za-z0-9+/]{43}=$/)
    assert.deepEqual(new Webhook(first).verify(message.body, headers), { type: 'job.done' })
    // Example from the specification.
    const given = signWebhook(
      { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', timestamp: 1614265330, body: '{"test": 2432232314}' },
      ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'],
    )
    assert.equal(given['webhook-signature'], 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=')
  })

  test("is sent twice during a secret's rotation, neither of another endpoint", () => {
    const headers = signWebhook(message, [second, first])
    for (const secret of [first, second]) new Webhook(secret).verify(message.body, headers)
    assert.throws(() => new Webhook(other).verify(message.body, headers))
    assert.throws(() => new Webhook(first).verify(`${message.body} `, headers))
  })
})

describe('verifying signatures', () => {
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
  // Example from the specification.
  const given = {
    id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    timestamp: '1614265330',
    signature: 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  }
  const body = Buffer.from('{"test": 2432232314}')
  const now = 1_614_265_330_000

  test('depends on the bytes, the id and the time', () => {
    assert.ok(hasValidSignature(given, body, secret, now))
    assert.ok(hasValidSignature({ ...given, signature: `v1,x v1a,y ${given.signature}` }, body, secret, now))
    assert.ok(!hasValidSignature({ ...given, id: 'msg_other' }, body, secret, now))
    assert.ok(!hasValidSignature({ ...given, timestamp: '1614265331' }, body, secret, now))
    assert.ok(!hasValidSignature(given, Buffer.from('{"test":2432232314}'), secret, now))
    assert.ok(!hasValidSignature(given, body, first, now))
    for (const signature of [
      '',
      'v1',
      'v1,',
      'v1,AAAA',
      given.signature.slice(3),
      given.signature.replace('v1', 'v2'),
    ])
      assert.ok(!hasValidSignature({ ...given, signature }, body, secret, now), signature)
  })

  test('accepts 300 s before and after', () => {
    for (const [seconds, isGood] of [
      [300, true],
      [301, false],
      [-300, true],
      [-301, false],
    ] as const)
      assert.equal(hasValidSignature(given, body, secret, now + seconds * 1000), isGood, `${seconds}`)
    for (const timestamp of ['', 'x', '1614265330.5', '-1614265330', 'NaN', `${'9'.repeat(20)}`])
      assert.ok(!hasValidSignature({ ...given, timestamp }, body, secret, now), timestamp)
  })
})

describe('a URL', () => {
  const problem = (url: string, ...allowed: string[]) => validateWebhookUrl(url, { allowed })

  test('must be https, of a public host, without a password', () => {
    assert.equal(problem('https://example.com/hooks?a=b'), null)
    assert.equal(problem('https://93.184.216.34/'), null)
    assert.equal(problem('https://[2606:2800:220:1::1]/'), null)
    for (const url of ['http://example.com/', 'ftp://example.com/', 'file:///etc/passwd'])
      assert.equal(problem(url), 'must begin with https://', url)
    assert.equal(problem('https://user:word@example.com/'), 'must not contain a user name or password')
    for (const url of ['', 'example.com', '/hooks', `https://example.com/${'x'.repeat(2000)}`])
      assert.equal(problem(url), 'must be a URL of at most 2000 characters', url)
  })

  test('cannot be a private address in any notation', () => {
    for (const host of [
      '127.0.0.1',
      '10.0.0.1',
      '172.16.3.4',
      '192.168.1.1',
      '169.254.169.254',
      '100.64.0.1',
      '0.0.0.0',
      '224.0.0.1',
      '255.255.255.255',
      // 127.0.0.1 in all notations that browsers accept.
      '2130706433',
      '0x7f.1',
      '0177.0.0.1',
      '[::1]',
      '[::]',
      '[fc00::1]',
      '[fe80::1]',
      '[::ffff:127.0.0.1]',
      '[::ffff:a9fe:a9fe]',
      '[64:ff9b::a00:1]',
      '[2002:7f00:1::]',
    ])
      assert.equal(problem(`https://${host}/`), 'must not be a private address', host)
  })

  test('may be in an allowed private range, also with http', () => {
    assert.equal(problem('http://10.1.2.3:8080/', '10.1.0.0/16'), null)
    assert.equal(problem('http://10.2.2.3/', '10.1.0.0/16', '::1/128'), 'must not be a private address')
    assert.equal(problem('http://[::1]/', '10.1.0.0/16', '::1/128'), null)
  })
})
