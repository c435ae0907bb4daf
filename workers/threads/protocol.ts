import type { MessagePort } from 'node:worker_threads'
import type { Claimed } from '../../sql/jobs/claims.ts'
import type { Settings } from '../../tasks/settings.ts'
import type { PoolName } from '../../tasks/task.ts'
import type { FinishedSpan } from '../../tasks/telemetry/tracing.ts'

/** The messages between a worker's main thread and its task threads. Everything here can be cloned. */

/** A job on its way to a thread. */
export type PoolJob = Pick<
  Claimed,
  'id' | 'attempt' | 'name' | 'payload' | 'owner_id' | 'request_id' | 'trace_parent'
>

/** A job for a thread: a claimed row, and a number that identifies this attempt within the process. */
export interface ThreadJob {
  readonly attemptId: number
  readonly id: string
  readonly attempt: number
  readonly name: string
  readonly payload: unknown
  readonly ownerId: number | null
  readonly requestId: string | null
  /** Of its attempt's span. */
  readonly traceParent: string | null
}

/** Jobs that are sent to a thread together: one message to it, and one back that says they have arrived. */
export interface Batch {
  readonly id: number
  /** JSON text of `ThreadJob`s: sending it takes half the time of objects, and payloads are text anyway. */
  readonly jobs: string
}

/** How an attempt ended, as its thread saw it. */
export type Outcome =
  /** With its result as JSON text. */
  | { readonly kind: 'done'; readonly result: string }
  | {
      readonly kind: 'failed'
      readonly code: string
      readonly detail: string
      readonly retryable: boolean
      /** Seconds before which a retry is of no use. */
      readonly retryAfter?: number | undefined
    }
  | { readonly kind: 'aborted'; readonly reason: AbortReason }
  /**
   * The thread died, or was killed, with the job in it. `among` is `others` when any of several jobs may have been the
   * cause, and `nobody` when the job had a process to itself.
   */
  | { readonly kind: 'crashed'; readonly among?: 'others' | 'nobody' }

export type AbortReason = 'cancelled' | 'superseded' | 'timeout' | 'stopping'

/** Thread -> main, collected over one turn of the thread's event loop. */
export interface ThreadReport {
  readonly threadId: number
  readonly entries: readonly ThreadEntry[]
  /** To be read after `entries`: the attempts that are done, as most are, and in the same order their results. */
  readonly attemptIds: readonly number[]
  readonly results: readonly string[]
}

/** Thread -> main, once: the port over which the thread uses the worker's child processes. */
export interface ChildrenPort {
  readonly port: MessagePort
}

export type ThreadEntry =
  | { readonly kind: 'started'; readonly batch: number }
  | {
      readonly kind: 'event'
      readonly attemptId: number
      readonly id: string
      readonly n: number
      readonly event: string
      readonly data: unknown
    }
  /** With any outcome but `done`. */
  | { readonly kind: 'ended'; readonly attemptId: number; readonly id: string; readonly outcome: Outcome }
  /** A call that an attempt has made. */
  | { readonly kind: 'span'; readonly span: FinishedSpan }
  | {
      readonly kind: 'log'
      readonly level: 'info' | 'warn' | 'error'
      readonly data: object
      readonly message: string
    }

/** Main -> threads, over a broadcast channel: piscina keeps each thread's own port to itself. */
export type Command = AbortCommand | 'break connections'

/** Has an attempt end. */
export interface AbortCommand {
  readonly attemptId: number
  readonly reason: AbortReason
}

/** Handed to each thread when it starts. */
export interface ThreadData {
  readonly settings: Settings
  readonly databaseUrl: string
  readonly channel: string
  readonly pool: PoolName
  readonly taskModules: readonly string[]
}
