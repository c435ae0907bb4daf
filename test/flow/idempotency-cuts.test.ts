import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { areas } from '../../edge/routes/index.ts'
import { createTestDatabase } from '../database.ts'
import { SECRET, startEdge } from '../edge/harness.ts'
import { buildRequest, operationOf } from '../edge/matrix-ask.ts'
import { REQUESTS, type RequestParts } from '../edge/matrix-requests.ts'
import { RowFactory } from '../edge/matrix-world.ts'
import { ALL_SERVICES_ENV } from '../every-service.ts'
import { findLine } from '../listed.ts'
import { IS_LONG, SEED } from '../runs.ts'
import { until } from '../until.ts'
import { type Cut, openCountingLink } from './statements.ts'

/**
 * The edge loses its database connection at each statement of each request that takes an Idempotency-Key. The client
 * retries the request, which must have one effect and one answer. A quick run cuts only some statements.
 */

const database = await createTestDatabase()
const { url, query } = database
const env = {
  ...ALL_SERVICES_ENV,
  AUTH_LEVEL: 'basic',
  SECRET_KEY: SECRET,
  RATE_LIMIT_REGISTER: '0',
  RATE_LIMIT_LOGIN: '0',
  OIDC_ISSUER: 'http://127.0.0.1:9',
  OIDC_CLIENT_ID: 'mill',
  RATE_LIMIT_INVITE: '0',
  RATE_LIMIT_EXPORT: '0',
  RATE_LIMIT_PASSWORD_RESET: '0',
  LOG_LEVEL: 'fatal',
}
const world = await RowFactory.make(await startEdge(url, { env }), database)
const link = await openCountingLink(url, 'millrace-edge')
const edge = await startEdge(link.url, { env })

// Tables that do not count as an effect of a request: keys, rate limits, derived rows, and ownerless uploads.
const TABLES_WITHOUT_EFFECT = [
  'idempotency_key',
  'request_limit',
  ...[
    'ai_conversation_count',
    'ai_sentiment_sum',
    'ai_usage_sum',
    'ai_key_sum',
    'blog_post_count',
    'document_sum',
    'document_tag_count',
    'webhook_pending_sum',
  ],
  ...['comms_send_count', 'job_count', 'payment_subscription_count', 'payment_sum'],
  'search_word',
  ...['blob', 'blob_chunk', 'blog_upload', 'blog_upload_chunk'],
]
const tables = (
  await query(`select tablename as name from pg_tables where schemaname = 'public' order by 1`)
).filter(({ name }) => !TABLES_WITHOUT_EFFECT.includes(name as string))
const countStatement = tables
  .map(({ name }) => `select '${name}'::text, count(*)::int from ${name}`)
  .join(' union all ')
// Use a function, because it caches the plan. Planning this query takes longer than running it.
await query(`create function counted() returns table (name text, n integer) language plpgsql as $$
  begin return query ${countStatement}; end $$`)

const keyedRoutes = areas
  .flatMap((area) => area.routes.map((route) => ({ route, operation: operationOf(area, route) })))
  // No request can have the state of a sign-in that an issuer has answered.
  .filter(({ route }) => route.sideEffect === true && !route.path.endsWith('/oidc/callback'))
const operations = keyedRoutes.map(({ operation }) => operation)
const waitingOperations = new Set(
  keyedRoutes.filter(({ route }) => route.alwaysWaits).map(({ operation }) => operation),
)

async function countRowsByTable(): Promise<Map<string, number>> {
  return new Map(
    (await query('select name, n from counted()')).map(({ name, n }) => [name as string, n as number]),
  )
}

const countJobs = async (): Promise<number> =>
  Number((await query('select count(*)::int as n from job'))[0]!.n)

interface ComparedAnswer {
  readonly status: number
  readonly body: string
  readonly location: string | null
}

async function sendWithKey(operation: string, ask: RequestParts, key: string): Promise<ComparedAnswer> {
  const isPublic = /register|password-reset|magic-link|oidc/.test(operation)
  const isForAdmins =
    /llm\/sync|queues|workers|jobs\/bulk|comms\/templates|users\/import|payment\/admin/.test(operation)
  const who = isPublic ? null : isForAdmins ? world.admin : world.owner
  const repeatable = { ...ask, headers: { ...ask.headers, 'idempotency-key': key } }
  const { path, init } = buildRequest(operation, repeatable, who)
  const response = await fetch(`http://127.0.0.1:${edge.port}${path}`, init)
  const body = await response.text()
  return { status: response.status, body, location: response.headers.get('location') }
}

/**
 * Sends a request with the given cut, retries it over intact connections, and returns its status, added rows and number
 * of statements.
 */
async function measureEffect(
  operation: string,
  cut: Cut | null,
): Promise<{ status: number; added: object; statements: number }> {
  const ask = (await REQUESTS[operation]?.(world, world.owner)) ?? {}
  const key = world.createName()
  const before = await countRowsByTable()
  link.arm(cut)
  const first = await sendWithKey(operation, ask, key)
  const { statements } = link
  link.arm(null)
  // 504: a completion that takes too long, whose repetition finds the job.
  if (cut !== null && first.status >= 400 && first.status !== 504)
    assert.equal(first.status, 503, `${first.body} for a lost connection`)
  const second = await until('the retry is answered', async () => {
    const answer = await sendWithKey(operation, ask, key)
    if (answer.status === 503 || answer.status === 504) return null
    if (answer.status !== 409) return answer
    // If the request waits for its job, 409 is the final answer once the job exists. Otherwise the first request is
    // still running, and its transaction ends once the server notices the lost connection.
    return waitingOperations.has(operation) && (await countJobs()) > before.get('job')! ? answer : null
  })
  if (first.status < 400) assert.deepEqual(second, first, 'the repetition answers as the first request')
  assert.deepEqual(await sendWithKey(operation, ask, key), second, 'so does every other one')
  const after = await countRowsByTable()
  const added = [...after].map(([name, n]): [string, number] => [name, n - before.get(name)!])
  const status = second.status === 409 ? 202 : second.status
  return { status, added: Object.fromEntries(added.filter(([, n]) => n !== 0)), statements }
}

describe('a connection lost at any statement', () => {
  for (const [number, operation] of operations.entries())
    test(operation, async () => {
      const whole = await measureEffect(operation, null)
      const where = findLine('test/edge/matrix-requests.ts', 'export const REQUESTS')
      assert.ok(
        whole.status < 300,
        `${whole.status}${whole.status === 422 ? `: add a valid request to ${where}` : ''}`,
      )
      assert.ok(whole.statements >= 3, 'a transaction has a beginning, work and an end')
      const all = Array.from({ length: whole.statements }, (_, i) => i + 1).flatMap((at): Cut[] => [
        { statement: at, when: 'before' },
        { statement: at, when: 'after' },
      ])
      // The last statement is the commit, unless a notification follows.
      const cuts = IS_LONG ? all : [all[(SEED + number) % all.length]!, ...all.slice(-2)]
      for (const cut of cuts) {
        const { status, added } = await measureEffect(operation, cut)
        assert.deepEqual({ status, added }, { status: whole.status, added: whole.added }, JSON.stringify(cut))
      }
    })
})
