import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import pg from 'pg'
import pino from 'pino'
import { z } from 'zod'
import { answerJson, area, route } from '../../edge/pipeline/route.ts'
import { areas as allAreas } from '../../edge/routes/index.ts'
import { noRows, sql } from '../../sql/db.ts'
import type { ReadStatement } from '../../sql/reads/reader.ts'
import { until } from '../until.ts'
import { startEdge, startEdgeAndDatabase } from './harness.ts'

/** Slow statements must be logged with their route. */

interface LogLine {
  readonly msg: string
  readonly level: number
  readonly statement: string
  readonly ms: number
  readonly together?: number
  readonly route?: string
  readonly requestId?: string
}

const WARN_LEVEL = 40
const createLogInto = (lines: LogLine[]): pino.Logger => {
  const write = (text: string): void => {
    const line = JSON.parse(text) as LogLine
    if (line.msg === 'Slow statement') lines.push(line)
  }
  return pino({ level: 'warn' }, { write })
}
const lines: LogLine[] = []
const silentLines: LogLine[] = []
/** Returns the lines of these statements only, because on a stalled machine others may be slow, too. */
const findLines = (...statements: readonly string[]): LogLine[] =>
  lines.filter(({ statement }) => statements.includes(statement))

const MsParameter = z.object({ ms: z.coerce.number() })
const sleepStatement: ReadStatement<[ms: number]> = {
  name: 'sleeps',
  text: `select pg_sleep($1::float8 / 1000)::text`,
}
const get = { method: 'get', params: MsParameter, response: z.string(), summary: 'sleeps' } as const
const areas = [
  ...allAreas.filter(({ name }) => name === 'rag'),
  area('t', '', { auth: 'public' }, [
    route({
      ...get,
      path: '/read/:ms',
      handle: async ({ params, edge }) => {
        await edge.reader.text(sleepStatement, [params.ms])
        return answerJson('"read"')
      },
    }),
    route({
      ...get,
      path: '/list/:ms',
      reads: 'list',
      handle: async ({ params, reader }) => {
        await reader.text(sleepStatement, [params.ms])
        return answerJson('"listed"')
      },
    }),
    route({
      ...get,
      path: '/write/:ms',
      handle: async ({ params, edge }) => {
        await edge.db.transaction((tx) =>
          tx.any(sql.type(noRows)`
            select pg_sleep(${params.ms / 1000})::text as slept, 'more than eighty characters, of which none is a value'`),
        )
        return answerJson('"written"')
      },
    }),
  ]),
]
const env = { SLOW_QUERY_MS: '150', READ_TIMEOUT_SECONDS: '60' }
const { api, url, query } = await startEdgeAndDatabase({ areas, log: createLogInto(lines), env })
const strictEdge = await startEdge(url, {
  areas,
  log: createLogInto(lines),
  env: { ...env, READ_TIMEOUT_SECONDS: '1' },
})
const silentEdge = await startEdge(url, {
  areas,
  log: createLogInto(silentLines),
  env: { ...env, SLOW_QUERY_MS: '0' },
})

for (const [kind, statement] of [
  ['read', 'sleeps'],
  ['list', 'sleeps'],
  ['write', "select pg_sleep($1)::text as slept, 'more than eighty characters, of which none "],
] as const)
  test(`a slow statement has a line with its route: ${kind}`, async () => {
    lines.length = 0
    const headers = { 'x-request-id': `${kind}-1` }
    assert.equal((await api.get(`/${kind}/200`, { headers })).status, 200)
    await until('the slow statement is logged', () => findLines(statement).length > 0)
    const [line, ...others] = findLines(statement)
    assert.deepEqual(others, [])
    assert.ok(line!.ms >= 150 && line!.ms < 10_000, String(line!.ms))
    assert.deepEqual(
      [line!.level, line!.statement, line!.route, line!.requestId],
      [WARN_LEVEL, statement, `GET /${kind}/:ms`, `${kind}-1`],
    )
  })

test('a slow batch of reads logs a line for each statement name', async () => {
  lines.length = 0
  const { reader } = api.serving.edge
  const other = { ...sleepStatement, name: 'another' }
  const told = () =>
    findLines('sleeps', 'another').map(({ statement, together, route }) => [statement, together, route])
  await Promise.all([200, 0, 0].map((ms, n) => reader.text(n === 0 ? sleepStatement : other, [ms])))
  await until('the lines of both reads', () => told().length > 0)
  assert.deepEqual(told(), [
    ['sleeps', 3, undefined],
    ['another', 3, undefined],
  ])
  // The next batch only waited for the slow one and must not count as slow. Repeat, because a stall can still make it
  // slow.
  await until('a waiting statement is not slow', async () => {
    lines.length = 0
    await Promise.all([
      reader.text(sleepStatement, [200]),
      setImmediate().then(() => reader.text(other, [0])),
    ])
    // The answer to this read comes after the earlier lines.
    await reader.text(other, [0])
    return isDeepStrictEqual(told(), [['sleeps', undefined, undefined]])
  })
})

test('a slow search statement on its own thread is logged with its route', async () => {
  lines.length = 0
  const holder = new pg.Client({ connectionString: url })
  await holder.connect()
  await holder.query('begin; lock table rag_collection in access exclusive mode')
  const json = { collection_name: 'none', query: 'anything' }
  const searched = api.post('/rag/search', { json })
  await until('the statement waits', async () => {
    const waiting = await query(
      `select from pg_locks where relation = 'rag_collection'::regclass and not granted`,
    )
    return waiting.length > 0
  })
  await holder.query('select pg_sleep(0.2)')
  await holder.query('rollback')
  await holder.end()
  assert.equal((await searched).status, 404, (await searched).text)
  await until('the slow statement is logged', () => lines.some(({ route }) => route === 'POST /rag/search'))
})

test('a statement that exceeds its time limit is slow, too', async () => {
  // Repeat: a read that shared a batch with one of the edge's own reads is logged without a route.
  await until('the slow statement is logged', async () => {
    lines.length = 0
    assert.equal((await strictEdge.get('/read/5000')).status, 503)
    // PostgreSQL sends the error separately, so the batch ends and is timed a moment after the answer.
    await until('the slow statement is logged', () => findLines('sleeps').length > 0)
    return findLines('sleeps')[0]!.route === 'GET /read/:ms'
  })
})

test('with 0 no statement is slow', async () => {
  for (const kind of ['read', 'list', 'write'])
    assert.equal((await silentEdge.get(`/${kind}/200`)).status, 200)
  assert.deepEqual(silentLines, [])
})
