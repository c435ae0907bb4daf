import { ConnectionGroup } from '../sql/connections/driver.ts'
import { type HealthCheck, startHealthCheck } from '../sql/connections/health-check.ts'
import {
  createPublisher,
  QUEUE_CHANGED_CHANNEL,
  WORKER_CHANGED_CHANNEL,
  WORKER_DELIVERIES_CHANNEL,
} from '../sql/connections/notify.ts'
import { openQueueConnections, type QueueConnections } from '../sql/connections/queue-pool.ts'
import { createDatabase } from '../sql/db.ts'
import { type ProgressEntry, refundInterruptions } from '../sql/jobs/jobs.ts'
import { unlockPools } from '../sql/jobs/leases.ts'
import { storePendingQuota } from '../sql/quotas/quotas.ts'
import { StartError } from '../sql/server/start-error.ts'
import { createTaskFinder, loadTasks, queuesOf } from '../tasks/index.ts'
import type { KeyMaterial } from '../tasks/platform/keys.ts'
import type { Log } from '../tasks/platform/log.ts'
import { waitForDatabase } from '../tasks/platform/outage.ts'
import type { Periodic } from '../tasks/platform/periodic.ts'
import { listSecretPaths } from '../tasks/platform/settings/environment.ts'
import type { Settings } from '../tasks/platform/settings/settings.ts'
import { createStep, shutDown } from '../tasks/platform/shutdown.ts'
import { createTallies } from '../tasks/platform/tally.ts'
import { openTracing } from '../tasks/platform/telemetry/open.ts'
import { type FinishedSpan, logSlowStatements, type Tracing } from '../tasks/platform/telemetry/tracing.ts'
import { ensureBuiltIns } from '../tasks/schedules/built-in.ts'
import type { AnyTask } from '../tasks/task.ts'
import { push } from '../tasks/worker-queues/push.task.ts'
import { createExecutor, type Executor } from './attempts/executor.ts'
import type { JobLog } from './attempts/job-log.ts'
import { holdLease, type Lease, type LeaseOptions } from './attempts/lease.ts'
import { createLedger } from './attempts/ledger.ts'
import { type Rescuer, startRescuer } from './attempts/rescue.ts'
import { type Scheduler, startScheduler } from './attempts/scheduler.ts'
import { addLostSpans } from './attempts/telemetry.ts'
import { createChildPool } from './children/pool.ts'
import { watchPaymentKey } from './payments.ts'
import { createIsolatedRunner } from './processes/isolated-runner.ts'
import { type QueueLimits, startQueueLimits } from './queue/limits.ts'
import { type Pusher, startPusher } from './queue/pusher.ts'
import { type QueueRunner, startQueueRunner } from './queue/runner.ts'
import { createPools } from './threads/pools.ts'
import { type WebhookWatch, watchWebhooks } from './webhooks.ts'

/** The running parts of one worker process. */
export interface Worker {
  readonly lease: Lease
  readonly executor: Executor
  /** Stops in bounded time: stops fetching, lets running jobs finish or releases them, and deletes the lease. */
  stop(): Promise<void>
}

export interface WorkerOptions {
  readonly settings: Settings
  /** Absent if no task needs keys. */
  readonly keys?: KeyMaterial | undefined
  readonly databaseUrl: string
  /** URL of a direct connection for LISTEN, in case `databaseUrl` goes through a pooler. */
  readonly directUrl: string
  readonly log: Log
  /** Stores log lines about jobs. Without it, none are stored. */
  readonly jobLog?: JobLog
  /** Modules with more tasks, see `loadTasks`. */
  readonly taskModules?: readonly string[]
  /** Delay before a job's first retry, in ms. Default 1000. */
  readonly retryMs?: number
  /** Interval of the search for jobs without a delivery and schedules without a message, in ms. Default 20,000. */
  readonly rescueMs?: number
}

// Platforms give a process 10 s to stop: 4 s for jobs to finish, 2 s for them to obey their abort signal, and overhead.
const RELEASE_AFTER_MS = 4000
const MAX_DRAIN_MS = 8000

const MAX_QUEUE_CONNECTIONS = 6

/**
 * Starts a worker; resolves once it holds its lease and fetches jobs.
 *
 * @throws StartError if WORKER_QUEUES names a queue that no task has.
 */
export async function startWorker(options: WorkerOptions): Promise<Worker> {
  const { settings, taskModules = [], rescueMs, log } = options
  const tasks = await loadTasks(taskModules)
  const allQueues = queuesOf(tasks)
  const queues = settings.workerQueues ?? allQueues
  const unknown = queues.filter((queue) => !allQueues.includes(queue))
  if (unknown.length > 0)
    throw new StartError(
      `WORKER_QUEUES: unknown queue ${unknown.join(', ')}; the queues are ${allQueues.join(', ')}`,
    )
  const runners: QueueRunner[] = []
  const connections = new ConnectionGroup()
  // `lease` is declared later: only claims read its id, and nothing is claimed before it exists.
  const tracing = await openTracing(settings.tracing, 'worker', log)
  let scheduler: Scheduler | null = null
  const onDelayed = (ms: number) => scheduler?.wakeIn(ms)
  const parts = createParts(options, { tasks, connections, tracing, leaseId: () => lease.id, onDelayed })
  const healthCheck = await waitForDatabase(log, () => startProbe(options, connections, parts))
  const lease: Lease = await waitForDatabase(log, () =>
    holdLease(createLeaseOptions(options, queues, parts, runners)),
  )
  let queueLimits: QueueLimits | null = null
  const pusher = queues.includes(push.queue) ? startPusher({ ...parts, log, leaseId: () => lease.id }) : null
  const onChange = () => queueLimits?.refresh()
  const queueConnections = await openQueue(options, queues, connections, { pusher, onChange })
  for (const queue of queues) {
    const queueTasks = tasks.filter((task) => task.queue === queue)
    runners.push(startRunner(options, queue, queueTasks, parts, lease, queueConnections))
  }
  queueLimits = await waitForDatabase(log, () =>
    startQueueLimits({ db: parts.db, log, leaseId: () => lease.id, runners }),
  )
  scheduler = startScheduler(parts.db, log)
  const rescuer = startRescuer(parts.db, settings, log, rescueMs)
  await waitForDatabase(log, () => parts.db.run(storePendingQuota(settings.quotas)))
  await waitForDatabase(log, () => ensureBuiltIns(parts.db, settings))
  const webhookWatch = queues.includes('webhooks') ? watchWebhooks(parts.db, log, settings) : null
  const paymentWatch =
    queues.includes('payments') && settings.payments.secretKey !== undefined
      ? watchPaymentKey(parts.db, log, settings)
      : null
  return {
    lease,
    executor: parts.executor,
    stop: () =>
      stopWorker({
        ...parts,
        healthCheck,
        lease,
        runners,
        queueConnections,
        scheduler,
        rescuer,
        queueLimits,
        pusher,
        webhookWatch,
        paymentWatch,
      }),
  }
}

type WorkerParts = ReturnType<typeof createParts>

interface PartsContext {
  readonly tasks: readonly AnyTask[]
  readonly connections: ConnectionGroup
  readonly tracing: Tracing | null
  readonly leaseId: () => string
  readonly onDelayed: (ms: number) => void
}

/** Creates the parts that run jobs, store their progress and outcomes, and notify listeners. */
function createParts(
  { settings, keys, databaseUrl, log, jobLog, taskModules = [], retryMs }: WorkerOptions,
  { tasks, connections, tracing, leaseId, onDelayed }: PartsContext,
) {
  const { validateSchemas: validateRows, databasePooled: pooled, writeTimeoutMs: statementMs } = settings
  const applicationName = `${settings.projectName}-worker`
  const slow = logSlowStatements(settings.slowQueryMs, (data, message) => log.warn(data, message))
  const common = { url: databaseUrl, applicationName, connections, slow }
  const db = createDatabase({ ...common, size: 6, validateRows, pooled, statementMs })
  const publisher = createPublisher(db, (error) => log.warn({ err: error }, 'Failed to send a notification'))
  const ledger = createLedger({
    db,
    publisher,
    log,
    leaseId,
    logFields: (id) => executor.logFields(id),
    onSuperseded: (id, attempt) => executor.supersede(id, attempt),
    onDelayed,
  })
  const onEvent = (event: ProgressEntry): void => {
    executor.touch(event)
    ledger.progress(event)
  }
  const tallies = createTallies(db, log)
  const onLoss = () => tallies.count('children_lost')
  const children = createChildPool({ log, onLoss, hidden: listSecretPaths(settings) })
  const onSpan = tracing === null ? undefined : (span: FinishedSpan) => tracing.add(span)
  const shared = { settings, databaseUrl, keys, log, onEvent, onSpan }
  const pools = createPools({
    ...shared,
    children,
    taskModules,
    onKill: () => tallies.count('threads_killed'),
  })
  const isolatedRunner = createIsolatedRunner({ ...shared, taskModules })
  const executor = createExecutor({
    ledger,
    pools,
    isolatedRunner,
    log,
    tracing,
    findTask: createTaskFinder(tasks),
    tallies,
    onDelayed,
    ...(retryMs === undefined ? {} : { retryMs }),
  })
  jobLog?.open(db, log)
  return { db, publisher, ledger, tallies, jobLog, children, pools, isolatedRunner, executor, tracing }
}

/** Probes the database every second. If it does not answer, all connections break, and their statements are retried. */
function startProbe(
  { settings, databaseUrl: url, log }: WorkerOptions,
  connections: ConnectionGroup,
  { pools }: WorkerParts,
): Promise<HealthCheck> {
  return startHealthCheck({
    url,
    applicationName: `${settings.projectName}-worker-health`,
    connections,
    onChange: (state, error) => {
      if (state === 'writable') return log.info('The database answers and accepts writes')
      log.warn({ err: error, state }, 'Waiting for the database: it does not answer or rejects writes')
      pools.breakConnections()
    },
  })
}

function createLeaseOptions(
  { log, settings }: WorkerOptions,
  queues: readonly string[],
  { db, executor, pools, children, publisher, tallies, tracing }: WorkerParts,
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
      db.run(refundInterruptions(ids)).catch((error) =>
        log.warn({ err: error }, 'Failed to refund the interruptions of jobs after a late lease renewal'),
      )
    },
    onRescued: async (ids) => {
      for (const id of ids) publisher.notify(id)
      if (tracing !== null) await addLostSpans(tracing, db, log, ids)
    },
    ttlMs: settings.leaseMs,
  }
}

function openQueue(
  { settings, databaseUrl, directUrl, log }: WorkerOptions,
  queues: readonly string[],
  connections: ConnectionGroup,
  { pusher, onChange }: { readonly pusher: Pusher | null; readonly onChange: () => void },
): Promise<QueueConnections> {
  const refresh = (): void => {
    onChange()
    pusher?.refresh()
  }
  return openQueueConnections({
    url: databaseUrl,
    connections,
    answerMs: settings.writeTimeoutMs,
    pooled: settings.databasePooled,
    directUrl,
    applicationName: `${settings.projectName}-queue`,
    // A runner uses a connection for a few milliseconds at a time, and most runners are idle.
    size: Math.min(queues.length + 2, MAX_QUEUE_CONNECTIONS),
    onError: (error) => log.warn({ err: error }, 'A queue connection failed'),
    // Workers divide each queue limit among them, so a worker that starts or stops changes it.
    extraChannels: {
      [QUEUE_CHANGED_CHANNEL]: refresh,
      [WORKER_CHANGED_CHANNEL]: refresh,
      [WORKER_DELIVERIES_CHANNEL]: (payload) => pusher?.handleDeliveries(payload),
    },
    onReconnect: refresh,
  })
}

function startRunner(
  { settings, log }: WorkerOptions,
  queue: string,
  tasks: readonly AnyTask[],
  { db, ledger, executor }: WorkerParts,
  lease: Lease,
  queueConnections: QueueConnections,
): QueueRunner {
  return startQueueRunner({
    queue,
    tasks,
    settings,
    pool: queueConnections.poolFor(tasks.map(({ name }) => name)),
    log,
    ledger,
    executor,
    // Fetch nothing until the queue limits are known.
    limits: { concurrency: 0, isDrained: true },
    // Store the pool's id with the lease immediately: a worker that rescues our jobs frees the pool's locks, too.
    onPoolChange: () => lease.renew(),
    unlock: async (poolId) => void (await db.run(unlockPools([poolId]))),
  })
}

interface StoppableWorker extends WorkerParts {
  readonly healthCheck: HealthCheck
  readonly lease: Lease
  readonly runners: readonly QueueRunner[]
  readonly queueConnections: QueueConnections
  readonly rescuer: Rescuer
  readonly scheduler: Scheduler
  readonly queueLimits: QueueLimits
  readonly pusher: Pusher | null
  readonly webhookWatch: WebhookWatch | null
  readonly paymentWatch: Periodic | null
}

const stopWorker = (worker: StoppableWorker): Promise<void> =>
  shutDown([
    createStep('stop the rescuer', () => worker.rescuer.stop()),
    createStep('stop the scheduler', () => worker.scheduler.stop()),
    createStep('stop the search for webhook deliveries', () => worker.webhookWatch?.stop()),
    createStep('stop checking the payment key', () => worker.paymentWatch?.stop()),
    createStep('stop reading the queue limits', () => worker.queueLimits.stop()),
    createStep('drain the jobs', () => drainJobs(worker), MAX_DRAIN_MS),
    createStep('flush the ledger', () => worker.ledger.idle()),
    createStep('store the job statistics', () => worker.tallies.close()),
    createStep('store the job log', () => worker.jobLog?.close()),
    createStep('flush the notifications', () => worker.publisher.close()),
    createStep('release the lease', () => worker.lease.close()),
    createStep('kill the isolated processes', () => worker.isolatedRunner.close()),
    createStep('stop the threads', () => worker.pools.close()),
    createStep('stop the child processes', () => worker.children.close()),
    createStep('send the last spans', () => worker.tracing?.close()),
    createStep('disconnect from the queue', () => worker.queueConnections.end()),
    createStep('disconnect from the database', () => worker.db.close()),
    createStep('stop the health check', () => worker.healthCheck.close()),
  ])

/** Stops fetching. Running jobs have `RELEASE_AFTER_MS` to finish, then they are aborted and released. */
async function drainJobs({ runners, pusher, executor }: StoppableWorker): Promise<void> {
  const release = setTimeout(() => executor.releaseAll(), RELEASE_AFTER_MS)
  await Promise.all([pusher?.stop(), ...runners.map((runner) => runner.stop())])
  clearTimeout(release)
}
