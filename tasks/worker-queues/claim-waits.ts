import { parseJobName } from './names.ts'

/** Claims that wait for jobs of worker queues. Notifications wake them, and nothing polls. */
export interface ClaimWaits {
  /**
   * Runs `attempt` until it claims something, or the time is over, or the signal aborts. Returns its last result.
   * @param wait names the queue, the tasks (null: all) and the longest wait in ms.
   */
  run<T extends AttemptResult>(wait: ClaimWait, attempt: (leftMs: number) => Promise<T>): Promise<T>
  /** Wakes claims for a notification of new deliveries, see `job_deliver`. */
  handleDeliveries(payload: string): void
  /** Wakes the claims of a queue, whose limit or pause has changed. */
  handleQueueChange(queue: string): void
  /** Wakes the claims that a limit, a pause or a drain holds back. */
  wakeHeld(): void
  /** Wakes all claims: a notification may have been lost. */
  wakeAll(): void
  /** Ends all waits now and later. */
  stop(): void
  readonly count: number
}

export interface ClaimWait {
  readonly queue: string
  readonly tasks: readonly string[] | null
  readonly waitMs: number
  readonly signal?: AbortSignal
}

export interface AttemptResult {
  /** True if the wait is over. */
  readonly isDone: boolean
  /** True if a limit or a pause holds jobs back: look again after a moment. */
  readonly isHeld: boolean
  /** True if a lock was in the way: look again very soon. */
  readonly mustRepeat: boolean
}

// Time after which a claim looks again: another transaction held a lock, or a limit was reached.
const REPEAT_MS = 20
const HELD_MS = 1_000

interface Waiter {
  readonly wait: ClaimWait
  /** Ends the current sleep; null while an attempt runs. */
  wake: (() => void) | null
  /** True if jobs may have come since the attempt began. */
  mustRepeat: boolean
  isHeld: boolean
}

export function createClaimWaits(): ClaimWaits {
  return new WaitingClaims()
}

class WaitingClaims implements ClaimWaits {
  readonly #byQueue = new Map<string, Set<Waiter>>()
  #isStopped = false

  get count(): number {
    return Array.from(this.#byQueue.values(), ({ size }) => size).reduce((sum, size) => sum + size, 0)
  }

  async run<T extends AttemptResult>(wait: ClaimWait, attempt: (leftMs: number) => Promise<T>): Promise<T> {
    const endsAt = performance.now() + wait.waitMs
    const waiter: Waiter = { wait, wake: null, mustRepeat: false, isHeld: false }
    const waiters = this.#byQueue.get(wait.queue) ?? new Set()
    this.#byQueue.set(wait.queue, waiters.add(waiter))
    try {
      for (;;) {
        waiter.mustRepeat = false
        const result = await attempt(Math.max(endsAt - performance.now(), 0))
        waiter.isHeld = result.isHeld
        const leftMs = endsAt - performance.now()
        if (result.isDone || leftMs <= 0 || this.#isOver(wait)) return result
        const repeatMs = result.mustRepeat ? REPEAT_MS : result.isHeld ? HELD_MS : Number.POSITIVE_INFINITY
        await this.#sleep(waiter, Math.min(leftMs, repeatMs))
        if (performance.now() >= endsAt || this.#isOver(wait)) return result
        // A claim that found nothing goes behind the others.
        waiters.delete(waiter)
        this.#byQueue.set(wait.queue, waiters.add(waiter))
      }
    } finally {
      waiters.delete(waiter)
      if (waiters.size === 0 && this.#byQueue.get(wait.queue) === waiters) this.#byQueue.delete(wait.queue)
    }
  }

  handleDeliveries(payload: string): void {
    if (payload === '') this.wakeAll()
    for (const part of payload.split(' ').filter((text) => text !== '')) {
      const colon = part.lastIndexOf(':')
      const { queue, task } = parseJobName(part.slice(0, colon))
      this.#wake(queue, task, Number(part.slice(colon + 1)))
    }
  }

  handleQueueChange(queue: string): void {
    this.#wake(queue, null, Number.POSITIVE_INFINITY)
  }

  wakeHeld(): void {
    for (const waiters of this.#byQueue.values()) for (const { isHeld, wake } of waiters) if (isHeld) wake?.()
  }

  wakeAll(): void {
    for (const queue of this.#byQueue.keys()) this.handleQueueChange(queue)
  }

  stop(): void {
    this.#isStopped = true
    this.wakeAll()
  }

  #isOver({ signal }: ClaimWait): boolean {
    return this.#isStopped || signal?.aborted === true
  }

  /** Wakes up to `count` sleeping claims, and repeats those that are under way. */
  #wake(queue: string, task: string | null, count: number): void {
    let left = count
    for (const waiter of this.#byQueue.get(queue) ?? []) {
      const { tasks } = waiter.wait
      if (left <= 0) return
      if (task !== null && tasks !== null && !tasks.includes(task)) continue
      if (waiter.wake === null) waiter.mustRepeat = true
      else {
        waiter.wake()
        left--
      }
    }
  }

  /** Resolves after `ms`, or once the claim is woken, also if that was during its attempt. */
  #sleep(waiter: Waiter, ms: number): Promise<void> {
    if (waiter.mustRepeat) return Promise.resolve()
    return new Promise((resolve) => {
      const { signal } = waiter.wait
      const wake = (): void => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', wake)
        waiter.wake = null
        resolve()
      }
      const timer = Number.isFinite(ms) ? setTimeout(wake, ms) : undefined
      signal?.addEventListener('abort', wake, { once: true })
      waiter.wake = wake
    })
  }
}
