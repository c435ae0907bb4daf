import type { Claimed } from '../../sql/jobs/claims.ts'
import type { TallyOutcome } from '../../sql/jobs/tallies.ts'
import { type FinishEntry, type Heartbeat, MAX_CRASHES, SUSPECT_FROM } from '../../sql/jobs.ts'
import type { Log } from '../../tasks/log.ts'
import type { TaskFinder } from '../../tasks/task.ts'
import type { Span, Tracing } from '../../tasks/telemetry/tracing.ts'
import type { Alone } from '../processes/alone.ts'
import type { Pools } from '../threads/pools.ts'
import type { AbortReason, Outcome } from '../threads/protocol.ts'
import type { Ledger } from './ledger.ts'
import type { Tallies } from './tally.ts'
import { aboutPoolJob, endAttemptSpan, startAttemptSpan } from './telemetry.ts'

/** Runs claimed jobs, each on a thread or alone, until their outcome is stored. */
export interface Executor {
  /** Runs a claimed job; resolves when its outcome is stored. Never rejects. */
  run(job: Claimed): Promise<void>
  /**
   * Compares the jobs that the database lists as running here with those that are, and aborts cancelled ones. `whole`:
   * the list is complete, and not limited to `ids`.
   */
  reconcile(running: Heartbeat['running'], whole?: boolean): void
  /** How log lines name a job that runs here. */
  about(id: string): object
  /** The jobs that are known to run here. */
  readonly ids: readonly string[]
  /** The lease is lost: all jobs here belong to other workers now. */
  supersedeAll(): void
  supersede(id: string, attempt: number): void
  /** An attempt has reported something: it has not stalled. */
  touch(event: { id: string; attempt: number }): void
  /** Aborts all running jobs and releases them for other workers. */
  releaseAll(): void
  readonly running: number
}

const DEFAULT_TIMEOUT_SECONDS = 3600
// The first retry comes after about a second, the tenth after about five minutes.
const RETRY_BASE_MS = 1000
const RETRY_MOST_MS = 300_000

// The precision of limits: one timer checks all running jobs, so that thousands a second need no timers of their own.
const SWEEP_MS = 100

interface Running {
  /** With its attempt's span as what it belongs to, if it is traced. */
  readonly job: Claimed
  /** By `performance.now()`, as the times below. */
  readonly startedAt: number
  readonly span: Span | null
  /**
   * By when it must have ended, and by when it must have reported something; never while it waits for a thread or a
   * process.
   */
  endsBy: number
  reportsBy: number
  readonly silenceMs: number
  /** Which limit it has exceeded. */
  overdue: string | null
}

/** A job that the database lists as running here, but that is not known here. */
interface Unknown {
  readonly attempt: number
  /** How many claims had been answered when it was first seen. */
  readonly answered: number
}

export interface ExecutorOptions {
  readonly ledger: Ledger
  readonly pools: Pick<Pools, 'run' | 'abort'>
  /** For suspects, which share their process with no other job. */
  readonly alone: Pick<Alone, 'run' | 'abort'>
  readonly log: Log
  readonly taskNamed: TaskFinder
  readonly tallies: Pick<Tallies, 'ended' | 'count'>
  /** Absent, null: nothing is traced. */
  readonly tracing?: Tracing | null
  /** Delay before the first retry, in ms; it doubles with each further retry. */
  readonly retryMs?: number
}

export function createExecutor(options: ExecutorOptions): Executor {
  return new JobExecutor(options)
}

class JobExecutor implements Executor {
  readonly #options: ExecutorOptions
  readonly #retryMs: number
  readonly #running = new Map<string, Running>()
  #unknown = new Map<string, Unknown>()
  #sweeper: NodeJS.Timeout | undefined

  constructor(options: ExecutorOptions) {
    this.#options = options
    this.#retryMs = options.retryMs ?? RETRY_BASE_MS
  }

  get ids(): readonly string[] {
    return [...this.#running.keys()]
  }

  about(id: string): object {
    const found = this.#running.get(id)
    return found === undefined ? { jobId: id } : aboutPoolJob(found.job)
  }

  get running(): number {
    return this.#running.size
  }

  async run(claimed: Claimed): Promise<void> {
    const { taskNamed, tracing } = this.#options
    const { queue, pool, stallSeconds } = taskNamed(claimed.name)
    const span = tracing == null ? null : startAttemptSpan(tracing, claimed, queue)
    const job = span === null ? claimed : { ...claimed, trace_parent: span.traceParent }
    // The job was taken over and has come back here: its old attempt is void.
    const old = this.#running.get(job.id)
    if (old !== undefined) this.#abort(old, 'superseded')
    const mine: Running = {
      job,
      span,
      startedAt: performance.now(),
      endsBy: Number.POSITIVE_INFINITY,
      reportsBy: Number.POSITIVE_INFINITY,
      silenceMs: (stallSeconds ?? Number.POSITIVE_INFINITY) * 1000,
      overdue: null,
    }
    this.#running.set(job.id, mine)
    this.#sweeper ??= setInterval(() => this.#sweep(), SWEEP_MS)
    await this.#end(mine, await this.#runnerOf(job).run(queue, pool, job, () => this.#begin(mine)))
  }

  reconcile(held: Heartbeat['running'], whole = true): void {
    const { answered, isUnderWay } = this.#options.ledger.claims
    const still = new Map<string, Unknown>()
    for (const { id, attempt, cancel } of held) {
      const found = this.#running.get(id)
      if (found !== undefined && cancel) this.#abort(found, 'cancelled')
      if (found !== undefined) continue
      const seen = this.#unknown.get(id)
      // Claimed, but the answer never arrived: the job is released once that is certain.
      if (seen?.attempt === attempt && (!isUnderWay || answered > seen.answered))
        void this.#options.ledger.finish({ id, attempt, outcome: 'release' })
      else still.set(id, seen?.attempt === attempt ? seen : { attempt, answered })
    }
    if (whole) this.#unknown = still
  }

  supersede(id: string, attempt: number): void {
    const found = this.#running.get(id)
    if (found?.job.attempt === attempt) this.#abort(found, 'superseded')
  }

  supersedeAll(): void {
    for (const one of this.#running.values()) this.#abort(one, 'superseded')
  }

  releaseAll(): void {
    for (const one of this.#running.values()) this.#abort(one, 'stopping')
  }

  touch({ id, attempt }: { id: string; attempt: number }): void {
    const found = this.#running.get(id)
    if (found?.job.attempt === attempt && found.overdue === null)
      found.reportsBy = performance.now() + found.silenceMs
  }

  #runnerOf(job: Claimed): Pick<Pools, 'run' | 'abort'> {
    return job.interruptions < SUSPECT_FROM ? this.#options.pools : this.#options.alone
  }

  /** Its limits count from here. */
  #begin(mine: Running): void {
    const { timeoutSeconds = DEFAULT_TIMEOUT_SECONDS } = this.#options.taskNamed(mine.job.name)
    const now = performance.now()
    mine.endsBy = now + timeoutSeconds * 1000
    mine.reportsBy = now + mine.silenceMs
  }

  #abort({ job }: Running, reason: AbortReason): void {
    this.#runnerOf(job).abort(job.id, job.attempt, reason)
  }

  #count({ job, startedAt }: Running, entry: FinishEntry): void {
    this.#options.tallies.ended({
      queue: this.#options.taskNamed(job.name).queue,
      name: job.name,
      outcome: tallied(entry, job),
      runSeconds: (performance.now() - startedAt) / 1000,
      waitSeconds: job.waited,
    })
  }

  /** Aborts jobs that have exceeded one of their limits. */
  #sweep(): void {
    const now = performance.now()
    for (const one of this.#running.values()) {
      if (now < one.endsBy && now < one.reportsBy) continue
      const { timeoutSeconds = DEFAULT_TIMEOUT_SECONDS, stallSeconds } = this.#options.taskNamed(one.job.name)
      one.overdue =
        now < one.endsBy
          ? `The job reported nothing for ${stallSeconds} s`
          : `The job exceeded its time limit of ${timeoutSeconds} s`
      one.endsBy = Number.POSITIVE_INFINITY
      one.reportsBy = Number.POSITIVE_INFINITY
      this.#abort(one, 'timeout')
    }
  }

  /** Stores the outcome of an attempt, then forgets the attempt. */
  async #end(mine: Running, outcome: Outcome): Promise<void> {
    const { ledger, log, tallies } = this.#options
    const { job } = mine
    const entry = finishEntry(mine, outcome, this.#retryMs)
    if (outcome.kind === 'failed' && outcome.code === 'database.too_slow')
      tallies.count('statements_too_slow')
    const isStored = entry !== null && (await ledger.finish(entry))
    if (isStored) this.#count(mine, entry)
    if (mine.span !== null) endAttemptSpan(mine.span, outcome, isStored ? entry : null)
    if (this.#running.get(job.id) === mine) this.#running.delete(job.id)
    if (entry?.outcome !== 'done') log.info({ ...aboutPoolJob(job), outcome }, 'An attempt ended')
    if (this.#running.size > 0) return
    clearInterval(this.#sweeper)
    this.#sweeper = undefined
  }
}

/** What an outcome comes to: a job that only crashes fails in the end. */
function tallied({ outcome }: FinishEntry, { interruptions }: Claimed): TallyOutcome {
  if (outcome !== 'crashed') return outcome
  return interruptions + 1 >= SUSPECT_FROM + MAX_CRASHES ? 'failed' : 'interrupted'
}

const CRASHED = { code: 'job.crashed', detail: 'The worker thread crashed while running the job' }
const GIVEN_UP = {
  code: 'job.crashed',
  detail: `The job was given up: the process that ran only this job died ${MAX_CRASHES} times`,
}

/** The ledger entry for an outcome; null when the attempt is not ours to end. */
function finishEntry({ job, overdue }: Running, outcome: Outcome, retryMs: number): FinishEntry | null {
  const { id, attempt } = job
  const limited = job.mailbox_limit === null ? null : job.mailbox
  switch (outcome.kind) {
    case 'done':
      return { id, attempt, outcome: 'done', result: outcome.result, limited }
    case 'failed':
      return failed(job, outcome, retryMs)
    case 'crashed':
      // Any one of them may be the cause, and the others have done nothing wrong: it counts as no job's failure.
      if (outcome.among === 'others') return { id, attempt, outcome: 'interrupted', delay_ms: retryMs }
      if (outcome.among === 'nobody')
        return { id, attempt, outcome: 'crashed', ...GIVEN_UP, delay_ms: retryMs }
      return failed(job, { ...CRASHED, retryable: true }, retryMs)
    case 'aborted':
      if (outcome.reason === 'superseded') return null
      if (outcome.reason === 'cancelled') return { id, attempt, outcome: 'cancelled' }
      if (outcome.reason === 'stopping') return { id, attempt, outcome: 'release' }
      return failed(
        job,
        { code: 'job.timeout', detail: overdue ?? 'The job took too long', retryable: true },
        retryMs,
      )
  }
}

function failed(
  job: Claimed,
  failure: Omit<Outcome & { kind: 'failed' }, 'kind'>,
  retryMs: number,
): FinishEntry {
  const { id, attempt, tries } = job
  const { code, detail, retryable, retryAfter = 0 } = failure
  // An outage is not the job's failure: a long job may see any number of them.
  if (code === 'database.down') return { id, attempt, outcome: 'release', code, detail, delay_ms: retryMs }
  if (!retryable || tries >= job.max_tries) return { id, attempt, outcome: 'failed', code, detail }
  const backoff = Math.min(retryMs * 2 ** (tries - 1), RETRY_MOST_MS) * (0.75 + Math.random() / 2)
  // A pause that a provider asked for is granted, but it doesn't hold a job forever.
  const delay_ms = Math.round(Math.max(backoff, Math.min(retryAfter * 1000, RETRY_MOST_MS)))
  return { id, attempt, outcome: 'retry', code, detail, delay_ms }
}
