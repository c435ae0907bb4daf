/** Types of a worker: its options, its tasks, and the context of a task. */

export interface WorkOptions {
  /** Jobs that run at a time. Default 10. */
  readonly concurrency?: number
  /** Name of the worker in lists. Default: host and process id. */
  readonly name?: string
  /** Time after which other workers take over the jobs of a silent one. Default 30. */
  readonly leaseSeconds?: number
  /** Stops the worker when aborted, as `stop()` does. */
  readonly signal?: AbortSignal
  /** Time that running jobs have to end when the worker stops. Then they are given back. Default 20. */
  readonly stopSeconds?: number
  /** True to stop at SIGTERM and SIGINT. Default true. */
  readonly handleSignals?: boolean
  /** Receives errors of requests, which are repeated, and rejected items. Default: `console.warn`. */
  readonly onError?: (error: Error) => void
}

/** A running worker. */
export interface Worker {
  /** Resolves when the worker has stopped. Rejects if the service refuses it, for example an invalid key. */
  readonly done: Promise<void>
  /** Claims no more jobs, and waits until the running ones have ended or are given back. */
  stop(): Promise<void>
}

/** Runs a job and returns its result. The parameters are bivariant, so that a task may declare its own arguments. */
export type TaskFunction = {
  run(args: Record<string, unknown>, context: JobContext): unknown
}['run']

/** A task with its declaration, which replaces the one that the service has. */
export interface DeclaredTask {
  readonly run: TaskFunction
  /** JSON Schema (2020-12) of the arguments. */
  readonly args?: object | boolean
  /** JSON Schema (2020-12) of the result. */
  readonly result?: object | boolean
  readonly max_tries?: number
  readonly timeout_seconds?: number
  readonly stall_seconds?: number
  readonly limit?: number
  readonly secrets?: readonly string[]
}

/** Tasks by name. A function serves a task that the service knows; an object also declares it. */
export type Tasks = Readonly<Record<string, TaskFunction | DeclaredTask>>

/** A job as a claim answers it. */
export interface ClaimedJob {
  readonly job_id: string
  readonly task: string
  readonly args: Record<string, unknown>
  readonly attempt: number
  readonly tries: number
  readonly max_tries: number
  readonly deadline: string | null
  readonly dependencies: readonly Dependency[]
  readonly traceparent: string | null
  readonly alone: boolean
}

/** Outcome of a job on which another one depends. */
export interface Dependency {
  readonly job_id: string
  readonly status: string
  readonly result?: unknown
  /** True if the results are too large for a claim: read the job. */
  readonly result_omitted?: boolean
  readonly error?: { readonly code: string; readonly detail: string } | null
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** Second argument of a task. */
export interface JobContext {
  readonly jobId: string
  /** Number of this run of the job, from 1 on. */
  readonly attempt: number
  /** Number of this try, of `maxTries`. Runs that the worker gave back do not count. */
  readonly tries: number
  readonly maxTries: number
  /** Deadline of the attempt; null without a limit. */
  readonly deadline: Date | null
  readonly dependencies: readonly Dependency[]
  /** Trace of the job (W3C Trace Context); null without one. */
  readonly traceparent: string | null
  /** Aborted if the job is cancelled, runs elsewhere, or the worker must stop. */
  readonly signal: AbortSignal
  /** Replaces the label and the progress of the job. */
  progress(label: string, current?: number, total?: number): void
  /** Adds an event to the stream of the job. */
  emit(kind: string, data: unknown): void
  /** Adds a line to the log of the job. */
  log(message: string, data?: Record<string, unknown>, level?: LogLevel): void
}

/** Thrown by a task to fail the job without further tries. */
export class PermanentError extends Error {
  override readonly name = 'PermanentError'
  readonly retry = false
  /** Code of the job's error. */
  readonly code?: string

  constructor(message: string, options: ErrorOptions & { readonly code?: string } = {}) {
    super(message, options)
    if (options.code !== undefined) this.code = options.code
  }
}

/** Reason of an aborted `signal`. */
export class AttemptStopped extends Error {
  override readonly name = 'AttemptStopped'
  readonly reason: StopReason

  constructor(reason: StopReason) {
    super(STOP_TEXTS[reason])
    this.reason = reason
  }
}

export type StopReason = 'cancelled' | 'superseded' | 'stopping'

const STOP_TEXTS: Readonly<Record<StopReason, string>> = {
  cancelled: 'The job was cancelled',
  superseded: 'The attempt has ended or runs elsewhere',
  stopping: 'The worker stops',
}
