import type { ClaimedJob } from '../../sql/jobs/claims.ts'
import { ALONE_FROM_DEATHS, type FinishEntry, MAX_CRASHES, SUSPECT_FROM_DEATHS } from '../../sql/jobs/jobs.ts'
import type { RunningJobs } from '../../sql/jobs/leases.ts'
import type { TallyOutcome } from '../../sql/jobs/tallies.ts'
import { computeBackoff, MAX_RETRY_MS, RETRY_BASE_MS } from '../../tasks/platform/backoff.ts'
import type { Log } from '../../tasks/platform/log.ts'
import type { Tallies } from '../../tasks/platform/tally.ts'
import type { Span, Tracing } from '../../tasks/platform/telemetry/tracing.ts'
import { DEFAULT_TIMEOUT_SECONDS, type TaskFinder } from '../../tasks/task.ts'
import { isWorkerJob, parseJobName } from '../../tasks/worker-queues/names.ts'
import type { IsolatedRunner } from '../processes/isolated-runner.ts'
import type { Pools } from '../threads/pools.ts'
import type { AbortReason, Outcome } from '../threads/protocol.ts'
import type { Ledger } from './ledger.ts'
import { endAttemptSpan, poolJobLogFields, startAttemptSpan } from './telemetry.ts'

/** Runs claimed jobs on threads or in isolated processes, and stores their outcomes. */
export interface Executor {
  /** Runs a claimed job; resolves when its outcome is stored. Never rejects. */
  run(job: ClaimedJob): Promise<void>
  /**
   * Handles the jobs that the database lists as running here: aborts cancelled ones and releases those that this
   * process does not run. `isComplete` is true if the list has all jobs of the lease, not only those in `ids`.
   */
  reconcile(running: RunningJobs['running'], isComplete?: boolean): void
  /** Returns log fields that identify a running job. */
  logFields(id: string): object
  /** Ids of the jobs that run here. */
  readonly ids: readonly string[]
  /** Aborts all running jobs after the lease is lost: other workers own them now. */
  supersedeAll(): void
  supersede(id: string, attempt: number): void
  /** Restarts the stall timer of an attempt that has reported something. */
  touch(event: { id: string; attempt: number }): void
  /** Aborts all running jobs and releases them for other workers. */
  releaseAll(): void
  readonly running: number
}

// Limits the delay that a provider asks for: a longer one is a mistake.
const MAX_ASKED_MS = 3_600_000
// Longest pause that a failed job passes on: some 23 days, within the integers of PostgreSQL.
const MAX_TOLD_MS = 2_000_000_000

// Interval of the checks for exceeded time limits. One timer serves all jobs, because thousands start per second.
const LIMIT_CHECK_MS = 100

interface RunningAttempt {
  /** The claimed job. If it is traced, its `trace_parent` is the span of this attempt. */
  readonly job: ClaimedJob
  /** Start time by `performance.now()`, the clock of all times in this interface. */
  readonly startedAt: number
  /** Null if the attempt is not traced. */
  readonly span: Span | null
  /** End of the time limit; Infinity until the job has a thread or process. */
  deadline: number
  /** Time when the attempt stalls unless it reports something. Infinity until the job has a thread or process. */
  stallsAt: number
  readonly stallMs: number
  /** Error detail once the attempt has exceeded a time limit; null before. */
  timeoutDetail: string | null
}

/** A job that the database lists as running here, but that this process does not run. */
interface UnknownJob {
  readonly attempt: number
  /** Number of claim statements answered when the job was first listed. */
  readonly claimsAnswered: number
}

export interface ExecutorOptions {
  readonly ledger: Ledger
  readonly pools: Pick<Pools, 'run' | 'abort'>
  /** Runs suspects: jobs that were running when processes died. */
  readonly isolatedRunner: Pick<IsolatedRunner, 'run' | 'abort'>
  readonly log: Log
  readonly findTask: TaskFinder
  readonly tallies: Omit<Tallies, 'close'>
  /** Called when an attempt ends with a delay before the next one, in ms. */
  readonly onDelayed?: (ms: number) => void
  /** Null or absent if tracing is disabled. */
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
  readonly #running = new Map<string, RunningAttempt>()
  #unknown = new Map<string, UnknownJob>()
  #sweeper: NodeJS.Timeout | undefined

  constructor(options: ExecutorOptions) {
    this.#options = options
    this.#retryMs = options.retryMs ?? RETRY_BASE_MS
  }

  get ids(): readonly string[] {
    return [...this.#running.keys()]
  }

  logFields(id: string): object {
    const found = this.#running.get(id)
    return found === undefined ? { jobId: id } : poolJobLogFields(found.job)
  }

  get running(): number {
    return this.#running.size
  }

  async run(claimed: ClaimedJob): Promise<void> {
    const { findTask, tracing } = this.#options
    const { queue, pool, stallSeconds } = findTask(claimed.name)
    const span = tracing == null ? null : startAttemptSpan(tracing, claimed, queue)
    const job = span === null ? claimed : { ...claimed, trace_parent: span.traceParent }
    // If an earlier attempt still runs here, another worker has taken the job over meanwhile: stop that attempt.
    const stale = this.#running.get(job.id)
    if (stale !== undefined) this.#abort(stale, 'superseded')
    const attempt: RunningAttempt = {
      job,
      span,
      startedAt: performance.now(),
      deadline: Number.POSITIVE_INFINITY,
      stallsAt: Number.POSITIVE_INFINITY,
      stallMs: (stallSeconds ?? Number.POSITIVE_INFINITY) * 1000,
      timeoutDetail: null,
    }
    this.#running.set(job.id, attempt)
    // An attempt that a stop has cut off never ends, and must not keep the process alive.
    this.#sweeper ??= setInterval(() => this.#sweep(), LIMIT_CHECK_MS).unref()
    const outcome = await this.#chooseRunner(job).run(queue, pool, job, () => this.#startLimits(attempt))
    await this.#finish(attempt, outcome)
  }

  reconcile(listed: RunningJobs['running'], isComplete = true): void {
    const { answered: claimsAnswered, isUnderWay } = this.#options.ledger.claims
    const stillUnknown = new Map<string, UnknownJob>()
    for (const { id, attempt, cancel } of listed) {
      const running = this.#running.get(id)
      if (running !== undefined && cancel) this.#abort(running, 'cancelled')
      if (running !== undefined) continue
      const known = this.#unknown.get(id)
      const seen = known?.attempt === attempt ? known : undefined
      // The claim may have succeeded although its answer was lost. Release the job once no answer can still arrive.
      if (seen !== undefined && (!isUnderWay || claimsAnswered > seen.claimsAnswered))
        void this.#options.ledger.finish({ id, attempt, outcome: 'release' })
      else stillUnknown.set(id, seen ?? { attempt, claimsAnswered })
    }
    if (isComplete) this.#unknown = stillUnknown
  }

  supersede(id: string, attempt: number): void {
    const running = this.#running.get(id)
    if (running?.job.attempt === attempt) this.#abort(running, 'superseded')
  }

  supersedeAll(): void {
    for (const attempt of this.#running.values()) this.#abort(attempt, 'superseded')
  }

  releaseAll(): void {
    for (const attempt of this.#running.values()) this.#abort(attempt, 'stopping')
  }

  touch({ id, attempt }: { id: string; attempt: number }): void {
    const running = this.#running.get(id)
    if (running?.job.attempt === attempt && running.timeoutDetail === null)
      running.stallsAt = performance.now() + running.stallMs
  }

  #chooseRunner(job: ClaimedJob): Pick<Pools, 'run' | 'abort'> {
    return job.interruptions < SUSPECT_FROM_DEATHS ? this.#options.pools : this.#options.isolatedRunner
  }

  /** Starts the time limits of an attempt once a thread or process has its job. */
  #startLimits(attempt: RunningAttempt): void {
    const { timeoutSeconds = DEFAULT_TIMEOUT_SECONDS } = this.#options.findTask(attempt.job.name)
    const now = performance.now()
    attempt.deadline = now + timeoutSeconds * 1000
    attempt.stallsAt = now + attempt.stallMs
  }

  #abort({ job }: RunningAttempt, reason: AbortReason): void {
    this.#chooseRunner(job).abort(job.id, job.attempt, reason)
  }

  #tally({ job, startedAt }: RunningAttempt, entry: FinishEntry): void {
    this.#options.tallies.countAttempt({
      queue: isWorkerJob(job.name) ? parseJobName(job.name).queue : this.#options.findTask(job.name).queue,
      name: job.name,
      outcome: chooseTallyOutcome(entry),
      runSeconds: (performance.now() - startedAt) / 1000,
      waitSeconds: job.waited,
    })
  }

  /** Aborts jobs that have exceeded a time limit. */
  #sweep(): void {
    const now = performance.now()
    for (const attempt of this.#running.values()) {
      if (now < attempt.deadline && now < attempt.stallsAt) continue
      const { timeoutSeconds = DEFAULT_TIMEOUT_SECONDS, stallSeconds } = this.#options.findTask(
        attempt.job.name,
      )
      attempt.timeoutDetail =
        now < attempt.deadline
          ? `The job reported nothing for ${stallSeconds} s`
          : `The job exceeded its time limit of ${timeoutSeconds} s`
      attempt.deadline = Number.POSITIVE_INFINITY
      attempt.stallsAt = Number.POSITIVE_INFINITY
      this.#abort(attempt, 'timeout')
    }
  }

  /** Stores the outcome of an attempt and stops tracking the attempt. */
  async #finish(attempt: RunningAttempt, outcome: Outcome): Promise<void> {
    const { ledger, log, tallies } = this.#options
    const { job, span } = attempt
    const { maxPauseSeconds } = this.#options.findTask(job.name)
    const entry = createFinishEntry(attempt, outcome, { retryMs: this.#retryMs, maxPauseSeconds })
    if (outcome.kind === 'failed' && outcome.code === 'database.too_slow')
      tallies.count('statements_too_slow')
    const isStored = entry !== null && (await ledger.finish(entry))
    if (isStored) this.#tally(attempt, entry)
    if (isStored && entry.delay_ms) this.#options.onDelayed?.(entry.delay_ms)
    if (span !== null) endAttemptSpan(span, outcome, isStored ? entry : null)
    if (this.#running.get(job.id) === attempt) this.#running.delete(job.id)
    if (entry?.outcome !== 'done') log.info({ ...poolJobLogFields(job), outcome }, 'An attempt ended')
    if (this.#running.size > 0) return
    clearInterval(this.#sweeper)
    this.#sweeper = undefined
  }
}

/**
 * Returns the outcome to count. A crash counts as an interruption until the ledger gives the job up, then as a failure.
 */
function chooseTallyOutcome({ outcome, interruptions = 0 }: FinishEntry): TallyOutcome {
  if (outcome === 'wait') return 'release'
  if (outcome !== 'crashed') return outcome
  return interruptions >= ALONE_FROM_DEATHS + MAX_CRASHES ? 'failed' : 'interrupted'
}

const CRASH_FAILURE = { code: 'job.crashed', detail: 'The worker thread crashed while running the job' }
const GIVEN_UP_FAILURE = {
  code: 'job.crashed',
  detail: `The job was given up after ${MAX_CRASHES} crashes of its isolated process`,
}

/**
 * Returns a suspect's interruptions after its isolated process died. The number decides with how many others it runs
 * next, see `chooseGroupSize`. A job that was alone skips the sizes of groups.
 */
const countInterruptions = ({ interruptions }: ClaimedJob, host: 'group' | 'isolated'): number =>
  (host === 'group' ? interruptions : Math.max(interruptions, ALONE_FROM_DEATHS)) + 1

interface RetryLimits {
  /** Delay before the first retry, in ms. */
  readonly retryMs: number
  /** Longest pause of a provider for which the job waits; undefined means {@link MAX_ASKED_MS}. */
  readonly maxPauseSeconds: number | undefined
}

/** Returns the ledger entry for an outcome; null if another worker has taken the job over. */
function createFinishEntry(
  { job, timeoutDetail }: RunningAttempt,
  outcome: Outcome,
  limits: RetryLimits,
): FinishEntry | null {
  const { id, attempt } = job
  const { retryMs } = limits
  switch (outcome.kind) {
    case 'done':
      return { id, attempt, outcome: 'done', result: outcome.result }
    case 'failed':
      return createFailureEntry(job, outcome, limits)
    case 'crashed':
      // Any job in the thread may be the cause, so the crash counts as a failed try for none of them.
      if (outcome.host === 'shared') return { id, attempt, outcome: 'interrupted', delay_ms: retryMs }
      if (outcome.host === 'group' || outcome.host === 'isolated')
        return {
          id,
          attempt,
          outcome: 'crashed',
          interruptions: countInterruptions(job, outcome.host),
          ...GIVEN_UP_FAILURE,
          delay_ms: retryMs,
        }
      return createFailureEntry(job, { ...CRASH_FAILURE, retry: 'later' }, limits)
    case 'waiting':
      return { id, attempt, outcome: 'wait' }
    case 'released':
      return { id, attempt, outcome: 'release', delay_ms: outcome.delayMs }
    case 'aborted':
      if (outcome.reason === 'superseded') return null
      if (outcome.reason === 'cancelled') return { id, attempt, outcome: 'cancelled' }
      if (outcome.reason === 'stopping') return { id, attempt, outcome: 'release' }
      return createFailureEntry(
        job,
        { code: 'job.timeout', detail: timeoutDetail ?? 'The job took too long', retry: 'later' },
        limits,
      )
  }
}

/** Returns the entry for a retry with backoff, a failure, or a release after a database outage. */
function createFailureEntry(
  job: ClaimedJob,
  failure: Omit<Outcome & { kind: 'failed' }, 'kind'>,
  { retryMs, maxPauseSeconds = Number.POSITIVE_INFINITY }: RetryLimits,
): FinishEntry {
  const { id, attempt, tries } = job
  const { code, detail, retry, retryAfter = 0 } = failure
  const pause = retryAfter > 0 ? { delay_ms: Math.min(retryAfter * 1000, MAX_TOLD_MS) } : {}
  const failed: FinishEntry = { id, attempt, outcome: 'failed', code, detail, ...pause }
  if (retryAfter > maxPauseSeconds) return failed
  const askedMs = Math.min(retryAfter * 1000, MAX_ASKED_MS)
  if (retry === 'free')
    return {
      id,
      attempt,
      outcome: 'release',
      code,
      detail,
      delay_ms: Math.ceil(askedMs > 0 ? askedMs : retryMs),
    }
  if (retry === 'never' || tries >= job.max_tries) return failed
  const backoff = computeBackoff(retryMs, tries, MAX_RETRY_MS)
  const delay_ms = Math.round(Math.max(backoff, askedMs))
  return { id, attempt, outcome: 'retry', code, detail, delay_ms }
}
