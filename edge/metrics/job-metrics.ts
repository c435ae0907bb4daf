import { HISTOGRAM_BOUNDS, type Tally, type WorkerCounter } from '../../sql/jobs/tallies.ts'
import { TERMINAL_STATUSES } from '../streams/job-event.ts'

/**
 * Metrics of workers, in the text format of Prometheus
 * (https://prometheus.io/docs/instrumenting/exposition_formats/). They come from the database, so every edge reports
 * the same values: use one edge or the maximum, not the sum.
 */

/** Current figures of one live worker. */
export interface WorkerStats {
  readonly name: string
  readonly threads: number
  readonly busy: number
  readonly memory_bytes: number
  readonly running: number
}

export interface Totals {
  readonly tallies: readonly Tally[]
  readonly counters: Readonly<Partial<Record<WorkerCounter, number>>>
  readonly workers: readonly WorkerStats[]
  /** Numbers of live HTTP workers by queue. */
  readonly httpWorkers: Readonly<Record<string, number>>
}

type Labels = Readonly<Record<string, string>>
type Sample = readonly [labels: Labels, value: number, suffix?: string]

const COUNTERS: Readonly<Record<WorkerCounter, readonly [name: string, help: string]>> = {
  children_lost: [
    'worker_children_lost_total',
    'Child processes that died or were killed while reading a file',
  ],
  leases_lost: ['worker_leases_lost_total', 'Leases that workers did not renew in time'],
  threads_killed: ['worker_threads_killed_total', 'Threads killed because their job did not stop'],
  statements_too_slow: ['worker_statements_too_slow_total', 'Attempts that failed on a statement timeout'],
}

// Buckets that the metrics expose: two of the five that tallies have per decade, starting at 10 ms.
const EXPOSED_BUCKETS = HISTOGRAM_BOUNDS.map((bound, bucket) => ({ bound, bucket })).filter(
  ({ bucket }) => bucket >= 5 && (bucket % 5) % 3 === 0,
)

export function formatJobMetrics({ tallies, counters, workers, httpWorkers }: Totals): string {
  const ended = tallies.filter(({ outcome }) => TERMINAL_STATUSES.has(outcome))
  const repeated = tallies.filter(({ outcome }) => !TERMINAL_STATUSES.has(outcome))
  const tasks = [...Map.groupBy(tallies, ({ name }) => name).values()]
  return [
    formatFamily(
      'jobs_ended_total',
      'counter',
      'Jobs that ended after at least one attempt',
      ended.map(toAttemptSample),
    ),
    formatFamily(
      'job_attempts_repeated_total',
      'counter',
      'Attempts after which the job was queued again',
      repeated.map(toAttemptSample),
    ),
    formatFamily(
      'job_run_seconds',
      'histogram',
      'Run time of attempts',
      tasks.flatMap((taskTallies) => toHistogramSamples(taskTallies, 'runs', 'run_seconds')),
    ),
    formatFamily(
      'job_wait_seconds',
      'histogram',
      'Time that due jobs waited for an attempt',
      tasks.flatMap((taskTallies) => toHistogramSamples(taskTallies, 'waits', 'wait_seconds')),
    ),
    ...Object.entries(COUNTERS).map(([key, [name, help]]) =>
      formatFamily(name, 'counter', help, [[{}, counters[key as WorkerCounter] ?? 0]]),
    ),
    formatGauge('worker_threads', 'Threads of a worker', workers, ({ threads }) => threads),
    formatGauge('worker_threads_busy', 'Busy threads of a worker', workers, ({ busy }) => busy),
    formatGauge(
      'worker_memory_bytes',
      'Resident memory of a worker and its child processes',
      workers,
      ({ memory_bytes }) => memory_bytes,
    ),
    formatGauge('worker_jobs_running', 'Jobs running in a worker', workers, ({ running }) => running),
    formatFamily(
      'worker_http_leases',
      'gauge',
      'Live HTTP workers of a worker queue',
      Object.entries(httpWorkers).map(([queue, count]): Sample => [{ queue }, count]),
    ),
  ].join('')
}

const toAttemptSample = ({ queue, name, outcome, attempts }: Tally): Sample => [
  { queue, task: name, outcome },
  attempts,
]

/** Returns the samples of one task, summed over all outcomes. */
function toHistogramSamples(
  tallies: readonly Tally[],
  buckets: 'runs' | 'waits',
  sum: 'run_seconds' | 'wait_seconds',
): Sample[] {
  const { queue, name: task } = tallies[0]!
  const countUpTo = (last: number): number =>
    tallies.reduce((sum, tally) => sum + tally[buckets].slice(0, last + 1).reduce((a, b) => a + b, 0), 0)
  const total = countUpTo(HISTOGRAM_BOUNDS.length)
  return [
    ...EXPOSED_BUCKETS.map(
      ({ bound, bucket }): Sample => [{ queue, task, le: String(bound) }, countUpTo(bucket), '_bucket'],
    ),
    [{ queue, task, le: '+Inf' }, total, '_bucket'],
    [{ queue, task }, tallies.reduce((total, tally) => total + tally[sum], 0), '_sum'],
    [{ queue, task }, total, '_count'],
  ]
}

const formatGauge = (
  name: string,
  help: string,
  workers: readonly WorkerStats[],
  read: (worker: WorkerStats) => number,
): string =>
  formatFamily(
    name,
    'gauge',
    help,
    workers.map((worker): Sample => [{ worker: worker.name }, read(worker)]),
  )

/** Formats one metric; '' if it has no samples. */
function formatFamily(name: string, type: string, help: string, samples: readonly Sample[]): string {
  if (samples.length === 0) return ''
  const lines = samples.map(
    ([labels, value, suffix = '']) => `${name}${suffix}${formatLabels(labels)} ${value}\n`,
  )
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`
}

function formatLabels(labels: Labels): string {
  const pairs = Object.entries(labels).map(([key, value]) => `${key}="${value.replace(/[\\"\n]/g, '_')}"`)
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}
