import { EventEmitter } from 'node:events'
import { availableParallelism } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { Logger, parseCronItems, type Runner, run, type TaskList } from 'graphile-worker'
import type { QueuePool } from '../sql/driver.ts'
import type { Log } from '../tasks/log.ts'
import type { Settings } from '../tasks/settings.ts'
import type { AnyTask } from '../tasks/task.ts'

/** One queue group's part of this process: its own graphile-worker runner and slots. */
export interface QueueRunner {
  readonly queue: string
  readonly poolId: string | null
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
  /** Cron entries, by the group that has them: identifier -> what to do. */
  readonly cron: ReadonlyMap<string, { match: string; run: () => Promise<void> }>
  /** Frees what an ended runner left locked. */
  readonly unlock: (poolId: string) => Promise<void>
}

// Deliveries that an io group has in hand at once, and fetches at once.
const IO_SLOTS = 512
// What is fetched by polling was only missed by LISTEN: waking up is the rule.
const POLL_MS = 1000

/**
 * Keeps a runner going until stopped. graphile-worker ends by itself when a batched completion fails (graphile/worker
 * #636); its jobs are in our ledger, so it is simply started again and what it still held is freed.
 */
export function startQueueRunner(options: QueueRunnerOptions): QueueRunner {
  const { queue, log } = options
  let current: Runner | null = null
  let poolId: string | null = null
  let stopped = false

  const loop = async (): Promise<void> => {
    for (let failures = 0; !stopped; failures++) {
      if (failures > 0) await delay(Math.min(100 * 2 ** failures, 5000))
      try {
        current = await startOnce(options, (id) => {
          poolId = id
        })
        if (stopped) await current.stop()
        await current.promise
      } catch (error) {
        log.warn({ err: error, queue }, 'A queue runner failed')
      }
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
    stop: async () => {
      stopped = true
      await current
        ?.stop()
        .catch((error) => log.warn({ err: error, queue }, 'A queue runner did not stop cleanly'))
      await running
    },
  }
}

function startOnce(options: QueueRunnerOptions, onPool: (id: string) => void): Promise<Runner> {
  const events = new EventEmitter()
  events.on('pool:create', ({ workerPool }: { workerPool: { id: string } }) => onPool(workerPool.id))
  const io = options.tasks.some((task) => task.pool === 'io')
  const slots = io ? IO_SLOTS : Math.min(options.settings.workerThreads, availableParallelism())
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

function taskList({ tasks, cron, deliver }: QueueRunnerOptions): TaskList {
  const list: TaskList = {}
  for (const task of tasks) {
    list[task.name] = (payload) => {
      const { id, delivery } = payload as { id: string; delivery: number }
      return deliver(id, delivery)
    }
  }
  for (const [identifier, entry] of cron) list[`cron:${identifier}`] = () => entry.run()
  return list
}

function queueLogger(log: Log, queue: string): Logger {
  return new Logger(() => (level, message, meta) => {
    if (level === 'error') log.error({ queue, meta }, message)
    // Slots outnumber connections on purpose: our tasks do not use the queue's pool.
    else if (level === 'warning' && !message.includes('maxPoolSize')) log.warn({ queue }, message)
  })
}
