import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { until } from '../until.ts'
import { me, sharedCast } from './accounts-help.ts'
import { keyOf } from './api-keys-help.ts'
import { type Answered, startEdge } from './harness.ts'

/** All edges must share the rate limit of an API key, without a write per request. */

const LIMIT = 500
const env = { RATE_LIMIT_API_KEY: `${LIMIT}/3600`, CORS_ORIGINS: 'https://app.example.com' }
const { query, url, newcomer, api: free } = await sharedCast()
const edges = [await startEdge(url, { env }), await startEdge(url, { env })] as const
const [api] = edges

const limitsOf = ({ headers }: Answered) =>
  ['ratelimit-limit', 'ratelimit-remaining', 'ratelimit-reset'].map((name) => Number(headers[name]))

const written = async (key: string): Promise<number> =>
  Number((await query('select taken from api_key_allowance where key_id = $1', [key]))[0]?.taken)

describe('the rate limit of a key', () => {
  test('is reported with each answer, including refusals', async () => {
    const { id, key } = await keyOf(api, await newcomer(), { scopes: ['accounts:read'] })
    const [limit, remaining, reset] = limitsOf(await me(api, key))
    assert.deepEqual([limit, remaining], [LIMIT, LIMIT - 1])
    assert.ok(reset! > 3500 && reset! <= 3600, `${reset} s`)
    const refused = await api.get('/api/v1/documents/1', { token: key })
    assert.equal(refused.status, 403)
    const missing = await api.get('/api/v1/auth/users/999999', { token: key })
    assert.equal(limitsOf(missing)[1], LIMIT - 2)
    assert.equal(await written(id), 5, 'a hundredth at a time')
  })

  test('applies to all edges together', async () => {
    const account = await newcomer()
    const { key } = await keyOf(api, account)
    const answers = await Promise.all(Array.from({ length: LIMIT + 20 }, (_, n) => me(edges[n % 2]!, key)))
    const admitted = answers.filter(({ status }) => status === 200).length
    // Edges reserve requests in blocks, and a block of one edge is not available to the other.
    assert.ok(admitted <= LIMIT && admitted >= LIMIT - LIMIT / 100, `${admitted} admitted`)
    const refused = answers.find(({ status }) => status === 429)!
    assert.match(refused.json.detail, /^Too many requests; try again in \d+ s$/)
    const [limit, remaining, reset] = limitsOf(refused)
    assert.deepEqual([limit, remaining], [LIMIT, 0])
    assert.equal(Number(refused.headers['retry-after']), reset)
    // Neither sessions nor other keys of the account count against this limit.
    const person = await me(api, account.token)
    assert.deepEqual([person.status, person.headers['ratelimit-limit']], [200, undefined])
    assert.equal((await me(api, (await keyOf(api, account)).key)).status, 200)
  })

  test('resets each period', async () => {
    const short = await startEdge(url, { env: { RATE_LIMIT_API_KEY: '3/1' } })
    const { key } = await keyOf(api, await newcomer())
    await until('the limit is used up', async () => (await me(short, key)).status === 429)
    await until('the next period starts', async () => (await me(short, key)).status === 200)
  })

  test('is off by default', async () => {
    const { id, key } = await keyOf(api, await newcomer())
    const answer = await me(free, key)
    assert.deepEqual([answer.status, answer.headers['ratelimit-limit']], [200, undefined])
    assert.ok(Number.isNaN(await written(id)))
  })

  test('is readable by pages of allowed origins', async () => {
    const { key } = await keyOf(api, await newcomer())
    const headers = { origin: 'https://app.example.com' }
    const answer = await api.get('/api/v1/auth/me', { token: key, headers })
    assert.match(String(answer.headers['access-control-expose-headers']), /ratelimit-remaining/)
  })
})
