import { BOUNDS, type Counter, type Tally } from '../sql/jobs/tallies.ts'
import { TERMINAL } from './streams/job-event.ts'

/**
 * What workers have counted, in the text format of Prometheus
 * (https://prometheus.io/docs/instrumenting/exposition_formats/). It is kept in the database, so every edge tells the same:
 * take one of them, or the maximum.
 */

/** One worker that is alive. */
export interface WorkerFigures {
  readonly name: string
  readonly threads: number
  readonly busy: number
  readonly memory_bytes: number
  readonly running: number
}

export interface Totals {
  readonly tallies: readonly Tally[]
  readonly counters: Readonly<Partial<Record<Counter, number>>>
  readonly workers: readonly WorkerFigures[]
}

type Labels = Readonly<Record<string, string>>
type Sample = readonly [labels: Labels, value: number, suffix?: string]

const COUNTERS: Readonly<Record<Counter, readonly [name: string, help: string]>> = {
  children_lost: [
    'worker_children_lost_total',
    'Child processes that died or were killed while they read a file',
  ],
  leases_lost: ['worker_leases_lost_total', 'Leases that workers did not renew in time'],
  threads_killed: ['worker_threads_killed_total', 'Threads killed because their job did not stop'],
  statements_too_slow: [
    'worker_statements_too_slow_total',
    'Attempts that failed because a statement took too long',
  ],
}

// Two a decade, of the five that are kept.
const SHOWN = BOUNDS.map((bound, bucket) => ({ bound, bucket })).filter(
  ({ bucket }) => bucket >= 5 && (bucket % 5) % 3 === 0,
)

export function jobMetrics({ tallies, counters, workers }: Totals): string {
  const ended = tallies.filter(({ outcome }) => TERMINAL.has(outcome))
  const again = tallies.filter(({ outcome }) => !TERMINAL.has(outcome))
  const tasks = [...Map.groupBy(tallies, ({ name }) => name).values()]
  return [
    family('jobs_ended_total', 'counter', 'Jobs that have ended after they had begun', ended.map(countOf)),
    family(
      'job_attempts_repeated_total',
      'counter',
      'Attempts after which their job waited again',
      again.map(countOf),
    ),
    family(
      'job_run_seconds',
      'histogram',
      'How long attempts ran',
      tasks.flatMap((some) => histogram(some, 'runs', 'run_seconds')),
    ),
    family(
      'job_wait_seconds',
      'histogram',
      'How long jobs that were due waited for an attempt',
      tasks.flatMap((some) => histogram(some, 'waits', 'wait_seconds')),
    ),
    ...Object.entries(COUNTERS).map(([key, [name, help]]) =>
      family(name, 'counter', help, [[{}, counters[key as Counter] ?? 0]]),
    ),
    gauge('worker_threads', 'Threads of a worker', workers, ({ threads }) => threads),
    gauge('worker_threads_busy', 'Threads of a worker that have a job', workers, ({ busy }) => busy),
    gauge(
      'worker_memory_bytes',
      'Resident memory of a worker and its child processes',
      workers,
      (one) => one.memory_bytes,
    ),
    gauge('worker_jobs_running', 'Jobs that run in a worker', workers, ({ running }) => running),
  ].join('')
}

const countOf = ({ queue, name, outcome, attempts }: Tally): Sample => [
  { queue, task: name, outcome },
  attempts,
]

/** The samples of one task, of whatever outcome. */
function histogram(
  some: readonly Tally[],
  buckets: 'runs' | 'waits',
  sum: 'run_seconds' | 'wait_seconds',
): Sample[] {
  const { queue, name: task } = some[0]!
  const upTo = (last: number): number =>
    some.reduce((total, tally) => total + tally[buckets].slice(0, last + 1).reduce((a, b) => a + b, 0), 0)
  const all = upTo(BOUNDS.length)
  return [
    ...SHOWN.map(
      ({ bound, bucket }): Sample => [{ queue, task, le: String(bound) }, upTo(bucket), '_bucket'],
    ),
    [{ queue, task, le: '+Inf' }, all, '_bucket'],
    [{ queue, task }, some.reduce((total, tally) => total + tally[sum], 0), '_sum'],
    [{ queue, task }, all, '_count'],
  ]
}

const gauge = (
  name: string,
  help: string,
  workers: readonly WorkerFigures[],
  of: (one: WorkerFigures) => number,
): string =>
  family(
    name,
    'gauge',
    help,
    workers.map((one): Sample => [{ worker: one.name }, of(one)]),
  )

/** A metric without samples is left out. */
function family(name: string, type: string, help: string, samples: readonly Sample[]): string {
  if (samples.length === 0) return ''
  const lines = samples.map(([labels, value, suffix = '']) => `${name}${suffix}${textOf(labels)} ${value}\n`)
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`
}

function textOf(labels: Labels): string {
  const pairs = Object.entries(labels).map(([key, value]) => `${key}="${value.replace(/[\\"\n]/g, '_')}"`)
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}
