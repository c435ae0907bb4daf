import { randomUUID } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { BroadcastChannel } from 'node:worker_threads'
import { Piscina } from 'piscina'
import type { Log } from '../../tasks/log.ts'
import type { Settings } from '../../tasks/settings.ts'
import type { PoolName } from '../../tasks/task.ts'
import type { FinishedSpan } from '../../tasks/telemetry/tracing.ts'
import { aboutPoolJob } from '../attempts/telemetry.ts'
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
 * The thread pools of a worker process, by queue group and kind of work, so that a flood in one group never takes the
 * threads of another. A pool is created for its first job.
 */
export interface Pools {
  /**
   * Runs a job on a thread; always resolves. Jobs passed in the same turn of the event loop share batches.
   * @param onBegun called when a thread has it: until then it waits for one.
   */
  run(queue: string, pool: PoolName, job: PoolJob, onBegun?: () => void): Promise<Outcome>
  /** Tells the thread to stop the job; if it does not stop within the grace period, its thread is killed. */
  abort(id: string, attempt: number, reason: AbortReason): void
  /** Has all threads give up their connections to the database: what they wait for there is not answered any more. */
  breakConnections(): void
  readonly threads: number
  /** How many threads have a job. */
  readonly busy: number
  close(): Promise<void>
}

export interface PoolsOptions {
  readonly settings: Settings
  readonly databaseUrl: string
  readonly children: Children
  readonly log: Log
  readonly onEvent: (event: { id: string; attempt: number; n: number; kind: string; data: unknown }) => void
  /** Called when a thread is killed because its job did not stop. */
  readonly onKill?: () => void
  /** Takes the spans of calls to providers, while they are traced. */
  readonly onSpan?: ((span: FinishedSpan) => void) | undefined
  /** How long a job may take to obey its abort signal, in ms. */
  readonly killGraceMs?: number
  /** Modules with more tasks, see `loadTasks`. */
  readonly taskModules?: readonly string[]
}

/** One attempt on a thread, or on its way to one. */
interface Running {
  readonly attemptId: number
  readonly job: PoolJob
  readonly onBegun: (() => void) | undefined
  readonly settle: (outcome: Outcome) => void
  readonly pool: ThreadPool
  /** How many threads of its pool had been killed when the job was passed to it. */
  readonly kills: number
  threadId: number | null
  abort: { reason: AbortReason; kill: NodeJS.Timeout } | null
}

/** A piscina pool, and the jobs to be passed to it at the end of this turn. */
interface ThreadPool {
  readonly piscina: Piscina
  readonly maxBatchSize: number
  readonly perThread: number
  /** Set for `model`, whose runtime can't be loaded a second time in one process. */
  readonly neverKill: boolean
  readonly jobs: Running[]
  kills: number
  /** Threads lost since the last message from one of them. */
  lost: number
}

// Each batch wakes both sides, so many jobs share one.
const MAX_BATCH_SIZE = 256
const RESTART_MS = 50
const MAX_RESTART_MS = 5000
// Threads wait for I/O most of the time, so a few carry many jobs; the runner bounds how many.
const IO_THREADS = 2
const IO_BATCHES_PER_THREAD = 1024
// These jobs wait for child processes to compute, so one thread carries them all.
const CHILDREN_THREADS = 1
// Bounds a task's memory; the pool replaces a thread that exceeds it.
const CPU_HEAP_MB = 384

export function createPools(options: PoolsOptions): Pools {
  return new ThreadPools(options)
}

class ThreadPools implements Pools {
  readonly #options: PoolsOptions
  readonly #channelName = `millrace-${randomUUID()}`
  readonly #channel = new BroadcastChannel(this.#channelName)
  readonly #pools = new Map<string, ThreadPool>()
  readonly #running = new Map<number, Running>()
  readonly #killed = new Set<number>()
  // Threads that have died with several jobs in them.
  readonly #crowded = new Set<number>()
  readonly #notStarted = new Map<number, readonly number[]>()
  #lastAttempt = 0
  #lastBatch = 0
  #isScheduled = false
  #isClosed = false

  constructor(options: PoolsOptions) {
    this.#options = options
  }

  run(queue: string, name: PoolName, job: PoolJob, onBegun?: () => void): Promise<Outcome> {
    return new Promise((settle) => {
      const pool = this.#poolOf(queue, name)
      const attemptId = ++this.#lastAttempt
      const { kills } = pool
      const given: Running = { attemptId, job, onBegun, settle, pool, kills, threadId: null, abort: null }
      this.#running.set(attemptId, given)
      pool.jobs.push(given)
      if (this.#isScheduled) return
      this.#isScheduled = true
      setImmediate(() => this.#dispatch())
    })
  }

  abort(id: string, attempt: number, reason: AbortReason): void {
    // Aborts are rare enough for a linear search; a key by id and attempt would cost every job a string.
    const found = [...this.#running.values()].find(({ job }) => job.id === id && job.attempt === attempt)
    if (found === undefined || found.abort !== null) return
    this.#tell({ attemptId: found.attemptId, reason })
    const kill = setTimeout(() => this.#kill(found), this.#options.killGraceMs ?? 2000)
    found.abort = { reason, kill }
  }

  breakConnections(): void {
    this.#tell('break connections')
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

  /** Tells all threads; once they have been told to end, nobody. */
  #tell(command: Command): void {
    if (!this.#isClosed) this.#channel.postMessage(command)
  }

  #poolOf(queue: string, name: PoolName): ThreadPool {
    const key = `${queue}/${name}`
    const known = this.#pools.get(key)
    if (known !== undefined) return known
    const pool: ThreadPool = {
      piscina: createPiscina(this.#options, name, this.#channelName),
      maxBatchSize: name === 'io' ? MAX_BATCH_SIZE : 1,
      perThread: jobsPerThread(this.#options.settings, name),
      neverKill: name === 'model',
      jobs: [],
      kills: 0,
      lost: 0,
    }
    const { children, log } = this.#options
    pool.piscina.on('message', (message: ThreadReport | ChildrenPort) => {
      pool.lost = 0
      if ('port' in message) serveChildren(children, message.port)
      else this.#onReport(message)
    })
    pool.piscina.on('workerDestroy', () => this.#replaceLost(pool))
    pool.piscina.on('error', (error) => log.error({ err: error, pool: key }, 'A task thread failed'))
    this.#pools.set(key, pool)
    return pool
  }

  /** After losing its last thread, or one that was still loading, a pool starts another only when given a task. */
  #replaceLost(pool: ThreadPool): void {
    const nudge = (): void => {
      if (!this.#isClosed && pool.piscina.queueSize > 0)
        pool.piscina.run({ id: 0, jobs: '[]' } satisfies Batch).catch(() => {})
    }
    // A thread that can't load at all is not restarted at full speed.
    setTimeout(nudge, Math.min(RESTART_MS * 2 ** pool.lost++ - RESTART_MS, MAX_RESTART_MS)).unref()
  }

  /** Passes on the jobs collected in this turn, in batches spread over the threads. */
  #dispatch(): void {
    this.#isScheduled = false
    for (const pool of this.#pools.values()) {
      for (const jobs of batches(pool)) {
        const id = ++this.#lastBatch
        const attemptIds = jobs.map(({ attemptId }) => attemptId)
        this.#notStarted.set(id, attemptIds)
        // A batch that ends has reported all its jobs, if perhaps on a port that is not read yet.
        pool.piscina
          .run({ id, jobs: textOf(jobs) } satisfies Batch)
          .catch(() => this.#settleLeftOver(id, attemptIds))
      }
    }
  }

  #onReport({ threadId, entries, attemptIds, results }: ThreadReport): void {
    for (const entry of entries) this.#onEntry(entry, threadId)
    for (const [i, attemptId] of attemptIds.entries()) {
      const found = this.#running.get(attemptId)
      if (found !== undefined) this.#end(found, { kind: 'done', result: results[i]! })
    }
  }

  #onEntry(entry: ThreadEntry, threadId: number): void {
    if (entry.kind === 'log') {
      this.#options.log[entry.level](entry.data, entry.message)
      return
    }
    if (entry.kind === 'span') return void this.#options.onSpan?.(entry.span)
    if (entry.kind === 'started') {
      for (const attemptId of this.#notStarted.get(entry.batch) ?? []) this.#onStarted(attemptId, threadId)
      this.#notStarted.delete(entry.batch)
      return
    }
    const found = this.#running.get(entry.attemptId)
    if (found === undefined) return
    const { id, attempt } = found.job
    if (entry.kind === 'ended') this.#end(found, entry.outcome)
    else this.#options.onEvent({ id, attempt, n: entry.n, kind: entry.event, data: entry.data })
  }

  #onStarted(attemptId: number, threadId: number): void {
    const found = this.#running.get(attemptId)
    if (found === undefined) return
    found.threadId = threadId
    found.onBegun?.()
    if (found.abort === null) return
    // Its thread was not there yet to receive the signal: the grace period starts now.
    this.#tell({ attemptId, reason: found.abort.reason })
    found.abort.kill.refresh()
  }

  #end(found: Running, outcome: Outcome): void {
    if (!this.#running.delete(found.attemptId)) return
    clearTimeout(found.abort?.kill)
    // However an aborted job died, the abort is why it ended.
    found.settle(
      outcome.kind === 'crashed' && found.abort ? { kind: 'aborted', reason: found.abort.reason } : outcome,
    )
  }

  /** Kills the thread of a job that did not obey its abort signal. */
  #kill({ job, pool, threadId }: Running): void {
    if (threadId === null || pool.neverKill) return
    this.#killed.add(threadId)
    this.#options.onKill?.()
    const thread = pool.piscina.threads.find((candidate) => candidate.threadId === threadId)
    this.#options.log.warn(aboutPoolJob(job), 'A job did not obey its abort signal; its thread is killed')
    // Until it has ended, piscina passes jobs to it: these are as innocent as what was in it.
    thread?.once('exit', () => pool.kills++)
    void thread?.terminate()
  }

  /** Ends the jobs that no report had ended when their thread died. */
  #settleLeftOver(batch: number, attemptIds: readonly number[]): void {
    this.#notStarted.delete(batch)
    for (const attemptId of attemptIds) {
      const found = this.#running.get(attemptId)
      if (found === undefined) continue
      // The thread was killed because of another job, maybe before it got to this one: not this job's failure.
      const killedUnder =
        found.threadId === null ? found.pool.kills > found.kills : this.#killed.has(found.threadId)
      const bystander = killedUnder && found.abort === null
      if (bystander) this.#end(found, { kind: 'aborted', reason: 'stopping' })
      else
        this.#end(found, this.#isShared(found) ? { kind: 'crashed', among: 'others' } : { kind: 'crashed' })
    }
  }

  /** Whether other jobs were in its thread when that died, including those that have been ended since. */
  #isShared({ pool, threadId }: Running): boolean {
    if (pool.perThread === 1 || threadId === null) return false
    const inside = [...this.#running.values()].filter((one) => one.pool === pool && one.threadId === threadId)
    if (inside.length > 1) this.#crowded.add(threadId)
    return this.#crowded.has(threadId)
  }
}

/** Splits the waiting jobs into batches, spread over the pool's threads. */
function* batches({ piscina, jobs, maxBatchSize }: ThreadPool): Generator<Running[]> {
  const waiting = jobs.splice(0)
  const size = Math.min(maxBatchSize, Math.ceil(waiting.length / piscina.options.maxThreads))
  for (let start = 0; start < waiting.length; start += size) yield waiting.slice(start, start + size)
}

/** JSON text of `ThreadJob`s: payloads are JSON text already, and are inserted as they are. */
function textOf(jobs: readonly Running[]): string {
  const texts = jobs.map(({ attemptId, job }) => {
    const { id, attempt, name, owner_id: ownerId, request_id: requestId, trace_parent: traceParent } = job
    const rest = JSON.stringify({ attemptId, id, attempt, name, ownerId, requestId, traceParent })
    return `${rest.slice(0, -1)},"payload":${job.payload}}`
  })
  return `[${texts.join()}]`
}

function threadsOf({ workerThreads }: Settings, name: PoolName): number {
  if (name === 'io') return Math.min(workerThreads, IO_THREADS)
  // One more than there are slots, for the extra one that `Slots` keeps for an owner who has none.
  if (name === 'cpu') return Math.min(workerThreads, availableParallelism()) + 1
  return name === 'children' ? CHILDREN_THREADS : 1
}

/** How many batches, of one job or many, a thread runs at once. */
function jobsPerThread(settings: Settings, name: PoolName): number {
  if (name === 'io') return IO_BATCHES_PER_THREAD
  return name === 'children' ? settings.workerThreads + 1 : 1
}

function createPiscina(
  { settings, databaseUrl, taskModules = [] }: PoolsOptions,
  name: PoolName,
  channel: string,
): Piscina {
  const threads = threadsOf(settings, name)
  return new Piscina({
    filename: new URL('./thread-main.ts', import.meta.url).href,
    minThreads: name === 'io' ? 1 : 0,
    maxThreads: threads,
    concurrentTasksPerWorker: jobsPerThread(settings, name),
    idleTimeout: name === 'model' ? Number.POSITIVE_INFINITY : 60_000,
    closeTimeout: 1000,
    // Any other mode stops the thread's event loop between tasks, and with it its database connections.
    atomics: 'disabled',
    workerData: {
      settings,
      databaseUrl,
      channel,
      pool: name,
      taskModules,
    } satisfies ThreadData,
    ...(name === 'cpu' ? { resourceLimits: { maxOldGenerationSizeMb: CPU_HEAP_MB } } : {}),
  })
}
