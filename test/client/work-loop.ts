import { backoffMs, pause } from '../../edge/client/connection.ts'
import { type Answer, aborted, persist, type Send } from './work-calls.ts'
import { Lease, type LeaseEvents } from './work-lease.ts'
import { Runner } from './work-runner.ts'
import type { ClaimedJob, TaskFunction } from './work-types.ts'

/** Claims jobs for a worker, renews its lease, and stops it. */

export interface LoopOptions {
  readonly queue: string
  readonly worker: object
  readonly concurrency: number
  readonly leaseSeconds: number
  readonly stopSeconds: number
  readonly tasks: ReadonlyMap<string, TaskFunction>
  /** Tasks of a claim, with their declarations. */
  readonly declarations: readonly (string | object)[]
  readonly onError: (error: Error) => void
}

interface Claimed {
  readonly drain: boolean
  readonly jobs: readonly ClaimedJob[]
}

const MAX_JOBS = 500
const MAX_CLAIMS = 4
const WAIT_SECONDS = 30
const CLAIM_TIMEOUT_MS = (WAIT_SECONDS + 15) * 1000
// An empty answer that arrives earlier, for example of a paused queue, must not cause a busy loop.
const MIN_EMPTY_MS = 1000
/** Time that functions have to return after their signal is aborted. */
const ABORT_GRACE_MS = 2000
/** Time for the last reports and the return of the lease. */
const RETURN_GRACE_MS = 5000

export class Loop {
  readonly #options: LoopOptions
  readonly #send: Send
  readonly #events: LeaseEvents
  readonly #runner: Runner
  readonly #stopping = new AbortController()
  readonly #stopped = new AbortController()
  #lease: Lease
  #claims = 0
  /** Jobs that claims under way may get. */
  #reserved = 0
  /** True if the last claim got all jobs that it wanted, so that more are probably waiting. */
  #isBusy = false
  #hasDeclared = false
  #refusal: Error | null = null
  #emptyWaiters: (() => void)[] = []

  constructor(send: Send, options: LoopOptions) {
    this.#send = send
    this.#options = options
    this.#events = {
      onChange: () => this.#advance(),
      onLost: (lease) => this.#replace(lease),
      onRefused: (error) => this.#refuse(error),
      onError: options.onError,
    }
    this.#runner = new Runner(options.tasks, () => this.#advance())
    this.#lease = new Lease(send, this.#events)
  }

  /** Ends `run`, also before its call. */
  readonly stop = (): void => this.#stopping.abort()

  /** Works until it is stopped. @throws the refusal of the service */
  async run(): Promise<void> {
    const renewals = this.#renewRepeatedly()
    this.#advance()
    await aborted(this.#stopping.signal)
    await this.#finish()
    this.#stopped.abort()
    await renewals
    if (this.#refusal !== null) throw this.#refusal
  }

  /** Starts what may start: held attempts, then claims. */
  #advance(): void {
    if (this.#runner.running === 0) for (const resolve of this.#emptyWaiters.splice(0)) resolve()
    if (this.#stopping.signal.aborted) return
    this.#runner.advance(this.#lease)
    for (let max = this.#room(); max > 0; max = this.#room()) void this.#claim(this.#lease, max)
  }

  /** Returns the number of jobs to claim now. */
  #room(): number {
    const { concurrency } = this.#options
    const claims = this.#isBusy ? MAX_CLAIMS : 1
    if (this.#lease.isDrained || this.#runner.isAlone || this.#claims >= claims) return 0
    // Ends that wait for their answers leave room for other jobs, but a slow service must not let them pile up.
    const unanswered = 2 * concurrency - this.#lease.attempts.size - this.#reserved
    const free = Math.min(concurrency - this.#runner.size - this.#reserved, unanswered)
    const share = Math.ceil(concurrency / claims)
    return this.#claims === 0 || free >= share ? Math.min(free, MAX_JOBS) : 0
  }

  async #claim(lease: Lease, max: number): Promise<void> {
    this.#claims++
    this.#reserved += max
    const start = Date.now()
    const jobs = this.#accept(lease, await this.#requestJobs(lease, max))
    this.#isBusy = jobs.length === max
    this.#reserved -= max
    for (const job of jobs) this.#runner.add(lease.add(job))
    if (jobs.length === 0 && Date.now() - start < MIN_EMPTY_MS)
      await pause(MIN_EMPTY_MS, lease.claiming.signal)
    this.#claims--
    this.#advance()
  }

  /** Requests jobs until an answer arrives, under one claim id. */
  #requestJobs(lease: Lease, max: number): Promise<Answer> {
    const { queue, worker, leaseSeconds, tasks, declarations, onError } = this.#options
    const body = JSON.stringify({
      worker,
      lease_id: lease.id,
      lease_seconds: leaseSeconds,
      claim_id: crypto.randomUUID(),
      tasks: this.#hasDeclared ? [...tasks.keys()] : declarations,
      max,
      wait_seconds: WAIT_SECONDS,
    })
    const path = `/api/v1/worker-queues/${encodeURIComponent(queue)}/claims`
    const call = { path, body, timeoutMs: CLAIM_TIMEOUT_MS, signal: lease.claiming.signal }
    return persist(this.#send, call, onError)
  }

  #accept(lease: Lease, { error, json }: Answer): readonly ClaimedJob[] {
    if (lease.claiming.signal.aborted) return []
    if (error !== null) {
      this.#refuse(error)
      return []
    }
    const { drain, jobs } = json as Claimed
    this.#hasDeclared = true
    lease.isKnown = true
    lease.isDrained = drain
    return jobs
  }

  async #renewRepeatedly(): Promise<void> {
    const intervalMs = (this.#options.leaseSeconds * 1000) / 3
    for (let failures = 0; ; ) {
      await pause(failures === 0 ? intervalMs : backoffMs(failures, intervalMs), this.#stopped.signal)
      if (this.#stopped.signal.aborted) return
      if (!this.#lease.isKnown) continue
      failures = (await this.#lease.renew()) ? 0 : failures + 1
    }
  }

  /** Continues with a new lease after one has expired. */
  #replace(lease: Lease): void {
    if (lease !== this.#lease || lease.hasEnded) return
    this.#options.onError(new Error('The lease has expired; its jobs run elsewhere'))
    if (!this.#stopping.signal.aborted) this.#lease = new Lease(this.#send, this.#events)
    lease.end('superseded')
    // A claim under way may have got jobs after the lease had expired.
    void lease.return(RETURN_GRACE_MS)
    this.#advance()
  }

  #refuse(error: Error): void {
    this.#refusal ??= error
    this.stop()
  }

  async #finish(): Promise<void> {
    const lease = this.#lease
    lease.claiming.abort()
    this.#runner.drop()
    if (this.#refusal === null) await this.#within(this.#options.stopSeconds * 1000, this.#whenEmpty())
    lease.stopAttempts('stopping')
    await this.#within(ABORT_GRACE_MS, this.#whenEmpty())
    await this.#within(RETURN_GRACE_MS, lease.reporter.whenIdle())
    lease.end('stopping')
    await lease.return(RETURN_GRACE_MS)
  }

  /** Resolves when no function runs. */
  #whenEmpty(): Promise<void> {
    if (this.#runner.running === 0) return Promise.resolve()
    return new Promise((resolve) => this.#emptyWaiters.push(resolve))
  }

  async #within(ms: number, work: Promise<void>): Promise<void> {
    const end = new AbortController()
    await Promise.race([pause(ms, end.signal), work])
    end.abort()
  }
}
