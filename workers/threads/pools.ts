import { randomUUID } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { BroadcastChannel } from 'node:worker_threads'
import { Piscina } from 'piscina'
import { mapShortage } from '../../sql/error-mapping.ts'
import { Failure } from '../../sql/errors.ts'
import type { KeyMaterial } from '../../tasks/platform/keys.ts'
import type { Log } from '../../tasks/platform/log.ts'
import type { Settings } from '../../tasks/platform/settings/settings.ts'
import type { FinishedSpan } from '../../tasks/platform/telemetry/tracing.ts'
import type { PoolName } from '../../tasks/task.ts'
import { poolJobLogFields } from '../attempts/telemetry.ts'
import { serveChildren } from '../children/client.ts'
import type { Children } from '../children/ports.ts'
import type {
  AbortReason,
  Batch,
  ChildrenPort,
  Command,
  Outcome,
  PoolJob,
  ThreadData,
  ThreadEntry,
  ThreadReport,
} from './protocol.ts'

/**
 * The thread pools of a worker process. Each queue has its own pool for each kind of work, so a flood in one queue
 * never takes another's threads. A pool is created for its first job.
 */
export interface Pools {
  /**
   * Runs a job on a thread; never rejects. Jobs passed in the same turn of the event loop share batches.
   * @param onStarted called once a thread has the job.
   */
  run(queue: string, pool: PoolName, job: PoolJob, onStarted?: () => void): Promise<Outcome>
  /** Signals the thread to stop the job; kills the thread if the job outlives the grace period. */
  abort(id: string, attempt: number, reason: AbortReason): void
  /** Makes all threads break their database connections, so that pending statements fail and are retried. */
  breakConnections(): void
  readonly threads: number
  /** Number of threads that have a job. */
  readonly busy: number
  close(): Promise<void>
}

export interface PoolsOptions {
  readonly settings: Settings
  readonly databaseUrl: string
  /** Absent if no task needs keys. */
  readonly keys?: KeyMaterial | undefined
  readonly children: Children
  readonly log: Log
  readonly onEvent: (event: { id: string; attempt: number; n: number; kind: string; data: unknown }) => void
  /** Called whenever a thread is killed because its job did not stop. */
  readonly onKill?: () => void
  /** Receives the spans of provider calls; absent if nothing is traced. */
  readonly onSpan?: ((span: FinishedSpan) => void) | undefined
  /** Time that a job has to obey its abort signal, in ms. Default 2000. */
  readonly killGraceMs?: number
  /** Modules with more tasks, see `loadTasks`. */
  readonly taskModules?: readonly string[]
}

/** An attempt that a thread runs, or that waits for one. */
interface RunningJob {
  readonly attemptId: number
  readonly job: PoolJob
  readonly onStarted: (() => void) | undefined
  readonly settle: (outcome: Outcome) => void
  readonly pool: ThreadPool
  /** Thread that has the job; null before. */
  threadId: number | null
  abort: { reason: AbortReason; kill: NodeJS.Timeout } | null
}

/** A piscina pool, and the jobs that it gets at the end of this turn of the event loop. */
interface ThreadPool {
  readonly piscina: Piscina
  readonly maxBatchSize: number
  readonly batchesPerThread: number
  /** True for `model`: its runtime can't be loaded twice in one process. */
  readonly neverKill: boolean
  readonly jobs: RunningJob[]
  /** Number of threads that died since any thread last sent a message. */
  deaths: number
}

// Each batch wakes the main thread and the task thread once, however many jobs it has.
const MAX_BATCH_SIZE = 256
const RESTART_MS = 50
const MAX_RESTART_MS = 5000
// These threads mostly wait for I/O, so a few carry many jobs; the queue runner limits the number of jobs.
const IO_THREADS = 2
const IO_BATCHES_PER_THREAD = 1024
// These jobs wait for child processes that compute, so one thread carries them all.
const CHILDREN_THREADS = 1
// Limits a task's memory; the pool replaces a thread that exceeds it.
const CPU_HEAP_MB = 384

export function createPools(options: PoolsOptions): Pools {
  return new ThreadPools(options)
}

class ThreadPools implements Pools {
  readonly #options: PoolsOptions
  readonly #channelName = `millrace-${randomUUID()}`
  readonly #channel = new BroadcastChannel(this.#channelName)
  readonly #pools = new Map<string, ThreadPool>()
  readonly #running = new Map<number, RunningJob>()
  readonly #killed = new Set<number>()
  // Ids of dead threads that ran several jobs.
  readonly #sharedThreads = new Set<number>()
  // Attempts of the batches that no thread has acknowledged, by the first of each batch.
  readonly #notStarted = new Map<number, readonly number[]>()
  #lastAttemptId = 0
  #isDispatchScheduled = false
  #isClosed = false

  constructor(options: PoolsOptions) {
    this.#options = options
  }

  run(queue: string, name: PoolName, job: PoolJob, onStarted?: () => void): Promise<Outcome> {
    return new Promise((settle) => {
      const pool = this.#openPool(queue, name)
      const attemptId = ++this.#lastAttemptId
      const running: RunningJob = { attemptId, job, onStarted, settle, pool, threadId: null, abort: null }
      this.#running.set(attemptId, running)
      pool.jobs.push(running)
      if (this.#isDispatchScheduled) return
      this.#isDispatchScheduled = true
      setImmediate(() => this.#dispatch())
    })
  }

  abort(id: string, attempt: number, reason: AbortReason): void {
    // Aborts are rare, so a linear search suffices. A key of id and attempt would cost every job a string.
    const found = [...this.#running.values()].find(({ job }) => job.id === id && job.attempt === attempt)
    if (found === undefined || found.abort !== null) return
    this.#broadcast({ attemptId: found.attemptId, reason })
    const kill = setTimeout(() => this.#killThreadOf(found), this.#options.killGraceMs ?? 2000)
    found.abort = { reason, kill }
  }

  breakConnections(): void {
    this.#broadcast('break connections')
  }

  get threads(): number {
    return [...this.#pools.values()].reduce((sum, { piscina }) => sum + piscina.threads.length, 0)
  }

  get busy(): number {
    return new Set([...this.#running.values()].flatMap(({ threadId }) => threadId ?? [])).size
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all([...this.#pools.values()].map(({ piscina }) => piscina.destroy()))
    this.#channel.close()
  }

  /** Sends a command to all threads, unless the pools are closed. */
  #broadcast(command: Command): void {
    if (!this.#isClosed) this.#channel.postMessage(command)
  }

  #openPool(queue: string, name: PoolName): ThreadPool {
    const key = `${queue}/${name}`
    const existing = this.#pools.get(key)
    if (existing !== undefined) return existing
    const pool: ThreadPool = {
      piscina: createPiscina(this.#options, name, this.#channelName),
      maxBatchSize: name === 'io' ? MAX_BATCH_SIZE : 1,
      batchesPerThread: countBatchesPerThread(this.#options.settings, name),
      neverKill: name === 'model',
      jobs: [],
      deaths: 0,
    }
    const { children, log } = this.#options
    pool.piscina.on('message', (message: ThreadReport | ChildrenPort) => {
      pool.deaths = 0
      if ('port' in message) serveChildren(children, message.port)
      else this.#onReport(message, pool)
    })
    pool.piscina.on('workerDestroy', () => this.#replaceDead(pool))
    pool.piscina.on('error', (error) => log.error({ err: error, pool: key }, 'A task thread failed'))
    this.#pools.set(key, pool)
    return pool
  }

  /**
   * Gives the pool an empty batch if jobs wait. If its last thread died, or one that was still loading, piscina starts
   * another only for a new task.
   */
  #replaceDead(pool: ThreadPool): void {
    const nudge = (): void => {
      if (!this.#isClosed && pool.piscina.queueSize > 0)
        pool.piscina.run('[]' satisfies Batch).catch(() => {})
    }
    // The backoff limits the restarts of a thread that can't load.
    setTimeout(nudge, Math.min(RESTART_MS * 2 ** pool.deaths++ - RESTART_MS, MAX_RESTART_MS)).unref()
  }

  /** Passes the jobs collected in this turn to the pools, in batches spread over the threads. */
  #dispatch(): void {
    this.#isDispatchScheduled = false
    for (const pool of this.#pools.values()) {
      for (const jobs of splitIntoBatches(pool)) {
        const attemptIds = jobs.map(({ attemptId }) => attemptId)
        this.#notStarted.set(attemptIds[0]!, attemptIds)
        // A batch that resolves has reported all its jobs, although its reports may still be unread. So settle only the
        // jobs of rejected batches.
        runBatch(pool, serializeJobs(jobs)).catch((error) => this.#settleUnreported(attemptIds, error))
      }
    }
  }

  #onReport({ threadId, entries, attemptIds, results }: ThreadReport, pool: ThreadPool): void {
    for (const entry of entries) this.#onEntry(entry, threadId, pool)
    for (const [i, attemptId] of attemptIds.entries()) {
      const found = this.#running.get(attemptId)
      if (found !== undefined) this.#finish(found, { kind: 'done', result: results[i]! })
    }
  }

  #onEntry(entry: ThreadEntry, threadId: number, pool: ThreadPool): void {
    if (entry.kind === 'log') {
      this.#options.log[entry.level](entry.data, entry.message)
      return
    }
    if (entry.kind === 'span') return void this.#options.onSpan?.(entry.span)
    if (entry.kind === 'broken') {
      this.#replace(pool, threadId)
      return
    }
    if (entry.kind === 'started') {
      for (const attemptId of this.#notStarted.get(entry.attemptId) ?? [])
        this.#onStarted(attemptId, threadId)
      this.#notStarted.delete(entry.attemptId)
      return
    }
    const found = this.#running.get(entry.attemptId)
    if (found === undefined) return
    const { id, attempt } = found.job
    if (entry.kind === 'ended') this.#finish(found, entry.outcome)
    else this.#options.onEvent({ id, attempt, n: entry.n, kind: entry.event, data: entry.data })
  }

  #onStarted(attemptId: number, threadId: number): void {
    const found = this.#running.get(attemptId)
    if (found === undefined) return
    found.threadId = threadId
    found.onStarted?.()
    if (found.abort === null) return
    // The abort came before this thread had the job: repeat the signal and restart the grace period.
    this.#broadcast({ attemptId, reason: found.abort.reason })
    found.abort.kill.refresh()
  }

  #finish({ attemptId, abort, settle }: RunningJob, outcome: Outcome): void {
    if (!this.#running.delete(attemptId)) return
    clearTimeout(abort?.kill)
    // A crash after an abort counts as the abort.
    settle(outcome.kind === 'crashed' && abort ? { kind: 'aborted', reason: abort.reason } : outcome)
  }

  /** Kills the thread of a job that did not obey its abort signal. */
  #killThreadOf({ job, pool, threadId }: RunningJob): void {
    if (threadId === null || pool.neverKill) return
    this.#options.onKill?.()
    this.#options.log.warn(poolJobLogFields(job), 'A job ignored its abort signal; killing its thread')
    this.#kill(pool, threadId)
  }

  /** Kills a thread that can't load a module; the pool starts another. */
  #replace(pool: ThreadPool, threadId: number): void {
    if (pool.neverKill) return
    this.#options.log.warn({ threadId }, 'A task thread could not load a module; replacing it')
    this.#kill(pool, threadId)
  }

  #kill(pool: ThreadPool, threadId: number): void {
    this.#killed.add(threadId)
    void pool.piscina.threads.find((candidate) => candidate.threadId === threadId)?.terminate()
  }

  /** Ends the jobs of a batch whose thread died before it reported them. */
  #settleUnreported(attemptIds: readonly number[], error: unknown): void {
    this.#notStarted.delete(attemptIds[0]!)
    const shortage = mapShortage(error)
    for (const attemptId of attemptIds) {
      const found = this.#running.get(attemptId)
      if (found === undefined) continue
      // The job had not begun, or another job caused the kill: release the bystander.
      const isBystander =
        (found.threadId === null || this.#killed.has(found.threadId)) && found.abort === null
      if (shortage instanceof Failure) this.#finish(found, toOutcome(shortage))
      else if (isBystander) this.#finish(found, { kind: 'aborted', reason: 'stopping' })
      else
        this.#finish(found, this.#isShared(found) ? { kind: 'crashed', host: 'shared' } : { kind: 'crashed' })
    }
  }

  /** True if the thread ran other jobs when it died, even if those have been settled by now. */
  #isShared({ pool, threadId }: RunningJob): boolean {
    if (pool.batchesPerThread === 1 || threadId === null) return false
    const jobs = [...this.#running.values()].filter((one) => one.pool === pool && one.threadId === threadId)
    if (jobs.length > 1) this.#sharedThreads.add(threadId)
    return this.#sharedThreads.has(threadId)
  }
}

/** Passes a batch to a thread. Rejects if the thread dies, or can't be started. */
const runBatch = async ({ piscina }: ThreadPool, batch: Batch): Promise<void> => piscina.run(batch)

const toOutcome = ({ code, detail, retry }: Failure): Outcome => ({
  kind: 'failed',
  code,
  detail,
  retry,
})

/** Splits the waiting jobs into batches, spread over the pool's threads. */
function* splitIntoBatches({ piscina, jobs, maxBatchSize }: ThreadPool): Generator<RunningJob[]> {
  const waiting = jobs.splice(0)
  const size = Math.min(maxBatchSize, Math.ceil(waiting.length / piscina.options.maxThreads))
  for (let start = 0; start < waiting.length; start += size) yield waiting.slice(start, start + size)
}

/** Serializes jobs as JSON text of `ThreadJob`s. Payloads are JSON text already and are inserted unchanged. */
function serializeJobs(jobs: readonly RunningJob[]): string {
  const texts = jobs.map(({ attemptId, job }) => {
    const { id, attempt, name, owner_id: ownerId, request_id: requestId, trace_parent: traceParent } = job
    const rest = JSON.stringify({ attemptId, id, attempt, name, ownerId, requestId, traceParent })
    return `${rest.slice(0, -1)},"payload":${job.payload}}`
  })
  return `[${texts.join()}]`
}

function countThreads({ workerThreads }: Settings, name: PoolName): number {
  if (name === 'io') return Math.min(workerThreads, IO_THREADS)
  // One more thread than the slots, because `Slots` reserves an extra one for an owner without a running job.
  if (name === 'cpu') return Math.min(workerThreads, availableParallelism()) + 1
  return name === 'children' ? CHILDREN_THREADS : 1
}

/** Returns the number of batches that a thread runs concurrently. Only `io` has more than one job in a batch. */
function countBatchesPerThread(settings: Settings, name: PoolName): number {
  if (name === 'io') return IO_BATCHES_PER_THREAD
  return name === 'children' ? settings.workerThreads + 1 : 1
}

function createPiscina(
  { settings, databaseUrl, taskModules = [], keys }: PoolsOptions,
  name: PoolName,
  channel: string,
): Piscina {
  const threads = countThreads(settings, name)
  return new Piscina({
    filename: new URL('./thread-main.ts', import.meta.url).href,
    minThreads: name === 'io' ? 1 : 0,
    maxThreads: threads,
    concurrentTasksPerWorker: countBatchesPerThread(settings, name),
    idleTimeout: name === 'model' ? Number.POSITIVE_INFINITY : 60_000,
    closeTimeout: 1000,
    // Any other mode blocks the thread's event loop between tasks, and thus its database connections.
    atomics: 'disabled',
    workerData: {
      settings,
      databaseUrl,
      channel,
      pool: name,
      taskModules,
      keys,
    } satisfies ThreadData,
    ...(name === 'cpu' ? { resourceLimits: { maxOldGenerationSizeMb: CPU_HEAP_MB } } : {}),
  })
}
