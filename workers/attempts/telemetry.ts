import type { Claimed } from '../../sql/jobs/claims.ts'
import type { FinishEntry } from '../../sql/jobs.ts'
import { type Span, type Tracing, traceIdOf } from '../../tasks/telemetry/tracing.ts'
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

/** Begins the span of an attempt, below the span that added the job. */
export const startAttemptSpan = (tracing: Tracing, job: Claimed, queue: string): Span =>
  tracing.start(job.name, 'consumer', job.trace_parent, {
    'task.name': job.name,
    'job.id': job.id,
    'job.attempt': job.attempt,
    'job.queue': queue,
    'job.waited_ms': Math.round(job.waited * 1000),
    'request.id': job.request_id,
  })

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
