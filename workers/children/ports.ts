import type { Work } from './work.ts'

/**
 * Child processes that parse what comes from outside. A thread can't contain a fatal error of V8 or a crash of native
 * code; a process can be killed without a trace. This is what tasks see of them, wherever the pool is.
 */
export interface Children {
  /**
   * A child without a trace of other work, for this caller alone until it is released. Among waiting callers, the one
   * whose owner has the fewest children is next.
   * @throws the signal's reason, if that is aborted before there is a child.
   */
  lease(options: LeaseOptions & { readonly ifFree: true }): Promise<ChildLease | null>
  lease(options?: LeaseOptions): Promise<ChildLease>
}

export interface LeaseOptions {
  /** Whose work it is, an account's id; 0: nobody's. */
  readonly owner?: number
  /** Somebody waits for the answer: this goes before work that may take its time. */
  readonly urgent?: boolean
  /** Only takes a child that is free at once: null when there is none. */
  readonly ifFree?: boolean
  /** When aborted, the child is killed, whatever it is doing. */
  readonly signal?: AbortSignal
}

export interface ChildLease {
  /**
   * Sends a request; not before the last answer has arrived. Takes ownership of bytes that are sent.
   * @throws ChildLost when the child dies over it or exceeds a limit; it is gone then.
   * @throws Failure as the work itself throws it.
   * @throws Error when no child could be started, or for a bug of ours: never because of the input.
   */
  ask<K extends keyof Work>(kind: K, request: Work[K]['request'], limits: Limits): Promise<Work[K]['answer']>
  /** Others wait for a child, or this one is too large: a caller with a lot to do gives it back and leases another. */
  readonly isDue: boolean
  /** Gives the child back; one that is still busy is killed. */
  release(): void
  /** Kills the child; for callers that do not know what state it is in. */
  kill(): void
}

/** The limits of one request. */
export interface Limits {
  /** CPU time of the whole child, in ms: that a busy machine takes longer is not the input's fault. */
  readonly cpuMs: number
  /** A far wider limit of wall time, in ms; default twenty times as long. For what hangs without computing. */
  readonly wallMs?: number
}

/** Why a child is gone: it exceeded its limit of CPU time, memory or wall time, or it crashed. */
export type LossReason = 'cpu' | 'memory' | 'time' | 'crash'

/** The child was lost while it worked on a request. */
export class ChildLost extends Error {
  readonly why: LossReason
  /** The page or item that it was working on, if it reported that. */
  readonly at: number | null

  constructor(why: LossReason, at: number | null = null, message = '') {
    super(`A child process was lost: ${why}${message === '' ? '' : `: ${message}`}`)
    this.name = 'ChildLost'
    this.why = why
    this.at = at
  }

  /** It used up its time, and would do so again; a crash may have another cause than the input. */
  get isSpent(): boolean {
    return this.why === 'cpu' || this.why === 'time'
  }

  /** The reason, worded to follow the name of the input. */
  reason({ cpuMs }: Limits): string {
    const seconds = Math.round(cpuMs / 1000)
    const reasons: Readonly<Record<LossReason, string>> = {
      cpu: `takes more than ${seconds} s of computing`,
      time: 'takes too long',
      crash: 'crashed the reader twice',
      memory: 'needs more memory than it may have',
    }
    return reasons[this.why]
  }
}

/** Does work that may lose its child; once more if that may have another cause than the input. @throws ChildLost. */
export async function onceMore<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof ChildLost && !error.isSpent) return work()
    throw error
  }
}
