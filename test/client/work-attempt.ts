import {
  AttemptStopped,
  type ClaimedJob,
  type Dependency,
  type JobContext,
  type LogLevel,
  PermanentError,
  type StopReason,
} from './work-types.ts'

/** An attempt of a job in a worker. */

/** Item of a report. */
export interface Item {
  readonly attempt: Attempt
  /** The item as JSON. */
  text: string
  /** End that it reports; null for others. */
  readonly end: 'done' | 'failed' | 'release' | null
  isSent: boolean
}

const MAX_DETAIL = 2000

/** One run of a job. Its methods may be destructured. */
export class Attempt implements JobContext {
  readonly job: ClaimedJob
  /** True once the service has answered for the end, or runs the job elsewhere. */
  isOver = false
  /** True once an end waits for its answer. */
  hasEnded = false
  hasStarted = false
  stopReason: StopReason | null = null
  readonly #push: (item: Item) => void
  #controller: AbortController | null = null
  #lastItem: Item | null = null
  #lastProgress: Item | null = null
  #count = 0
  #isReplaced = false

  constructor(job: ClaimedJob, push: (item: Item) => void) {
    this.job = job
    this.#push = push
  }

  /** True if it takes no more items. */
  get isClosed(): boolean {
    return this.hasEnded || this.isOver
  }
  get jobId(): string {
    return this.job.job_id
  }
  get attempt(): number {
    return this.job.attempt
  }
  get tries(): number {
    return this.job.tries
  }
  get maxTries(): number {
    return this.job.max_tries
  }
  get deadline(): Date | null {
    return this.job.deadline === null ? null : new Date(this.job.deadline)
  }
  get dependencies(): readonly Dependency[] {
    return this.job.dependencies ?? []
  }
  get traceparent(): string | null {
    return this.job.traceparent
  }
  /** Created at the first access, because most jobs need none. */
  get signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController()
      if (this.stopReason !== null) this.#controller.abort(new AttemptStopped(this.stopReason))
    }
    return this.#controller.signal
  }

  readonly progress = (label: string, current?: number, total?: number): void => {
    const progress = { label, current, total }
    const last = this.#lastProgress
    // A newer progress replaces the last item, under its number, unless that has been sent.
    if (last !== null && last === this.#lastItem && !last.isSent)
      last.text = this.#format({ progress }, this.#count)
    else this.#lastProgress = this.#add({ progress })
  }

  readonly emit = (kind: string, data: unknown): void => {
    this.#add({ event: { kind, data: data ?? null } })
  }

  readonly log = (message: string, data?: Record<string, unknown>, level: LogLevel = 'info'): void => {
    this.#add({ log: { level, message, data } })
  }

  /** Aborts the signal. Without a function that has started, the job is given back. */
  stop(reason: StopReason): void {
    this.stopReason ??= reason
    this.#controller?.abort(new AttemptStopped(reason))
    if (!this.hasStarted && reason === 'cancelled') this.release()
  }

  done(result: unknown): void {
    try {
      this.#end('done', this.#format({ done: { result: result ?? null } }))
    } catch (error) {
      this.fail(new PermanentError(`The result is not JSON: ${describe(error)}`))
    }
  }

  /** Reports an error that the function threw, or gives the job back if its signal was aborted. */
  fail(error: unknown): void {
    if (this.stopReason !== null) {
      this.release()
      return
    }
    const { retry, code, retryAfterSeconds } = Object(error) as Readonly<Record<string, unknown>>
    const failed = {
      // Other errors have codes of their own, such as those of Node.
      code: error instanceof PermanentError ? code : undefined,
      detail: describe(error),
      retry: retry !== false,
      retry_after_seconds: retryAfterSeconds,
    }
    this.#end('failed', this.#format({ failed }))
  }

  release(): void {
    this.#end('release', this.#format({ release: {} }))
  }

  /** Replaces an end that the service rejects. Returns false if it rejects all that the attempt can report. */
  replaceEnd({ end }: Item, reason: string): boolean {
    if (end !== 'done' && this.#isReplaced) return false
    this.#isReplaced = end !== 'done'
    this.hasEnded = false
    this.fail(new PermanentError(end === 'done' ? reason : 'The service rejects the report of this error'))
    return true
  }

  #add(fields: object): Item | null {
    return this.isClosed ? null : this.#record(this.#format(fields, ++this.#count), null)
  }

  #end(end: 'done' | 'failed' | 'release', text: string): void {
    if (this.isClosed) return
    this.hasEnded = true
    this.#record(text, end)
  }

  #record(text: string, end: Item['end']): Item {
    const item = { attempt: this, text, end, isSent: false }
    this.#lastItem = item
    this.#push(item)
    return item
  }

  #format(fields: object, n?: number): string {
    return JSON.stringify({ ...fields, job_id: this.job.job_id, attempt: this.job.attempt, n })
  }
}

const describe = (error: unknown): string =>
  (error instanceof Error ? error.message || error.name : String(error)).slice(0, MAX_DETAIL)
