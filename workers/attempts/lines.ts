import type { Database } from '../../sql/db.ts'
import { keepLines, type LogLine } from '../../sql/jobs/log.ts'
import type { Log } from '../../tasks/log.ts'

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
const MOST_WAITING = 500
const MOST_CHARACTERS = 4_000
const LEVELS: Readonly<Record<number, string>> = {
  10: 'trace',
  20: 'debug',
  30: 'info',
  40: 'warn',
  50: 'error',
  60: 'fatal',
}

export function createJobLines(storeMs = STORE_MS): JobLines {
  let waiting: LogLine[] = []
  let store = (): Promise<void> => Promise.resolve()
  let timer: NodeJS.Timeout | undefined
  let storing: Promise<void> | null = null
  return {
    take: (line) => {
      if (waiting.length < MOST_WAITING && line.includes('"jobId":')) waiting.push(lineOf(line))
    },
    open: (db, log) => {
      store = async () => {
        await storing
        if (waiting.length === 0) return
        const lines = waiting
        waiting = []
        // Not repeated: it may have been committed.
        storing = db.run(keepLines(lines)).then(
          () => {},
          (error) =>
            log.warn({ err: error, lines: lines.length }, 'Log lines of jobs are not on their pages'),
        )
        await storing
      }
      timer = setInterval(() => void store(), storeMs).unref()
    },
    close: () => {
      clearInterval(timer)
      return store()
    },
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
    level: LEVELS[level] ?? String(level),
    message: msg ?? '',
    data: text.length <= MOST_CHARACTERS ? data : { cut: text.slice(0, MOST_CHARACTERS) },
  }
}
