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

/** One queue group's part of this process: its own graphile-worker runner and slots. */
export interface QueueRunner {
  readonly queue: string
  readonly poolId: string | null
  /** How many jobs may run here at once; null: as many as there are slots; 0: none are fetched. Those that run go on. */
  allow(places: number | null): void
  /** Stops fetching; resolves when the deliveries in hand and their jobs are done. */
  stop(): Promise<void>
}

export interface QueueRunnerOptions {
  readonly queue: string
  readonly tasks: readonly AnyTask[]
  readonly settings: Settings
  readonly pool: QueuePool
  readonly log: Log
  readonly ledger: Pick<Ledger, 'claim' | 'sendAgain'>
  readonly executor: Pick<Executor, 'run'>
  /** Cron entries of this group: identifier -> schedule and action. */
  readonly cron: ReadonlyMap<string, { match: string; run: () => Promise<void> }>
  /** As for `allow`; default null. */
  readonly places?: number | null
  /** Called when a runner has started with a queue pool of its own. */
  readonly onPool: () => void
  /** Frees what an ended runner left locked. */
  readonly unlock: (poolId: string) => Promise<void>
}

// Deliveries that a group handles at once. A delivery is done once its jobs are claimed, which takes milliseconds.
const DELIVERIES = { io: 256, other: 8 }
// Jobs of `io` that a group runs at once. Other pools have at most one slot for each of `workerThreads`.
const IO_SLOTS = 2048
// Jobs that a delivery claims at once: enough to amortize a commit. Jobs that fill a thread are claimed one by one, so
// that any free worker can take the next.
const IO_CLAIM = 1000
// A delivery that gets no slot within this time is put back, for workers that have one.
const SLOT_WAIT_MS = 250
// Polling only finds what LISTEN has missed; normally a notification wakes the runner.
const POLL_MS = 1000
// For how long completed deliveries gather to share a statement.
const COMPLETE_MS = 2
// How long a stopping runner may take once it has nothing in hand.
const END_MS = 2000
// The pause before the next runner grows up to this: after an outage all queues are served again within about a second.
const MAX_PAUSE_MS = 1000
// The end of a runner that lived this long is no sign that the next one will fail: the backoff starts over.
const LIVED_MS = 60_000

/**
 * Keeps a runner going until stopped; one whose statement failed is replaced. graphile-worker ends by itself when a batched
 * completion fails (graphile/worker #636), and usually hangs while doing so because its count of open batches is wrong. A
 * failed fetch may have locked deliveries for it, and after a failed lookup of its tasks it would never fetch again. Its jobs
 * are in our ledger, so it is abandoned, another one is started, and the deliveries that it still held are freed.
 */
export function startQueueRunner(options: QueueRunnerOptions): QueueRunner {
  return new GroupRunner(options)
}

class GroupRunner implements QueueRunner {
  readonly #options: QueueRunnerOptions
  readonly #slots: ReadonlyMap<PoolName, Slots>
  readonly #handle: Handle
  readonly #looping: Promise<void>
  // Jobs that run here, and how many may.
  #running = 0
  #places: number | null
  // Deliveries that wait for a place.
  readonly #waiting = new Set<() => void>()
  #resume: (() => void) | null = null
  #current: Runner | null = null
  #poolId: string | null = null
  #isStopped = false

  constructor(options: QueueRunnerOptions) {
    this.#options = options
    this.#places = options.places ?? null
    this.#slots = new Map(poolsOf(options).map((pool) => [pool, createSlots(slotsOf(options, pool))]))
    const poolOf = new Map(options.tasks.map(({ name, pool }) => [name, pool]))
    this.#handle = (delivery) => {
      const pool = poolOf.get(delivery.task)!
      return this.#handleDelivery(delivery, this.#slots.get(pool)!, pool === 'io' ? IO_CLAIM : 1)
    }
    this.#looping = this.#loop()
  }

  get queue(): string {
    return this.#options.queue
  }

  get poolId(): string | null {
    return this.#poolId
  }

  allow(places: number | null): void {
    if (places === this.#places) return
    this.#places = places
    for (const wake of this.#waiting) wake()
    if (places === 0 && this.#current !== null) this.#stopRunner(this.#current)
    if (places !== 0) this.#resume?.()
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#resume?.()
    const idle = this.#closeSlots()
    if (this.#current !== null) this.#stopRunner(this.#current)
    await this.#looping
    await idle
  }

  /** Runs one runner after another, with a backoff that grows while they die early. */
  async #loop(): Promise<void> {
    const { queue, log } = this.#options
    for (let failures = 0; ; failures++) {
      await this.#resumed()
      if (this.#isStopped) return
      if (failures > 0) await delay(Math.min(100 * 2 ** failures, MAX_PAUSE_MS))
      const startedAt = performance.now()
      await this.#runOnce().catch((error) => log.warn({ err: error, queue }, 'A queue runner failed'))
      if (performance.now() - startedAt > LIVED_MS) failures = 0
      this.#current = null
      if (this.#places === 0) failures = -1
      else if (!this.#isStopped) log.warn({ queue }, 'A queue runner ended by itself and is being restarted')
      await this.#unlock()
    }
  }

  /** Waits while the queue is paused. */
  async #resumed(): Promise<void> {
    while (this.#places === 0 && !this.#isStopped)
      await new Promise<void>((resolve) => {
        this.#resume = resolve
      })
    this.#resume = null
  }

  /** Frees what its last pool has locked; while the database is away, again and again. */
  async #unlock(): Promise<void> {
    const { queue, log, unlock } = this.#options
    for (let failures = 0; this.#poolId !== null; failures++) {
      try {
        await unlock(this.#poolId)
        return
      } catch (error) {
        log.warn({ err: error, queue }, 'Could not free deliveries')
        if (this.#isStopped) return
        await delay(Math.min(100 * 2 ** failures, MAX_PAUSE_MS))
      }
    }
  }

  async #runOnce(): Promise<void> {
    const events = new EventEmitter()
    events.on('pool:create', ({ workerPool }: { workerPool: { id: string } }) => {
      this.#poolId = workerPool.id
      this.#options.onPool()
    })
    holdUntilReleased(events)
    let hasFailed = false
    const pool = watched(this.#options.pool, () => {
      hasFailed = true
      if (this.#current !== null) this.#stopRunner(this.#current)
    })
    const overdue = once(events, 'pool:gracefulShutdown').then(async () => {
      if (this.#isStopped) await this.#closeSlots()
      await delay(END_MS, undefined, { ref: false })
    })
    const runner = await startOnce({ ...this.#options, pool }, this.#handle, events)
    this.#current = runner
    if (this.#isStopped || hasFailed || this.#places === 0) this.#stopRunner(runner)
    await Promise.race([runner.promise, overdue])
    // A hanging runner would still run its cron entries.
    if (!this.#isStopped) this.#stopRunner(runner)
  }

  #stopRunner(runner: Runner): void {
    const { queue, log } = this.#options
    runner.stop().catch((error) => log.debug({ err: error, queue }, 'A queue runner had stopped already'))
  }

  /** Claims and runs as many jobs of a delivery as there are places and slots; without any, puts the delivery back. */
  async #handleDelivery(delivery: Delivery, slots: Slots, max: number): Promise<void> {
    const { ledger, executor } = this.#options
    const owner = delivery.owner ?? 0
    const places = await this.#place(Math.min(max, maxJobsOf(delivery)))
    const reserved = places === 0 ? 0 : await slots.reserve(owner, places, SLOT_WAIT_MS)
    this.#free(places - reserved)
    if (reserved === 0) return ledger.sendAgain(delivery)
    const release = (n: number): void => {
      slots.release(owner, n)
      this.#free(n)
    }
    const jobs = await ledger.claim(delivery, reserved)
    release(reserved - jobs.length)
    for (const job of jobs) void executor.run(job).finally(() => release(1))
  }

  /** Takes as many of the wanted places as are allowed; waits for the first one, but for no longer than for a slot. */
  async #place(wanted: number): Promise<number> {
    const end = performance.now() + SLOT_WAIT_MS
    for (;;) {
      const free = this.#places === null ? wanted : Math.min(wanted, this.#places - this.#running)
      if (free > 0) {
        this.#running += free
        return free
      }
      const leftMs = end - performance.now()
      if (leftMs <= 0) return 0
      await this.#freed(leftMs)
    }
  }

  #free(places: number): void {
    if (places === 0) return
    this.#running -= places
    for (const wake of this.#waiting) wake()
  }

  /** Resolves when a place may be free, or after some time. */
  #freed(ms: number): Promise<void> {
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
    await Promise.all([...this.#slots.values()].map((one) => one.close()))
  }
}

/** The pool as a runner sees it; `onFailure` is called for each connection or statement that fails. */
function watched(pool: QueuePool, onFailure: () => void): QueuePool {
  const report = (error: unknown): never => {
    onFailure()
    throw error
  }
  const open = async (): Promise<Pick<QueueClient, 'query' | 'release'>> => {
    const client = await pool.connect().catch(report)
    const query = async (text: string, values?: unknown[]) => client.query(text, values).catch(report)
    return { query: query as QueueClient['query'], release: () => client.release() }
  }
  // The library passes a callback only for LISTEN.
  const connect = (listening?: Parameters<QueuePool['connect']>[0]) =>
    listening === undefined ? open() : pool.connect(listening)
  return Object.assign(Object.create(pool), { connect })
}

/** What of graphile-worker's class is used here, though it calls it private. */
interface LocalQueue {
  background(held: Promise<void>): void
}

/**
 * Keeps a stopping runner waiting until what it had prefetched is back in the queue. graphile-worker 0.18.0 doesn't wait, because
 * a queue with nothing in the background counts as released (`LocalQueue.background`); nobody handles the error of a return
 * that fails then, which would end the process. So something is in the background until the queue is released.
 */
function holdUntilReleased(events: EventEmitter): void {
  events.once('localQueue:init', ({ localQueue }: { localQueue: LocalQueue }) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    localQueue.background(promise)
    events.on('localQueue:setMode', ({ newMode }: { newMode: string }) => {
      if (newMode === 'RELEASED') resolve()
    })
  })
}

/** Slots are kept until a claim is answered: no more than the delivery can need. */
const maxJobsOf = ({ limit, first, last }: Delivery): number =>
  first === last ? 1 : (limit ?? Number.POSITIVE_INFINITY)

type Handle = (delivery: Delivery) => Promise<void>

const poolsOf = ({ tasks }: QueueRunnerOptions): readonly PoolName[] => [
  ...new Set(tasks.map(({ pool }) => pool)),
]

function slotsOf({ settings }: QueueRunnerOptions, pool: PoolName): number {
  if (pool === 'io') return IO_SLOTS
  if (pool === 'model') return 1
  return pool === 'children'
    ? settings.workerThreads
    : Math.min(settings.workerThreads, availableParallelism())
}

function startOnce(options: QueueRunnerOptions, handle: Handle, events: EventEmitter): Promise<Runner> {
  const io = options.tasks.some((task) => task.pool === 'io')
  const deliveries = io ? DELIVERIES.io : DELIVERIES.other
  return run({
    pgPool: options.pool,
    taskList: taskList(options, handle),
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
    logger: queueLogger(options.log, options.queue),
    preset: {
      worker: {
        concurrentJobs: deliveries,
        pollInterval: POLL_MS,
        // Prefetching hoards deliveries while other processes idle, so it is only used where jobs are short.
        ...(io ? { localQueue: { size: deliveries } } : {}),
        // Without a batch nobody awaits the completion of a delivery, and its failure would end the process.
        completeJobBatchDelay: COMPLETE_MS,
        failJobBatchDelay: COMPLETE_MS,
      },
    },
  })
}

function taskList({ tasks, cron }: QueueRunnerOptions, handle: Handle): TaskList {
  const list: TaskList = {}
  for (const { name } of tasks)
    list[name] = (payload) => handle({ task: name, ...(payload as Omit<Delivery, 'task'>) })
  for (const [identifier, entry] of cron) list[`cron:${identifier}`] = () => entry.run()
  return list
}

function queueLogger(log: Log, queue: string): Logger {
  return new Logger(() => (level, message, meta) => {
    if (level === 'error') log.error({ queue, meta }, message)
    // There are more concurrent deliveries than connections on purpose: our tasks do not use the queue's pool.
    else if (level === 'warning' && !message.includes('maxPoolSize')) log.warn({ queue }, message)
  })
}
