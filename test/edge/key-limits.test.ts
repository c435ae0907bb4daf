import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { until } from '../until.ts'
import { getMe, getSharedCast } from './accounts-help.ts'
import { createKey } from './api-keys-help.ts'
import { type Answered, startEdge } from './harness.ts'

/** All edges must share the rate limit of an API key, without a write per request. */

const LIMIT = 500
const env = { RATE_LIMIT_API_KEY: `${LIMIT}/3600`, CORS_ORIGINS: 'https://app.example.com' }
const { query, url, newcomer, api: free } = await getSharedCast()
const edges = [await startEdge(url, { env }), await startEdge(url, { env })] as const
const [api] = edges

const parseLimits = ({ headers }: Answered) =>
  ['ratelimit-limit', 'ratelimit-remaining', 'ratelimit-reset'].map((name) => Number(headers[name]))

const readReservedRequests = async (key: string): Promise<number> =>
  Number((await query('select taken from api_key_allowance where key_id = $1', [key]))[0]?.taken)

describe('the rate limit of a key', () => {
  test('is reported with each answer, including refusals', async () => {
    const { id, key } = await createKey(api, await newcomer(), { scopes: ['accounts:read'] })
    const [limit, remaining, reset] = parseLimits(await getMe(api, key))
    assert.deepEqual([limit, remaining], [LIMIT, LIMIT - 1])
    assert.ok(reset! > 3500 && reset! <= 3600, `${reset} s`)
    const refused = await api.get('/api/v1/documents/1', { token: key })
    assert.equal(refused.status, 403)
    const missing = await api.get('/api/v1/auth/users/999999', { token: key })
    assert.equal(parseLimits(missing)[1], LIMIT - 2)
    assert.equal(await readReservedRequests(id), 5, 'a hundredth at a time')
  })

  test('applies to all edges together', async () => {
    const account = await newcomer()
    const { key } = await createKey(api, account)
    const answers = await Promise.all(Array.from({ length: LIMIT + 20 }, (_, n) => getMe(edges[n % 2]!, key)))
    const admitted = answers.filter(({ status }) => status === 200).length
    // Edges reserve requests in blocks, and a block of one edge is not available to the other.
    assert.ok(admitted <= LIMIT && admitted >= LIMIT - LIMIT / 100, `${admitted} admitted`)
    const refused = answers.find(({ status }) => status === 429)!
    assert.match(refused.json.detail, /^Too many requests; try again in \d+ s$/)
    const [limit, remaining, reset] = parseLimits(refused)
    assert.deepEqual([limit, remaining], [LIMIT, 0])
    assert.equal(Number(refused.headers['retry-after']), reset)
    // Neither sessions nor other keys of the account count against this limit.
    const person = await getMe(api, account.token)
    assert.deepEqual([person.status, person.headers['ratelimit-limit']], [200, undefined])
    assert.equal((await getMe(api, (await createKey(api, account)).key)).status, 200)
  })

  test('resets each period', async () => {
    const short = await startEdge(url, { env: { RATE_LIMIT_API_KEY: '3/1' } })
    const { key } = await createKey(api, await newcomer())
    await until('the limit is used up', async () => (await getMe(short, key)).status === 429)
    await until('the next period starts', async () => (await getMe(short, key)).status === 200)
  })

  test('is off by default', async () => {
    const { id, key } = await createKey(api, await newcomer())
    const answer = await getMe(free, key)
    assert.deepEqual([answer.status, answer.headers['ratelimit-limit']], [200, undefined])
    assert.ok(Number.isNaN(await readReservedRequests(id)))
  })

  test('is readable by pages of allowed origins', async () => {
    const { key } = await createKey(api, await newcomer())
    const headers = { origin: 'https://app.example.com' }
    const answer = await api.get('/api/v1/auth/me', { token: key, headers })
    assert.match(String(answer.headers['access-control-expose-headers']), /ratelimit-remaining/)
  })
})
