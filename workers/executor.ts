import type { Claimed, FinishEntry, Heartbeat } from '../sql/jobs.ts'
import type { TaskFinder } from '../tasks/index.ts'
import type { Log } from '../tasks/log.ts'
import type { Ledger } from './ledger.ts'
import type { Pools } from './pools.ts'
import type { AbortReason, Outcome } from './protocol.ts'

/** Turns deliveries into attempts: claims the job, runs it on a thread, stores how it ended. */
export interface Executor {
  /** Resolves when the delivery is dealt with, whatever came of it. Rejects never. */
  deliver(id: string, delivery: number): Promise<void>
  /** Compares what the database holds to be running here with what is, and passes cancellations on. */
  reconcile(running: Heartbeat['running']): void
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

export function createExecutor(options: {
  ledger: Ledger
  pools: Pools
  log: Log
  taskNamed: TaskFinder
}): Executor {
  const { ledger, pools, log, taskNamed } = options
  const running = new Map<
    string,
    { attempt: number; abort: (reason: AbortReason) => void; stall: NodeJS.Timeout | undefined }
  >()
  const claiming = new Set<string>()
  let unknown = new Map<string, number>()

  const attempt = async (job: Claimed): Promise<void> => {
    const task = taskNamed(job.name)
    const seconds = task.timeoutSeconds ?? DEFAULT_TIMEOUT_SECONDS
    const abort = (reason: AbortReason): void => pools.abort(job.id, job.attempt, reason)
    const timer = setTimeout(() => abort('timeout'), seconds * 1000)
    const stall =
      task.stallSeconds === undefined
        ? undefined
        : setTimeout(() => abort('timeout'), task.stallSeconds * 1000)
    running.set(job.id, { attempt: job.attempt, abort, stall })
    try {
      const outcome = await pools.run(task.queue, task.pool, {
        id: job.id,
        attempt: job.attempt,
        name: job.name,
        payload: job.payload,
        ownerId: job.owner_id,
        requestId: job.request_id,
      })
      const entry = finishEntry(job, outcome, seconds)
      if (entry !== null) await ledger.finish(entry)
      if (entry?.outcome !== 'done')
        log.info({ jobId: job.id, task: job.name, attempt: job.attempt, outcome }, 'An attempt ended')
    } finally {
      clearTimeout(timer)
      clearTimeout(stall)
      running.delete(job.id)
    }
  }

  const supersede = (id: string, attempt: number): void => {
    const found = running.get(id)
    if (found?.attempt === attempt) found.abort('superseded')
  }

  return {
    deliver: async (id, delivery) => {
      // A second delivery of a job that runs here can only be a stale one.
      if (running.has(id) || claiming.has(id)) return
      claiming.add(id)
      const job = await ledger.claim(id, delivery).finally(() => claiming.delete(id))
      if (job !== null) await attempt(job)
    },
    reconcile: (held) => {
      const still = new Map<string, number>()
      for (const { id, attempt, cancel } of held) {
        const found = running.get(id)
        if (found !== undefined && cancel) found.abort('cancelled')
        // Claimed, but the answer never came: give it back once that is certain.
        if (found !== undefined || claiming.has(id)) continue
        if (unknown.get(id) === attempt) void ledger.finish({ id, attempt, outcome: 'release' })
        else still.set(id, attempt)
      }
      unknown = still
    },
    supersede,
    supersedeAll: () => {
      for (const { abort } of running.values()) abort('superseded')
    },
    heard: ({ id, attempt }) => {
      const found = running.get(id)
      if (found?.attempt === attempt) found.stall?.refresh()
    },
    releaseAll: () => {
      for (const { abort } of running.values()) abort('stopping')
    },
    get running() {
      return running.size
    },
  }
}

/** What the ledger is told of an outcome; null when the attempt is not ours to end. */
function finishEntry(job: Claimed, outcome: Outcome, timeoutSeconds: number): FinishEntry | null {
  const { id, attempt } = job
  switch (outcome.kind) {
    case 'done':
      return { id, attempt, outcome: 'done', result: outcome.result }
    case 'failed':
      return failed(job, outcome.code, outcome.detail, outcome.retryable)
    case 'crashed':
      return failed(job, 'job.crashed', 'The thread that ran the job died', true)
    case 'aborted':
      if (outcome.reason === 'superseded') return null
      if (outcome.reason === 'cancelled') return { id, attempt, outcome: 'cancelled' }
      if (outcome.reason === 'stopping') return { id, attempt, outcome: 'release' }
      return failed(job, 'job.timeout', `The job ran longer than its limit of ${timeoutSeconds} s`, true)
  }
}

function failed(job: Claimed, code: string, detail: string, retryable: boolean): FinishEntry {
  const { id, attempt, tries } = job
  if (!retryable || tries >= job.max_tries) return { id, attempt, outcome: 'failed', code, detail }
  const delay_ms = Math.round(
    Math.min(RETRY_BASE_MS * 2 ** (tries - 1), RETRY_MOST_MS) * (0.75 + Math.random() / 2),
  )
  return { id, attempt, outcome: 'retry', delay_ms }
}
