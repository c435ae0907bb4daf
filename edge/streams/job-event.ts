import { compact } from '../http/compact.ts'

/** One event of a job, as stored in the ledger. */
export interface JobEvent {
  readonly jobId: string
  readonly seq: number
  /** `status` for frames of the job itself, else what its task emitted. */
  readonly kind: string
  /** The job's status, when the kind is `status`. */
  readonly status: string
  readonly ownerId: number | null
  /** JSON text for the client. */
  readonly frame: string
}

/** The states of a job that are its end. */
export const TERMINAL: ReadonlySet<string> = new Set(['done', 'failed', 'cancelled'])

/** Whether it is the last event of its job. */
export function isTerminal(event: JobEvent): boolean {
  return event.kind === 'status' && TERMINAL.has(event.status)
}

/** Greater than the number of any state. */
export const ENDED = Number.POSITIVE_INFINITY

/** The rank of a state among those of its job: nothing follows a terminal one. */
export const rankOf = (state: JobEvent): number => (isTerminal(state) ? ENDED : state.seq)

/** Splits events by job; they must be ordered by job, then by number. */
export function* byJob(events: readonly JobEvent[]): Generator<readonly JobEvent[]> {
  for (let start = 0; start < events.length; ) {
    let end = start + 1
    while (end < events.length && events[end]!.jobId === events[start]!.jobId) end++
    yield events.slice(start, end)
    start = end
  }
}

/** A copy of a text: a slice would keep the text that it was cut from alive, and ids are remembered for long. */
const copied = (slice: string): string => Buffer.from(slice, 'latin1').toString('latin1')

/** Parses a line of `sql/jobs.ts`: job id, number, kind, status, owner, frame, separated by tabs. */
export function parseLine(line: string): JobEvent {
  const fields: string[] = []
  let from = 0
  for (let i = 0; i < 5; i++) {
    const tab = line.indexOf('\t', from)
    fields.push(line.slice(from, tab))
    from = tab + 1
  }
  const [jobId = '', seq = '', kind = '', status = '', owner = ''] = fields
  return {
    jobId: copied(jobId),
    seq: Number(seq),
    kind,
    status,
    ownerId: owner === '' ? null : Number(owner),
    frame: compact(line.slice(from)),
  }
}
