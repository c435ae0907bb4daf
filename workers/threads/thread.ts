import { BroadcastChannel, parentPort, threadId, workerData } from 'node:worker_threads'
import { ZodError } from 'zod'
import { createDatabase, noRows, type Queries, sql } from '../../sql/db.ts'
import { Connections } from '../../sql/driver.ts'
import { Failure, fail } from '../../sql/errors.ts'
import { fenceJob } from '../../sql/jobs.ts'
import type { Providers, TaskContext, TaskLog } from '../../tasks/context.ts'
import { createBlobs } from '../../tasks/documents/blobs.ts'
import { finderOf, loadTasks } from '../../tasks/index.ts'
import { retryJobs } from '../../tasks/retry.ts'
import {
  type FinishedSpan,
  logSlowStatements,
  type Origin,
  parseTraceParent,
  within,
} from '../../tasks/telemetry/tracing.ts'
import { aboutJob } from '../attempts/telemetry.ts'
import { useChildren } from '../children/client.ts'
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
 * The code inside a task thread. It runs whole task functions and reports their progress and outcome to the main
 * thread; only the main thread writes to the job ledger.
 */

const { settings, databaseUrl, channel, pool, taskModules } = workerData as ThreadData
const taskNamed = finderOf(await loadTasks(taskModules))
const connections = new Connections()
const slow = logSlowStatements(settings.slowQueryMs, (data, message) => log('warn', data, message))
const db = createDatabase({
  connections,
  url: databaseUrl,
  applicationName: `${settings.projectName}-${pool}-thread`,
  size: pool === 'cpu' ? 2 : 4,
  validateRows: settings.checked,
  pooled: settings.databasePooled,
  statementMs: settings.writeTimeoutMs,
  slow,
})
const children = useChildren((port) => parentPort!.postMessage({ port } satisfies ChildrenPort, [port]))
const providersFor = createProviders(settings, children, databaseUrl, slow)
const blobs = createBlobs(db, settings)
// A fence locks its job's row against take-overs. If the process freezes inside one, and so can neither commit nor
// disconnect, the fence ends after the lifetime of a lease, and not after the minute that other transactions have.
const FENCE_LIMIT = sql.type(noRows)`
  select set_config('idle_in_transaction_session_timeout', ${String(settings.leaseMs)}, true)`
const aborts = new Map<number, Abort>()
let outbox: ThreadEntry[] = []
let attemptIds: number[] = []
let results: string[] = []

const commands = new BroadcastChannel(channel)
commands.onmessage = (event) => {
  const command = (event as { data: Command }).data
  if (command === 'break connections') connections.break()
  else aborts.get(command.attemptId)?.abort(command.reason)
}
;(commands as unknown as { unref(): void }).unref()

/** Piscina's entry point: runs jobs concurrently, and resolves when all of them have ended. Never rejects. */
export default async function runJobs({ id, jobs }: Batch): Promise<void> {
  // Reported before any of them runs: a job that blocks the event loop can be killed only if its thread is known.
  outbox.push({ kind: 'started', batch: id })
  flush()
  await Promise.all((JSON.parse(jobs) as ThreadJob[]).map(runJob))
  // Before piscina's answer, which says that no job of the batch is left.
  flush()
}

/** The abort of an attempt. Its signal is created on first use: most jobs never look at it. */
class Abort {
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
  const abort = new Abort(job)
  aborts.set(job.attemptId, abort)
  const origin = new JobOrigin(job)
  const outcome = await within(origin, () => attemptOnce(job, abort))
  origin.end()
  aborts.delete(job.attemptId)
  if (outcome.kind !== 'done') return report({ kind: 'ended', attemptId: job.attemptId, id: job.id, outcome })
  flushSoon()
  attemptIds.push(job.attemptId)
  results.push(outcome.result)
}

async function attemptOnce(job: ThreadJob, abort: Abort): Promise<Outcome> {
  try {
    const task = taskNamed(job.name)
    const payload = task.payload.parse(job.payload)
    const result = task.result.parse(await task.run(new Context(job, abort), payload))
    return { kind: 'done', result: textOf(result) }
  } catch (error) {
    if (abort.reason !== null) return { kind: 'aborted', reason: abort.reason }
    return failureOf(job, error)
  }
}

class NotJson extends Error {}

function textOf(result: unknown): string {
  try {
    return JSON.stringify(result ?? null, strict)
  } catch (error) {
    throw new NotJson('A result is not JSON', { cause: error })
  }
}

/** Refuses what JSON would silently leave out. */
function strict(_key: string, value: unknown): unknown {
  if (typeof value === 'function' || typeof value === 'symbol')
    throw new TypeError(`A result cannot hold a ${typeof value}`)
  return value
}

function failureOf(job: ThreadJob, error: unknown): Outcome {
  if (error instanceof Failure) {
    if (error.code === 'job.superseded') return { kind: 'aborted', reason: 'superseded' }
    const { code, detail, retryable, retryAfter } = error
    return { kind: 'failed', code, detail, retryable, retryAfter }
  }
  logOf(job).error({ error: describe(error) }, 'A task failed')
  // A payload or result of the wrong shape stays wrong; any other unknown error may be temporary.
  return {
    kind: 'failed',
    code: 'internal',
    detail: `Internal error (job ${job.id})`,
    retryable: !(error instanceof ZodError || error instanceof NotJson),
  }
}

/** An error and its causes, as text: an error object does not reach the main thread intact. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const constraint = 'constraint' in error ? ` (constraint ${error.constraint})` : ''
  const cause = error.cause === undefined ? '' : `\ncaused by ${describe(error.cause)}`
  return `${error.stack ?? error.message}${constraint}${cause}`
}

/** The attempt, as what its statements, calls and jobs come from. */
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

  about() {
    return this.#hasEnded ? null : aboutJob(this.#job)
  }

  end(): void {
    this.#hasEnded = true
  }
}

function recordSpan(span: FinishedSpan): void {
  report({ kind: 'span', span })
}

/** What a task is given. Most jobs use little of it, so its parts are created on demand. */
class Context implements TaskContext {
  readonly job: ThreadJob
  readonly #abort: Abort
  #emitted = 0
  #providers: Providers | null = null

  constructor(job: ThreadJob, abort: Abort) {
    this.job = job
    this.#abort = abort
  }

  get db() {
    return db
  }
  get settings() {
    return settings
  }
  get secretKey() {
    if (settings.secretKey === undefined) throw new Error('SECRET_KEY was not handed to this thread')
    return settings.secretKey
  }
  get providers() {
    this.#providers ??= providersFor(this.job.ownerId ?? 0)
    return this.#providers
  }
  get blobs() {
    return blobs
  }
  get retryJobs() {
    const options = { taskNamed, requestId: this.job.requestId, settings }
    return (ids: readonly string[]) => retryJobs(db, ids, options)
  }
  get signal() {
    return this.#abort.signal
  }
  get log() {
    return logOf(this.job)
  }
  get emit() {
    const { attemptId, id } = this.job
    return (event: string, data: unknown): void =>
      report({ kind: 'event', attemptId, id, n: ++this.#emitted, event, data })
  }
  get progress() {
    return (label: string, current?: number, total?: number): void =>
      this.emit('status', { status: 'running', label, current, total })
  }
  get fenced() {
    const { id, attempt } = this.job
    return <T>(work: (tx: Queries) => Promise<T>): Promise<T> =>
      db.transaction(async (tx) => {
        await tx.run(FENCE_LIMIT)
        if ((await tx.maybeOne(fenceJob(id, attempt))) === null) throw fail('job.superseded')
        return work(tx)
      })
  }
}

function logOf(job: ThreadJob): TaskLog {
  const write = (level: Level) => (data: object, message: string) =>
    log(level, { ...aboutJob(job), ...data }, message)
  return { info: write('info'), warn: write('warn'), error: write('error') }
}

type Level = 'info' | 'warn' | 'error'

function log(level: Level, data: object, message: string): void {
  report({ kind: 'log', level, data, message })
}

function report(entry: ThreadEntry): void {
  flushSoon()
  outbox.push(entry)
}

function flushSoon(): void {
  if (outbox.length === 0 && attemptIds.length === 0) setImmediate(flush)
}

function flush(): void {
  if (outbox.length === 0 && attemptIds.length === 0) return
  const news: ThreadReport = { threadId, entries: outbox, attemptIds, results }
  outbox = []
  attemptIds = []
  results = []
  try {
    parentPort!.postMessage(news)
  } catch {
    for (const entry of news.entries) postAlone(entry)
    parentPort!.postMessage({ ...news, entries: [] })
  }
}

function post(entries: readonly ThreadEntry[]): void {
  parentPort!.postMessage({ threadId, entries, attemptIds: [], results: [] } satisfies ThreadReport)
}

/** Posts an entry, or drops it if it can't be cloned. The end of an attempt always can. */
function postAlone(entry: ThreadEntry): void {
  try {
    post([entry])
  } catch (error) {
    post([
      {
        kind: 'log',
        level: 'error',
        data: { ...aboutEntry(entry), error: String(error) },
        message: 'A report could not be sent from its thread',
      },
    ])
  }
}

/** The job that an entry is about: a line of the log has that among its other data. */
function aboutEntry(entry: ThreadEntry): object {
  if (entry.kind === 'log')
    return Object.fromEntries(
      Object.entries(entry.data).filter(([, value]) => ['string', 'number'].includes(typeof value)),
    )
  const job = 'attemptId' in entry ? aborts.get(entry.attemptId)?.job : undefined
  return job === undefined ? {} : aboutJob(job)
}
