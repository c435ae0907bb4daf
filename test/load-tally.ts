import { percentile } from './perf/stats.ts'

/** Counts the tasks of a load test by outcome, and their latencies. */
export interface Tally {
  /** Records the answer to a request that was sent at `sentAt`; times in ms. */
  recordAnswer(ids: readonly string[], sentAt: number, at: number): void
  recordRejection(reason: string): void
  /** Records a state from the stream. Only terminal states count, each once. */
  recordState(id: string, status: string, at: number): void
  /** Records that all tasks have been added. */
  endAdding(): void
  /** Number of tasks that have been added and have not ended. */
  readonly waiting: number
  readonly refused: number
  /** Ids of the waiting tasks. */
  listWaitingIds(): readonly string[]
  /** Returns one line about the time since the previous line. */
  formatProgressLine(): string
  /** Returns the final report. */
  report(): string
}

const END_STATUSES = new Set(['done', 'failed', 'cancelled'])
const BAR_WIDTH = 40

export function createTally(now = (): number => performance.now()): Tally {
  const startedAt = now()
  const sent = new Map<string, number>()
  // The stream may report an end before the request is answered.
  const earlyEnds = new Map<string, { status: string; at: number }>()
  const requests: number[] = []
  const latencies: number[] = []
  const reasons = new Map<string, number>()
  const ends = { done: 0, failed: 0, cancelled: 0 }
  let addedAt: number | null = null
  let lastEnd = startedAt
  let tasks = 0
  let before = { at: startedAt, tasks: 0, ended: 0, latencies: 0 }

  const ended = (): number => ends.done + ends.failed + ends.cancelled
  const end = (id: string, status: string, at: number): void => {
    latencies.push(at - sent.get(id)!)
    sent.delete(id)
    ends[status as keyof typeof ends]++
    lastEnd = Math.max(lastEnd, at)
  }

  return {
    recordAnswer: (ids, sentAt, at) => {
      if (ids.length > 0) requests.push(at - sentAt)
      tasks += ids.length
      for (const id of ids) {
        sent.set(id, sentAt)
        const known = earlyEnds.get(id)
        if (known === undefined) continue
        earlyEnds.delete(id)
        end(id, known.status, known.at)
      }
    },
    recordRejection: (reason) => void reasons.set(reason, (reasons.get(reason) ?? 0) + 1),
    recordState: (id, status, at) => {
      if (!END_STATUSES.has(status)) return
      if (sent.has(id)) end(id, status, at)
      else if (addedAt === null) earlyEnds.set(id, { status, at })
    },
    endAdding: () => {
      addedAt = now()
      earlyEnds.clear()
    },
    get waiting() {
      return sent.size
    },
    get refused() {
      return [...reasons.values()].reduce((sum, count) => sum + count, 0)
    },
    listWaitingIds: () => [...sent.keys()],
    formatProgressLine: () => {
      const at = now()
      const seconds = (at - before.at) / 1000
      const recent = latencies.slice(before.latencies)
      const rate = (count: number): string => (count / seconds).toFixed(0).padStart(6)
      const text = `${((at - startedAt) / 1000).toFixed(0).padStart(4)} s  added ${rate(tasks - before.tasks)}/s  ended ${rate(ended() - before.ended)}/s  waiting ${String(sent.size).padStart(6)}  p50 ${formatMs(percentile(recent, 0.5))}  p99 ${formatMs(percentile(recent, 0.99))}  failed ${ends.failed + ends.cancelled}`
      before = { at, tasks, ended: ended(), latencies: latencies.length }
      return text
    },
    report: () => {
      const adding = ((addedAt ?? now()) - startedAt) / 1000
      const whole = (lastEnd - startedAt) / 1000
      const row = (name: string, values: readonly number[]): string =>
        `  ${name.padEnd(18)}p50 ${formatMs(percentile(values, 0.5))}  p95 ${formatMs(percentile(values, 0.95))}  p99 ${formatMs(percentile(values, 0.99))}  max ${formatMs(percentile(values, 1))}\n`
      return [
        `Added ${tasks} tasks in ${adding.toFixed(1)} s (${(tasks / adding).toFixed(0)}/s), ended ${ended()} in ${whole.toFixed(1)} s (${whole > 0 ? (ended() / whole).toFixed(0) : 0}/s)\n`,
        `  done ${ends.done}, failed ${ends.failed}, cancelled ${ends.cancelled}, not ended ${sent.size}\n`,
        ...[...reasons].map(([reason, count]) => `  refused ${count} times: ${reason}\n`),
        row('request to answer', requests),
        row('request to end', latencies),
        formatHistogram(latencies),
      ].join('')
    },
  }
}

const formatMs = (value: number): string => `${Number.isNaN(value) ? '-' : value.toFixed(1)} ms`.padStart(11)

/** Returns a histogram of latencies in powers of two, from the first to the last non-empty bucket. */
export function formatHistogram(values: readonly number[]): string {
  if (values.length === 0) return ''
  const counts = new Map<number, number>()
  for (const value of values) {
    const bucket = Math.max(0, Math.ceil(Math.log2(Math.max(value, 1))))
    counts.set(bucket, (counts.get(bucket) ?? 0) + 1)
  }
  const buckets = [...counts.keys()]
  const max = Math.max(...counts.values())
  const lines = ['  request to end\n']
  for (let bucket = Math.min(...buckets); bucket <= Math.max(...buckets); bucket++) {
    const count = counts.get(bucket) ?? 0
    lines.push(
      `  ${`${2 ** bucket} ms`.padStart(11)}  ${'#'.repeat(Math.ceil((count / max) * BAR_WIDTH)).padEnd(BAR_WIDTH)} ${count}\n`,
    )
  }
  return lines.join('')
}
