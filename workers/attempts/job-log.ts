import type { Database } from '../../sql/db.ts'
import { type LogLine, storeLogLines } from '../../sql/jobs/log.ts'
import { LEVEL_NAMES, type Log } from '../../tasks/platform/log.ts'
import { storePeriodically } from '../../tasks/platform/periodic.ts'

/**
 * Stores this process's log lines about jobs, for the job pages. The log has already masked secrets. Only the log has
 * the lines beyond `MAX_WAITING` and those lost in an outage.
 */
export interface JobLog {
  /** Collects a log line (JSON text) if it names a job. */
  readonly collect: (line: string) => void
  /** Starts storing the collected lines. */
  open(db: Database, log: Log): void
  /** Stores the remaining lines. Never rejects. */
  close(): Promise<void>
}

const STORE_MS = 1_000
// Limit of lines between two writes: if 100,000 jobs fail together, only this many lines a second are stored.
const MAX_WAITING = 500
const MAX_CHARACTERS = 4_000

export function createJobLog(storeMs = STORE_MS): JobLog {
  let waiting: LogLine[] = []
  let close = (): Promise<void> => Promise.resolve()
  return {
    collect: (line) => {
      if (waiting.length < MAX_WAITING && line.includes('"jobId":')) waiting.push(parseLine(line))
    },
    open: (db, log) => {
      const store = (): Promise<unknown> | null => {
        const lines = waiting
        waiting = []
        return lines.length === 0 ? null : db.run(storeLogLines(lines))
      }
      close = storePeriodically(storeMs, store, (error) =>
        log.warn({ err: error }, 'Failed to store log lines for the job pages'),
      )
    },
    close: () => close(),
  }
}

function parseLine(line: string): LogLine {
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
