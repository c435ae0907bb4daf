import type { Work } from './work.ts'

/**
 * Gives tasks access to child processes that parse untrusted input. A thread can't contain a fatal error of V8 or a
 * crash of native code. A process can be killed without side effects.
 */
export interface Children {
  /**
   * Leases a clean child, exclusively until its release. Callers whose owner has the fewest children are served first.
   * Urgent callers wait only for each other.
   *
   * @throws the signal's reason, if it aborts before the lease.
   */
  lease(options: LeaseOptions & { readonly ifFree: true }): Promise<ChildLease | null>
  lease(options?: LeaseOptions): Promise<ChildLease>
}

export interface LeaseOptions {
  /** Account that owns the work; 0 if none does. */
  readonly owner?: number
  /** True if a user waits for the answer. Urgent callers don't wait for others. */
  readonly urgent?: boolean
  /** True to return null instead of waiting if no child is free. */
  readonly ifFree?: boolean
  /** An abort kills the child, even a busy one. */
  readonly signal?: AbortSignal
}

export interface ChildLease {
  /**
   * Sends a request; the previous one must have been answered. Takes ownership of sent bytes.
   *
   * @throws ChildLost. The child died or exceeded a limit, and is gone.
   * @throws Failure. The handler threw it.
   * @throws Error. The child did not start, or we have a bug: never because of the input.
   */
  ask<K extends keyof Work>(kind: K, request: Work[K]['request'], limits: Limits): Promise<Work[K]['answer']>
  /**
   * True if others wait for a child, or this one is too large. A long task should then release it and lease another.
   */
  readonly shouldRelease: boolean
  /** Returns the child to the pool, which kills a busy one. */
  release(): void
  /** Kills the child, for callers that do not know its state. */
  kill(): void
}

/** The limits of one request. */
export interface Limits {
  /** CPU time of the whole child, in ms. Wall time would blame the input for a busy machine. */
  readonly cpuMs: number
  /** Wall time in ms, for work that hangs without computing; default twenty times `cpuMs`. */
  readonly wallMs?: number
}

/** The limit that a lost child exceeded (CPU time, memory or wall time), or a crash. */
export type LossReason = 'cpu' | 'memory' | 'time' | 'crash'

/** The child died or was killed during a request. */
export class ChildLost extends Error {
  readonly lossReason: LossReason
  /** The page or item in progress; null if the child reported none. */
  readonly at: number | null

  constructor(why: LossReason, at: number | null = null, message = '') {
    super(`A child process was lost: ${why}${message === '' ? '' : `: ${message}`}`)
    this.name = 'ChildLost'
    this.lossReason = why
    this.at = at
  }

  /**
   * True if the child exceeded a time limit: a retry would exceed it again. A crash may have another cause than the
   * input.
   */
  get isOverTime(): boolean {
    return this.lossReason === 'cpu' || this.lossReason === 'time'
  }

  /** Returns the reason as a predicate that follows the name of the input, e.g. `takes too long`. */
  reason({ cpuMs }: Limits): string {
    const seconds = Math.round(cpuMs / 1000)
    const reasons: Readonly<Record<LossReason, string>> = {
      cpu: `takes more than ${seconds} s of CPU time`,
      time: 'takes too long',
      crash: 'crashed the reader repeatedly',
      memory: 'exceeds the memory limit',
    }
    return reasons[this.lossReason]
  }
}

/** Runs work in a child, and retries once if the input may not have caused the loss. @throws ChildLost. */
export async function retryAfterLoss<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof ChildLost && !error.isOverTime) return work()
    throw error
  }
}
