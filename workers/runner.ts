import { EventEmitter, once } from 'node:events'
import { availableParallelism } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { Logger, parseCronItems, type Runner, run, type TaskList } from 'graphile-worker'
import type { QueuePool } from '../sql/driver.ts'
import type { Claimed } from '../sql/jobs.ts'
import { createRoom } from '../sql/room.ts'
import type { Wanted } from '../sql/staged.ts'
import type { Log } from '../tasks/log.ts'
import type { Settings } from '../tasks/settings.ts'
import type { AnyTask, PoolName } from '../tasks/task.ts'
import { createPuller } from './staged.ts'

/** One queue group's part of this process: its own graphile-worker runner and slots. */
export interface QueueRunner {
  readonly queue: string
  readonly poolId: string | null
  /** What of it can be staged: the natures of its tasks. */
  readonly lanes: readonly PoolName[]
  /** A lane has staged jobs. */
  nudge(lane: PoolName): void
  /** Fetches no more; resolves when the deliveries in hand are dealt with. */
  stop(): Promise<void>
}

export interface QueueRunnerOptions {
  readonly queue: string
  readonly tasks: readonly AnyTask[]
  readonly settings: Settings
  readonly pool: QueuePool
  readonly log: Log
  readonly deliver: (id: string, delivery: number) => Promise<void>
  /** Takes staged jobs, see `Executor`. */
  readonly take: (wanted: Wanted) => Promise<readonly Claimed[]>
  readonly attempt: (job: Claimed) => Promise<void>
  readonly release: (job: Claimed) => Promise<void>
  /** Cron entries, by the group that has them: identifier -> what to do. */
  readonly cron: ReadonlyMap<string, { match: string; run: () => Promise<void> }>
  /** A runner has begun, with a queue pool of its own. */
  readonly onPool: () => void
  /** Frees what an ended runner left locked. */
  readonly unlock: (poolId: string) => Promise<void>
}

// Deliveries that an io group has in hand at once, and fetches at once.
const IO_SLOTS = 512
// Jobs of `io` that a group has claimed at once: a delivery may stand for several. Of the others one for each thread.
const MOST_JOBS = 2048
// What was not begun when the worker stops goes back to the queue, for others.
const STOPPING = 'The worker stops'
// What is fetched by polling was only missed by LISTEN: waking up is the rule.
const POLL_MS = 1000
// What a runner that is ending may take once nothing is in its hands.
const END_MS = 2000
// A runner that lived this long is no sign that the next one will fail: it is started soon.
const LIVED_MS = 60_000

/**
 * Keeps a runner going until stopped. graphile-worker ends by itself when a batched completion fails (graphile/worker
 * #636), and more often than not it then hangs, its count of open batches gone wrong. Its jobs are in our ledger, so
 * it is left to itself, another one is started, and what it still held is freed.
 */
export function startQueueRunner(given: QueueRunnerOptions): QueueRunner {
  const { queue, log } = given
  const lanes = new Map(lanesOf(given).map((lane) => [lane, createLane(given, lane)]))
  const laneOf = new Map(given.tasks.map((task) => [task.name, lanes.get(task.pool)!]))

  function createLane({ take, attempt, release }: QueueRunnerOptions, lane: PoolName) {
    const places = lane === 'io' ? MOST_JOBS : placesOf(given, lane)
    const room = createRoom(places)
    const puller = createPuller({
      room,
      places,
      take: (most, afterOwner) => take({ queue, lane, most, afterOwner }),
      run: (job) => (stopped ? release(job) : attempt(job)),
      onError: (error) => log.warn({ err: error, queue }, 'Staged jobs could not be taken'),
    })
    return { room, puller }
  }

  const options: RunnerOptions = {
    ...given,
    deliverTo: (name, id, delivery) =>
      laneOf
        .get(name)!
        .room.enter(() => (stopped ? Promise.reject(new Error(STOPPING)) : given.deliver(id, delivery))),
  }
  let current: Runner | null = null
  let poolId: string | null = null
  let stopped = false

  /** Everything that this group has begun is in a room until its end. */
  const emptyHanded = async (): Promise<void> => {
    const rooms = [...lanes.values()].map(({ room }) => room)
    while (rooms.some(({ inside }) => inside > 0)) await Promise.all(rooms.map((room) => room.emptied()))
  }

  const runOnce = async (): Promise<void> => {
    const events = new EventEmitter()
    events.on('pool:create', ({ workerPool }: { workerPool: { id: string } }) => {
      poolId = workerPool.id
      options.onPool()
    })
    const overdue = once(events, 'pool:gracefulShutdown').then(async () => {
      if (stopped) await emptyHanded()
      await delay(END_MS, undefined, { ref: false })
    })
    const runner = await startOnce(options, events)
    current = runner
    if (stopped) stopRunner(runner)
    await Promise.race([runner.promise, overdue])
    // One that hangs still has its cron.
    if (!stopped) stopRunner(runner)
  }

  const stopRunner = (runner: Runner): void => {
    runner.stop().catch((error) => log.debug({ err: error, queue }, 'A queue runner had stopped already'))
  }

  const loop = async (): Promise<void> => {
    for (let failures = 0; !stopped; failures++) {
      if (failures > 0) await delay(Math.min(100 * 2 ** failures, 5000))
      const startedAt = Date.now()
      await runOnce().catch((error) => log.warn({ err: error, queue }, 'A queue runner failed'))
      if (Date.now() - startedAt > LIVED_MS) failures = 0
      current = null
      if (!stopped) log.warn({ queue }, 'A queue runner ended by itself and is started again')
      if (poolId !== null)
        await options
          .unlock(poolId)
          .catch((error) => log.warn({ err: error, queue }, 'Could not free deliveries'))
    }
  }

  const running = loop()
  return {
    queue,
    get poolId() {
      return poolId
    },
    lanes: [...lanes.keys()],
    nudge: (lane) => lanes.get(lane)?.puller.nudge(),
    stop: async () => {
      stopped = true
      const pullers = Promise.all([...lanes.values()].map(({ puller }) => puller.stop()))
      if (current !== null) stopRunner(current)
      await running
      await pullers
      await emptyHanded()
    },
  }
}

interface RunnerOptions extends QueueRunnerOptions {
  readonly deliverTo: (task: string, id: string, delivery: number) => Promise<void>
}

const lanesOf = ({ tasks }: QueueRunnerOptions): readonly PoolName[] => [
  ...new Set(tasks.map(({ pool }) => pool)),
]

/** How many jobs of a nature other than `io` run at once. */
function placesOf({ settings }: QueueRunnerOptions, lane: PoolName): number {
  if (lane === 'model') return 1
  return lane === 'children'
    ? settings.workerThreads
    : Math.min(settings.workerThreads, availableParallelism())
}

function startOnce(options: RunnerOptions, events: EventEmitter): Promise<Runner> {
  const io = options.tasks.some((task) => task.pool === 'io')
  const slots = io ? IO_SLOTS : Math.max(...lanesOf(options).map((lane) => placesOf(options, lane)))
  return run({
    pgPool: options.pool,
    taskList: taskList(options),
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
        concurrentJobs: slots,
        pollInterval: POLL_MS,
        // Prefetching hoards deliveries while other processes idle: only where jobs are short.
        ...(io ? { localQueue: { size: slots * 2 }, completeJobBatchDelay: 2 } : {}),
      },
    },
  })
}

function taskList({ tasks, cron, deliverTo }: RunnerOptions): TaskList {
  const list: TaskList = {}
  for (const task of tasks) {
    list[task.name] = (payload) => {
      const given = payload as { id: string; delivery: number } | { jobs: [id: string, delivery: number][] }
      if ('id' in given) return deliverTo(task.name, given.id, given.delivery)
      return allOf(given.jobs.map(([id, delivery]) => deliverTo(task.name, id, delivery)))
    }
  }
  for (const [identifier, entry] of cron) list[`cron:${identifier}`] = () => entry.run()
  return list
}

/** Waits for all, and then fails if one has: a delivery goes back only when nothing of it is in hand any more. */
async function allOf(works: readonly Promise<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(works)).find((one) => one.status === 'rejected')
  if (failed !== undefined) throw failed.reason
}

function queueLogger(log: Log, queue: string): Logger {
  return new Logger(() => (level, message, meta) => {
    if (level === 'error' && !message.includes(STOPPING)) log.error({ queue, meta }, message)
    // Slots outnumber connections on purpose: our tasks do not use the queue's pool.
    else if (level === 'warning' && !message.includes('maxPoolSize')) log.warn({ queue }, message)
  })
}
