import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { until } from '../until.ts'
import { type Answered, type Api, PASSWORD, startEdge, startEdgeAndDatabase } from './harness.ts'

const LIMITS = { RATE_LIMIT_LOGIN: '3/60', RATE_LIMIT_REGISTER: '2/60', RATE_LIMIT_PASSWORD_RESET: '4/60' }
const { api, url, query } = await startEdgeAndDatabase({ env: { ...LIMITS, TRUST_PROXY: 'true' } })
const otherEdge = await startEdge(url, { env: { ...LIMITS, TRUST_PROXY: 'true' } })
const directEdge = await startEdge(url, { env: LIMITS })
const shortLimitEdge = await startEdge(url, {
  env: { RATE_LIMIT_PASSWORD_RESET: '2/1', TRUST_PROXY: 'true' },
})
const unlimitedEdge = await startEdge(url, { env: { RATE_LIMIT_LOGIN: '0', RATE_LIMIT_PASSWORD_RESET: '0' } })

let count = 0
const createEmail = (): string => `limit${++count}@example.com`
/** Returns a client address that has sent no request yet. */
const createAddress = (): string => `198.51.${count >> 8}.${++count & 255}`
const createForwardedHeaders = (address: string) => ({ 'x-forwarded-for': address })

const REQUESTS: Record<string, { max: number; ask: (edge: Api, address: string) => Promise<Answered> }> = {
  token: {
    max: 3,
    ask: (edge, address) =>
      edge.post('/api/v1/auth/token', {
        form: { username: createEmail(), password: PASSWORD },
        headers: createForwardedHeaders(address),
      }),
  },
  register: {
    max: 2,
    ask: (edge, address) =>
      edge.post('/api/v1/auth/register', {
        json: { email: createEmail(), password: PASSWORD },
        headers: createForwardedHeaders(address),
      }),
  },
  'password-reset/request': {
    max: 4,
    ask: (edge, address) =>
      edge.post('/api/v1/auth/password-reset/request', {
        json: { email: createEmail() },
        headers: createForwardedHeaders(address),
      }),
  },
}
const reset = REQUESTS['password-reset/request']!.ask

function assertLimited(answer: Answered): number {
  assert.equal(answer.status, 429)
  const seconds = Number(answer.headers['retry-after'])
  assert.ok(Number.isInteger(seconds) && seconds >= 1 && seconds <= 60, answer.headers['retry-after'])
  assert.deepEqual(answer.json, {
    detail: `Too many requests; try again in ${seconds} s`,
    code: 'request.limited',
  })
  assert.match(answer.headers['content-type']!, /^application\/json/)
  assert.ok(answer.headers['x-request-id'])
  assert.deepEqual(answer.cookies, [])
  return seconds
}

describe('rate limits', () => {
  for (const [path, { max, ask }] of Object.entries(REQUESTS)) {
    test(`POST /auth/${path} accepts ${max} requests, then gives 429 with Retry-After on every edge`, async () => {
      const address = createAddress()
      for (let i = 0; i < max; i++) assert.notEqual((await ask(i % 2 ? api : otherEdge, address)).status, 429)
      for (const edge of [api, otherEdge, api]) assert.ok(assertLimited(await ask(edge, address)) > 50)
      assert.notEqual((await ask(api, createAddress())).status, 429, 'others are not held up')
    })
  }

  test('each route has its own limit', async () => {
    const address = createAddress()
    for (let i = 0; i < 3; i++) await REQUESTS.register!.ask(api, address)
    assert.equal((await REQUESTS.register!.ask(api, address)).status, 429)
    assert.equal((await REQUESTS.token!.ask(api, address)).status, 401)
    assert.equal((await reset(api, address)).status, 200)
  })

  test('invalid requests count, and rejected ones do no work', async () => {
    const address = createAddress()
    for (let i = 0; i < 2; i++) {
      const bad = await api.post('/api/v1/auth/register', {
        body: '{',
        headers: { ...createForwardedHeaders(address), 'content-type': 'application/json' },
      })
      assert.equal(bad.status, 400)
    }
    const [before] = await query('select count(*)::int as n from account')
    assertLimited(await REQUESTS.register!.ask(api, address))
    assert.deepEqual(await query('select count(*)::int as n from account'), [before])
  })

  test('exactly the limit of 40 concurrent requests on two edges succeeds', async () => {
    const address = createAddress()
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, i) => reset(i % 2 ? api : otherEdge, address)),
    )
    assert.equal(answers.filter(({ status }) => status === 200).length, 4)
    for (const answer of answers.filter(({ status }) => status !== 200)) assertLimited(answer)
  })

  test('a request after Retry-After succeeds', async () => {
    const address = createAddress()
    const admitted: { readonly askedAt: number; readonly answeredAt: number }[] = []
    const ask = async (): Promise<Answered> => {
      const askedAt = performance.now()
      const answer = await reset(shortLimitEdge, address)
      if (answer.status === 200) admitted.push({ askedAt, answeredAt: performance.now() })
      return answer
    }
    // Usually the third request is rejected. If the first two take a second, a later one is.
    const refused = await until('a request is rejected', async () => {
      const answer = await ask()
      return answer.status === 429 && answer
    })
    assert.equal(assertLimited(refused), 1)
    await until('the next request succeeds', async () => (await ask()).status === 200)
    // The limit is two requests in any second, so each admitted request comes at least a second after the admitted
    // request two before it.
    const waited = admitted.at(-1)!.answeredAt - admitted.at(-3)!.askedAt
    assert.ok(waited > 990, `after ${waited} ms`)
  })

  test('0 disables a limit', async () => {
    const answers = await Promise.all(Array.from({ length: 45 }, () => reset(unlimitedEdge, '')))
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
  })

  test('other routes have no limits', async () => {
    for (let i = 0; i < 40; i++) assert.equal((await directEdge.get('/api/v1/auth/me')).status, 401)
  })
})

describe('the client of a request', () => {
  /** Sends the requests one after the other and counts those that succeed. */
  const countAdmitted = async (edge: Api, headers: readonly Record<string, string>[]): Promise<number> => {
    let passed = 0
    for (const one of headers) {
      const answer = await edge.post('/api/v1/auth/password-reset/request', {
        json: { email: createEmail() },
        headers: one,
      })
      if (answer.status === 200) passed++
      else assertLimited(answer)
    }
    return passed
  }

  test('behind a trusted proxy is the last address in X-Forwarded-For', async () => {
    const address = createAddress()
    const spoofed = Array.from({ length: 6 }, (_, i) =>
      createForwardedHeaders(`203.0.113.${i}, 10.0.0.${i},${address}`),
    )
    assert.equal(await countAdmitted(api, spoofed), 4)
    assert.equal(
      await countAdmitted(
        api,
        Array.from({ length: 6 }, () => createForwardedHeaders(`${address}, ${createAddress()}`)),
      ),
      6,
    )
  })

  test('is found if the proxy adds a second header line', async () => {
    const address = createAddress()
    const body = JSON.stringify({ email: createEmail() })
    const statuses: string[] = []
    for (let i = 0; i < 6; i++) {
      const text = await api.raw(
        `POST /api/v1/auth/password-reset/request HTTP/1.1\r\nhost: localhost\r\nX-Forwarded-For: 203.0.113.${i}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\nX-Forwarded-For: ${address}\r\nconnection: close\r\n\r\n${body}`,
      )
      statuses.push(text.slice(9, 12))
    }
    assert.deepEqual(statuses, ['200', '200', '200', '200', '429', '429'])
  })

  test('without a trusted proxy is the peer of the connection, whatever the header contains', async () => {
    await query('truncate request_limit')
    assert.equal(
      await countAdmitted(
        directEdge,
        Array.from({ length: 6 }, () => createForwardedHeaders(createAddress())),
      ),
      4,
    )
  })

  test('is the /64 for IPv6, and the bare address for IPv4 with or without prefix or port', async () => {
    const six = [
      '2001:db8:7:7::1',
      '2001:db8:7:7::2',
      '[2001:db8:7:7:1:2:3:4]:99',
      '2001:DB8:7:7:ffff::',
      '2001:db8:7:7::9',
    ]
    assert.equal(await countAdmitted(api, six.map(createForwardedHeaders)), 4)
    assert.equal(await countAdmitted(api, [createForwardedHeaders('2001:db8:7:8::1')]), 1)
    const four = [
      '203.0.113.99',
      '::ffff:203.0.113.99',
      '203.0.113.99:1234',
      '[::ffff:cb00:7163]:5',
      '203.0.113.99',
    ]
    assert.equal(await countAdmitted(api, four.map(createForwardedHeaders)), 4)
  })

  test('is one shared client for all headers without an address', async () => {
    assert.equal(
      await countAdmitted(
        api,
        Array.from({ length: 5 }, () => createForwardedHeaders('unknown')),
      ),
      4,
    )
    const empty = ['', ' ', ',', ', ', ' , ']
    await query('truncate request_limit')
    assert.equal(
      await countAdmitted(otherEdge, empty.map(createForwardedHeaders)),
      4,
      'without an address it is the connection’s',
    )
  })

  test('has the same address in the audit trail', async () => {
    const address = createAddress()
    const { status, headers } = await reset(unlimitedEdge, address)
    assert.equal(status, 200)
    const forwarded = await reset(api, address)
    const rows = await query('select request_id, address from audit_event where request_id = any($1)', [
      [headers['x-request-id'], forwarded.headers['x-request-id']],
    ])
    const by = new Map(rows.map(({ request_id, address }) => [request_id, address]))
    assert.equal(by.get(headers['x-request-id']), '127.0.0.1')
    assert.equal(by.get(forwarded.headers['x-request-id']), address)
  })
})
