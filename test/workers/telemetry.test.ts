import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import pino from 'pino'
import { noRows, type Queries, sql } from '../../sql/db.ts'
import { cancelJobs, SUSPECT_FROM_DEATHS } from '../../sql/jobs/jobs.ts'
import { createTaskFinder, loadTasks } from '../../tasks/index.ts'
import { runWithOrigin } from '../../tasks/platform/telemetry/tracing.ts'
import { enqueue, type TaskDefinition } from '../../tasks/task.ts'
import { createTestDatabase } from '../database.ts'
import { createJobSettings } from '../job-settings.ts'
import { type ReceivedSpan, startCollector } from '../standins/collector.ts'
import { until } from '../until.ts'
import { createSettings, startTestWorker, TASKS_MODULE } from './parts.ts'

/** Tests the spans and log lines that a worker reports about attempts. */

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736'
const ENQUEUING_SPAN_ID = '00f067aa0ba902b7'

const { db, query, url } = await createTestDatabase()
const traces = await startCollector()
after(() => traces.stop())
const logLines: Record<string, unknown>[] = []
const log = pino({ level: 'info' }, { write: (text: string) => void logLines.push(JSON.parse(text)) })
const findTask = createTaskFinder(await loadTasks([TASKS_MODULE]))
const settings = createSettings(url, {
  WORKER_QUEUES: 'io',
  OTEL_EXPORTER_OTLP_ENDPOINT: traces.url,
  SLOW_QUERY_MS: '150',
})
const { worker } = await startTestWorker(url, 'io', { settings, log, retryMs: 1 })

/** Adds a job from a traced request. `interruptions` is the number of processes that died while running it. */
function addJob(name: string, payload: unknown, maxTries = 1, interruptions = 0): Promise<string> {
  const task = findTask(name) as unknown as TaskDefinition<unknown, unknown>
  const origin = {
    traceParent: `00-${TRACE_ID}-${ENQUEUING_SPAN_ID}-01`,
    logFields: () => null,
    record: null,
  }
  const options = { ownerId: null, requestId: 'r-1', settings: createJobSettings(maxTries) }
  const addInterrupted = async (tx: Queries): Promise<string> => {
    const { jobId } = await enqueue(tx, task, payload, options)
    await tx.run(sql.type(noRows)`update job set interruptions = ${interruptions} where id = ${jobId}`)
    return jobId
  }
  return runWithOrigin(origin, () => db.transaction(addInterrupted))
}

const waitForSpan = (id: string, attempt = 1): Promise<ReceivedSpan> =>
  until(`the span of attempt ${attempt}`, () =>
    traces.spans.find(
      ({ attributes }) => attributes['job.id'] === id && attributes['job.attempt'] === attempt,
    ),
  )

const waitForLine = (id: string, message: string, more: object = {}) =>
  until(message, () => logLines.find((line) => matchesFields({ jobId: id, msg: message, ...more }, line)))
const matchesFields = (part: object, line: Readonly<Record<string, unknown>>): boolean =>
  Object.entries(part).every(([name, value]) => line[name] === value)

test('records the outcome in the span of an attempt', async () => {
  const assertTraced = async (id: string) => {
    const { name, traceId, parentSpanId, attributes, failed } = await waitForSpan(id)
    assert.deepEqual([traceId, parentSpanId], [TRACE_ID, ENQUEUING_SPAN_ID], name)
    return [attributes['job.outcome'], attributes['error.type'], failed]
  }
  assert.deepEqual(await assertTraced(await addJob('io.echo', {})), ['done', undefined, false])
  const refused = await addJob('io.fail', { code: 'document.missing' })
  assert.deepEqual(await assertTraced(refused), ['failed', 'document.missing', true])
  assert.deepEqual(await assertTraced(await addJob('io.short', { ms: 60_000 })), [
    'failed',
    'job.timeout',
    true,
  ])
  assert.deepEqual(await assertTraced(await addJob('io.exit', {})), ['failed', 'job.crashed', true])
})

test('does not mark a cancelled attempt as failed', async () => {
  const id = await addJob('io.sleep', { ms: 60_000 })
  await until('the job is running', async () => {
    const [row] = await query('select status from job where id = $1', [id])
    return row!.status === 'running'
  })
  await db.any(cancelJobs([id]))
  const { attributes, failed } = await waitForSpan(id)
  assert.deepEqual([attributes['job.outcome'], failed], ['cancelled', false])
})

test('ends the span of an attempt as superseded after a takeover', async () => {
  const id = await addJob('io.sleep', { ms: 60_000 })
  await until('the job runs here', () => worker.executor.ids.includes(id))
  worker.executor.supersede(id, 1)
  const { attributes, failed } = await waitForSpan(id)
  assert.deepEqual([attributes['job.outcome'], failed], ['superseded', false])
  await db.any(cancelJobs([id]))
})

test('gives both spans of a late worker’s attempt the same id', async (t) => {
  const other = await startTestWorker(url, 'io', { settings, log, retryMs: 1 })
  const id = await addJob('io.sleep', { ms: 60_000 })
  t.after(() => db.any(cancelJobs([id])))
  const late = await until('a worker runs the job', () =>
    [worker, other.worker].find(({ executor }) => executor.ids.includes(id)),
  )
  const [row] = await query('delete from worker_lease where id = $1 returning name', [late.lease.id])
  const waitForOutcome = (outcome: string) =>
    until(outcome, () =>
      traces.spans.find(
        ({ attributes }) => attributes['job.id'] === id && attributes['job.outcome'] === outcome,
      ),
    )
  const [own, lost] = [await waitForOutcome('superseded'), await waitForOutcome('interrupted')]
  assert.equal(lost.spanId, own.spanId)
  assert.deepEqual([lost.traceId, lost.parentSpanId, lost.kind], [TRACE_ID, ENQUEUING_SPAN_ID, own.kind])
  assert.deepEqual([lost.name, lost.failed], ['io.sleep', true])
  assert.ok(lost.endMs > lost.startMs)
  const { 'job.waited_ms': waited, ...known } = lost.attributes
  assert.ok((waited as number) >= 0)
  assert.deepEqual(known, {
    'task.name': 'io.sleep',
    'job.id': id,
    'job.attempt': 1,
    'job.queue': 'io',
    'job.worker': row!.name,
    'job.outcome': 'interrupted',
    'request.id': 'r-1',
    'error.type': 'job.crashed',
  })
})

test('adds provider calls to the span of their attempt, also in an isolated process', async () => {
  const together = await addJob('io.call', {})
  const suspect = await addJob('io.call', {}, 1, SUSPECT_FROM_DEATHS)
  for (const id of [together, suspect]) {
    const { spanId } = await waitForSpan(id)
    const call = await until('the span of the call', () =>
      traces.spans.find(({ parentSpanId }) => parentSpanId === spanId),
    )
    assert.deepEqual([call.name, call.kind, call.traceId], ['somebody ask', 'client', TRACE_ID])
    assert.deepEqual(call.attributes, { 'peer.service': 'somebody', 'server.address': 'somebody.example' })
    assert.ok(call.endMs > call.startMs)
  }
  await waitForLine(suspect, 'A suspect job runs in an isolated process')
})

test('records a span for each attempt', async () => {
  const id = await addJob('io.fail', { code: 'database.busy' }, 3)
  const spans = await Promise.all([1, 2, 3].map((attempt) => waitForSpan(id, attempt)))
  assert.deepEqual(
    spans.map(({ attributes, parentSpanId }) => [attributes['job.outcome'], parentSpanId]),
    [
      ['retry', ENQUEUING_SPAN_ID],
      ['retry', ENQUEUING_SPAN_ID],
      ['failed', ENQUEUING_SPAN_ID],
    ],
  )
})

test('adds task, attempt, request and trace to log lines of a job', async () => {
  const id = await addJob('io.throw', {})
  const ids = { jobId: id, task: 'io.throw', attempt: 1, requestId: 'r-1', traceId: TRACE_ID }
  assert.partialDeepStrictEqual(await waitForLine(id, 'A task failed'), ids)
  assert.partialDeepStrictEqual(await waitForLine(id, 'An attempt ended'), ids)
  const unsent = await addJob('io.emit-function', {})
  const line = await waitForLine(unsent, 'Failed to send a report from the task thread')
  assert.partialDeepStrictEqual(line, { ...ids, jobId: unsent, task: 'io.emit-function' })
})

test('logs a slow statement with its task and attempt', async () => {
  const id = await addJob('io.query', { ms: 200 })
  // Match the statement, too: on a busy machine, others may also be slow.
  const line = await waitForLine(id, 'Slow statement', { statement: 'sleeps' })
  assert.partialDeepStrictEqual(line, { level: 40, task: 'io.query', attempt: 1 })
  assert.ok((line.ms as number) >= 150)
})
