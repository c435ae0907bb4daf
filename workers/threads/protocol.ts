import type { MessagePort } from 'node:worker_threads'
import type { Retry } from '../../sql/errors.ts'
import type { ClaimedJob } from '../../sql/jobs/claims.ts'
import type { KeyMaterial } from '../../tasks/platform/keys.ts'
import type { Settings } from '../../tasks/platform/settings/settings.ts'
import type { FinishedSpan } from '../../tasks/platform/telemetry/tracing.ts'
import type { PoolName } from '../../tasks/task.ts'

/** Messages between a worker's main thread and its task threads. Structured clone must support them. */

/** The columns of a claimed job that its thread or isolated process needs. */
export type PoolJob = Pick<
  ClaimedJob,
  'id' | 'attempt' | 'name' | 'payload' | 'interruptions' | 'owner_id' | 'request_id' | 'trace_parent'
>

/** A job as its thread receives it. */
export interface ThreadJob {
  /** Identifies the attempt within the process. */
  readonly attemptId: number
  readonly id: string
  readonly attempt: number
  readonly name: string
  readonly payload: unknown
  readonly ownerId: number | null
  readonly requestId: string | null
  /** traceparent of the attempt's span (W3C Trace Context); null if nothing is traced. */
  readonly traceParent: string | null
}

/**
 * Jobs sent to a thread in one message, as JSON text of `ThreadJob`s: half the cost of sending objects, and payloads are
 * JSON text anyway. The thread acknowledges them with one `started` entry.
 */
export type Batch = string

/** The outcome of an attempt, as its thread reports it. */
export type Outcome =
  /** `result` is JSON text. */
  | { readonly kind: 'done'; readonly result: string }
  | {
      readonly kind: 'failed'
      readonly code: string
      readonly detail: string
      readonly retry: Retry
      /** Minimum delay before a retry, in seconds. */
      readonly retryAfter?: number | undefined
    }
  | { readonly kind: 'aborted'; readonly reason: AbortReason }
  /** The attempt has added members to the job's batch and ended: the job runs again once they have ended. */
  | { readonly kind: 'waiting' }
  /** The job did not run, through no fault of its own, and may run after a delay. */
  | { readonly kind: 'released'; readonly delayMs: number }
  /**
   * The thread or process died while it ran the job. `host` is `shared` or, in an isolated process, `group` if another
   * job there may be the cause. It is `isolated` if the job was alone in that process, and absent if it had a thread of
   * a shared process to itself.
   */
  | { readonly kind: 'crashed'; readonly host?: 'shared' | 'group' | 'isolated' }

export type AbortReason = 'cancelled' | 'superseded' | 'timeout' | 'stopping'

/** Thread -> main, collected over one turn of the thread's event loop. */
export interface ThreadReport {
  readonly threadId: number
  readonly entries: readonly ThreadEntry[]
  /**
   * Ids of the attempts with the most frequent outcome, `done`. `results` has the same order. Read both after
   * `entries`.
   */
  readonly attemptIds: readonly number[]
  readonly results: readonly string[]
}

/** Thread -> main, once: the port over which the thread uses the worker's child processes. */
export interface ChildrenPort {
  readonly port: MessagePort
}

export type ThreadEntry =
  /** A batch has begun, whose first attempt this is. */
  | { readonly kind: 'started'; readonly attemptId: number }
  /** A module could not be loaded. Node may remember this, so the thread must be replaced. */
  | { readonly kind: 'broken' }
  | {
      readonly kind: 'event'
      readonly attemptId: number
      readonly id: string
      readonly n: number
      readonly event: string
      readonly data: unknown
    }
  /** Any outcome except `done`. */
  | { readonly kind: 'ended'; readonly attemptId: number; readonly id: string; readonly outcome: Outcome }
  /** The span of a call that an attempt has made. */
  | { readonly kind: 'span'; readonly span: FinishedSpan }
  | {
      readonly kind: 'log'
      readonly level: 'info' | 'warn' | 'error'
      readonly data: object
      readonly message: string
    }

/** Main -> threads, over a broadcast channel: piscina keeps each thread's own port to itself. */
export type Command = AbortCommand | 'break connections'

/** Aborts an attempt. */
export interface AbortCommand {
  readonly attemptId: number
  readonly reason: AbortReason
}

/** Data that each thread receives when it starts. */
export interface ThreadData {
  readonly settings: Settings
  readonly databaseUrl: string
  readonly channel: string
  readonly pool: PoolName
  readonly taskModules: readonly string[]
  readonly keys: KeyMaterial | undefined
}
