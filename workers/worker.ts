import { createDatabase, type Database } from '../sql/db.ts'
import { type ProgressEntry, unlockPools } from '../sql/jobs.ts'
import { createPublisher } from '../sql/notify.ts'
import { openQueuePool } from '../sql/queue-pool.ts'
import { finderOf, loadTasks, queuesOf } from '../tasks/index.ts'
import type { Log } from '../tasks/log.ts'
import { schedule } from '../tasks/schedule.ts'
import type { Settings } from '../tasks/settings.ts'
import { shutDown } from '../tasks/shutdown.ts'
import { enqueue } from '../tasks/task.ts'
import { createExecutor, type Executor } from './attempts/executor.ts'
import { holdLease, type Lease } from './attempts/lease.ts'
import { createLedger } from './attempts/ledger.ts'
import { startRepair } from './attempts/repair.ts'
import { createChildPool } from './children/pool.ts'
import { createAlone } from './processes/alone.ts'
import { type QueueRunner, startQueueRunner } from './queue/runner.ts'
import { createPools } from './threads/pools.ts'

/** One worker process's parts, running. */
export interface Worker {
  readonly lease: Lease
  readonly executor: Executor
  /** Orderly and bounded: fetch no more, let jobs end or release them, give the lease back. */
  stop(): Promise<void>
}

export interface WorkerOptions {
  readonly settings: Settings
  readonly databaseUrl: string
  /** A direct connection for LISTEN, when the other one goes through a pooler. */
  readonly directUrl: string
  readonly log: Log
  /** Modules with more tasks, see `loadTasks`. */
  readonly taskModules?: readonly string[]
  /** What the first retry of a job waits, in ms. Default 1000. */
  readonly retryMs?: number
  /** How often is looked for jobs that nothing would start, in ms. Default 20,000. */
  readonly repairMs?: number
}

// Within the 10 s that a platform gives a process to stop: 4 s to end by themselves, 2 s to follow the signal, and what that takes.
const DRAIN_MS = 4000
const END_MS = 8000

/** Starts a worker; resolves when it holds its lease and fetches jobs. */
export async function startWorker(options: WorkerOptions): Promise<Worker> {
  const { settings, databaseUrl, directUrl, log, taskModules = [], retryMs, repairMs } = options
  const tasks = await loadTasks(taskModules)
  const all = queuesOf(tasks)
  const queues = (settings.workerQueues ?? all).filter((queue) => all.includes(queue))
  const applicationName = `${settings.projectName}-worker`
  const { checked: validateRows, databasePooled: pooled } = settings
  const db = createDatabase({ url: databaseUrl, applicationName, size: 6, validateRows, pooled })
  const publisher = createPublisher(db, (error) => log.warn({ err: error }, 'A notification was not sent'))
  let lease: Lease | null = null
  let executor: Executor | null = null
  const ledger = createLedger({
    db,
    publisher,
    log,
    leaseId: () => lease!.id,
    onSuperseded: (id, attempt) => executor?.supersede(id, attempt),
  })
  const onEvent = (event: ProgressEntry): void => {
    executor?.heard(event)
    ledger.progress(event)
  }
  const children = createChildPool({ log })
  const pools = createPools({ settings, databaseUrl, children, log, onEvent, taskModules })
  const alone = createAlone({ settings, databaseUrl, taskModules, log, onEvent })
  executor = createExecutor({
    ledger,
    pools,
    alone,
    log,
    taskNamed: finderOf(tasks),
    ...(retryMs === undefined ? {} : { retryMs }),
  })
  const runners: QueueRunner[] = []
  lease = await holdLease({
    db,
    log,
    queues,
    poolIds: () => runners.flatMap(({ poolId }) => poolId ?? []),
    threads: () => pools.threads,
    memoryBytes: () => process.memoryUsage.rss() + children.rssBytes,
    running: () => executor.ids,
    onHeartbeat: ({ running }, whole) => executor.reconcile(running, whole),
    onLost: () => executor.supersedeAll(),
    onRecovered: (ids) => {
      for (const id of ids) publisher.mark(id)
    },
    onSilence: (error) => {
      throw error
    },
    ttlMs: settings.leaseMs,
  })
  const queuePool = await openQueuePool({
    url: databaseUrl,
    pooled,
    directUrl,
    applicationName: `${settings.projectName}-queue`,
    // Each runner fetches by one at a time, and cron is rare.
    size: queues.length + 2,
    onError: (error) => log.warn({ err: error }, 'A queue connection failed'),
  })
  for (const queue of queues) {
    runners.push(
      startQueueRunner({
        queue,
        tasks: tasks.filter((task) => task.queue === queue),
        settings,
        pool: queuePool,
        log,
        ledger,
        executor,
        cron: cronOf(queue, db, settings),
        // What it locks is freed when this process dies, from its first fetch on.
        onPool: () => lease.renew(),
        unlock: async (poolId) => void (await db.run(unlockPools([poolId]))),
      }),
    )
  }

  const repair = startRepair(db, log, repairMs)
  return {
    lease,
    executor,
    stop: () =>
      shutDown([
        { name: 'stop repairs', limitMs: 3000, run: () => repair.stop() },
        { name: 'let jobs end', limitMs: END_MS, run: () => drain(runners, executor) },
        { name: 'store what they said', limitMs: 3000, run: () => ledger.idle() },
        { name: 'tell of it', limitMs: 3000, run: () => publisher.close() },
        { name: 'give the lease back', limitMs: 3000, run: () => lease.close() },
        { name: 'end processes of jobs', limitMs: 3000, run: () => alone.close() },
        { name: 'end threads', limitMs: 3000, run: () => pools.close() },
        { name: 'end children', limitMs: 3000, run: () => children.close() },
        { name: 'leave the queue', limitMs: 3000, run: () => queuePool.end() },
        { name: 'leave the database', limitMs: 3000, run: () => db.close() },
      ]),
  }
}

/** Fetches no more; what runs has some time to end, and is released then. */
async function drain(runners: readonly QueueRunner[], executor: Executor): Promise<void> {
  const release = setTimeout(() => executor.releaseAll(), DRAIN_MS)
  await Promise.all(runners.map((runner) => runner.stop()))
  clearTimeout(release)
}

/** Cron only adds a job: the work itself is a job like any other, seen and retried like any other. */
function cronOf(queue: string, db: Database, settings: Settings) {
  return new Map(
    schedule
      .filter(({ task }) => task.queue === queue)
      .map(({ identifier, match, task }) => [
        identifier,
        {
          match,
          run: async () => {
            await db.transaction((tx) =>
              enqueue(tx, task, {} as never, { ownerId: null, maxTries: settings.workerMaxTries }),
            )
          },
        },
      ]),
  )
}
