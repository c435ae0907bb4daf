import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, describe, test } from 'node:test'
import { createWebhookPoster } from '../../workers/providers/webhooks.ts'
import { answerWith, startReceiver } from '../standins/receiver.ts'

/** Tests posts to callers' URLs: answers, and addresses that are never reached. */

const receiver = await startReceiver()
after(() => receiver.stop())
const { port } = new URL(receiver.url)
const LOOPBACK = ['127.0.0.0/8', '::1/128']
const createPoster = (allowed: readonly string[] = LOOPBACK, timeoutMs = 10_000) =>
  createWebhookPoster({
    webhooks: { allowed, timeoutMs, retryMs: [], rates: { verified: null, unverified: null } },
  })
const postWebhook = (
  url: string,
  post = createPoster(),
  signal = new AbortController().signal,
  echo: string | null = null,
) => post({ url, headers: { 'webhook-id': '1' }, body: '{"type":"t"}', echo }, signal)

describe('an answer to a post', () => {
  test('yields its status and the beginning of its body', async () => {
    receiver.answer = answerWith(200, 'thanks')
    const { ms, ...answer } = await postWebhook(`${receiver.url}/hooks?a=b`)
    assert.deepEqual(answer, { status: 200, body: 'thanks', error: null })
    assert.ok(ms >= 0)
    const last = receiver.received.at(-1)!
    assert.deepEqual([last.path, last.body], ['/hooks?a=b', '{"type":"t"}'])
    assert.equal(last.headers['content-type'], 'application/json')
    assert.equal(last.headers['webhook-id'], '1')
  })

  test('is read up to its first KiB, without NUL', async () => {
    receiver.answer = (response) => {
      response.writeHead(500)
      response.on('error', () => {})
      const more = () => {
        while (!response.destroyed && response.write(`a\0${'x'.repeat(65_536)}`));
        if (!response.destroyed) response.once('drain', more)
      }
      more()
    }
    const { status, body } = await postWebhook(receiver.url)
    assert.equal(status, 500)
    assert.deepEqual([body!.length, body!.includes('\0')], [1023, false])
  })

  test('counts as missing after the timeout', async () => {
    receiver.answer = () => {}
    const { status, error } = await postWebhook(receiver.url, createPoster(LOOPBACK, 100))
    assert.deepEqual([status, error], [null, 'No answer within 0.1 s'])
  })

  test('is not awaited after an abort', async () => {
    receiver.answer = () => {}
    const abort = new AbortController()
    const sent = postWebhook(receiver.url, createPoster(), abort.signal)
    abort.abort()
    assert.deepEqual((await sent).error, 'The attempt was cut short')
  })

  test('does not delay other endpoints on the same host', async () => {
    receiver.answer = (response, { path }) => {
      if (path !== '/slow') response.writeHead(204).end()
    }
    const post = createPoster(LOOPBACK, 5000)
    const abort = new AbortController()
    const slow = Array.from({ length: 100 }, () => postWebhook(`${receiver.url}/slow`, post, abort.signal))
    const { status } = await postWebhook(`${receiver.url}/other`, post)
    abort.abort()
    await Promise.all(slow)
    assert.equal(status, 204)
  })

  test('is reported as missing if the connection fails', async () => {
    const { error } = await postWebhook('http://127.0.0.1:1/')
    assert.equal(error, 'The connection failed (ECONNREFUSED)')
  })
})

describe('the head of an answer', () => {
  /** Sends a head and the beginning of a body, and ends neither the body nor the connection. */
  const answerOpen =
    (status: number, body = '', headers: Record<string, string> = {}): typeof receiver.answer =>
    (response) => {
      response
        .on('error', () => {})
        .writeHead(status, headers)
        .flushHeaders()
      if (body !== '') response.write(body)
    }

  test('decides although the body never ends', async () => {
    for (const [status, text] of [
      [200, ''],
      [204, ''],
      [202, 'begun'],
      [410, 'gone'],
      [500, 'broken'],
    ] as const) {
      receiver.answer = answerOpen(status, text)
      const answer = await postWebhook(receiver.url, createPoster(LOOPBACK, 60_000))
      assert.deepEqual([answer.status, answer.body, answer.error], [status, text, null])
    }
  })

  test('decides at the timeout, after an abort, and when the connection breaks', async () => {
    receiver.answer = answerOpen(200, 'begun')
    const late = await postWebhook(receiver.url, createPoster(LOOPBACK, 300), undefined, 'echo')
    assert.deepEqual([late.status, late.body, late.error], [200, 'begun', null])
    const abort = new AbortController()
    receiver.answer = (response, request) => {
      answerOpen(503, 'busy')(response, request)
      abort.abort()
    }
    const cut = await postWebhook(receiver.url, createPoster(), abort.signal)
    assert.deepEqual([cut.status, cut.error], [503, null])
    receiver.answer = (response) => {
      response.writeHead(202, { 'content-length': '100' })
      response.write('part', () => response.destroy())
    }
    const broken = await postWebhook(receiver.url)
    assert.deepEqual([broken.status, broken.body, broken.error], [202, 'part', null])
  })

  test('is followed by an echo that may come later, and ends the wait', async () => {
    const never = createPoster(LOOPBACK, 60_000)
    receiver.answer = (response) => {
      response
        .on('error', () => {})
        .writeHead(200)
        .flushHeaders()
      setTimeout(() => response.write('{"challenge":"to'), 1200)
      setTimeout(() => response.write('ken"}'), 1300)
    }
    const { status, body } = await postWebhook(receiver.url, never, undefined, 'token')
    assert.deepEqual([status, body], [200, '{"challenge":"token"}'])
  })

  test('tells how long to wait, in seconds or as a date', async () => {
    const inAnHour = new Date(Date.now() + 3_600_000).toUTCString()
    for (const [header, min, max] of [
      ['120', 120, 120],
      ['0', 0, 0],
      [inAnHour, 3590, 3600],
      // The two obsolete formats of RFC 9110.
      [inAnHour.replace(/^(\w+), (\d+) (\w+) (\d+) (.*) GMT$/, '$1 $3 $2 $5 $4'), 3590, 3600],
      ['Sunday, 06-Nov-94 08:49:37 GMT', 0, 0],
      ['Wed, 21 Oct 2015 07:28:00 GMT', 0, 0],
      ['99999999999999', 86_400, Number.MAX_SAFE_INTEGER],
    ] as const) {
      receiver.answer = answerOpen(429, '', { 'retry-after': header })
      const { status, retry_after: seconds } = await postWebhook(receiver.url)
      assert.equal(status, 429)
      assert.ok(seconds !== undefined && seconds >= min && seconds <= max, `${header}: ${seconds}`)
    }
    for (const header of ['soon', '']) {
      receiver.answer = answerOpen(503, '', { 'retry-after': header })
      assert.equal((await postWebhook(receiver.url)).retry_after, undefined)
    }
  })
})

describe('private addresses', () => {
  receiver.answer = answerWith(204)
  const PRIVATE_ADDRESS_ERROR = 'Private addresses are not allowed'
  // Allows one private network, and thereby http, but not the loopback addresses of these tests.
  const strictPoster = createPoster(['10.99.0.0/16'])

  test('are refused by address and by name', async () => {
    const before = receiver.received.length
    assert.equal(
      (await postWebhook(`http://127.0.0.1:${port}/`, strictPoster)).error,
      'The URL must not be a private address',
    )
    // `localhost` stands in for a public name that its owner points at a private address.
    assert.equal((await postWebhook(`http://localhost:${port}/`, strictPoster)).error, PRIVATE_ADDRESS_ERROR)
    assert.equal(receiver.received.length, before)
  })

  test('are not reached through a redirect', async () => {
    const before = receiver.received.length
    const redirecting = createServer((_, response) =>
      response.writeHead(307, { location: `http://localhost:${port}/` }).end('elsewhere'),
    )
    await new Promise<void>((resolve) => redirecting.listen(0, '127.0.0.1', resolve))
    after(() => redirecting.close())
    const url = `http://127.0.0.1:${(redirecting.address() as AddressInfo).port}/`
    const { status, body } = await postWebhook(url)
    assert.deepEqual([status, body], [307, 'elsewhere'], 'a redirect is an answer like others')
    assert.equal(receiver.received.length, before)
  })

  test('are not reached by http if no network is allowed', async () => {
    assert.equal(
      (await postWebhook('http://example.com/', createPoster([]))).error,
      'The URL must begin with https://',
    )
  })
})
