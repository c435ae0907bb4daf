import { compactJson } from '../http/reply.ts'

/** One event of a job, as stored in the ledger. */
export interface JobEvent {
  readonly jobId: string
  readonly seq: number
  /** `status` if the job's status changed, otherwise the kind of an event that its task emitted. */
  readonly kind: string
  /** The job's new status if the kind is `status`. */
  readonly status: string
  readonly ownerId: number | null
  readonly queue: string
  readonly task: string
  /** The batch to which the job belongs; null if to none. */
  readonly batchId: string | null
  /** The event as JSON for the client. */
  readonly frame: string
}

/** Statuses of a job that has ended. */
export const TERMINAL_STATUSES: ReadonlySet<string> = new Set(['done', 'failed', 'cancelled'])

/** True for the last event of a job. */
export function isTerminal(event: JobEvent): boolean {
  return event.kind === 'status' && TERMINAL_STATUSES.has(event.status)
}

/** Rank of a terminal state, greater than the seq of any event. */
export const ENDED_RANK = Number.POSITIVE_INFINITY

/** Returns the rank of a state among those of its job. A terminal state ranks last. */
export const rankOf = (state: JobEvent): number => (isTerminal(state) ? ENDED_RANK : state.seq)

/** Groups events by job. They must be ordered by job, then by seq. */
export function* groupByJob(events: readonly JobEvent[]): Generator<readonly JobEvent[]> {
  for (let start = 0; start < events.length; ) {
    let end = start + 1
    while (end < events.length && events[end]!.jobId === events[start]!.jobId) end++
    yield events.slice(start, end)
    start = end
  }
}

/** Copies a slice, so that a long-lived id does not keep the whole source string in memory. */
const copyString = (slice: string): string => Buffer.from(slice, 'latin1').toString('latin1')

/** Parses a line of `sql/jobs/events.ts`, whose fields are separated by tabs. */
export function parseJobEvent(line: string): JobEvent {
  const fields: string[] = []
  let from = 0
  for (let i = 0; i < 8; i++) {
    const tab = line.indexOf('\t', from)
    fields.push(line.slice(from, tab))
    from = tab + 1
  }
  const [jobId = '', seq = '', kind = '', status = '', owner = '', queue = '', task = '', batch = ''] = fields
  return {
    jobId: copyString(jobId),
    seq: Number(seq),
    kind,
    status,
    ownerId: owner === '' ? null : Number(owner),
    queue,
    task,
    batchId: batch === '' ? null : batch,
    frame: compactJson(line.slice(from)),
  }
}
