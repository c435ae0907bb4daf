import type { z } from 'zod'
import type { Queries } from '../sql/db.ts'
import { uuidv7 } from '../sql/ids.ts'
import { type AfterOutcome, enqueueJobs, type JobSpec, type StartRate } from '../sql/jobs/jobs.ts'
import type { TaskContext } from './context.ts'
import type { Settings } from './platform/settings/settings.ts'
import { getCurrentOrigin } from './platform/telemetry/tracing.ts'

/**
 * The thread pool of a task. An `io` thread runs many tasks concurrently, a `cpu` thread one at a time. `model` is a
 * single thread. Tasks in `children` wait for shared child processes, so few of them run concurrently.
 */
export type PoolName = 'io' | 'cpu' | 'children' | 'model'

/** An object that a job is about. */
export interface JobLink {
  readonly kind: 'document' | 'conversation' | 'send' | 'payment' | 'post' | 'collection' | 'account'
  readonly id: number | string
}

export interface TaskDefinition<P, R> {
  /** Unique, `<area>.<verb>`; also the task's identifier in graphile-worker. */
  readonly name: string
  /** Name of the queue. Each queue has a separate runner and separate slots. */
  readonly queue: string
  readonly pool: PoolName
  /** Validated on enqueue and before each run, because jobs outlive deploys. */
  readonly payload: z.ZodType<P>
  readonly result: z.ZodType<R>
  /**
   * Returns the key of the task's mailbox, such as an entity whose jobs must run one at a time. If absent or null, the
   * job uses its owner's mailbox for this task.
   */
  readonly actor?: (payload: P, ownerId: number | null) => string | null
  /**
   * Maximum number of running jobs per mailbox, across all workers. Default: 1 for an actor, unlimited for an owner.
   */
  readonly limit?: number
  /**
   * Rule for adding a job to a busy mailbox. `join` joins a running or waiting job. `join_waiting` joins only a waiting
   * job, which will see everything that the request's transaction writes. `wait`, the default, adds a job behind the
   * others.
   */
  readonly whenBusy?: 'join' | 'join_waiting' | 'wait'
  /**
   * Returns the part of the payload that an existing job must also have, so that the new job may join it. If absent,
   * any payload matches.
   */
  readonly joinCriteria?: (payload: P) => Partial<P>
  /** SQL function `NAME(job)` that updates dependent rows for every outcome, in the transaction that ends the job. */
  readonly settleFunction?: string
  /**
   * True for a tool that operators use on jobs. Its jobs have slots of their own and ignore queue limits, so that it
   * never waits for the jobs that it is to change.
   */
  readonly isTool?: boolean
  /** Attempts before a transient failure becomes permanent; default `WORKER_MAX_TRIES`. */
  readonly tries?: number
  /**
   * Longest pause, in seconds, for which a retry waits if a provider asks for it. The job fails instead of waiting
   * longer, because a person waits for its result. For the same reason, its requests to models come before those of
   * other tasks. Default: an hour.
   */
  readonly maxPauseSeconds?: number
  /** True if a failed job cannot be retried by hand, because its caller has to repeat the request. */
  readonly refusesRetry?: boolean
  /** Time limit of one attempt in seconds; default {@link DEFAULT_TIMEOUT_SECONDS}. */
  readonly timeoutSeconds?: number
  /** Maximum time between two progress reports of an attempt, in seconds. An attempt without reports is aborted. */
  readonly stallSeconds?: number
  /** Paths in payload and result to mask as `***`, besides those that `maskSecrets` recognizes by name. */
  readonly secrets?: readonly string[]
  /** Returns the objects that a job with this payload is about, for the job's page; defaults to none. */
  readonly links?: (payload: P) => readonly JobLink[]
  /** Runs the task. Must be safe to repeat: an attempt may be cut short at any point. */
  readonly run: RunTask<P, R>
}

/** Time limit of an attempt whose task has none of its own. */
export const DEFAULT_TIMEOUT_SECONDS = 3600

/** A task without `run`, which suffices to add jobs. */
export type TaskDeclaration<P, R> = Omit<TaskDefinition<P, R>, 'run'>

export type RunTask<P, R> = (ctx: TaskContext, payload: P) => Promise<R>

/** A task without its types, as in the worker's registry. The worker parses the payload before it runs the task. */
export type AnyTask = TaskDefinition<never, unknown>

/** Finds a task by its name. @throws if there is none: the job is from another version. */
export type TaskFinder = (name: string) => AnyTask & { run(ctx: unknown, payload: unknown): Promise<unknown> }

/** Declares a task; infers its types. */
export function defineTask<P, R>(definition: TaskDefinition<P, R>): TaskDefinition<P, R> {
  return definition
}

/**
 * Thrown by a task to end its attempt without a result. The job runs again once all members of its batch have ended: the
 * jobs that it added with its own id as `batchId`.
 */
export class WaitForBatch extends Error {
  override name = 'WaitForBatch'
}

/** Loads a task's module at its first run, so that code which only adds jobs does not load it. */
export function loadLazily<P, R>(load: () => Promise<{ readonly run: RunTask<P, R> }>): RunTask<P, R> {
  let run: RunTask<P, R> | null = null
  return async (ctx, payload) => {
    run ??= (await load()).run
    return run(ctx, payload)
  }
}

/** A job that a route or task added. It exists once the transaction commits. */
export interface JobRef<R> {
  readonly jobId: string
  /** True if the request joined an existing job. */
  readonly joined: boolean
  readonly result: z.ZodType<R>
  /** Immediate response to a request for a scheduled job. The request does not wait for the job's result. */
  readonly immediateResult?: R
}

/** Settings for adding jobs: the default number of attempts, and quotas. */
export type JobSettings = Pick<Settings, 'workerMaxTries' | 'quotas'>

/** The requests of a caller for a job, see `JobSpec`. */
export interface JobTerms {
  /** Name of a mailbox of the caller's for this task, in which at most `limit` jobs run; default: {@link MAX_LIMIT}. */
  readonly key?: string | undefined
  readonly limit?: number | undefined
  readonly rate?: StartRate | undefined
  readonly whenBusy?: JobSpec['when_busy'] | undefined
  readonly maxDelayMs?: number | undefined
  readonly priority?: 'low' | 'normal' | 'high' | undefined
  /** Earliest start as a time of ISO 8601. */
  readonly runAt?: string | undefined
  readonly after?: readonly string[] | undefined
  readonly afterOutcome?: AfterOutcome | undefined
  readonly batchId?: string | undefined
  readonly isBatch?: boolean | undefined
}

/** Maximum number of running jobs of a limited mailbox. */
export const MAX_LIMIT = 1000

export interface EnqueueOptions {
  /** Account that owns the job; null if none does. */
  readonly ownerId: number | null
  readonly requestId?: string | null
  /** Minimum delay before the job runs, in ms. */
  readonly delayMs?: number
  readonly settings: JobSettings
  readonly terms?: JobTerms
}

/** A job to add. */
export interface NewJob<R> {
  readonly result: z.ZodType<R>
  /** Returns the values of the job's row. @throws ZodError if the payload is invalid. */
  spec(options: EnqueueOptions): JobSpec
}

/** Creates a job of this task. A route returns the job from `task`, so that it runs for the caller of the request. */
export function createJob<P, R>(task: TaskDeclaration<P, R>, payload: P): NewJob<R> {
  return { result: task.result, spec: (options) => buildJobSpecs(task, [payload], options)[0]! }
}

/**
 * Adds one job in the caller's transaction; the job exists once the transaction commits.
 *
 * @throws ZodError if the payload is invalid.
 * @throws fail('quota.waiting_jobs') if the job would exceed its owner's quota.
 */
export async function enqueue<P, R>(
  tx: Queries,
  task: TaskDeclaration<P, R>,
  payload: P,
  options: EnqueueOptions,
): Promise<JobRef<R>> {
  const [ref] = await enqueueMany(tx, task, [payload], options)
  return ref!
}

/**
 * Adds jobs of one task in one statement, in order.
 *
 * @throws ZodError if a payload is invalid.
 * @throws fail('quota.waiting_jobs') if the jobs would exceed their owner's quota.
 */
export async function enqueueMany<P, R>(
  tx: Queries,
  task: TaskDeclaration<P, R>,
  payloads: readonly P[],
  options: EnqueueOptions,
): Promise<readonly JobRef<R>[]> {
  const rows = await tx.any(
    enqueueJobs(buildJobSpecs(task, payloads, options), options.settings.quotas.waiting_jobs),
  )
  return rows.map(({ job_id, joined }) => ({ jobId: job_id, joined, result: task.result }))
}

/**
 * Returns the jobs that {@link enqueueMany} would add, for code that adds jobs of several callers in one statement.
 *
 * @throws ZodError if a payload is invalid.
 */
export function buildJobSpecs<P, R>(
  task: TaskDeclaration<P, R>,
  payloads: readonly P[],
  options: EnqueueOptions,
): readonly JobSpec[] {
  return payloads.map((payload) => buildJobSpec(task, payload, options))
}

function buildJobSpec<P, R>(task: TaskDeclaration<P, R>, payload: P, options: EnqueueOptions): JobSpec {
  const parsed = task.payload.parse(payload)
  const actor = task.actor?.(parsed, options.ownerId) ?? null
  const { terms = {} } = options
  const traceParent = getCurrentOrigin()?.traceParent ?? null
  return {
    id: uuidv7(),
    name: task.name,
    queue: task.queue,
    owner_id: options.ownerId,
    mailbox: actor ?? `${task.name}/${options.ownerId ?? 0}${suffixOf(terms)}`,
    mailbox_limit:
      task.limit ?? (actor !== null ? 1 : terms.key !== undefined ? (terms.limit ?? MAX_LIMIT) : null),
    when_busy: terms.whenBusy ?? task.whenBusy ?? 'wait',
    ...describeTerms(terms),
    ...(task.settleFunction === undefined ? {} : { settle: task.settleFunction }),
    ...(task.joinCriteria === undefined ? {} : { joins: task.joinCriteria(parsed) }),
    payload: parsed,
    max_tries: task.tries ?? options.settings.workerMaxTries,
    delay_ms: options.delayMs ?? null,
    request_id: options.requestId ?? null,
    ...(traceParent === null ? {} : { trace_parent: traceParent }),
  }
}

/** Returns the part of a mailbox's name after its owner. Each priority has a mailbox, unless the caller names one. */
function suffixOf({ key, priority = 'normal' }: JobTerms): string {
  if (key !== undefined) return `/${key}`
  return priority === 'normal' ? '' : `!${priority}`
}

const PRIORITIES = { low: 1, high: -1 } as const

/** Returns the fields of a spec that only some jobs have. */
function describeTerms(terms: JobTerms): Partial<JobSpec> {
  const { key, rate, maxDelayMs, priority = 'normal', runAt, after = [], afterOutcome = 'done' } = terms
  return {
    ...(key === undefined ? {} : { key }),
    ...(rate === undefined ? {} : { rate }),
    ...(maxDelayMs === undefined ? {} : { max_delay_ms: maxDelayMs }),
    ...(priority === 'normal' ? {} : { priority: PRIORITIES[priority] }),
    ...(runAt === undefined ? {} : { run_at: runAt }),
    ...(after.length === 0 ? {} : { after, after_outcome: afterOutcome }),
    ...(terms.batchId === undefined ? {} : { batch_id: terms.batchId }),
    ...(terms.isBatch === true ? { is_batch: true } : {}),
  }
}
