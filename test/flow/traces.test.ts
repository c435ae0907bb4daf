import assert from 'node:assert/strict'
import { hostname } from 'node:os'
import { after, test } from 'node:test'
import { createTestDatabase } from '../database.ts'
import { startEdge } from '../edge/harness.ts'
import { type Child, Client, launchProcess, startProcess } from '../service.ts'
import { stopAfterFile } from '../services.ts'
import { type ReceivedSpan, startCollector } from '../standins/collector.ts'
import { startMailServer } from '../standins/smtp.ts'
import { until } from '../until.ts'
import { SHORT_LEASE } from './crash.ts'
import { createLineLog } from './line-log.ts'

/** One request is one trace across real processes, a mail server and a trace collector. */

const SEND_ROUTE = 'POST /api/v1/comms/email/send'
const CALLER_TRACE = { traceId: '4bf92f3577b34da6a3ce929d0e0e4736', spanId: '00f067aa0ba902b7' }

const { url, query } = await createTestDatabase()
const [traces, mail] = await Promise.all([startCollector(), startMailServer()])
after(() => Promise.all([traces.stop(), mail.stop()]))
const UNTRACED_ENV = {
  EMAIL_SMTP_URL: mail.url,
  EMAIL_PROVIDER_FROM_EMAIL: 'service@example.com',
  AUTH_LEVEL: 'none',
  WORKER_QUEUES: 'comms',
  WORKER_THREADS: '1',
}
const TRACED_ENV = {
  ...UNTRACED_ENV,
  OTEL_EXPORTER_OTLP_ENDPOINT: `${traces.url}/`,
  OTEL_EXPORTER_OTLP_HEADERS: 'x-key=a%20key,x-other=b',
  ...SHORT_LEASE,
}
let last: Child
const [edge, worker] = await Promise.all([
  startProcess('edge', url, TRACED_ENV),
  startProcess('worker', url, TRACED_ENV),
])
const { log, lines } = createLineLog()
const untracedEdge = { ready: await startEdge(url, { env: UNTRACED_ENV, log }), log: lines }
const sendFrom = (child: Pick<Child, 'ready'>, headers: Record<string, string> = {}) =>
  new Client(child.ready.port!).post(
    '/api/v1/comms/email/send',
    { to: ['reader@example.com'], subject: 'Hello', text: 'Hi' },
    // A stopping edge would wait for clients that keep their connections.
    { connection: 'close', ...headers },
  )

/** Returns the spans of this request's trace once there are `count`. */
async function waitForTrace(requestId: string, count: number): Promise<ReceivedSpan[]> {
  return until(`${count} spans of ${requestId}`, () => {
    const own = traces.spans.find(
      ({ kind, attributes }) => kind === 'server' && attributes['request.id'] === requestId,
    )
    const spans = traces.spans.filter(({ traceId }) => traceId === own?.traceId)
    return spans.length >= count ? spans.toSorted((a, b) => a.startMs - b.startMs) : null
  })
}

async function findJob(requestId: string) {
  const [job] = await query('select id::text, attempt, status, trace_parent from job where request_id = $1', [
    requestId,
  ])
  return job as { id: string; attempt: number; status: string; trace_parent: string | null }
}

/** Returns the first line of a process's log that has all of these values. */
const waitForLine = ({ log }: Pick<Child, 'log'>, wanted: Readonly<Record<string, unknown>>) =>
  until(`a line with ${JSON.stringify(wanted)}`, () =>
    log
      .filter((line) => /^\{.*\}$/.test(line))
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .find((line) => Object.entries(wanted).every(([name, value]) => line[name] === value)),
  )

test('a request, its job, its attempts and its calls to a provider form one trace', async () => {
  const statuses = [451]
  mail.mode = () => {
    const status = statuses.shift()
    return status === undefined ? 'take' : { status, at: 'data' }
  }
  const answer = await sendFrom(edge, { 'x-request-id': 'twice-1' })
  assert.equal(answer.status, 200, await answer.text())
  const job = await findJob('twice-1')
  assert.deepEqual([job.attempt, job.status], [2, 'done'])

  const [request, first, refused, second, taken, ...others] = await waitForTrace('twice-1', 5)
  assert.deepEqual(others, [])
  assert.deepEqual([request!.name, request!.kind, request!.parentSpanId], [SEND_ROUTE, 'server', ''])
  assert.deepEqual(request!.attributes, {
    'http.request.method': 'POST',
    'http.route': '/api/v1/comms/email/send',
    'http.response.status_code': 200,
    'url.path': '/api/v1/comms/email/send',
    'url.scheme': 'http',
    'request.id': 'twice-1',
  })
  assert.equal(job.trace_parent, `00-${request!.traceId}-${request!.spanId}-01`)
  for (const [n, attempt] of [first!, second!].entries()) {
    assert.deepEqual(
      [attempt.name, attempt.kind, attempt.parentSpanId],
      ['comms.email', 'consumer', request!.spanId],
    )
    const { 'job.waited_ms': waited, ...known } = attempt.attributes
    assert.deepEqual(known, {
      'task.name': 'comms.email',
      'job.id': job.id,
      'job.attempt': n + 1,
      'job.queue': 'comms',
      'job.outcome': n === 0 ? 'release' : 'done',
      'request.id': 'twice-1',
      ...(n === 0 ? { 'error.type': 'email.failed' } : {}),
    })
    assert.ok((waited as number) >= 0)
    assert.equal(attempt.failed, n === 0)
  }
  for (const [n, [call, attempt]] of [[refused!, first!] as const, [taken!, second!] as const].entries()) {
    assert.deepEqual([call.name, call.kind, call.parentSpanId], ['smtp send', 'client', attempt.spanId])
    assert.equal(call.attributes['peer.service'], 'smtp')
    assert.equal(call.attributes['server.address'], '127.0.0.1')
    assert.equal(call.attributes['error.type'], n === 0 ? '451' : undefined)
    assert.ok(call.startMs >= attempt.startMs && call.endMs <= attempt.endMs + 1)
  }
  assert.ok(request!.endMs >= second!.startMs, 'it has waited')
  assert.deepEqual([...new Set(traces.spans.map(({ service }) => service))], ['millrace'])
  assert.deepEqual([traces.headers[0]!['x-key'], traces.headers[0]!['x-other']], ['a key', 'b'])
})

test('log lines of workers and tasks about a job have its ids and the trace id', async () => {
  const job = await findJob('twice-1')
  const [request] = await waitForTrace('twice-1', 5)
  const ids = { jobId: job.id, task: 'comms.email', requestId: 'twice-1', traceId: request!.traceId }
  await waitForLine(worker, { ...ids, attempt: 1, msg: 'An attempt ended' })
  await waitForLine(edge, { requestId: 'twice-1', traceId: request!.traceId, msg: 'Answered' })

  mail.mode = () => 'cut after'
  await sendFrom(edge, { 'x-request-id': 'cut-1' })
  const [cut] = await waitForTrace('cut-1', 3)
  const unknown = await findJob('cut-1')
  await waitForLine(worker, {
    msg: 'The outcome of a send is unknown',
    jobId: unknown.id,
    task: 'comms.email',
    attempt: 1,
    requestId: 'cut-1',
    traceId: cut!.traceId,
  })
  mail.mode = () => 'take'
})

test("continues a caller's trace, does not export an unsampled one and ignores an invalid traceparent", async () => {
  const { traceId, spanId } = CALLER_TRACE
  await sendFrom(edge, { 'x-request-id': 'called-1', traceparent: `00-${traceId}-${spanId}-01` })
  const [request, attempt, call] = await waitForTrace('called-1', 3)
  assert.deepEqual([request!.traceId, request!.parentSpanId], [traceId, spanId])
  assert.deepEqual([attempt!.parentSpanId, call!.parentSpanId], [request!.spanId, attempt!.spanId])

  await sendFrom(edge, { 'x-request-id': 'dropped-1', traceparent: `00-${traceId}-${spanId}-00` })
  assert.match((await findJob('dropped-1')).trace_parent!, new RegExp(`^00-${traceId}-[0-9a-f]{16}-00$`))

  await sendFrom(edge, { 'x-request-id': 'invalid-1', traceparent: `00-${'0'.repeat(32)}-${spanId}-01` })
  const [own] = await waitForTrace('invalid-1', 3)
  assert.equal(own!.parentSpanId, '')
  // Spans are sent in order, so spans of the earlier request would already have arrived.
  assert.deepEqual(
    traces.spans.filter(({ attributes }) => attributes['request.id'] === 'dropped-1'),
    [],
  )
})

test('names a rejected request by its route, or by its method without a route', async () => {
  const client = new Client(edge.ready.port!)
  const headers = { 'x-request-id': 'missing-1' }
  await client.fetch('/api/v1/documents/12?secret=1', { headers })
  await client.fetch('/no/such/path', { headers: { 'x-request-id': 'no-route-1' } })
  const [[missing], [none]] = await Promise.all([waitForTrace('missing-1', 1), waitForTrace('no-route-1', 1)])
  assert.deepEqual([missing!.name, none!.name], ['GET /api/v1/documents/:id', 'GET'])
  assert.equal(missing!.attributes['url.path'], '/api/v1/documents/12')
  assert.equal(none!.attributes['http.response.status_code'], 404)
})

test('hides a credential in a path', async () => {
  const client = new Client(edge.ready.port!)
  await client.fetch('/api/v1/blog/preview/1.secret', { headers: { 'x-request-id': 'preview-1' } })
  const [span] = await waitForTrace('preview-1', 1)
  assert.equal(span!.attributes['url.path'], '/api/v1/blog/preview/:token')
})

test('without tracing, an edge exports nothing and its jobs have no trace', async () => {
  const sent = traces.spans.length
  const { traceId, spanId } = CALLER_TRACE
  const answer = await sendFrom(untracedEdge, {
    'x-request-id': 'off-1',
    traceparent: `00-${traceId}-${spanId}-01`,
  })
  assert.equal(answer.status, 200)
  assert.equal((await findJob('off-1')).trace_parent, null)
  assert.equal((await waitForLine(untracedEdge, { requestId: 'off-1', msg: 'Answered' })).traceId, undefined)
  // The worker traces without the edge, so the trace begins with the attempt.
  await until('the attempt is exported', () =>
    traces.spans.slice(sent).some(({ kind, attributes, parentSpanId }) => {
      return kind === 'consumer' && attributes['request.id'] === 'off-1' && parentSpanId === ''
    }),
  )
  assert.ok(traces.spans.slice(sent).every(({ kind }) => kind !== 'server'))
})

test('the attempt of a killed process is in the trace, before the next one', async () => {
  mail.mode = () => 'hang before'
  const asked = mail.requests
  await sendFrom(edge, { 'x-request-id': 'killed-1', prefer: 'respond-async' })
  await until('the mail server has the message', () => mail.requests > asked)
  const killedMs = Date.now()
  const { pid } = worker.process
  await worker.kill()
  mail.mode = () => 'take'
  last = await launchProcess('worker', url, TRACED_ENV)
  stopAfterFile(() => last.kill())
  const [request] = await waitForTrace('killed-1', 1)
  const [first, second] = await until('both attempts are exported', () => {
    const spans = traces.spans.filter(
      ({ kind, traceId }) => kind === 'consumer' && traceId === request!.traceId,
    )
    return spans.length < 2 ? null : spans.toSorted((a, b) => a.startMs - b.startMs)
  })
  const job = await findJob('killed-1')
  for (const [n, { name, parentSpanId, attributes }] of [first!, second!].entries()) {
    assert.deepEqual([name, parentSpanId], ['comms.email', request!.spanId])
    assert.equal(attributes['job.attempt'], n + 1)
  }
  const { 'job.waited_ms': waited, ...known } = first!.attributes
  assert.deepEqual(known, {
    'task.name': 'comms.email',
    'job.id': job.id,
    'job.attempt': 1,
    'job.queue': 'comms',
    'job.worker': `${hostname()}/${pid}`,
    'job.outcome': 'interrupted',
    'request.id': 'killed-1',
    'error.type': 'job.crashed',
  })
  assert.ok((waited as number) >= 0)
  assert.equal(first!.failed, true)
  assert.ok(first!.startMs < killedMs && killedMs < first!.endMs)
  // The first time comes from the database's clock, the second from the worker's.
  assert.ok(first!.endMs <= second!.startMs + 1)
})

test('a stopping process exports its open spans, and a silent collector does not delay it', async () => {
  await sendFrom(edge, { 'x-request-id': 'last-1' })
  await Promise.all([edge.kill('SIGTERM'), last.kill('SIGTERM')])
  assert.deepEqual([edge.process.exitCode, last.process.exitCode], [0, 0])
  assert.equal((await waitForTrace('last-1', 3)).length, 3)

  const another = await startProcess('worker', url, TRACED_ENV)
  traces.mode = 'hang before'
  await sendFrom(untracedEdge, { 'x-request-id': 'hung-1' })
  await another.kill('SIGTERM')
  assert.equal(another.process.exitCode, 0)
})
