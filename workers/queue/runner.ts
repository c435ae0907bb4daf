import { EventEmitter, once } from 'node:events'
import { availableParallelism } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { createSlots, type Priority, PriorityTurns, type Slots } from '../../sql/connections/slots.ts'
import type { Delivery } from '../../sql/jobs/claims.ts'
import type { Settings } from '../../tasks/platform/settings/settings.ts'
import type { PoolName } from '../../tasks/task.ts'
import type { Executor } from '../attempts/executor.ts'
import type { Ledger } from '../attempts/ledger.ts'
import {
  type Fetcher,
  type FetcherOptions,
  type Handle,
  startFetcher,
  waitForRelease,
  watchPool,
} from './fetcher.ts'

/** Runs the jobs of one queue in this process, with its own graphile-worker runner and slots. */
export interface QueueRunner {
  readonly queue: string
  /** Id of the graphile-worker pool that locks deliveries; null before the first runner has started. */
  readonly poolId: string | null
  /** Applies limits to the jobs that run here. Running jobs continue. */
  setLimits(limits: RunnerLimits): void
  /** Stops fetching; resolves once the fetched deliveries and their jobs are done. */
  stop(): Promise<void>
}

/** Limits of a queue in this process. Operators' tools ignore `concurrency`. */
export interface RunnerLimits {
  /** Number of jobs that run together; null allows all slots. */
  readonly concurrency: number | null
  /** If true, nothing is fetched. */
  readonly isDrained: boolean
}

export interface QueueRunnerOptions extends FetcherOptions {
  readonly settings: Settings
  readonly ledger: Pick<Ledger, 'claim' | 'redeliver'>
  readonly executor: Pick<Executor, 'run'>
  /** Initial limits; none by default. */
  readonly limits?: RunnerLimits
  /** Called once a graphile-worker runner has started and `poolId` has changed. */
  readonly onPoolChange: () => void
  /** Unlocks the deliveries that a dead runner still holds. */
  readonly unlock: (poolId: string) => Promise<void>
}

// Jobs of `io` that a queue runs concurrently. Other pools have at most one slot for each of `workerThreads`.
const IO_SLOTS = 2048
// Jobs of operators' tools that a queue runs concurrently.
const TOOL_SLOTS = 8
// Jobs that a delivery claims together: enough to amortize a commit. Jobs that fill a thread are claimed one by one, so
// that any free worker can claim the next.
const MAX_IO_CLAIM = 1000
// A delivery that gets no slot within this time is redelivered to workers that have one.
// One of low priority, which gets every twentieth slot, waits longer.
const SLOT_WAIT_MS = { [-1]: 250, 0: 250, 1: 5000 } as const satisfies Record<Priority, number>
// A claim that was not done and gave no jobs is repeated after this time: another transaction locks them.
const CLAIM_RETRY_MS = 20
// Time in which free places of a limited queue gather to share a claim. All of them do not wait.
const PLACES_GATHER_MS = 10
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
  #limits: RunnerLimits
  // Deliveries that wait for a change of the concurrency.
  readonly #waiting = new Set<WaitingDelivery>()
  readonly #turns = new PriorityTurns()
  #resume: (() => void) | null = null
  #current: Fetcher | null = null
  #poolId: string | null = null
  #isStopped = false

  constructor(options: QueueRunnerOptions) {
    this.#options = options
    this.#limits = options.limits ?? { concurrency: null, isDrained: false }
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

  setLimits(limits: RunnerLimits): void {
    const before = this.#fetches
    this.#limits = limits
    this.#wakeWaiting()
    if (this.#fetches === before) return
    if (this.#current !== null) this.#stopRunner(this.#current)
    this.#resume?.()
  }

  /** The tasks whose deliveries are fetched: those of a paused queue are only the operators' tools. */
  get #fetches(): 'all' | 'tools' | 'none' {
    const { concurrency, isDrained } = this.#limits
    if (isDrained) return 'none'
    if (concurrency !== 0) return 'all'
    return this.#options.tasks.some(({ isTool }) => isTool) ? 'tools' : 'none'
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
      const fetches = this.#fetches
      await this.#runOnce().catch((error) => log.warn({ err: error, queue }, 'A queue runner failed'))
      if (performance.now() - startedAt > HEALTHY_MS) failures = 0
      this.#current = null
      if (this.#fetches !== fetches) failures = -1
      else if (!this.#isStopped) log.warn({ queue }, 'A queue runner ended unexpectedly; restarting it')
      await this.#unlock()
    }
  }

  async #waitWhilePaused(): Promise<void> {
    while (this.#fetches === 'none' && !this.#isStopped)
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
    const fetches = this.#fetches
    const runner = await startFetcher(
      { ...this.#options, tasks: this.#selectTasks(fetches), pool },
      this.#handle,
      events,
    )
    this.#current = runner
    if (this.#isStopped || hasFailed || this.#fetches !== fetches) this.#stopRunner(runner)
    await Promise.race([runner.promise, graceEnd])
    if (!this.#isStopped) this.#stopRunner(runner)
  }

  #selectTasks(fetches: 'all' | 'tools' | 'none'): FetcherOptions['tasks'] {
    const { tasks } = this.#options
    return fetches === 'all' ? tasks : tasks.filter(({ isTool }) => isTool)
  }

  #stopRunner(runner: Fetcher): void {
    const { queue, log } = this.#options
    runner.stop().catch((error) => log.debug({ err: error, queue }, 'The queue runner has stopped already'))
  }

  /** Claims and runs as many jobs of a delivery as concurrency and slots allow; redelivers it if they allow none. */
  async #handleDelivery(delivery: Delivery, slots: Slots, max: number): Promise<void> {
    const owner = delivery.owner ?? 0
    const priority = delivery.priority ?? 0
    const release = (count: number): void => {
      slots.release(owner, count)
      this.#release(count)
    }
    const reserve = async (): Promise<number> => {
      const allowed = await this.#acquire(Math.min(max, maxJobsOf(delivery)), priority)
      const reserved =
        allowed === 0 ? 0 : await slots.reserve(owner, allowed, SLOT_WAIT_MS[priority], { priority })
      this.#release(allowed - reserved)
      return reserved
    }
    await this.#runJobs(delivery, reserve, release)
  }

  /** Claims and runs one job of an operator's tool, whatever the limit of the queue. */
  async #handleTool(delivery: Delivery): Promise<void> {
    const owner = delivery.owner ?? 0
    const reserve = () => this.#toolSlots.reserve(owner, 1, SLOT_WAIT_MS[0])
    await this.#runJobs(delivery, reserve, (count) => this.#toolSlots.release(owner, count))
  }

  /** Claims and runs as many jobs of a delivery as can be reserved; redelivers it if that is none. */
  async #runJobs(
    delivery: Delivery,
    reserve: () => Promise<number>,
    release: (count: number) => void,
  ): Promise<void> {
    const { ledger, executor } = this.#options
    for (;;) {
      const reserved = await reserve()
      if (reserved === 0) return ledger.redeliver(delivery)
      const { jobs, isDone } = await ledger.claim(delivery, reserved)
      release(reserved - jobs.length)
      for (const job of jobs) void executor.run(job).finally(() => release(1))
      if (isDone) return
      if (jobs.length === 0) await delay(CLAIM_RETRY_MS)
    }
  }

  /**
   * Acquires up to `wanted` of the concurrency. Waits up to `SLOT_WAIT_MS` for the first, and up to `PLACES_GATHER_MS`
   * for more; returns 0 if none is free by then.
   */
  async #acquire(wanted: number, priority: Priority): Promise<number> {
    let deadline = performance.now() + SLOT_WAIT_MS[priority]
    let isGathering = false
    for (;;) {
      const { concurrency } = this.#limits
      const free = concurrency === null ? wanted : Math.min(wanted, concurrency - this.#running)
      const leftMs = deadline - performance.now()
      if (concurrency === null || free >= Math.min(wanted, concurrency) || leftMs <= 0) {
        const acquired = Math.max(free, 0)
        this.#running += acquired
        if (acquired > 0) this.#turns.count(priority, acquired)
        return acquired
      }
      if (free > 0 && !isGathering) {
        isGathering = true
        deadline = performance.now() + PLACES_GATHER_MS
      }
      await this.#waitForChange(deadline - performance.now(), priority)
    }
  }

  #release(count: number): void {
    if (count === 0) return
    this.#running -= count
    this.#wakeWaiting()
  }

  /** Wakes the waiting deliveries in the order of their turns: the first takes what is free. */
  #wakeWaiting(): void {
    for (const { wake } of this.#turns.sort([...this.#waiting])) wake()
  }

  /** Resolves once concurrency may be free, or after `ms`. */
  #waitForChange(ms: number, priority: Priority): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        clearTimeout(timer)
        this.#waiting.delete(waiting)
        resolve()
      }
      const timer = setTimeout(wake, ms)
      const waiting = { wake, priority }
      this.#waiting.add(waiting)
    })
  }

  async #closeSlots(): Promise<void> {
    await Promise.all([...this.#slots.values(), this.#toolSlots].map((slots) => slots.close()))
  }
}

/** A delivery that waits for a change of the concurrency. */
interface WaitingDelivery {
  readonly priority: Priority
  wake(): void
}

/** Upper bound of a delivery's jobs: slots stay reserved until the claim is answered, so reserve no more. */
const maxJobsOf = ({ limit }: Delivery): number => limit ?? Number.POSITIVE_INFINITY

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
