import { EventEmitter, once } from 'node:events'
import { availableParallelism } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { Logger, parseCronItems, type Runner, run, type TaskList } from 'graphile-worker'
import type { QueueClient, QueuePool } from '../../sql/driver.ts'
import type { Delivery } from '../../sql/jobs/claims.ts'
import { createSlots, type Slots } from '../../sql/slots.ts'
import type { Log } from '../../tasks/log.ts'
import type { Settings } from '../../tasks/settings.ts'
import type { AnyTask, PoolName } from '../../tasks/task.ts'
import type { Executor } from '../attempts/executor.ts'
import type { Ledger } from '../attempts/ledger.ts'

/** Runs the jobs of one queue in this process, with its own graphile-worker runner and slots. */
export interface QueueRunner {
  readonly queue: string
  /** Id of the graphile-worker pool that locks deliveries; null before the first runner has started. */
  readonly poolId: string | null
  /** Limits the jobs that run here together: 0 fetches none, null allows all slots. Running jobs continue. */
  setConcurrency(concurrency: number | null): void
  /** Stops fetching; resolves once the fetched deliveries and their jobs are done. */
  stop(): Promise<void>
}

export interface QueueRunnerOptions {
  readonly queue: string
  readonly tasks: readonly AnyTask[]
  readonly settings: Settings
  readonly pool: QueuePool
  readonly log: Log
  readonly ledger: Pick<Ledger, 'claim' | 'redeliver'>
  readonly executor: Pick<Executor, 'run'>
  /** Cron entries of this queue: identifier -> schedule and action. */
  readonly cron: ReadonlyMap<string, { match: string; run: () => Promise<void> }>
  /** Initial argument of `setConcurrency`; default null. */
  readonly concurrency?: number | null
  /** Called once a graphile-worker runner has started and `poolId` has changed. */
  readonly onPoolChange: () => void
  /** Unlocks the deliveries that a dead runner still holds. */
  readonly unlock: (poolId: string) => Promise<void>
}

// Deliveries that a queue handles concurrently. A delivery is done once its jobs are claimed, which takes milliseconds.
const MAX_DELIVERIES = { io: 256, other: 8 }
// Jobs of `io` that a queue runs concurrently. Other pools have at most one slot for each of `workerThreads`.
const IO_SLOTS = 2048
// Jobs of operators' tools that a queue runs concurrently.
const TOOL_SLOTS = 8
// Jobs that a delivery claims together: enough to amortize a commit. Jobs that fill a thread are claimed one by one, so
// that any free worker can claim the next.
const MAX_IO_CLAIM = 1000
// A delivery that gets no slot within this time is redelivered to workers that have one.
const SLOT_WAIT_MS = 250
// A notification normally wakes the runner; polling finds deliveries whose notification was lost.
const POLL_INTERVAL_MS = 1000
// Time in which completed deliveries gather to share a statement.
const COMPLETION_DELAY_MS = 2
// Grace period for a stopping runner after its jobs have finished.
const STOP_GRACE_MS = 2000
// Cap of the backoff before the next runner: after an outage, all queues run again within about a second.
const MAX_BACKOFF_MS = 1000
// A runner that lived this long resets the backoff.
const HEALTHY_MS = 60_000

/**
 * Keeps a runner going until stopped, and replaces it once one of its statements fails:
 *
 * - A failed batch of completions ends graphile-worker (graphile/worker #636). It usually hangs while ending, because
 *   it miscounts its open batches.
 * - A failed fetch may leave deliveries locked for the runner.
 * - After a failed lookup of its tasks, the runner never fetches again.
 *
 * In each case the jobs are safe in the ledger: abandon the runner and unlock its deliveries.
 */
export function startQueueRunner(options: QueueRunnerOptions): QueueRunner {
  return new ReplacingRunner(options)
}

class ReplacingRunner implements QueueRunner {
  readonly #options: QueueRunnerOptions
  readonly #slots: ReadonlyMap<PoolName, Slots>
  readonly #toolSlots = createSlots(TOOL_SLOTS)
  readonly #handle: Handle
  readonly #loopPromise: Promise<void>
  // Number of jobs that run here or have reserved concurrency.
  #running = 0
  #concurrency: number | null
  // Callbacks that wake deliveries waiting for a change of the concurrency.
  readonly #waiting = new Set<() => void>()
  #resume: (() => void) | null = null
  #current: Runner | null = null
  #poolId: string | null = null
  #isStopped = false

  constructor(options: QueueRunnerOptions) {
    this.#options = options
    this.#concurrency = options.concurrency ?? null
    this.#slots = new Map(poolsOf(options).map((pool) => [pool, createSlots(countSlots(options, pool))]))
    const tasks = new Map(options.tasks.map((task) => [task.name, task]))
    this.#handle = (delivery) => {
      const { pool, isTool } = tasks.get(delivery.task)!
      return isTool === true
        ? this.#handleTool(delivery)
        : this.#handleDelivery(delivery, this.#slots.get(pool)!, pool === 'io' ? MAX_IO_CLAIM : 1)
    }
    this.#loopPromise = this.#loop()
  }

  get queue(): string {
    return this.#options.queue
  }

  get poolId(): string | null {
    return this.#poolId
  }

  setConcurrency(concurrency: number | null): void {
    if (concurrency === this.#concurrency) return
    this.#concurrency = concurrency
    for (const wake of this.#waiting) wake()
    if (concurrency === 0 && this.#current !== null) this.#stopRunner(this.#current)
    if (concurrency !== 0) this.#resume?.()
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#resume?.()
    const idle = this.#closeSlots()
    if (this.#current !== null) this.#stopRunner(this.#current)
    await this.#loopPromise
    await idle
  }

  /** Runs one runner after another, with a backoff that grows while runners die early. */
  async #loop(): Promise<void> {
    const { queue, log } = this.#options
    for (let failures = 0; ; failures++) {
      await this.#waitWhilePaused()
      if (this.#isStopped) return
      if (failures > 0) await delay(Math.min(100 * 2 ** failures, MAX_BACKOFF_MS))
      const startedAt = performance.now()
      await this.#runOnce().catch((error) => log.warn({ err: error, queue }, 'A queue runner failed'))
      if (performance.now() - startedAt > HEALTHY_MS) failures = 0
      this.#current = null
      if (this.#concurrency === 0) failures = -1
      else if (!this.#isStopped) log.warn({ queue }, 'A queue runner ended unexpectedly; restarting it')
      await this.#unlock()
    }
  }

  /** Waits while the concurrency is 0. */
  async #waitWhilePaused(): Promise<void> {
    while (this.#concurrency === 0 && !this.#isStopped)
      await new Promise<void>((resolve) => {
        this.#resume = resolve
      })
    this.#resume = null
  }

  /** Unlocks the deliveries of the last pool; retries while the database is down. */
  async #unlock(): Promise<void> {
    const { queue, log, unlock } = this.#options
    for (let failures = 0; this.#poolId !== null; failures++) {
      try {
        await unlock(this.#poolId)
        return
      } catch (error) {
        log.warn({ err: error, queue }, 'Failed to unlock deliveries')
        if (this.#isStopped) return
        await delay(Math.min(100 * 2 ** failures, MAX_BACKOFF_MS))
      }
    }
  }

  async #runOnce(): Promise<void> {
    const events = new EventEmitter()
    events.on('pool:create', ({ workerPool }: { workerPool: { id: string } }) => {
      this.#poolId = workerPool.id
      this.#options.onPoolChange()
    })
    waitForRelease(events)
    let hasFailed = false
    const pool = watchPool(this.#options.pool, () => {
      hasFailed = true
      if (this.#current !== null) this.#stopRunner(this.#current)
    })
    const graceEnd = once(events, 'pool:gracefulShutdown').then(async () => {
      if (this.#isStopped) await this.#closeSlots()
      await delay(STOP_GRACE_MS, undefined, { ref: false })
    })
    const runner = await startRunner({ ...this.#options, pool }, this.#handle, events)
    this.#current = runner
    if (this.#isStopped || hasFailed || this.#concurrency === 0) this.#stopRunner(runner)
    await Promise.race([runner.promise, graceEnd])
    // A hanging runner would still run its cron entries.
    if (!this.#isStopped) this.#stopRunner(runner)
  }

  #stopRunner(runner: Runner): void {
    const { queue, log } = this.#options
    runner.stop().catch((error) => log.debug({ err: error, queue }, 'The queue runner has stopped already'))
  }

  /** Claims and runs as many jobs of a delivery as concurrency and slots allow; redelivers it if they allow none. */
  async #handleDelivery(delivery: Delivery, slots: Slots, max: number): Promise<void> {
    const owner = delivery.owner ?? 0
    const allowed = await this.#acquire(Math.min(max, maxJobsOf(delivery)))
    const reserved = allowed === 0 ? 0 : await slots.reserve(owner, allowed, SLOT_WAIT_MS)
    this.#release(allowed - reserved)
    await this.#runJobs(delivery, reserved, (count) => {
      slots.release(owner, count)
      this.#release(count)
    })
  }

  /** Claims and runs one job of an operator's tool, whatever the limit of the queue. */
  async #handleTool(delivery: Delivery): Promise<void> {
    const owner = delivery.owner ?? 0
    const reserved = await this.#toolSlots.reserve(owner, 1, SLOT_WAIT_MS)
    await this.#runJobs(delivery, reserved, (count) => this.#toolSlots.release(owner, count))
  }

  /** Claims and runs up to `reserved` jobs of a delivery; redelivers it if that is 0. */
  async #runJobs(delivery: Delivery, reserved: number, release: (count: number) => void): Promise<void> {
    const { ledger, executor } = this.#options
    if (reserved === 0) return ledger.redeliver(delivery)
    const jobs = await ledger.claim(delivery, reserved)
    release(reserved - jobs.length)
    for (const job of jobs) void executor.run(job).finally(() => release(1))
  }

  /**
   * Acquires up to `wanted` of the concurrency. Waits up to `SLOT_WAIT_MS` for the first; returns 0 if none is free by
   * then.
   */
  async #acquire(wanted: number): Promise<number> {
    const deadline = performance.now() + SLOT_WAIT_MS
    for (;;) {
      const free = this.#concurrency === null ? wanted : Math.min(wanted, this.#concurrency - this.#running)
      if (free > 0) {
        this.#running += free
        return free
      }
      const leftMs = deadline - performance.now()
      if (leftMs <= 0) return 0
      await this.#waitForChange(leftMs)
    }
  }

  #release(count: number): void {
    if (count === 0) return
    this.#running -= count
    for (const wake of this.#waiting) wake()
  }

  /** Resolves once concurrency may be free, or after `ms`. */
  #waitForChange(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        clearTimeout(timer)
        this.#waiting.delete(wake)
        resolve()
      }
      const timer = setTimeout(wake, ms)
      this.#waiting.add(wake)
    })
  }

  async #closeSlots(): Promise<void> {
    await Promise.all([...this.#slots.values(), this.#toolSlots].map((slots) => slots.close()))
  }
}

/** Wraps the pool of a runner; calls `onFailure` for each connection or statement that fails. */
function watchPool(pool: QueuePool, onFailure: () => void): QueuePool {
  const report = (error: unknown): never => {
    onFailure()
    throw error
  }
  const open = async (): Promise<Pick<QueueClient, 'query' | 'release'>> => {
    const client = await pool.connect().catch(report)
    const query = async (text: string, values?: unknown[]) => client.query(text, values).catch(report)
    return { query: query as QueueClient['query'], release: () => client.release() }
  }
  // graphile-worker passes a callback only for LISTEN.
  const connect = (callback?: Parameters<QueuePool['connect']>[0]) =>
    callback === undefined ? open() : pool.connect(callback)
  return Object.assign(Object.create(pool), { connect })
}

/** The private method of graphile-worker's class that we use. */
interface LocalQueue {
  background(held: Promise<void>): void
}

/**
 * Makes a stopping runner wait until its prefetched deliveries are back in the queue. Version 0.18.0 of graphile-worker
 * counts a local queue without background work as released. If returning the deliveries then fails, the unhandled error
 * ends the process. A promise in the background work prevents this until the queue is released.
 */
function waitForRelease(events: EventEmitter): void {
  events.once('localQueue:init', ({ localQueue }: { localQueue: LocalQueue }) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    localQueue.background(promise)
    events.on('localQueue:setMode', ({ newMode }: { newMode: string }) => {
      if (newMode === 'RELEASED') resolve()
    })
  })
}

/** Upper bound of a delivery's jobs: slots stay reserved until the claim is answered, so reserve no more. */
const maxJobsOf = ({ limit }: Delivery): number => limit ?? Number.POSITIVE_INFINITY

type Handle = (delivery: Delivery) => Promise<void>

const poolsOf = ({ tasks }: QueueRunnerOptions): readonly PoolName[] => [
  ...new Set(tasks.map(({ pool }) => pool)),
]

function countSlots({ settings }: QueueRunnerOptions, pool: PoolName): number {
  if (pool === 'io') return IO_SLOTS
  if (pool === 'model') return 1
  return pool === 'children'
    ? settings.workerThreads
    : Math.min(settings.workerThreads, availableParallelism())
}

function startRunner(options: QueueRunnerOptions, handle: Handle, events: EventEmitter): Promise<Runner> {
  const io = options.tasks.some((task) => task.pool === 'io')
  const deliveries = io ? MAX_DELIVERIES.io : MAX_DELIVERIES.other
  return run({
    pgPool: options.pool,
    taskList: createTaskList(options, handle),
    parsedCronItems: parseCronItems(
      [...options.cron].map(([identifier, { match }]) => ({
        task: `cron:${identifier}`,
        identifier,
        match,
        options: { backfillPeriod: 0 },
      })),
    ),
    events: events as never,
    noHandleSignals: true,
    logger: createQueueLogger(options.log, options.queue),
    preset: {
      worker: {
        concurrentJobs: deliveries,
        pollInterval: POLL_INTERVAL_MS,
        // Prefetching keeps deliveries from idle processes, so use it only for short jobs.
        ...(io ? { localQueue: { size: deliveries } } : {}),
        // Without batches, graphile-worker does not await completions, and a failed one would end the process.
        completeJobBatchDelay: COMPLETION_DELAY_MS,
        failJobBatchDelay: COMPLETION_DELAY_MS,
      },
    },
  })
}

function createTaskList({ tasks, cron }: QueueRunnerOptions, handle: Handle): TaskList {
  const list: TaskList = {}
  for (const { name } of tasks)
    list[name] = (payload) => handle({ task: name, ...(payload as Omit<Delivery, 'task'>) })
  for (const [identifier, entry] of cron) list[`cron:${identifier}`] = () => entry.run()
  return list
}

function createQueueLogger(log: Log, queue: string): Logger {
  return new Logger(() => (level, message, meta) => {
    if (level === 'error') log.error({ queue, meta }, message)
    // Concurrent deliveries exceed connections on purpose: tasks do not use the queue's pool.
    else if (level === 'warning' && !message.includes('maxPoolSize')) log.warn({ queue }, message)
  })
}
