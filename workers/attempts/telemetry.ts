import { createHash } from 'node:crypto'
import type { Queries } from '../../sql/db.ts'
import type { ClaimedJob } from '../../sql/jobs/claims.ts'
import type { FinishEntry } from '../../sql/jobs/jobs.ts'
import { type LostAttempt, listLostAttempts } from '../../sql/jobs/lost.ts'
import type { Log } from '../../tasks/platform/log.ts'
import {
  type Attributes,
  type Span,
  type Tracing,
  traceIdOf,
} from '../../tasks/platform/telemetry/tracing.ts'
import type { Outcome, PoolJob, ThreadJob } from '../threads/protocol.ts'

/** Returns the fields of every log line about a job. */
export const jobLogFields = ({
  id,
  name,
  attempt,
  requestId,
  traceParent,
}: Pick<ThreadJob, 'id' | 'name' | 'attempt' | 'requestId' | 'traceParent'>) => ({
  jobId: id,
  task: name,
  attempt,
  requestId,
  ...(traceParent === null ? {} : { traceId: traceIdOf(traceParent) }),
})

/** Returns the same fields as `jobLogFields`, for a job that no thread has yet. */
export const poolJobLogFields = ({ id, name, attempt, request_id, trace_parent }: PoolJob) =>
  jobLogFields({ id, name, attempt, requestId: request_id, traceParent: trace_parent })

type Attempt = Pick<LostAttempt, 'id' | 'name' | 'attempt' | 'waited' | 'request_id'>

/**
 * Derives the span id from the attempt, so that every worker computes the same id. After a worker dies, the rescuing
 * worker adds the attempt's span with this id, which spans of its provider calls already name as their parent. If the
 * first worker was only late, it also sends a span with this id, as `superseded`.
 */
const spanIdOf = ({ id, attempt }: Attempt): string =>
  createHash('sha256').update(`${id}:${attempt}`).digest('hex').slice(0, 16)

const attributesOf = ({ id, name, attempt, waited, request_id }: Attempt, queue: string): Attributes => ({
  'task.name': name,
  'job.id': id,
  'job.attempt': attempt,
  'job.queue': queue,
  'job.waited_ms': waited === null ? null : Math.round(waited * 1000),
  'request.id': request_id,
})

/** Starts the span of an attempt, as a child of the span that enqueued the job. */
export const startAttemptSpan = (tracing: Tracing, job: ClaimedJob, queue: string): Span =>
  tracing.start(job.name, 'consumer', job.trace_parent, attributesOf(job, queue), spanIdOf(job))

/**
 * Ends the span of an attempt.
 *
 * @param entry the stored ledger entry; null if another worker has taken the job over.
 */
export function endAttemptSpan(span: Span, outcome: Outcome, entry: FinishEntry | null): void {
  const jobOutcome = entry?.outcome ?? 'superseded'
  span.end({ attributes: { 'job.outcome': jobOutcome }, error: errorOf(outcome) })
}

function errorOf(outcome: Outcome): string | null {
  if (outcome.kind === 'failed') return outcome.code
  if (outcome.kind === 'crashed') return 'job.crashed'
  return outcome.kind === 'aborted' && outcome.reason === 'timeout' ? 'job.timeout' : null
}

// One worker may lose thousands of `io` jobs: batches keep the statements short.
const LOST_BATCH_SIZE = 500

/** Adds the spans of lost attempts, for jobs just rescued from a dead worker. Never rejects. */
export async function addLostSpans(
  tracing: Tracing,
  db: Queries,
  log: Log,
  jobIds: readonly string[],
): Promise<void> {
  try {
    for (let start = 0; start < jobIds.length; start += LOST_BATCH_SIZE)
      for (const lost of await db.any(listLostAttempts(jobIds.slice(start, start + LOST_BATCH_SIZE))))
        addLostSpan(tracing, lost)
  } catch (error) {
    log.warn({ err: error, jobs: jobIds }, 'Failed to add the spans of lost attempts')
  }
}

/**
 * Adds the span of a lost attempt. The span ends when the job was taken over, as in the monitor's history, because the
 * time of the crash is unknown. The last lease renewal may predate the attempt and its provider calls.
 */
function addLostSpan(tracing: Tracing, lost: LostAttempt): void {
  tracing.add({
    name: lost.name,
    kind: 'consumer',
    parent: lost.trace_parent,
    id: spanIdOf(lost),
    startMs: lost.claimed_ms,
    endMs: lost.ended_ms,
    attributes: {
      ...attributesOf(lost, lost.queue),
      'job.worker': lost.worker,
      'job.outcome': 'interrupted',
    },
    error: 'job.crashed',
  })
}
