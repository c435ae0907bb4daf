import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { areas } from '../../edge/routes/index.ts'
import { createTestDatabase } from '../database.ts'
import { ALL_SERVICES_ENV } from '../every-service.ts'
import { assertListed, findLine } from '../listed.ts'
import { type Api, startEdge } from './harness.ts'
import { buildRequest, operationOf } from './matrix-ask.ts'
import { LEVEL_RULES } from './matrix-levels.ts'
import { REQUESTS, type RequestParts } from './matrix-requests.ts'
import { ACCESS_RULES, RANK_RULES } from './matrix-table.ts'
import { RowFactory } from './matrix-world.ts'
import type { Person } from './orgs-help.ts'

/**
 * Sends every operation as every caller and compares the status with the tables. Destructive requests act on their own
 * rows.
 */

const database = await createTestDatabase()
const { url } = database
const production = { ...ALL_SERVICES_ENV, NODE_ENV: 'production', DATABASE_URL: url }
const rbacEdge = await startEdge(url, { env: production })
const openEdge = await startEdge(url, { env: ALL_SERVICES_ENV })
const basicEdge = await startEdge(url, { env: { ...production, AUTH_LEVEL: 'basic' } })
const noAuthEdge = await startEdge(url, { env: { ...production, AUTH_LEVEL: 'none' } })
const world = await RowFactory.make(rbacEdge, database)

interface Caller {
  readonly api: Api
  readonly who: Person | null
}
const CALLERS: Readonly<Record<string, Caller>> = {
  nobody: { api: rbacEdge, who: null },
  owner: { api: rbacEdge, who: world.owner },
  other: { api: rbacEdge, who: world.other },
  outsider: { api: rbacEdge, who: world.other },
  moderator: { api: rbacEdge, who: world.moderator },
  admin: { api: rbacEdge, who: world.admin },
  'org-admin': { api: rbacEdge, who: world.orgAdmin },
  member: { api: rbacEdge, who: world.member },
  'open-nobody': { api: openEdge, who: null },
  'open-other': { api: openEdge, who: world.other },
  'basic-nobody': { api: basicEdge, who: null },
  'basic-other': { api: basicEdge, who: world.other },
  'none-nobody': { api: noAuthEdge, who: null },
}

interface RuleLine {
  /** Method and path as declared. */
  readonly operation: string
  /** The operation, followed by the name of the case if it has one. */
  readonly name: string
  readonly expected: Readonly<Record<string, string>>
}

/** Parses a table, whose first line names the callers. */
function parseLines(table: string): RuleLine[] {
  const [head, ...rest] = table.trim().split('\n')
  const names = head!.trim().split(/\s+/)
  return rest.map((text) => {
    const cells = text.match(/^(\S+) +(\S+)(?: (#.*?))? +((?:[1-5](?:\d\d|xx) *)+)$/)
    assert.ok(cells, text)
    const [, method, path, which, statuses] = cells
    const expected = statuses!.trim().split(/ +/)
    assert.equal(expected.length, names.length, text)
    const operation = `${method} ${path}`
    return {
      operation,
      name: which === undefined ? operation : `${operation} ${which}`,
      expected: Object.fromEntries(names.map((name, i) => [name, expected[i]!])),
    }
  })
}

interface Outcome {
  readonly status: number
  readonly body: string
  readonly type: string | null
}

/** Sends a request and reads only the head of a stream. */
async function send({ api, who }: Caller, operation: string, ask: RequestParts): Promise<Outcome> {
  const abort = new AbortController()
  const { path, init } = buildRequest(operation, ask, who)
  const response = await fetch(`http://127.0.0.1:${api.port}${path}`, { ...init, signal: abort.signal })
  const { status } = response
  const type = response.headers.get('content-type')
  if (type?.startsWith('text/event-stream') && status === 200) {
    abort.abort()
    return { status, type, body: '' }
  }
  return { status, type, body: await response.text() }
}

/**
 * Returns the request with a missing row in its first path parameter. Without parameters, the first field of the body
 * names the missing row.
 */
const askForMissing = ({ params, ...ask }: RequestParts): RequestParts =>
  params === undefined
    ? { ...ask, json: replaceFirstValue(ask.json as object) }
    : { ...ask, params: replaceFirstValue(params) }

const replaceFirstValue = <T extends object>(named: T): T => {
  const [name, value] = Object.entries(named)[0]!
  const missing =
    typeof value === 'number'
      ? 2_000_000_000
      : /^[0-9a-f-]{36}$/.test(value)
        ? crypto.randomUUID()
        : 'nothing'
  return { ...named, [name]: missing }
}

/** Asserts that a refusal has a detail for people and a documented code for programs. */
function assertProblem(body: { readonly code: string }): void {
  // Only routes of OpenAI's protocol add its `error`.
  assert.deepEqual(
    Object.keys(body).filter((field) => field !== 'error'),
    ['detail', 'code'],
  )
  assert.match(body.code, /^[a-z_]+(\.[a-z_]+)?$/)
}

/**
 * Sends the requests of a line as each caller. A 404 must equal the 404 of a missing row. Only the first caller with a
 * 404 is compared, because the body of a 404 does not depend on the caller.
 */
async function check(line: RuleLine): Promise<void> {
  const got: Record<string, string> = {}
  let isCompared = false
  for (const [name, expected] of Object.entries(line.expected)) {
    const caller = CALLERS[name]!
    const ask = (await REQUESTS[line.name]?.(world, caller.who)) ?? {}
    const outcome = await send(caller, line.operation, ask)
    const status = String(outcome.status)
    got[name] = expected.endsWith('xx') ? `${status[0]}xx` : status
    if (got[name] !== expected) got[name] += ` ${outcome.body.slice(0, 200)}`
    if (outcome.status >= 400) assertProblem(JSON.parse(outcome.body))
    if (outcome.status !== 404 || isCompared) continue
    isCompared = true
    const missing = await send(caller, line.operation, askForMissing(ask))
    assert.deepEqual(outcome, missing, `${name}: what is another's differs from what is missing`)
  }
  assert.deepEqual(got, line.expected)
}

const declaredRoutes = areas.flatMap((area) => area.routes.map((route) => ({ area, route })))
const tables = {
  ACCESS: parseLines(ACCESS_RULES),
  RANKS: parseLines(RANK_RULES),
  LEVELS: parseLines(LEVEL_RULES),
}

test('every operation has a line, and every line and request has an operation', () => {
  const inTables = (...lines: readonly RuleLine[]) =>
    [...new Set(lines.map(({ operation }) => operation))].sort()
  const operations = declaredRoutes.map(({ area, route }) => operationOf(area, route))
  assertListed(operations, inTables(...tables.ACCESS, ...tables.RANKS), [
    findLine('test/edge/matrix-table.ts', 'export const ACCESS_RULES'),
  ])
  const names = new Set(Object.values(tables).flatMap((lines) => lines.map(({ name }) => name)))
  assert.deepEqual(
    Object.keys(REQUESTS).filter((name) => !names.has(name)),
    [],
  )
})

test('every operation whose rule depends on the deployment has a line in LEVEL_RULES', () => {
  const depends = declaredRoutes.filter(({ area, route }) => {
    const auth = route.auth ?? area.auth
    return ['open', 'operator', 'editor'].includes(auth)
  })
  const lines = new Set(tables.LEVELS.map(({ operation }) => operation))
  for (const { area, route } of depends) {
    const operation = operationOf(area, route)
    assert.ok(lines.has(operation), operation)
  }
})

describe('production with AUTH_LEVEL=rbac', () => {
  for (const line of tables.ACCESS) test(line.name, () => check(line))
})

describe('roles in an organization', () => {
  for (const line of tables.RANKS) test(line.name, () => check(line))

  test('a missing organization is the same 404 for every caller', async () => {
    for (const line of tables.RANKS) {
      const { params, ...ask } = (await REQUESTS[line.name]?.(world, world.owner)) ?? {}
      for (const name of ['owner', 'outsider', 'admin']) {
        const missing = { ...ask, params: { ...params, org_id: 2_000_000_000 } }
        const { status, body } = await send(CALLERS[name]!, line.operation, missing)
        assert.deepEqual(
          [status, body],
          [404, '{"detail":"Organization not found","code":"org.missing"}'],
          `${line.name} ${name}`,
        )
      }
    }
  })
})

describe('other deployments', () => {
  for (const line of tables.LEVELS) test(line.name, () => check(line))
})

// Statuses with `AUTH_LEVEL=none` of operations that need a real account or credential, or name a row of another
// account.
const NO_AUTH_STATUSES: Readonly<Record<string, number>> = {
  'DELETE /api/v1/auth/me/identities/:identity_id': 409,
  'POST /api/v1/auth/refresh': 401,
  'DELETE /api/v1/auth/sessions/:session_id': 404,
  'POST /api/v1/auth/change-password': 409,
  'POST /api/v1/auth/me/export': 404,
  'GET /api/v1/auth/me/export/:id': 404,
  'DELETE /api/v1/auth/me': 409,
  'POST /api/v1/auth/me/restore': 404,
  'POST /api/v1/auth/me/email': 409,
  'GET /api/v1/auth/me/email': 404,
  'DELETE /api/v1/auth/me/email': 404,
  'POST /api/v1/auth/keys': 409,
  'POST /api/v1/auth/totp': 409,
  'POST /api/v1/auth/totp/confirm': 409,
  'POST /api/v1/auth/totp/recovery-codes': 409,
  'DELETE /api/v1/auth/totp': 409,
  'POST /api/v1/auth/passkeys/options': 409,
  'POST /api/v1/auth/passkeys': 409,
  'PATCH /api/v1/auth/passkeys/:passkey_id': 404,
  'DELETE /api/v1/auth/passkeys/:passkey_id': 409,
  'POST /api/v1/webhooks': 409,
  'POST /api/v1/auth/accept-invite': 400,
  "PATCH /api/v1/documents/:id #supersede the owner's": 404,
  'POST /api/v1/payment/portal': 409,
  'DELETE /api/v1/orgs/:org_id/members/me': 404,
}

const guardsByOperation = new Map(
  declaredRoutes.map(({ area, route }) => [
    operationOf(area, route),
    `${area.name} ${route.auth ?? area.auth} ${route.needsSession === true}`,
  ]),
)

/**
 * Returns the rule of a line: its area, the declared guard of its route, and the status per caller (`ok` for a
 * success).
 */
const ruleOf = ({ operation, expected }: RuleLine): string =>
  [
    guardsByOperation.get(operation),
    ...Object.values(expected).map((status) => (status < '300' ? 'ok' : status)),
  ].join(' ')

/** Returns the first line of each rule. */
function pickOnePerRule(lines: readonly RuleLine[]): Set<RuleLine> {
  const seen = new Map<string, RuleLine>()
  for (const line of lines) if (!seen.has(ruleOf(line))) seen.set(ruleOf(line), line)
  return new Set(seen.values())
}

/**
 * `AUTH_LEVEL=none` replaces the caller before any route runs, and lines with the same rule check callers in the same
 * way. It is therefore enough to run the first line of each rule and each line of `NO_AUTH_STATUSES`.
 */
describe('AUTH_LEVEL=none requires no credential', () => {
  const differing = new Set(tables.LEVELS.map(({ name }) => name))
  const lines = [...tables.ACCESS, ...tables.RANKS].filter(
    ({ name, operation }) => !differing.has(name) && !operation.endsWith('/metrics'),
  )
  const chosen = pickOnePerRule(lines.filter(({ name }) => NO_AUTH_STATUSES[name] === undefined))

  test('every special status belongs to a line', () => {
    const names = new Set(lines.map(({ name }) => name))
    assert.deepEqual(
      Object.keys(NO_AUTH_STATUSES).filter((name) => !names.has(name)),
      [],
    )
  })

  for (const line of lines) {
    const { name, operation, expected } = line
    if (NO_AUTH_STATUSES[name] === undefined && !chosen.has(line)) continue
    test(name, async () => {
      const ask = (await REQUESTS[name]?.(world, null)) ?? {}
      const { status, body } = await send(CALLERS['none-nobody']!, operation, ask)
      // Every caller is an admin and owns all organizations and payments. Rows of an account still belong to that
      // account alone.
      const as = /\/orgs\/:org_id|\/payment\/(?!admin)/.test(operation) ? expected.owner : expected.admin
      assert.equal(status, NO_AUTH_STATUSES[name] ?? Number(as), body)
    })
  }
})
