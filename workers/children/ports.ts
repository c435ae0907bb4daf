import type { Work } from './work.ts'

/**
 * Child processes that parse what comes from outside. A thread can't contain a fatal error of V8 or a crash of native code; a
 * process can be killed without a trace. This is what tasks see of them, wherever the pool is.
 */
export interface Children {
  /**
   * A child without a trace of other work, for this caller alone until it is released. Of those who wait whose owner has the
   * fewest is the next.
   * @throws the signal's reason, when that is aborted before there is one.
   */
  lease(options: LeaseOptions & { readonly ifFree: true }): Promise<ChildLease | null>
  lease(options?: LeaseOptions): Promise<ChildLease>
}

export interface LeaseOptions {
  /** Whose work it is, an account's id; 0: nobody's. */
  readonly owner?: number
  /** Somebody waits for the answer: it comes before what may take its time. */
  readonly urgent?: boolean
  /** Only a child that nobody has to wait for: null when there is none. */
  readonly ifFree?: boolean
  /** When aborted, the child is killed, whatever it does. */
  readonly signal?: AbortSignal
}

export interface ChildLease {
  /**
   * Asks one thing; not before the last answer has come. Bytes that are sent are taken over.
   * @throws ChildLost when the child dies over it or passes a limit; it is gone then.
   * @throws Failure as the work itself throws it.
   * @throws Error when no child could be started, or for a mistake of ours: nothing that the input has done.
   */
  ask<K extends keyof Work>(kind: K, request: Work[K]['request'], limits: Limits): Promise<Work[K]['answer']>
  /** Others wait for a child, or this one has grown too large: whoever has much to do gives it back and takes another. */
  readonly isDue: boolean
  /** Gives the child back; one that is still at something is killed. */
  release(): void
  /** Ends the child; for who does not know what state it is in. */
  kill(): void
}

/** Of one request. */
export interface Limits {
  /** CPU time of the whole child, in ms: what a busy machine takes longer for is not the input's fault. */
  readonly cpuMs: number
  /** Far outside of that, in ms; default twenty times as long. For what hangs without computing. */
  readonly wallMs?: number
}

/** Why a child is gone: it passed its limit of CPU time, memory or time, or it crashed. */
export type LossReason = 'cpu' | 'memory' | 'time' | 'crash'

/** The child is gone because of what it was asked. */
export class ChildLost extends Error {
  readonly why: LossReason
  /** The page or item that it was at, where it said so. */
  readonly at: number | null

  constructor(why: LossReason, at: number | null = null, message = '') {
    super(`A child process was lost: ${why}${message === '' ? '' : `: ${message}`}`)
    this.name = 'ChildLost'
    this.why = why
    this.at = at
  }

  /** It used its time up, and would do so again; what has crashed may have been somebody else's doing. */
  get isSpent(): boolean {
    return this.why === 'cpu' || this.why === 'time'
  }

  /** What is told of the input, behind its name. */
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

/** Does work that may lose its child; once more when that may have been somebody else's doing. @throws ChildLost. */
export async function onceMore<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof ChildLost && !error.isSpent) return work()
    throw error
  }
}
