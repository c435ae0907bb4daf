import type { MessagePort } from 'node:worker_threads'
import type { Settings } from '../../tasks/settings.ts'
import type { PoolName } from '../../tasks/task.ts'

/** What crosses the border between a worker's main thread and its task threads. Everything here can be cloned. */

/** A job for a thread: a claimed row, and a number that only this attempt has in its process. */
export interface ThreadJob {
  readonly attemptId: number
  readonly id: string
  readonly attempt: number
  readonly name: string
  readonly payload: unknown
  readonly ownerId: number | null
  readonly requestId: string | null
}

/** Jobs that go to a thread together: one message there, and one back that says they are there. */
export interface Batch {
  readonly id: number
  /** JSON text of `ThreadJob`s: it crosses in half the time of objects, and payloads come as text anyway. */
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
      /** Seconds before which trying again is of no use. */
      readonly retryAfter?: number | undefined
    }
  | { readonly kind: 'aborted'; readonly reason: AbortReason }
  /**
   * The thread died, or was killed, with the job in it; `among`: `others`, any of which may have been the cause; `nobody`: it had
   * a process to itself, and that died.
   */
  | { readonly kind: 'crashed'; readonly among?: 'others' | 'nobody' }

export type AbortReason = 'cancelled' | 'superseded' | 'timeout' | 'stopping'

/** Thread -> main, collected over one turn of the thread's event loop. */
export interface ThreadReport {
  readonly threadId: number
  readonly entries: readonly ThreadEntry[]
  /** After these the attempts that are done, most of what there is to tell: their attemptIds, and their results by place. */
  readonly attemptIds: readonly number[]
  readonly results: readonly string[]
}

/** Thread -> main, once: by it the thread uses the child processes of the worker. */
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
  /** Of another kind than done. */
  | { readonly kind: 'ended'; readonly attemptId: number; readonly id: string; readonly outcome: Outcome }
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
