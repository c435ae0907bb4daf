import { Attempt } from './work-attempt.ts'
import { type Answer, persist, type Send } from './work-calls.ts'
import { Reporter } from './work-reports.ts'
import type { ClaimedJob, StopReason } from './work-types.ts'

/** A lease of a worker, and the attempts that run under it. */

export interface LeaseEvents {
  /** An attempt is over, so that the worker has room. */
  onChange(): void
  /** The lease has expired. */
  onLost(lease: Lease): void
  /** The service refuses the worker. */
  onRefused(error: Error): void
  onError(error: Error): void
}

interface Renewal {
  readonly cancelled: readonly string[]
  readonly superseded: readonly string[]
  readonly drain: boolean
}

const TIMEOUT_MS = 15_000

export class Lease {
  readonly id = crypto.randomUUID()
  /** Attempts by job, including those whose end waits for its answer. */
  readonly attempts = new Map<string, Attempt>()
  /** Aborted when the lease gets no more jobs. */
  readonly claiming = new AbortController()
  readonly reporter: Reporter
  /** True once the service has answered a claim: then it has the lease. */
  isKnown = false
  isDrained = false
  readonly #ended = new AbortController()
  readonly #send: Send
  readonly #path = `/api/v1/workers/leases/${this.id}`
  readonly #events: LeaseEvents

  constructor(send: Send, events: LeaseEvents) {
    this.#send = send
    this.#events = events
    this.reporter = new Reporter(send, `${this.#path}/reports`, this.#ended.signal, {
      onEnded: (attempt) => this.#remove(attempt),
      onSuperseded: (attempt) => this.#supersede(attempt),
      onLost: () => events.onLost(this),
      onRefused: events.onRefused,
      onError: events.onError,
    })
  }

  get hasEnded(): boolean {
    return this.#ended.signal.aborted
  }

  /** Adds a claimed job. A later attempt of a job ends the earlier one. */
  add(job: ClaimedJob): Attempt {
    const earlier = this.attempts.get(job.job_id)
    if (earlier !== undefined) this.#supersede(earlier)
    const attempt = new Attempt(job, this.reporter.push)
    this.attempts.set(job.job_id, attempt)
    return attempt
  }

  /** Renews the lease and stops the attempts that the service names. Returns false if no answer arrives. */
  async renew(): Promise<boolean> {
    // The answer has ids of jobs, of which a later attempt may have been claimed meanwhile.
    const named = new Map(this.attempts)
    const jobs = [...named.values()].map(({ job }) => ({ job_id: job.job_id, attempt: job.attempt }))
    const body = JSON.stringify({ jobs })
    const signal = this.#ended.signal
    const answer = await this.#send({ path: this.#path, body, timeoutMs: TIMEOUT_MS, signal })
    if (this.hasEnded) return true
    if (answer.error === null) this.#apply(answer.json as Renewal, named)
    else if (answer.status === 404) this.#events.onLost(this)
    else if (answer.status === 401 || answer.status === 403) this.#events.onRefused(answer.error)
    else this.#events.onError(answer.error)
    return answer.error === null
  }

  /** Aborts the signals of all attempts. */
  stopAttempts(reason: StopReason): void {
    for (const attempt of this.attempts.values()) attempt.stop(reason)
  }

  /** Forgets all attempts and reports, and stops the requests of the lease. */
  end(reason: StopReason): void {
    this.claiming.abort()
    this.#ended.abort()
    for (const attempt of [...this.attempts.values()]) this.#remove(attempt, reason)
  }

  /** Gives all jobs back. */
  return(timeoutMs: number): Promise<Answer> {
    const signal = AbortSignal.timeout(timeoutMs)
    const call = { method: 'DELETE', path: this.#path, timeoutMs, signal } as const
    return persist(this.#send, call, this.#events.onError)
  }

  #apply({ cancelled, superseded, drain }: Renewal, named: ReadonlyMap<string, Attempt>): void {
    this.isDrained = drain
    const isCurrent = (attempt: Attempt | undefined): attempt is Attempt =>
      attempt !== undefined && !attempt.isClosed
    for (const attempt of superseded.map((id) => named.get(id)))
      if (isCurrent(attempt)) this.#supersede(attempt)
    for (const attempt of cancelled.map((id) => named.get(id)))
      if (isCurrent(attempt)) attempt.stop('cancelled')
    this.#events.onChange()
  }

  #supersede(attempt: Attempt): void {
    this.#remove(attempt, 'superseded')
  }

  #remove(attempt: Attempt, reason?: StopReason): void {
    attempt.isOver = true
    if (reason !== undefined) attempt.stop(reason)
    if (this.attempts.get(attempt.job.job_id) === attempt) this.attempts.delete(attempt.job.job_id)
    this.#events.onChange()
  }
}
