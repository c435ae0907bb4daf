import type { z } from 'zod'
import type { Queries } from '../sql/db.ts'
import { uuidv7 } from '../sql/ids.ts'
import { enqueueJobs, type JobSpec } from '../sql/jobs.ts'
import type { TaskContext } from './context.ts'
import type { Settings } from './settings.ts'
import { currentOrigin } from './telemetry/tracing.ts'

/**
 * Where a task's function runs: an `io` thread runs many tasks at once, a `cpu` thread one; `model` is a single thread.
 * `children` tasks wait for child processes, which they share, so few of them run at once.
 */
export type PoolName = 'io' | 'cpu' | 'children' | 'model'

/** Something that a job is about. */
export interface JobLink {
  readonly kind: 'document' | 'conversation' | 'send' | 'payment' | 'post' | 'collection' | 'account'
  readonly id: number | string
}

export interface TaskDefinition<P, R> {
  /** Unique, `<area>.<verb>`; also its identifier in the queue. */
  readonly name: string
  /** The queue group: each has its own runner and slots. */
  readonly queue: string
  readonly pool: PoolName
  /** Checked when enqueued and again when run, because old jobs outlive deploys. */
  readonly payload: z.ZodType<P>
  readonly result: z.ZodType<R>
  /** The entity whose messages are handled one at a time; absent or null: the mailbox is the owner's for this task. */
  readonly actor?: (payload: P, ownerId: number | null) => string | null
  /** How many jobs of a mailbox may run at once, in all workers. Default: 1 for an actor's, no limit for an owner's. */
  readonly limit?: number
  /**
   * What a message to a busy actor does: join the job under way or the one that waits (`join`), join only one that waits
   * and so will see what was written with the message (`join_waiting`), or wait behind them. Default `wait`.
   */
  readonly whenBusy?: 'join' | 'join_waiting' | 'wait'
  /** When joining: what the payload of a running or waiting job must contain to be joined; absent: any payload does. */
  readonly joins?: (payload: P) => Partial<P>
  /**
   * The SQL function `NAME(job)` that settles what depends on the end of a job, in the transaction that ends it and for
   * every outcome.
   */
  readonly settle?: string
  /** Attempts before a retryable failure is final; default `WORKER_MAX_TRIES`. */
  readonly tries?: number
  /** Longest run of one attempt in seconds; default 3600. */
  readonly timeoutSeconds?: number
  /** Longest silence of one attempt in seconds: an attempt that reports nothing for this long is aborted. */
  readonly stallSeconds?: number
  /** Paths of the payload and the result whose values are shown as `***`, in addition to those of `masked`; default none. */
  readonly secrets?: readonly string[]
  /** What a job with this payload is about, for its page; default nothing. */
  readonly links?: (payload: P) => readonly JobLink[]
  /** Does the work. Must be safe to run again: an attempt may be cut short at any point. */
  readonly run: Run<P, R>
}

/** What is needed of a task to add jobs of it. */
export type Declaration<P, R> = Omit<TaskDefinition<P, R>, 'run'>

export type Run<P, R> = (ctx: TaskContext, payload: P) => Promise<R>

/** A task with its types erased, as in the worker's registry: the payload is parsed before it runs. */
export type AnyTask = TaskDefinition<never, unknown>

/** Finds a task by its name. @throws when there is none: the job is from another version. */
export type TaskFinder = (name: string) => AnyTask & { run(ctx: unknown, payload: unknown): Promise<unknown> }

/** Declares a task. */
export function defineTask<P, R>(definition: TaskDefinition<P, R>): TaskDefinition<P, R> {
  return definition
}

/** Loads a task's work when it first runs, so that code which only adds jobs does not load it. */
export function lazily<P, R>(load: () => Promise<{ readonly run: Run<P, R> }>): Run<P, R> {
  let run: Run<P, R> | null = null
  return async (ctx, payload) => {
    run ??= (await load()).run
    return run(ctx, payload)
  }
}

/** A job that a route or task has added; it exists once the transaction commits. */
export interface JobRef<R> {
  readonly jobId: string
  /** True when the actor was busy with a job that this request became part of. */
  readonly joined: boolean
  readonly result: z.ZodType<R>
  /** What a request for it is answered with at once, if its end is not to be waited for: it is due later. */
  readonly answer?: R
}

/** Settings of jobs: the attempts of tasks without `tries` of their own, and quotas. */
export type JobSettings = Pick<Settings, 'workerMaxTries' | 'quotas'>

export interface EnqueueOptions {
  /** The account the job belongs to; null for none. */
  readonly ownerId: number | null
  readonly requestId?: string | null
  /** Starts no earlier than this many milliseconds from now. */
  readonly delayMs?: number
  readonly settings: JobSettings
  /** The id of the nth job, for callers that must find it again after a crash; default a new one. */
  readonly idOf?: (n: number) => string
}

/** A job to be added. */
export interface NewJob<R> {
  readonly result: z.ZodType<R>
  /** @throws ZodError when the payload is not the task's. */
  spec(options: EnqueueOptions): JobSpec
}

/** What a route's `task` returns: a job of this task for the caller of the request. */
export function newJob<P, R>(task: Declaration<P, R>, payload: P): NewJob<R> {
  return { result: task.result, spec: (options) => specsOf(task, [payload], options)[0]! }
}

/**
 * Adds one job in the caller's transaction: the job exists if and only if what the transaction wrote does.
 * @throws ZodError when the payload is not the task's; fail('quota.waiting_jobs') when its owner would have too many.
 */
export async function enqueue<P, R>(
  tx: Queries,
  task: Declaration<P, R>,
  payload: P,
  options: EnqueueOptions,
): Promise<JobRef<R>> {
  const [ref] = await enqueueMany(tx, task, [payload], options)
  return ref!
}

/**
 * Adds many jobs of one task in one statement, in order.
 * @throws fail('quota.waiting_jobs') when their owner would have too many.
 */
export async function enqueueMany<P, R>(
  tx: Queries,
  task: Declaration<P, R>,
  payloads: readonly P[],
  options: EnqueueOptions,
): Promise<readonly JobRef<R>[]> {
  const rows = await tx.any(
    enqueueJobs(specsOf(task, payloads, options), options.settings.quotas.waiting_jobs),
  )
  return rows.map(({ job_id, joined }) => ({ jobId: job_id, joined, result: task.result }))
}

/**
 * The jobs that {@link enqueueMany} would add, for code that adds jobs of several callers in one statement.
 * @throws ZodError when a payload is not the task's.
 */
export function specsOf<P, R>(
  task: Declaration<P, R>,
  payloads: readonly P[],
  options: EnqueueOptions,
): readonly JobSpec[] {
  return payloads.map((payload, n) => spec(task, payload, options, options.idOf?.(n) ?? uuidv7()))
}

function spec<P, R>(task: Declaration<P, R>, payload: P, options: EnqueueOptions, id: string): JobSpec {
  const actor = task.actor?.(payload, options.ownerId) ?? null
  const traceParent = currentOrigin()?.traceParent ?? null
  return {
    id,
    name: task.name,
    queue: task.queue,
    owner_id: options.ownerId,
    mailbox: actor ?? `${task.name}/${options.ownerId ?? 0}`,
    mailbox_limit: task.limit ?? (actor === null ? null : 1),
    when_busy: task.whenBusy ?? 'wait',
    ...(task.settle === undefined ? {} : { settle: task.settle }),
    ...(task.joins === undefined ? {} : { joins: task.joins(payload) }),
    payload: task.payload.parse(payload),
    max_tries: task.tries ?? options.settings.workerMaxTries,
    delay_ms: options.delayMs ?? null,
    request_id: options.requestId ?? null,
    ...(traceParent === null ? {} : { trace_parent: traceParent }),
  }
}
