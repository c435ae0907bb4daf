import type { Claimed } from '../../sql/jobs/claims.ts'
import { type FinishEntry, type Heartbeat, MOST_CRASHES, SUSPECT_FROM } from '../../sql/jobs.ts'
import type { TaskFinder } from '../../tasks/index.ts'
import type { Log } from '../../tasks/log.ts'
import type { Alone } from '../processes/alone.ts'
import type { Pools } from '../threads/pools.ts'
import type { AbortReason, Outcome } from '../threads/protocol.ts'
import type { Ledger } from './ledger.ts'

/** Runs claimed jobs: each on a thread, or alone, until it is stored how it ended. */
export interface Executor {
  /** Runs a job that was claimed; resolves when its end is stored. Rejects never. */
  attempt(job: Claimed): Promise<void>
  /**
   * Compares what the database holds to be running here with what is, and passes cancellations on. `whole`: that is all it
   * holds, and not only what of `ids` it does.
   */
  reconcile(running: Heartbeat['running'], whole?: boolean): void
  /** What runs here, as far as is known. */
  readonly ids: readonly string[]
  /** The lease is gone: everything here belongs to others now. */
  supersedeAll(): void
  supersede(id: string, attempt: number): void
  /** An attempt has reported something: it has not stalled. */
  heard(event: { id: string; attempt: number }): void
  /** Cuts short what runs, and releases it for other workers. */
  releaseAll(): void
  readonly running: number
}

const DEFAULT_TIMEOUT_SECONDS = 3600
// The first retry comes after about a second, the tenth after about five minutes.
const RETRY_BASE_MS = 1000
const RETRY_MOST_MS = 300_000

// How exactly limits are kept. One timer looks at all that runs: thousands of jobs a second need none of their own.
const SWEEP_MS = 100

interface Running {
  readonly job: Claimed
  /** When it has to have ended, and when to have reported something, by `performance.now()`. */
  endsBy: number
  reportsBy: number
  readonly silenceMs: number
  /** Which limit it has passed. */
  overdue: string | null
}

export function createExecutor(options: {
  ledger: Ledger
  pools: Pools
  /** For suspects, which run with nothing beside them. */
  alone: Pick<Alone, 'run' | 'abort'>
  log: Log
  taskNamed: TaskFinder
  /** What the first retry waits, in ms; each one waits twice as long as the one before. */
  retryMs?: number
}): Executor {
  const { ledger, pools, alone, log, taskNamed, retryMs = RETRY_BASE_MS } = options
  const running = new Map<string, Running>()
  // What the database holds to be running here and is not known, with how many claims had been answered when it was first seen.
  let unknown = new Map<string, { readonly attempt: number; readonly answered: number }>()

  const runnerOf = (job: Claimed) => (job.interruptions < SUSPECT_FROM ? pools : alone)
  const abort = ({ job }: Running, reason: AbortReason): void =>
    runnerOf(job).abort(job.id, job.attempt, reason)

  let sweeper: NodeJS.Timeout | undefined
  const sweep = (): void => {
    const now = performance.now()
    for (const one of running.values()) {
      if (now < one.endsBy && now < one.reportsBy) continue
      const { timeoutSeconds = DEFAULT_TIMEOUT_SECONDS, stallSeconds } = taskNamed(one.job.name)
      one.overdue =
        now < one.endsBy
          ? `The job reported nothing for ${stallSeconds} s`
          : `The job ran longer than its limit of ${timeoutSeconds} s`
      one.endsBy = Number.POSITIVE_INFINITY
      one.reportsBy = Number.POSITIVE_INFINITY
      abort(one, 'timeout')
    }
  }

  const attempt = (job: Claimed): Promise<void> => {
    const task = taskNamed(job.name)
    const { timeoutSeconds = DEFAULT_TIMEOUT_SECONDS, stallSeconds = Number.POSITIVE_INFINITY } = task
    const now = performance.now()
    const silenceMs = stallSeconds * 1000
    // It was taken over and has come back here: its old attempt has nothing more to say.
    const old = running.get(job.id)
    if (old !== undefined) abort(old, 'superseded')
    const mine: Running = {
      job,
      endsBy: now + timeoutSeconds * 1000,
      reportsBy: now + silenceMs,
      silenceMs,
      overdue: null,
    }
    running.set(job.id, mine)
    sweeper ??= setInterval(sweep, SWEEP_MS)
    return runnerOf(job)
      .run(task.queue, task.pool, job)
      .then((outcome) => end(mine, outcome))
  }

  /** Stores how an attempt ended; then nothing of it is left here. */
  const end = async (mine: Running, outcome: Outcome): Promise<void> => {
    const { job } = mine
    const entry = finishEntry(mine, outcome, retryMs)
    if (entry !== null) await ledger.finish(entry)
    if (running.get(job.id) === mine) running.delete(job.id)
    if (entry?.outcome !== 'done')
      log.info({ jobId: job.id, task: job.name, attempt: job.attempt, outcome }, 'An attempt ended')
    if (running.size > 0) return
    clearInterval(sweeper)
    sweeper = undefined
  }

  const supersede = (id: string, attempt: number): void => {
    const found = running.get(id)
    if (found?.job.attempt === attempt) abort(found, 'superseded')
  }

  return {
    attempt,
    reconcile: (held, whole = true) => {
      const { answered, isUnderWay } = ledger.claims
      const still: typeof unknown = new Map()
      for (const { id, attempt, cancel } of held) {
        const found = running.get(id)
        if (found !== undefined && cancel) abort(found, 'cancelled')
        if (found !== undefined) continue
        const seen = unknown.get(id)
        // Claimed, but the answer never came: it is given back once that is certain.
        if (seen?.attempt === attempt && (!isUnderWay || answered > seen.answered))
          void ledger.finish({ id, attempt, outcome: 'release' })
        else still.set(id, seen?.attempt === attempt ? seen : { attempt, answered })
      }
      if (whole) unknown = still
    },
    supersede,
    supersedeAll: () => {
      for (const one of running.values()) abort(one, 'superseded')
    },
    heard: ({ id, attempt }) => {
      const found = running.get(id)
      if (found?.job.attempt === attempt && found.overdue === null)
        found.reportsBy = performance.now() + found.silenceMs
    },
    releaseAll: () => {
      for (const one of running.values()) abort(one, 'stopping')
    },
    get ids() {
      return [...running.keys()]
    },
    get running() {
      return running.size
    },
  }
}

const CRASHED = { code: 'job.crashed', detail: 'The thread that ran the job died' }
const GIVEN_UP = {
  code: 'job.crashed',
  detail: `The job was given up: the process that ran it, and nothing else, died ${MOST_CRASHES} times`,
}

/** What the ledger is told of an outcome; null when the attempt is not ours to end. */
function finishEntry({ job, overdue }: Running, outcome: Outcome, retryMs: number): FinishEntry | null {
  const { id, attempt } = job
  const limited = job.mailbox_limit === null ? null : job.mailbox
  switch (outcome.kind) {
    case 'done':
      return { id, attempt, outcome: 'done', result: outcome.result, limited }
    case 'failed':
      return failed(job, outcome, retryMs)
    case 'crashed':
      // Whichever it was, the others have done nothing wrong: it is no failure of theirs.
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
  // An outage is not the job's failure: a long job outlives any number of them.
  if (code === 'database.down') return { id, attempt, outcome: 'release', delay_ms: retryMs }
  if (!retryable || tries >= job.max_tries) return { id, attempt, outcome: 'failed', code, detail }
  const backoff = Math.min(retryMs * 2 ** (tries - 1), RETRY_MOST_MS) * (0.75 + Math.random() / 2)
  // Whoever asked for a pause is given it, but doesn't hold a job for ever.
  const delay_ms = Math.round(Math.max(backoff, Math.min(retryAfter * 1000, RETRY_MOST_MS)))
  return { id, attempt, outcome: 'retry', delay_ms }
}
