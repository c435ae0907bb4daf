import { HISTOGRAM_BOUNDS, type TallyOutcome, type TallyWindow, WINDOWS } from '../../../sql/jobs/tallies.ts'

/** Computes figures of a queue over a past window from tallies. */

/** Number of attempts of a queue with one outcome during one span. `span` numbers the spans since 1970. */
export type TallySpan = readonly [queue: string, span: number, outcome: TallyOutcome, attempts: number]

/** Histograms of the times of a queue's attempts in the window, with the bounds `HISTOGRAM_BOUNDS`. */
export type TallyTimes = readonly [queue: string, runs: readonly number[], waits: readonly number[]]

/** Histograms of the times of a queue's attempts in one span. */
export type SpanTimes = readonly [...TallyTimes, span: number]

/** Times of a queue by span, for charts; the last span is still open. */
export interface TimesHistory {
  readonly wait: readonly (Times | null)[]
  readonly run: readonly (Times | null)[]
  /** Numbers of attempts by the bounds {@link HISTOGRAM_BOUNDS}; empty for a span without attempts. */
  readonly waits: readonly (readonly number[])[]
  readonly runs: readonly (readonly number[])[]
}

export interface Figures {
  readonly ended: number
  readonly failed: number
  readonly repeated: number
  readonly wait: Times | null
  readonly run: Times | null
  readonly history: { readonly ended: readonly number[]; readonly failed: readonly number[] }
}

interface Times {
  readonly p50: number
  readonly p95: number
  readonly p99: number
}

/** Returns a function that computes the times of a queue by span; null for queues without times. */
export function createTimesCalculator(
  times: readonly SpanTimes[],
  window: TallyWindow,
  nowMs: number,
): (queue: string) => TimesHistory | null {
  const { span: seconds, spans } = WINDOWS[window]
  const first = Math.floor(nowMs / 1000 / seconds) - spans + 1
  const byQueue = Map.groupBy(times, ([queue]) => queue)
  return (queue) => {
    const own = byQueue.get(queue)
    if (own === undefined) return null
    const runs = Array.from({ length: spans }, (): readonly number[] => [])
    const waits = [...runs]
    for (const [, spanRuns, spanWaits, span] of own) {
      if (span < first || span >= first + spans) continue
      runs[span - first] = spanRuns
      waits[span - first] = spanWaits
    }
    return { wait: waits.map(computeTimes), run: runs.map(computeTimes), waits, runs }
  }
}

const FINAL_OUTCOMES: ReadonlySet<TallyOutcome> = new Set(['done', 'failed', 'cancelled'])

/** Returns a function that computes the figures of a queue. `nowMs` is the read time of the tallies. */
export function createFigureCalculator(
  tallies: readonly TallySpan[],
  times: readonly TallyTimes[],
  window: TallyWindow,
  nowMs: number,
): (queue: string) => Figures {
  const { span: seconds, spans } = WINDOWS[window]
  const last = Math.floor(nowMs / 1000 / seconds)
  const byQueue = Map.groupBy(
    tallies.filter(([, span]) => span > last - spans && span <= last),
    ([queue]) => queue,
  )
  const timesByQueue = new Map(times.map(([queue, runs, waits]) => [queue, { runs, waits }]))
  return (queue) => {
    const ownTallies = byQueue.get(queue) ?? []
    const { runs, waits } = timesByQueue.get(queue) ?? { runs: [], waits: [] }
    const ended = ownTallies.filter(([, , outcome]) => FINAL_OUTCOMES.has(outcome))
    const failed = ownTallies.filter(([, , outcome]) => outcome === 'failed')
    const countBySpan = (tallies: readonly TallySpan[]): number[] => {
      const counts = new Array<number>(spans).fill(0)
      for (const [, span, , attempts] of tallies) counts[span - last + spans - 1]! += attempts
      return counts
    }
    return {
      ended: countAttempts(ended),
      failed: countAttempts(failed),
      repeated: countAttempts(ownTallies) - countAttempts(ended),
      wait: computeTimes(waits),
      run: computeTimes(runs),
      history: { ended: countBySpan(ended), failed: countBySpan(failed) },
    }
  }
}

const countAttempts = (tallies: readonly TallySpan[]): number =>
  tallies.reduce((sum, [, , , attempts]) => sum + attempts, 0)

function computeTimes(counts: readonly number[]): Times | null {
  const total = counts.reduce((a, b) => a + b, 0)
  if (total === 0) return null
  return {
    p50: percentile(counts, total, 0.5),
    p95: percentile(counts, total, 0.95),
    p99: percentile(counts, total, 0.99),
  }
}

/**
 * Returns the time in seconds below which a fraction of all times lies, interpolated logarithmically between bounds.
 */
export function percentile(counts: readonly number[], total: number, fraction: number): number {
  let below = 0
  for (const [bucket, count] of counts.entries()) {
    const wanted = fraction * total - below
    below += count
    if (count === 0 || wanted > count) continue
    const upper = HISTOGRAM_BOUNDS[Math.min(bucket, HISTOGRAM_BOUNDS.length - 1)]!
    const lower = HISTOGRAM_BOUNDS[bucket - 1] ?? upper / 2
    return Number((lower * (upper / lower) ** (wanted / count)).toPrecision(3))
  }
  return HISTOGRAM_BOUNDS.at(-1)!
}
