import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertChallenge, createCast } from './accounts-help.ts'
import { startMessageWorker, startProviderStandIns } from './comms-help.ts'
import { type Answered, type Api, startEdge, startEdgeAndDatabase } from './harness.ts'

/** Tests who may send, on each route at each level of authentication, with the area open and closed. */

const standIns = await startProviderStandIns()
const closedEnv = { ...standIns.env, OPEN_AREAS: 'ai' }
const openEnv = { ...standIns.env, OPEN_AREAS: 'comms' }
const { api: rbac, url, query } = await startEdgeAndDatabase({ env: { ...closedEnv, AUTH_LEVEL: 'rbac' } })
const { admin, moderator, user } = await createCast(rbac)
const levels = {
  rbac,
  basic: await startEdge(url, { env: { ...closedEnv, AUTH_LEVEL: 'basic' } }),
  none: await startEdge(url, { env: { ...closedEnv, AUTH_LEVEL: 'none' } }),
  'rbac, open': await startEdge(url, { env: { ...openEnv, AUTH_LEVEL: 'rbac' } }),
  'basic, open': await startEdge(url, { env: { ...openEnv, AUTH_LEVEL: 'basic' } }),
  'none, open': await startEdge(url, { env: { ...openEnv, AUTH_LEVEL: 'none' } }),
}
type Who = 'nobody' | 'user' | 'moderator' | 'admin' | 'bad token'
const tokens: Readonly<Record<Who, string | undefined>> = {
  nobody: undefined,
  user: user.token,
  moderator: moderator.token,
  admin: admin.token,
  'bad token': 'nonsense',
}

let numbers = 0
const createNumber = (): string => `+1415555${String(++numbers).padStart(4, '0')}`
/** Method, path, body, and the status for an admitted caller that does not wait for the job. */
const routes: readonly [string, string, () => object | undefined, number][] = [
  ['POST', '/email/send', () => ({ to: ['a@example.com'], subject: 's', text: 't' }), 202],
  ['POST', '/sms/send', () => ({ to: createNumber(), body: 't' }), 202],
  ['POST', '/call', () => ({ to: createNumber(), script_url: 'https://example.com/' }), 202],
  ['GET', '/status', () => undefined, 200],
  ['GET', '/sends', () => undefined, 200],
  ['GET', '/domains', () => undefined, 202],
  ['POST', '/domains', () => ({ name: 'added.example' }), 202],
  ['POST', '/domains/example.com/check', () => undefined, 202],
]
const RESPOND_ASYNC = { prefer: 'respond-async' }

function callAs(
  api: Api,
  who: Who,
  method: string,
  path: string,
  json?: object,
  headers = {},
): Promise<Answered> {
  const token = tokens[who]
  const body = json === undefined ? {} : { json }
  return api.call(method, `/api/v1/comms${path}`, {
    ...body,
    headers,
    ...(token === undefined ? {} : { token }),
  })
}

const ALL_ADMITTED = { nobody: 'ok', user: 'ok', moderator: 'ok', admin: 'ok', 'bad token': 'ok' } as const
const expected: Readonly<Record<keyof typeof levels, Readonly<Record<Who, 'ok' | 401 | 403>>>> = {
  rbac: { nobody: 401, user: 403, moderator: 403, admin: 'ok', 'bad token': 401 },
  basic: { ...ALL_ADMITTED, nobody: 401, 'bad token': 401 },
  none: ALL_ADMITTED,
  'rbac, open': { ...ALL_ADMITTED, 'bad token': 401 },
  'basic, open': { ...ALL_ADMITTED, 'bad token': 401 },
  'none, open': ALL_ADMITTED,
}
const levelNames = Object.keys(levels) as (keyof typeof levels)[]
const listCallers = (level: keyof typeof levels) =>
  Object.entries(expected[level]) as [Who, 'ok' | 401 | 403][]

// No worker runs yet, so a new job shows that the edge admitted its caller.
for (const level of levelNames) {
  describe(level, () => {
    for (const [method, path, body, admitted] of routes) {
      test(`${method} ${path}`, async () => {
        for (const [who, rule] of listCallers(level)) {
          const status = rule === 'ok' ? admitted : rule
          const before = await query('select count(*)::int as n from job')
          const answer = await callAs(levels[level], who, method, path, body(), RESPOND_ASYNC)
          assert.equal(answer.status, status, `${who}: ${answer.text}`)
          if (status === 401) assertChallenge(answer, who)
          if (status === 403)
            assert.deepEqual(answer.json, { detail: 'This requires the role admin', code: 'auth.forbidden' })
          if (status !== 202) assert.deepEqual(await query('select count(*)::int as n from job'), before)
        }
      })
    }
  })
}

test('a message belongs to the account that it was sent for', async () => {
  const owners: readonly [keyof typeof levels, Who, number | null][] = [
    ['basic', 'user', user.id],
    ['rbac', 'admin', admin.id],
    ['none', 'user', null],
    ['rbac, open', 'nobody', null],
    ['rbac, open', 'user', user.id],
  ]
  for (const [level, who, owner] of owners) {
    const answer = await callAs(levels[level], who, 'POST', '/email/send', routes[0]![2](), RESPOND_ASYNC)
    const [row] = await query(
      'select s.owner_id, j.owner_id as job_owner from comms_send s join job j on j.id = s.job_id where j.id = $1',
      [answer.json.job_id],
    )
    assert.deepEqual(row, { owner_id: owner, job_owner: owner }, `${level}, ${who}`)
  }
})

test("a page of another site cannot send with an admin's cookie", async () => {
  for (const [method, path, body] of routes.filter(([method]) => method === 'POST')) {
    const headers = { cookie: `millrace_session=${admin.token}`, origin: 'https://evil.example' }
    assert.equal((await callAs(rbac, 'nobody', method, path, body(), headers)).status, 403)
  }
})

describe('without the settings of a provider', () => {
  const cases: readonly [string, Record<string, string>, readonly string[], RegExp][] = [
    ['telephony', { TELEPHONY_AUTH_TOKEN: '' }, ['/sms/send', '/call'], /TELEPHONY_AUTH_TOKEN/],
    ['telephony', { TELEPHONY_ACCOUNT_SID: '' }, ['/sms/send', '/call'], /TELEPHONY_ACCOUNT_SID/],
    ['telephony', { TELEPHONY_PHONE_NUMBER: '' }, ['/sms/send', '/call'], /TELEPHONY_PHONE_NUMBER/],
    [
      'domains',
      { EMAIL_PROVIDER_API_KEY: '' },
      ['/domains', '/domains/example.com/check'],
      /EMAIL_PROVIDER_API_KEY/,
    ],
  ]
  for (const [what, env, paths, name] of cases) {
    test(`${what}: 503 names ${name.source}, and no job is added`, async () => {
      const api = await startEdge(url, { env: { ...openEnv, ...env } })
      const before = await query(
        'select (select count(*) from job) as jobs, (select count(*) from comms_send) as sends',
      )
      for (const path of paths) {
        const body = routes.find((route) => route[0] === 'POST' && route[1] === path)![2]()
        const answer = await callAs(api, 'nobody', 'POST', path, body)
        assert.deepEqual([answer.status, name.test(answer.json.detail)], [503, true], answer.text)
      }
      if (what === 'domains') assert.equal((await callAs(api, 'nobody', 'GET', '/domains')).status, 503)
      assert.deepEqual(
        await query('select (select count(*) from job) as jobs, (select count(*) from comms_send) as sends'),
        before,
      )
    })
  }

  test('mail is 503 in production', async () => {
    const env = { NODE_ENV: 'production', DATABASE_URL: url, OPEN_AREAS: 'comms' }
    const api = await startEdge(url, { env })
    const answer = await callAs(api, 'nobody', 'POST', '/email/send', routes[0]![2]())
    assert.equal(answer.status, 503)
    assert.match(answer.json.detail, /EMAIL_PROVIDER_API_KEY.*EMAIL_SMTP_URL.*EMAIL_PROVIDER_FROM_EMAIL/)
    assert.equal(
      (await callAs(api, 'nobody', 'POST', '/email/send', { to: [] })).status,
      422,
      'input comes first',
    )
  })
})

test('an admitted caller who waits gets the outcome on each route and level', async () => {
  await query('delete from job')
  await startMessageWorker(url, closedEnv)
  for (const [method, path, body] of routes)
    assert.equal((await callAs(rbac, 'admin', method, path, body())).status, 200, path)
  for (const level of levelNames) {
    const [who] = listCallers(level).find(([, rule]) => rule === 'ok')!
    const [method, path, body] = routes[0]!
    assert.equal((await callAs(levels[level], who, method, path, body())).status, 200, `${level}, ${who}`)
  }
})
