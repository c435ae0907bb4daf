import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import fc from 'fast-check'
import { createTestDatabase } from '../database.ts'
import { createRunOptions, scaleTimeout } from '../runs.ts'
import { type Child, launchProcess } from '../service.ts'
import { stopAfterFile } from '../services.ts'
import { until } from '../until.ts'

const EDGES = 2
const HONEST_CLIENTS = 5
const { url, query } = await createTestDatabase()
const env = { RATE_LIMIT_REGISTER: '0', RATE_LIMIT_LOGIN: '0', LOG_LEVEL: 'warn' }
async function startEdge(): Promise<Child> {
  const edge = await launchProcess('edge', url, env)
  stopAfterFile(() => edge.kill())
  return edge
}
const edges = await Promise.all(Array.from({ length: EDGES }, startEdge))
const AUTH = '/api/v1/auth'
const base = (i: number): string => `http://127.0.0.1:${edges[i % EDGES]!.ready.port}${AUTH}`
let count = 0

/** Tokens of a signed-in account, as a browser's cookies hold them. */
interface Session {
  access: string
  refresh: string
}

interface Answer {
  readonly status: number
  readonly session: Session | null
}

function sessionOf(response: Response): Session | null {
  const cookie = (name: string): string | undefined =>
    response.headers
      .getSetCookie()
      .find((one) => one.startsWith(`${name}=`))
      ?.slice(name.length + 1)
      .split(';')[0]
  const [access, refresh] = [cookie('millrace_session'), cookie('millrace_refresh')]
  return access && refresh ? { access, refresh } : null
}

async function register(): Promise<Session> {
  const response = await fetch(`${base(0)}/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email: `kill${++count}@example.com`, password: 'correct horse' }),
  })
  assert.equal(response.status, 200)
  return sessionOf(response)!
}

async function refresh(edge: number, token: string, key?: string): Promise<Answer> {
  const headers = {
    cookie: `millrace_refresh=${token}`,
    ...(key === undefined ? {} : { 'idempotency-key': key }),
  }
  const response = await fetch(`${base(edge)}/refresh`, { method: 'POST', headers })
  await response.arrayBuffer()
  return { status: response.status, session: sessionOf(response) }
}

const readMeStatus = async (edge: number, { access }: Session): Promise<number> => {
  const response = await fetch(`${base(edge)}/me`, { headers: { authorization: `Bearer ${access}` } })
  await response.arrayBuffer()
  return response.status
}

/** A step of an honest client: its edge, whether the answer gets lost, and the pause after it. */
const step = fc.record({ edge: fc.nat({ max: 1 }), lost: fc.boolean(), restMs: fc.nat({ max: 8 }) })
const killArbitrary = fc.record({ edge: fc.nat({ max: 1 }), afterMs: fc.integer({ min: 5, max: 120 }) })

/** Exchanges a refresh token with one key until an answer arrives, and retries failures at the other edge. */
async function exchange(session: Session, { edge, lost }: { edge: number; lost: boolean }): Promise<Session> {
  const key = randomUUID()
  let mayLose = lost
  for (let attempt = 0; attempt < 400; attempt++) {
    const answer = await refresh(edge + attempt, session.refresh, key).catch(() => null)
    if (answer === null || answer.status >= 500) {
      await delay(5)
      continue
    }
    if (mayLose) {
      mayLose = false
      continue
    }
    assert.equal(answer.status, 200, `an honest client is signed out (attempt ${attempt})`)
    return answer.session!
  }
  throw new Error('No edge answered')
}

test('killed edges sign out no honest client, and a replayed token ends its session on all edges', {
  timeout: scaleTimeout(110_000),
}, async (t) => {
  let exchanges = 0
  let kills = 0
  const lanes = fc.array(fc.array(step, { minLength: 10, maxLength: 20 }), {
    minLength: HONEST_CLIENTS,
    maxLength: HONEST_CLIENTS,
  })
  await fc.assert(
    fc.asyncProperty(
      lanes,
      fc.array(killArbitrary, { minLength: 2, maxLength: 4 }),
      async (clients, deaths) => {
        const honest = await Promise.all(clients.map(register))
        const [victim, copy] = await Promise.all([register(), register()])
        let over = false
        const killing = (async () => {
          for (const { edge, afterMs } of deaths) {
            await delay(afterMs)
            await edges[edge]!.kill()
            kills++
            edges[edge] = await startEdge()
          }
        })().finally(() => {
          over = true
        })
        await Promise.all(
          clients.map(async (steps, i) => {
            for (let n = 0; n < steps.length || !over; n++) {
              const one = steps[n % steps.length]!
              honest[i] = await exchange(honest[i]!, one)
              exchanges++
              await delay(one.restMs)
            }
          }),
        )
        await killing

        for (const session of honest)
          for (let edge = 0; edge < EDGES; edge++) assert.equal(await readMeStatus(edge, session), 200)
        const forked = await query(
          'select session_id from refresh_token where rotated_at is null group by session_id having count(*) > 1',
        )
        assert.deepEqual(forked, [])

        // A thief presents an exchanged token, either without its key or with the key too late.
        const key = randomUUID()
        const first = await refresh(0, victim.refresh, key)
        assert.equal(first.status, 200)
        for (let edge = 0; edge < EDGES; edge++) assert.equal(await readMeStatus(edge, first.session!), 200)
        assert.equal((await refresh(1, victim.refresh)).status, 401)
        await assertEnded([victim, first.session!])
        const lateKey = randomUUID()
        const one = await refresh(0, copy.refresh, lateKey)
        const two = await refresh(1, one.session!.refresh, randomUUID())
        assert.deepEqual([one.status, two.status], [200, 200])
        assert.equal((await refresh(1, copy.refresh, lateKey)).status, 401)
        await assertEnded([copy, one.session!, two.session!])
      },
    ),
    { ...createRunOptions(1), endOnFailure: true, includeErrorInReport: true },
  )
  t.diagnostic(`${exchanges} exchanges, ${kills} kills`)
  assert.ok(kills > 0)
})

test('an exchange in flight does not restore a session that another one has ended', async () => {
  for (let round = 0; round < 10; round++) {
    const session = await register()
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_, i) => refresh(i, session.refresh, i % 2 ? randomUUID() : undefined)),
    )
    const won = answers.filter(({ status }) => status === 200)
    assert.equal(won.length, 1)
    await assertEnded([session, won[0]!.session!])
  }
})

/** Asserts that every edge rejects the sessions' refresh and access tokens. */
async function assertEnded(sessions: readonly Session[]): Promise<void> {
  for (const session of sessions)
    for (let edge = 0; edge < EDGES; edge++) {
      assert.equal((await refresh(edge, session.refresh, randomUUID())).status, 401)
      await until(
        'the access token is rejected',
        async () => (await readMeStatus(edge, session)) === 401,
        4000,
      )
    }
}
