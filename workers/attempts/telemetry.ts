import { createHash } from 'node:crypto'
import type { Queries } from '../../sql/db.ts'
import type { Claimed } from '../../sql/jobs/claims.ts'
import { type LostAttempt, lostAttempts } from '../../sql/jobs/lost.ts'
import type { FinishEntry } from '../../sql/jobs.ts'
import type { Log } from '../../tasks/log.ts'
import { type Attributes, type Span, type Tracing, traceIdOf } from '../../tasks/telemetry/tracing.ts'
import type { Outcome, PoolJob, ThreadJob } from '../threads/protocol.ts'

/** What every log line on a job carries. */
export const aboutJob = ({
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

/** The same of a job on its way to a thread. */
export const aboutPoolJob = ({ id, name, attempt, request_id, trace_parent }: PoolJob) =>
  aboutJob({ id, name, attempt, requestId: request_id, traceParent: trace_parent })

type Attempt = Pick<LostAttempt, 'id' | 'name' | 'attempt' | 'waited' | 'request_id'>

/**
 * The id of an attempt's span: every worker knows it, so that the one that finds the attempt lost gives its span the id that
 * calls to providers, which may have been sent before, name as their parent. A worker that was not dead, but late, then sends
 * a second span with this id, as `superseded`: both tell of the same attempt.
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

/** Begins the span of an attempt, below the span that added the job. */
export const startAttemptSpan = (tracing: Tracing, job: Claimed, queue: string): Span =>
  tracing.start(job.name, 'consumer', job.trace_parent, attributesOf(job, queue), spanIdOf(job))

/** Ends it with what became of the attempt. `entry`: what was stored; null: it was not this worker's to end any more. */
export function endAttemptSpan(span: Span, outcome: Outcome, entry: FinishEntry | null): void {
  const ended = entry?.outcome ?? 'superseded'
  span.end({ attributes: { 'job.outcome': ended }, error: errorOf(outcome) })
}

function errorOf(outcome: Outcome): string | null {
  if (outcome.kind === 'failed') return outcome.code
  if (outcome.kind === 'crashed') return 'job.crashed'
  return outcome.kind === 'aborted' && outcome.reason === 'timeout' ? 'job.timeout' : null
}

// A whole worker's `io` jobs may be lost at once, and a statement may not take long.
const MAX_AT_ONCE = 500

/** Adds the spans of attempts whose process died with them, for jobs that were just taken over from it. Never rejects. */
export async function addLostSpans(
  tracing: Tracing,
  db: Queries,
  log: Log,
  jobIds: readonly string[],
): Promise<void> {
  try {
    for (let at = 0; at < jobIds.length; at += MAX_AT_ONCE)
      for (const lost of await db.any(lostAttempts(jobIds.slice(at, at + MAX_AT_ONCE))))
        addLostSpan(tracing, lost)
  } catch (error) {
    log.warn({ err: error, jobs: jobIds }, 'The spans of lost attempts could not be added')
  }
}

/**
 * It ends when the job was taken over: until then the job could not go on, and its history, which the monitor shows, says the
 * same. When the process died nobody knows; its last renewal was up to a lifetime of the lease before, perhaps before this
 * attempt began, and calls to providers have been made since.
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
