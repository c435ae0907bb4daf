import type { FinishEntry } from '../../sql/jobs/jobs.ts'
import { computeBackoff, MAX_RETRY_MS, RETRY_BASE_MS } from '../platform/backoff.ts'

/** Failed attempts of HTTP workers. */

export interface WorkerFailure {
  readonly code: string
  readonly detail: string
  /** False if another attempt cannot help. Default: true. */
  readonly retry?: boolean | undefined
  readonly retry_after_seconds?: number | undefined
}

interface FailedAttempt {
  readonly id: string
  readonly attempt: number
  readonly tries: number
  readonly max_tries: number
}

/** Returns the entry that retries a job after a backoff, or that fails it after its last try. */
export function buildFailureEntry(
  { id, attempt, tries, max_tries }: FailedAttempt,
  { code, detail, retry = true, retry_after_seconds = 0 }: WorkerFailure,
): FinishEntry {
  const askedMs = retry_after_seconds * 1000
  if (!retry || tries >= max_tries)
    return { id, attempt, outcome: 'failed', code, detail, ...(askedMs > 0 ? { delay_ms: askedMs } : {}) }
  const delay_ms = Math.round(Math.max(computeBackoff(RETRY_BASE_MS, tries, MAX_RETRY_MS), askedMs))
  return { id, attempt, outcome: 'retry', code, detail, delay_ms }
}
