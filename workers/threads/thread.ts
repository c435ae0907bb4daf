import { BroadcastChannel, parentPort, threadId, workerData } from 'node:worker_threads'
import { ZodError } from 'zod'
import { ConnectionGroup } from '../../sql/connections/driver.ts'
import { createDatabase, noRows, type Queries, sql } from '../../sql/db.ts'
import { isLoadFailure, mapShortage } from '../../sql/error-mapping.ts'
import { Failure, fail } from '../../sql/errors.ts'
import { fenceJob, readDependencies } from '../../sql/jobs/jobs.ts'
import type { Providers, TaskContext, TaskLog } from '../../tasks/context.ts'
import { createBlobs } from '../../tasks/documents/blobs/blobs.ts'
import { createTaskFinder, loadTasks } from '../../tasks/index.ts'
import { SecretKeys } from '../../tasks/platform/keys.ts'
import {
  type FinishedSpan,
  logSlowStatements,
  type Origin,
  parseTraceParent,
  runWithOrigin,
} from '../../tasks/platform/telemetry/tracing.ts'
import { retryJobs } from '../../tasks/retry.ts'
import { WaitForBatch } from '../../tasks/task.ts'
import { jobLogFields } from '../attempts/telemetry.ts'
import { createChildrenClient } from '../children/client.ts'
import { createProviders } from '../providers/index.ts'
import type {
  AbortReason,
  Batch,
  ChildrenPort,
  Command,
  Outcome,
  ThreadData,
  ThreadEntry,
  ThreadJob,
  ThreadReport,
} from './protocol.ts'

/**
 * Runs task functions in a task thread and reports their progress and outcomes to the main thread. Only the main thread
 * writes to the job ledger.
 */

const { settings, databaseUrl, channel, pool, taskModules, keys: keyMaterial } = workerData as ThreadData
const keys = keyMaterial && new SecretKeys(keyMaterial)
const findTask = createTaskFinder(await loadTasks(taskModules))
const connections = new ConnectionGroup()
const slowStatementLog = logSlowStatements(settings.slowQueryMs, (data, message) =>
  log('warn', data, message),
)
const db = createDatabase({
  connections,
  url: databaseUrl,
  applicationName: `${settings.projectName}-${pool}-thread`,
  size: pool === 'cpu' ? 2 : 4,
  validateRows: settings.validateSchemas,
  pooled: settings.databasePooled,
  statementMs: settings.writeTimeoutMs,
  slow: slowStatementLog,
})
const children = createChildrenClient((port) =>
  parentPort!.postMessage({ port } satisfies ChildrenPort, [port]),
)
const providersFor = createProviders(settings, children, db, databaseUrl, slowStatementLog)
const blobs = createBlobs(db, settings)
// A fence locks its job's row against takeovers. A frozen process can neither commit nor disconnect, so its fence ends
// after the lifetime of a lease instead of the usual minute.
const FENCE_LIMIT_SQL = sql.type(noRows)`
  select set_config('idle_in_transaction_session_timeout', ${String(settings.leaseMs)}, true)`
const abortsByAttempt = new Map<number, AttemptAbort>()
let pendingEntries: ThreadEntry[] = []
let attemptIds: number[] = []
let results: string[] = []

const commandChannel = new BroadcastChannel(channel)
commandChannel.onmessage = (event) => {
  const command = (event as { data: Command }).data
  if (command === 'break connections') connections.closeAll()
  else abortsByAttempt.get(command.attemptId)?.abort(command.reason)
}
;(commandChannel as unknown as { unref(): void }).unref()

/** Runs a batch of jobs concurrently, as piscina's entry point. Resolves once all jobs have finished. Never rejects. */
export default async function runJobs(batch: Batch): Promise<void> {
  const jobs = JSON.parse(batch) as ThreadJob[]
  const [first] = jobs
  if (first === undefined) return
  // Report before any job runs: a job that blocks the event loop can be killed only if its thread is known.
  pendingEntries.push({ kind: 'started', attemptId: first.attemptId })
  flushReports()
  await Promise.all(jobs.map(runJob))
  // Report before piscina resolves the batch: from then on, none of its jobs may be unreported.
  flushReports()
}

/** Aborts an attempt. The signal is created on first use: most tasks never use it. */
class AttemptAbort {
  readonly job: ThreadJob
  reason: AbortReason | null = null
  #controller: AbortController | null = null

  constructor(job: ThreadJob) {
    this.job = job
  }

  get signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController()
      if (this.reason !== null) this.#controller.abort(this.reason)
    }
    return this.#controller.signal
  }

  abort(reason: AbortReason): void {
    this.reason ??= reason
    this.#controller?.abort(this.reason)
  }
}

async function runJob(job: ThreadJob): Promise<void> {
  const abort = new AttemptAbort(job)
  abortsByAttempt.set(job.attemptId, abort)
  const origin = new JobOrigin(job)
  const outcome = await runWithOrigin(origin, () => runTask(job, abort))
  origin.end()
  abortsByAttempt.delete(job.attemptId)
  if (outcome.kind !== 'done')
    return addReport({ kind: 'ended', attemptId: job.attemptId, id: job.id, outcome })
  scheduleFlush()
  attemptIds.push(job.attemptId)
  results.push(outcome.result)
}

async function runTask(job: ThreadJob, abort: AttemptAbort): Promise<Outcome> {
  try {
    const task = findTask(job.name)
    const payload = task.payload.parse(job.payload)
    const result = task.result.parse(await task.run(new Context(job, abort), payload))
    return { kind: 'done', result: serializeResult(result) }
  } catch (error) {
    // Jobs of this turn report their outcomes first: the thread is then killed.
    if (isLoadFailure(error)) setImmediate(() => addReport({ kind: 'broken' }))
    if (abort.reason !== null) return { kind: 'aborted', reason: abort.reason }
    if (error instanceof WaitForBatch) return { kind: 'waiting' }
    return toFailureOutcome(job, error)
  }
}

class NotJsonError extends Error {}

function serializeResult(result: unknown): string {
  try {
    return JSON.stringify(result ?? null, rejectNonJson)
  } catch (error) {
    throw new NotJsonError('The task result is not JSON', { cause: error })
  }
}

/** Throws for values that `JSON.stringify` silently drops. */
function rejectNonJson(_key: string, value: unknown): unknown {
  if (typeof value === 'function' || typeof value === 'symbol')
    throw new TypeError(`A task result can't contain a ${typeof value}`)
  return value
}

function toFailureOutcome(job: ThreadJob, error: unknown): Outcome {
  const failure = mapShortage(error)
  if (failure !== error)
    createJobLogger(job).warn({ error: describeError(error) }, 'A shortage of the machine delays a job')
  if (failure instanceof Failure) {
    if (failure.code === 'job.superseded') return { kind: 'aborted', reason: 'superseded' }
    const { code, detail, retry, retryAfter } = failure
    return { kind: 'failed', code, detail, retry, retryAfter }
  }
  createJobLogger(job).error({ error: describeError(error) }, 'A task failed')
  // A payload or result with the wrong shape is permanent; any other unknown error may be transient.
  return {
    kind: 'failed',
    code: 'internal',
    detail: `Internal error (job ${job.id})`,
    retry: error instanceof ZodError || error instanceof NotJsonError ? 'never' : 'later',
  }
}

/** Converts an error and its causes to text: structured clone loses parts of an error object. */
function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const constraint = 'constraint' in error ? ` (constraint ${error.constraint})` : ''
  const cause = error.cause === undefined ? '' : `\ncaused by ${describeError(error.cause)}`
  return `${error.stack ?? error.message}${constraint}${cause}`
}

/** Represents the attempt as the origin of its statements, calls and jobs, for traces and logs. */
class JobOrigin implements Origin {
  readonly record: Origin['record']
  readonly #job: ThreadJob
  #hasEnded = false

  constructor(job: ThreadJob) {
    this.#job = job
    const { traceParent } = job
    const isTraced = settings.tracing !== null && traceParent !== null
    this.record = isTraced && parseTraceParent(traceParent)?.isSampled === true ? recordSpan : null
  }

  get traceParent() {
    return this.#job.traceParent
  }

  logFields() {
    return this.#hasEnded ? null : jobLogFields(this.#job)
  }

  end(): void {
    this.#hasEnded = true
  }
}

function recordSpan(span: FinishedSpan): void {
  addReport({ kind: 'span', span })
}

/** The context that a task receives. Most tasks use few parts of it, so they are created on demand. */
class Context implements TaskContext {
  readonly job: ThreadJob
  readonly #abort: AttemptAbort
  #emitted = 0
  #providers: Providers | null = null

  constructor(job: ThreadJob, abort: AttemptAbort) {
    this.job = job
    this.#abort = abort
  }

  get dependencies() {
    return async () => (await db.one(readDependencies(this.job.id))).results
  }
  get db() {
    return db
  }
  get settings() {
    return settings
  }
  get keys() {
    if (keys === undefined) throw new Error('This thread did not receive the keys')
    return keys
  }
  get providers() {
    this.#providers ??= providersFor({
      owner: this.job.ownerId ?? 0,
      isUrgent: findTask(this.job.name).maxPauseSeconds !== undefined,
    })
    return this.#providers
  }
  get blobs() {
    return blobs
  }
  get retryJobs() {
    const options = { findTask: findTask, requestId: this.job.requestId, settings }
    const { ownerId } = this.job
    return (ids: readonly string[], owners: 'any' | 'own') =>
      retryJobs(db, ids, { ownerId, isAdmin: owners === 'any' }, options)
  }
  get signal() {
    return this.#abort.signal
  }
  get log() {
    return createJobLogger(this.job)
  }
  get emit() {
    const { attemptId, id } = this.job
    return (event: string, data: unknown): void =>
      addReport({ kind: 'event', attemptId, id, n: ++this.#emitted, event, data })
  }
  get reportProgress() {
    return (label: string, current?: number, total?: number): void =>
      this.emit('status', { status: 'running', label, current, total })
  }
  get runFenced() {
    const { id, attempt } = this.job
    return <T>(work: (tx: Queries) => Promise<T>): Promise<T> =>
      db.transaction(async (tx) => {
        await tx.run(FENCE_LIMIT_SQL)
        if ((await tx.maybeOne(fenceJob(id, attempt))) === null) throw fail('job.superseded')
        return work(tx)
      })
  }
}

function createJobLogger(job: ThreadJob): TaskLog {
  const write = (level: Level) => (data: object, message: string) =>
    log(level, { ...jobLogFields(job), ...data }, message)
  return { info: write('info'), warn: write('warn'), error: write('error') }
}

type Level = 'info' | 'warn' | 'error'

function log(level: Level, data: object, message: string): void {
  addReport({ kind: 'log', level, data, message })
}

function addReport(entry: ThreadEntry): void {
  scheduleFlush()
  pendingEntries.push(entry)
}

function scheduleFlush(): void {
  if (pendingEntries.length === 0 && attemptIds.length === 0) setImmediate(flushReports)
}

function flushReports(): void {
  if (pendingEntries.length === 0 && attemptIds.length === 0) return
  const pending: ThreadReport = { threadId, entries: pendingEntries, attemptIds, results }
  pendingEntries = []
  attemptIds = []
  results = []
  try {
    parentPort!.postMessage(pending)
  } catch {
    for (const entry of pending.entries) postEntry(entry)
    parentPort!.postMessage({ ...pending, entries: [] })
  }
}

function postEntries(entries: readonly ThreadEntry[]): void {
  parentPort!.postMessage({ threadId, entries, attemptIds: [], results: [] } satisfies ThreadReport)
}

/** Posts an entry, or logs an error if the entry can't be cloned. An outcome can always be cloned. */
function postEntry(entry: ThreadEntry): void {
  try {
    postEntries([entry])
  } catch (error) {
    postEntries([
      {
        kind: 'log',
        level: 'error',
        data: { ...entryLogFields(entry), error: String(error) },
        message: 'Failed to send a report from the task thread',
      },
    ])
  }
}

/** Returns log fields that identify the job of an entry. The data of a log entry already contain them. */
function entryLogFields(entry: ThreadEntry): object {
  if (entry.kind === 'log')
    return Object.fromEntries(
      Object.entries(entry.data).filter(([, value]) => ['string', 'number'].includes(typeof value)),
    )
  const job = 'attemptId' in entry ? abortsByAttempt.get(entry.attemptId)?.job : undefined
  return job === undefined ? {} : jobLogFields(job)
}
