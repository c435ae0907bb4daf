import type { EventEmitter } from 'node:events'
import { Logger, type Runner, run, type TaskList } from 'graphile-worker'
import type { QueueClient } from '../../sql/connections/driver.ts'
import type { RunnerPool } from '../../sql/connections/queue-pool.ts'
import type { Delivery } from '../../sql/jobs/claims.ts'
import type { Log } from '../../tasks/platform/log.ts'
import type { AnyTask } from '../../tasks/task.ts'

/** Fetches the deliveries of a queue with graphile-worker, until it is stopped. */
export type Fetcher = Runner

export interface FetcherOptions {
  readonly queue: string
  readonly tasks: readonly AnyTask[]
  readonly pool: RunnerPool
  readonly log: Log
}

/** Handles a delivery, which is deleted once the promise resolves. */
export type Handle = (delivery: Delivery) => Promise<void>

// Deliveries that a queue handles concurrently. A delivery is done once its jobs are claimed, which takes milliseconds.
const MAX_DELIVERIES = { io: 256, other: 8 }
// A notification wakes the runner for each delivery. Polling finds deliveries whose notification was lost.
const POLL_INTERVAL_MS = 30_000
// Time in which completed deliveries gather to share a statement.
const COMPLETION_DELAY_MS = 2

/** Wraps the pool of a runner; calls `onFailure` for each connection or statement that fails. */
export function watchPool(pool: RunnerPool, onFailure: () => void): RunnerPool {
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
  const connect = (callback?: Parameters<RunnerPool['connect']>[0]) =>
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
export function waitForRelease(events: EventEmitter): void {
  events.once('localQueue:init', ({ localQueue }: { localQueue: LocalQueue }) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    localQueue.background(promise)
    events.on('localQueue:setMode', ({ newMode }: { newMode: string }) => {
      if (newMode === 'RELEASED') resolve()
    })
  })
}

/** Starts to fetch the deliveries of some tasks. */
export function startFetcher(
  options: FetcherOptions,
  handle: Handle,
  events: EventEmitter,
): Promise<Fetcher> {
  const io = options.tasks.some((task) => task.pool === 'io')
  const deliveries = io ? MAX_DELIVERIES.io : MAX_DELIVERIES.other
  return run({
    pgPool: options.pool,
    taskList: createTaskList(options, handle),
    // Otherwise graphile-worker looks for a file of cron entries.
    parsedCronItems: [],
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

function createTaskList({ tasks }: FetcherOptions, handle: Handle): TaskList {
  const list: TaskList = {}
  for (const { name } of tasks)
    list[name] = (payload) => handle({ task: name, ...(payload as Omit<Delivery, 'task'>) })
  return list
}

function createQueueLogger(log: Log, queue: string): Logger {
  return new Logger(() => (level, message, meta) => {
    if (level === 'error') log.error({ queue, meta }, message)
    // Concurrent deliveries exceed connections on purpose: tasks do not use the queue's pool.
    else if (level === 'warning' && !message.includes('maxPoolSize')) log.warn({ queue }, message)
  })
}
