import type { Attempt, Item } from './work-attempt.ts'
import { type Answer, persist, type Send } from './work-calls.ts'

/** Reports of a lease: one request at a time, while the next batch gathers. */

/** Receives what the service says about reports. */
export interface ReportEvents {
  /** The service has accepted the end. */
  onEnded(attempt: Attempt): void
  onSuperseded(attempt: Attempt): void
  /** The lease has expired. */
  onLost(): void
  /** The service refuses the worker. */
  onRefused(error: Error): void
  onError(error: Error): void
}

const MAX_ITEMS = 1000
// At least one item is sent, which may have 1 MiB.
const MAX_BATCH_CHARACTERS = 1_000_000
const TIMEOUT_MS = 30_000
/** Statuses that reject a batch for one of its items. */
const REJECTIONS: ReadonlySet<number> = new Set([400, 413, 422])

interface Outcome {
  readonly status: 'ok' | 'superseded' | 'invalid'
  readonly reason?: string
}

export class Reporter {
  readonly #send: Send
  readonly #path: string
  readonly #signal: AbortSignal
  readonly #events: ReportEvents
  #pending: Item[] = []
  #isFlushing = false
  #idleWaiters: (() => void)[] = []

  /** @param signal drops all items when aborted. */
  constructor(send: Send, path: string, signal: AbortSignal, events: ReportEvents) {
    this.#send = send
    this.#path = path
    this.#signal = signal
    this.#events = events
    signal.addEventListener('abort', () => this.#clear(), { once: true })
  }

  readonly push = (item: Item): void => {
    if (this.#signal.aborted) return
    this.#pending.push(item)
    if (this.#isFlushing) return
    this.#isFlushing = true
    // Gathers the items of this turn of the event loop.
    setTimeout(() => void this.#flush(), 0)
  }

  /** Resolves when all items have been answered or dropped. */
  whenIdle(): Promise<void> {
    if (!this.#isFlushing) return Promise.resolve()
    return new Promise((resolve) => this.#idleWaiters.push(resolve))
  }

  #clear(): void {
    this.#pending = []
  }

  async #flush(): Promise<void> {
    while (this.#pending.length > 0) await this.#deliver(this.#take())
    this.#isFlushing = false
    for (const resolve of this.#idleWaiters.splice(0)) resolve()
  }

  #take(): Item[] {
    let [count, characters] = [0, 0]
    for (const item of this.#pending) {
      characters += item.text.length
      if (count === MAX_ITEMS || (count > 0 && characters > MAX_BATCH_CHARACTERS)) break
      item.isSent = true
      count++
    }
    return this.#pending.splice(0, count)
  }

  async #deliver(items: readonly Item[]): Promise<void> {
    const body = `{"items":[${items.map(({ text }) => text).join(',')}]}`
    const call = { path: this.#path, body, timeoutMs: TIMEOUT_MS, signal: this.#signal }
    const answer = await persist(this.#send, call, this.#events.onError)
    if (this.#signal.aborted) return
    if (answer.error === null) this.#settleAll(items, answer)
    else if (answer.status === 404) this.#events.onLost()
    else if (!REJECTIONS.has(answer.status)) this.#events.onRefused(answer.error)
    else if (items.length === 1) this.#settle(items[0]!, { status: 'invalid', reason: answer.error.message })
    else {
      const half = items.length >> 1
      await this.#deliver(items.slice(0, half))
      await this.#deliver(items.slice(half))
    }
  }

  #settleAll(items: readonly Item[], answer: Answer): void {
    const outcomes = (answer.json as { readonly items: readonly Outcome[] }).items
    for (const [n, item] of items.entries()) this.#settle(item, outcomes[n]!)
  }

  #settle(item: Item, { status, reason = 'The service rejects the item' }: Outcome): void {
    const { attempt, end } = item
    if (attempt.isOver) return
    if (status === 'superseded') {
      // The answer to the end decides, because a repeated report finds the attempt ended.
      if (end !== null || !attempt.hasEnded) this.#events.onSuperseded(attempt)
    } else if (status === 'ok') {
      if (end !== null) this.#events.onEnded(attempt)
    } else if (end === null) this.#events.onError(new Error(`${attempt.job.task}: ${reason}`))
    else if (!attempt.replaceEnd(item, reason)) this.#events.onSuperseded(attempt)
  }
}
