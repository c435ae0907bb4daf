import { parseJobName } from './names.ts'

/** Claims that wait for jobs of worker queues. Notifications wake them. */
export interface ClaimWaits {
  /** Runs `attempt` until its result is done, or the time is over, or the signal aborts. Returns its last result. */
  run<T extends AttemptResult>(wait: ClaimWait, attempt: (leftMs: number) => Promise<T>): Promise<T>
  /** Wakes claims for a notification of new deliveries, see `job_deliver`. */
  handleDeliveries(payload: string): void
  /** Wakes claims that a limit has held back, after the ends of `count` jobs of the queue. */
  handleEnds(queue: string, count: number): void
  /** Wakes the claims of a queue, whose limit, pause or endpoint has changed. */
  handleQueueChange(queue: string): void
  /** Wakes claims of workers that may have been resumed. */
  handleWorkerChange(): void
  /** Wakes all claims: a notification may have been lost. */
  wakeAll(): void
  /** Ends all waits now and later. */
  stop(): void
  readonly count: number
}

export interface ClaimWait {
  readonly queue: string
  /** Null for all tasks. */
  readonly tasks: readonly string[] | null
  readonly waitMs: number
  readonly signal?: AbortSignal
}

export interface AttemptResult {
  /** True if the wait is over. */
  readonly isDone: boolean
  /**
   * Reason for which no job may start now. A notification ends `queue`. Jobs that end elsewhere end `limit`, so one claim of a
   * queue polls for all, and `lease`, which is rare.
   */
  readonly held: 'limit' | 'lease' | 'queue' | null
  /** True if a lock was in the way: look again very soon. */
  readonly mustRepeat: boolean
}

const REPEAT_MS = 20
const POLL_MS = 1_000

interface Waiter {
  readonly wait: ClaimWait
  /** Ends the current sleep; null while an attempt runs. */
  wake: (() => void) | null
  /** True if jobs may have come since the last attempt began. */
  mustRepeat: boolean
  held: AttemptResult['held']
  /** True if this claim polls for all of its queue that a limit holds. */
  isPolling: boolean
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
    const waiter: Waiter = { wait, wake: null, mustRepeat: false, held: null, isPolling: false }
    this.#add(waiter)
    let hasFailed = true
    try {
      for (;;) {
        waiter.mustRepeat = false
        hasFailed = true
        const result = await attempt(Math.max(endsAt - performance.now(), 0))
        hasFailed = false
        waiter.held = result.held
        const leftMs = endsAt - performance.now()
        if (result.isDone || leftMs <= 0 || this.#isOver(wait)) return result
        await this.#sleep(waiter, Math.min(leftMs, this.#choosePause(waiter, result)))
        if (performance.now() >= endsAt || this.#isOver(wait)) return result
        // A claim that found nothing goes behind the others.
        this.#remove(waiter)
        this.#add(waiter)
      }
    } finally {
      this.#remove(waiter)
      this.#handOn(waiter, hasFailed)
    }
  }

  handleDeliveries(payload: string): void {
    if (payload === '') this.wakeAll()
    for (const part of payload.split(' ').filter((text) => text !== '')) {
      const colon = part.lastIndexOf(':')
      const { queue, task } = parseJobName(part.slice(0, colon))
      const isAble = ({ held, wait }: Waiter) => held === null && (wait.tasks?.includes(task) ?? true)
      this.#wake(queue, Number(part.slice(colon + 1)), isAble)
    }
  }

  handleEnds(queue: string, count: number): void {
    this.#wake(queue, count, ({ held }) => held === 'limit' || held === 'lease')
  }

  handleQueueChange(queue: string): void {
    this.#wake(queue, Number.POSITIVE_INFINITY, () => true)
  }

  handleWorkerChange(): void {
    for (const queue of this.#byQueue.keys())
      this.#wake(queue, Number.POSITIVE_INFINITY, ({ held }) => held === 'queue')
  }

  wakeAll(): void {
    for (const queue of this.#byQueue.keys()) this.handleQueueChange(queue)
  }

  stop(): void {
    this.#isStopped = true
    this.wakeAll()
  }

  #add(waiter: Waiter): void {
    const { queue } = waiter.wait
    this.#byQueue.set(queue, (this.#byQueue.get(queue) ?? new Set()).add(waiter))
  }

  #remove(waiter: Waiter): void {
    const { queue } = waiter.wait
    const waiters = this.#byQueue.get(queue)
    waiters?.delete(waiter)
    if (waiters?.size === 0) this.#byQueue.delete(queue)
  }

  /** Wakes another claim if this one may have been woken in vain, or has polled for others. */
  #handOn({ wait: { queue }, mustRepeat, isPolling }: Waiter, hasFailed: boolean): void {
    if (mustRepeat || hasFailed) this.#wake(queue, 1, ({ held }) => held === null)
    if (isPolling) this.#passPolling(queue)
  }

  /** Lets another claim of the queue poll for those that the limit holds, beginning now. */
  #passPolling(queue: string): void {
    const next = [...(this.#byQueue.get(queue) ?? [])].find(
      ({ held, isPolling }) => held === 'limit' && !isPolling,
    )
    if (next === undefined) return
    next.isPolling = true
    next.mustRepeat = true
    next.wake?.()
  }

  #isOver({ signal }: ClaimWait): boolean {
    return this.#isStopped || signal?.aborted === true
  }

  /** Returns the longest time after which a claim looks again, in ms. */
  #choosePause(waiter: Waiter, { mustRepeat, held }: AttemptResult): number {
    const { queue } = waiter.wait
    const hadPolled = waiter.isPolling
    waiter.isPolling = held === 'limit' && (hadPolled || !this.#isPolled(queue))
    // The limit allows more: others may start, too.
    if (hadPolled && !waiter.isPolling) this.#passPolling(queue)
    if (mustRepeat) return REPEAT_MS
    return held === 'lease' || waiter.isPolling ? POLL_MS : Number.POSITIVE_INFINITY
  }

  #isPolled(queue: string): boolean {
    return [...(this.#byQueue.get(queue) ?? [])].some(({ isPolling }) => isPolling)
  }

  /** Wakes up to `count` sleeping claims that are able to start jobs, and repeats those whose attempt is under way. */
  #wake(queue: string, count: number, isAble: (waiter: Waiter) => boolean): void {
    let left = count
    for (const waiter of this.#byQueue.get(queue) ?? []) {
      if (left <= 0) return
      if (waiter.wake === null) waiter.mustRepeat = true
      else if (isAble(waiter)) {
        waiter.mustRepeat = true
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
