import type { Database } from '../../sql/db.ts'
import { keepLines, type LogLine } from '../../sql/jobs/log.ts'
import { LEVEL_NAMES, type Log } from '../../tasks/log.ts'
import { storePeriodically } from './periodic.ts'

/**
 * Keeps what the log of this process says about jobs for their pages. Secrets are masked in it already. All of it is in
 * the log: lines beyond a bound, and those of an outage, are only there.
 */
export interface JobLines {
  /** Takes each line of the log, as JSON. */
  readonly take: (line: string) => void
  /** Begins to store what it has taken. */
  open(db: Database, log: Log): void
  /** Stores what is left. Never rejects. */
  close(): Promise<void>
}

const STORE_MS = 1_000
// What is kept until the next time: 100,000 jobs that fail at once have this many lines in a second, not 100,000.
const MAX_WAITING = 500
const MAX_CHARACTERS = 4_000

export function createJobLines(storeMs = STORE_MS): JobLines {
  let waiting: LogLine[] = []
  let close = (): Promise<void> => Promise.resolve()
  return {
    take: (line) => {
      if (waiting.length < MAX_WAITING && line.includes('"jobId":')) waiting.push(lineOf(line))
    },
    open: (db, log) => {
      const store = (): Promise<unknown> | null => {
        const lines = waiting
        waiting = []
        return lines.length === 0 ? null : db.run(keepLines(lines))
      }
      close = storePeriodically(storeMs, store, (error) =>
        log.warn({ err: error }, 'Log lines of jobs are not on their pages'),
      )
    },
    close: () => close(),
  }
}

function lineOf(line: string): LogLine {
  const { level, time, process, pid, jobId, task, attempt, requestId, traceId, msg, ...data } =
    JSON.parse(line)
  const text = JSON.stringify(data)
  return {
    job_id: jobId,
    attempt: attempt ?? null,
    at: time,
    level: LEVEL_NAMES[level] ?? String(level),
    message: msg ?? '',
    data: text.length <= MAX_CHARACTERS ? data : { cut: text.slice(0, MAX_CHARACTERS) },
  }
}
