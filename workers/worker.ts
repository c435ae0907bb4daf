import { createDatabase, type Database } from '../sql/db.ts'
import { Connections, type QueuePool } from '../sql/driver.ts'
import { type ProgressEntry, spareJobs, unlockPools } from '../sql/jobs.ts'
import { createPublisher, QUEUE_CHANGED, WORKER_CHANGED } from '../sql/notify.ts'
import { type Pulse, startPulse } from '../sql/pulse.ts'
import { openQueuePool } from '../sql/queue-pool.ts'
import { storePendingQuota } from '../sql/quotas.ts'
import { StartError } from '../sql/start-error.ts'
import { secretPaths } from '../tasks/environment.ts'
import { finderOf, loadTasks, queuesOf } from '../tasks/index.ts'
import type { Log } from '../tasks/log.ts'
import { untilReached } from '../tasks/outage.ts'
import { runEntry, schedule } from '../tasks/schedule.ts'
import type { Settings } from '../tasks/settings.ts'
import { shutDown, step } from '../tasks/shutdown.ts'
import type { AnyTask } from '../tasks/task.ts'
import { openTracing } from '../tasks/telemetry/open.ts'
import { type FinishedSpan, logSlowStatements, type Tracing, within } from '../tasks/telemetry/tracing.ts'
import { createExecutor, type Executor } from './attempts/executor.ts'
import { holdLease, type Lease, type LeaseOptions } from './attempts/lease.ts'
import { createLedger } from './attempts/ledger.ts'
import type { JobLines } from './attempts/lines.ts'
import { type Repair, startRepair } from './attempts/repair.ts'
import { createTallies } from './attempts/tally.ts'
import { addLostSpans } from './attempts/telemetry.ts'
import { createChildPool } from './children/pool.ts'
import { createAlone } from './processes/alone.ts'
import { type QueueRunner, startQueueRunner } from './queue/runner.ts'
import { keepShares, type Shares } from './queue/shares.ts'
import { createPools } from './threads/pools.ts'
import { type WebhookWatch, watchWebhooks } from './webhooks.ts'

/** The running parts of one worker process. */
export interface Worker {
  readonly lease: Lease
  readonly executor: Executor
  /** Stops in order and in bounded time: fetches no more, lets jobs end or releases them, deletes the lease. */
  stop(): Promise<void>
}

export interface WorkerOptions {
  readonly settings: Settings
  readonly databaseUrl: string
  /** A direct connection for LISTEN, when the other one goes through a pooler. */
  readonly directUrl: string
  readonly log: Log
  /** Keeps what the log says about jobs; by default nothing is kept. */
  readonly lines?: JobLines
  /** Modules with more tasks, see `loadTasks`. */
  readonly taskModules?: readonly string[]
  /** Delay before a job's first retry, in ms. Default 1000. */
  readonly retryMs?: number
  /** How often to look for jobs that nothing would start, in ms. Default 20,000. */
  readonly repairMs?: number
}

// A platform gives a process 10 s to stop: 4 s for jobs to end by themselves, 2 s to obey the signal, and the overhead.
const DRAIN_MS = 4000
const END_MS = 8000

const MAX_QUEUE_CONNECTIONS = 6

/**
 * Starts a worker; resolves when it holds its lease and fetches jobs.
 *
 * @throws StartError when WORKER_QUEUES names a queue that no task has.
 */
export async function startWorker(options: WorkerOptions): Promise<Worker> {
  const { settings, taskModules = [], repairMs, log } = options
  const tasks = await loadTasks(taskModules)
  const all = queuesOf(tasks)
  const queues = settings.workerQueues ?? all
  const unknown = queues.filter((queue) => !all.includes(queue))
  if (unknown.length > 0)
    throw new StartError(`WORKER_QUEUES has no ${unknown.join(', ')}: the queues are ${all.join(', ')}`)
  const runners: QueueRunner[] = []
  const connections = new Connections()
  // Nothing asks for the lease before it exists, because nothing is claimed until then.
  const tracing = await openTracing(settings.tracing, 'worker', log)
  const parts = createParts(options, { tasks, connections, tracing, leaseId: () => lease.id })
  const pulse = await untilReached(log, () => feelPulse(options, connections, parts))
  const lease: Lease = await untilReached(log, () => holdLease(leaseOptions(options, queues, parts, runners)))
  let shares: Shares | null = null
  const queuePool = await openQueue(options, queues, connections, () => shares?.look())
  for (const queue of queues) {
    const own = tasks.filter((task) => task.queue === queue)
    runners.push(startRunner(options, queue, own, parts, lease, queuePool))
  }
  shares = await untilReached(log, () => keepShares({ db: parts.db, log, leaseId: () => lease.id, runners }))
  const repair = startRepair(parts.db, options.log, repairMs)
  await untilReached(log, () => parts.db.run(storePendingQuota(settings.quotas)))
  const watch = queues.includes('webhooks') ? watchWebhooks(parts.db, log, settings) : null
  return {
    lease,
    executor: parts.executor,
    stop: () => stopWorker({ ...parts, pulse, lease, runners, queuePool, repair, shares, watch }),
  }
}

type Parts = ReturnType<typeof createParts>

/** Creates what runs jobs and reports on them to the database and its listeners. */
function createParts(
  { settings, databaseUrl, log, lines, taskModules = [], retryMs }: WorkerOptions,
  {
    tasks,
    connections,
    tracing,
    leaseId,
  }: {
    readonly tasks: readonly AnyTask[]
    readonly connections: Connections
    readonly tracing: Tracing | null
    readonly leaseId: () => string
  },
) {
  const { checked: validateRows, databasePooled: pooled, writeTimeoutMs: statementMs } = settings
  const applicationName = `${settings.projectName}-worker`
  const slow = logSlowStatements(settings.slowQueryMs, (data, message) => log.warn(data, message))
  const common = { url: databaseUrl, applicationName, connections, slow }
  const db = createDatabase({ ...common, size: 6, validateRows, pooled, statementMs })
  const publisher = createPublisher(db, (error) => log.warn({ err: error }, 'A notification was not sent'))
  const ledger = createLedger({
    db,
    publisher,
    log,
    leaseId,
    about: (id) => executor.about(id),
    onSuperseded: (id, attempt) => executor.supersede(id, attempt),
  })
  const onEvent = (event: ProgressEntry): void => {
    executor.touch(event)
    ledger.progress(event)
  }
  const tallies = createTallies(db, log)
  const onLoss = () => tallies.count('children_lost')
  const children = createChildPool({ log, onLoss, hidden: secretPaths(settings) })
  const onSpan = tracing === null ? undefined : (span: FinishedSpan) => tracing.add(span)
  const pools = createPools({
    settings,
    databaseUrl,
    children,
    log,
    onEvent,
    onSpan,
    taskModules,
    onKill: () => tallies.count('threads_killed'),
  })
  const alone = createAlone({ settings, databaseUrl, taskModules, log, onEvent, onSpan })
  const executor = createExecutor({
    ledger,
    pools,
    alone,
    log,
    tracing,
    taskNamed: finderOf(tasks),
    tallies,
    ...(retryMs === undefined ? {} : { retryMs }),
  })
  lines?.open(db, log)
  return { db, publisher, ledger, tallies, lines, children, pools, alone, executor, tracing }
}

/** Asks the database once a second whether it is there; what was asked of one that is not is given up, and tried again. */
function feelPulse(
  { settings, databaseUrl: url, log }: WorkerOptions,
  connections: Connections,
  { pools }: Parts,
): Promise<Pulse> {
  return startPulse({
    url,
    applicationName: `${settings.projectName}-worker-pulse`,
    connections,
    onChange: (state, error) => {
      if (state === 'writable') return log.info('The database answers, and takes writes')
      log.warn({ err: error, state }, 'The database does not answer, or takes no writes: waiting for it')
      pools.breakConnections()
    },
  })
}

function leaseOptions(
  { log, settings }: WorkerOptions,
  queues: readonly string[],
  { db, executor, pools, children, publisher, tallies, tracing }: Parts,
  runners: readonly QueueRunner[],
): LeaseOptions {
  return {
    db,
    log,
    queues,
    poolIds: () => runners.flatMap(({ poolId }) => poolId ?? []),
    threads: () => pools.threads,
    busy: () => pools.busy,
    memoryBytes: () => process.memoryUsage.rss() + children.rssBytes,
    running: () => executor.ids,
    onHeartbeat: ({ running }, whole) => executor.reconcile(running, whole),
    onLost: () => {
      tallies.count('leases_lost')
      const { ids } = executor
      executor.supersedeAll()
      db.run(spareJobs(ids)).catch((error) =>
        log.warn({ err: error }, "The interruptions of a late worker's jobs could not be taken back"),
      )
    },
    onRecovered: async (ids) => {
      for (const id of ids) publisher.notify(id)
      if (tracing !== null) await addLostSpans(tracing, db, log, ids)
    },
    ttlMs: settings.leaseMs,
  }
}

function openQueue(
  { settings, databaseUrl, directUrl, log }: WorkerOptions,
  queues: readonly string[],
  connections: Connections,
  onChange: () => void,
): Promise<QueuePool> {
  return openQueuePool({
    url: databaseUrl,
    connections,
    answerMs: settings.writeTimeoutMs,
    pooled: settings.databasePooled,
    directUrl,
    applicationName: `${settings.projectName}-queue`,
    // A runner needs one for some milliseconds at a time, and most runners wait.
    size: Math.min(queues.length + 2, MAX_QUEUE_CONNECTIONS),
    onError: (error) => log.warn({ err: error }, 'A queue connection failed'),
    // Another worker that comes or goes has a share of each limit.
    also: { channels: [QUEUE_CHANGED, WORKER_CHANGED], onChange },
  })
}

function startRunner(
  { settings, log }: WorkerOptions,
  queue: string,
  tasks: readonly AnyTask[],
  { db, ledger, executor, tracing }: Parts,
  lease: Lease,
  pool: QueuePool,
): QueueRunner {
  return startQueueRunner({
    queue,
    tasks,
    settings,
    pool,
    log,
    ledger,
    executor,
    cron: cronOf(queue, db, settings, tracing),
    // Until it is known what is asked of the queue.
    places: 0,
    // Stores the pool's id with the lease at once, so that its locks are freed if this process dies.
    onPool: () => lease.renew(),
    unlock: async (poolId) => void (await db.run(unlockPools([poolId]))),
  })
}

interface Stoppable extends Parts {
  readonly pulse: Pulse
  readonly lease: Lease
  readonly runners: readonly QueueRunner[]
  readonly queuePool: QueuePool
  readonly repair: Repair
  readonly shares: Shares
  readonly watch: WebhookWatch | null
}

const stopWorker = (worker: Stoppable): Promise<void> =>
  shutDown([
    step('stop repairs', () => worker.repair.stop()),
    step('stop looking for webhooks', () => worker.watch?.stop()),
    step('stop looking at the queues', () => worker.shares.stop()),
    step('drain the jobs', () => drain(worker.runners, worker.executor), END_MS),
    step('flush the ledger', () => worker.ledger.idle()),
    step('store the figures', () => worker.tallies.close()),
    step('store the log lines of jobs', () => worker.lines?.close()),
    step('flush the notifications', () => worker.publisher.close()),
    step('give the lease back', () => worker.lease.close()),
    step('end the processes of suspects', () => worker.alone.close()),
    step('end the threads', () => worker.pools.close()),
    step('end the child processes', () => worker.children.close()),
    step('send the last spans', () => worker.tracing?.close()),
    step('disconnect from the queue', () => worker.queuePool.end()),
    step('disconnect from the database', () => worker.db.close()),
    step('stop the pulse', () => worker.pulse.close()),
  ])

/** Stops fetching; running jobs have some time to end, and are released after that. */
async function drain(runners: readonly QueueRunner[], executor: Executor): Promise<void> {
  const release = setTimeout(() => executor.releaseAll(), DRAIN_MS)
  await Promise.all(runners.map((runner) => runner.stop()))
  clearTimeout(release)
}

/** Cron only adds a job, unless its entry is paused: the work itself is visible and retried like any other job. */
function cronOf(queue: string, db: Database, settings: Settings, tracing: Tracing | null) {
  const options = { settings, evenPaused: false }
  return new Map(
    schedule
      .filter(({ task }) => task.queue === queue)
      .map((entry) => [
        entry.identifier,
        {
          match: entry.match,
          run: async () => {
            const add = () => runEntry(db, entry, options)
            await (tracing === null ? add() : asTrace(tracing, entry.identifier, add))
          },
        },
      ]),
  )
}

/** A trace that begins with the schedule, and not with a request. */
async function asTrace<T>(tracing: Tracing, identifier: string, work: () => Promise<T>): Promise<T> {
  const span = tracing.start(`cron ${identifier}`, 'producer', null, {})
  const origin = { traceParent: span.traceParent, about: () => null, record: null }
  let error: string | null = 'internal'
  try {
    const result = await within(origin, work)
    error = null
    return result
  } finally {
    span.end({ error })
  }
}
