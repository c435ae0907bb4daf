import { createRequire } from 'node:module'
import type * as prom from 'prom-client'
import type { Database } from '../../sql/db.ts'
import type { ErrorCode } from '../../sql/errors.ts'
import { readQueueDepths } from '../../sql/jobs/lists.ts'
import { readHttpWorkerCounts } from '../../sql/jobs/queues.ts'
import { readTallyTotals } from '../../sql/jobs/tallies.ts'
import type { ReplicaReads } from '../../sql/reads/replica.ts'
import type { Reads } from '../../sql/reads/slow-reads.ts'
import { createLazy } from '../../tasks/platform/lazy.ts'
import { CachedText } from '../http/cached-text.ts'
import type { MatchedRoute } from '../pipeline/request/request-context.ts'
import type { Hub } from '../streams/hub.ts'
import type { Streams } from '../streams/sse.ts'
import { formatJobMetrics, type Totals } from './job-metrics.ts'
import { boundDepths, type QueueDepth } from './queue-depths.ts'

/**
 * Metrics of `/metrics`, named as Prometheus recommends (https://prometheus.io/docs/practices/naming/). Each operation
 * has a counter by status class and a coarse histogram. The text takes 210 KB if all 200 operations are in use, and up to 2
 * MB more with tasks of worker queues.
 */
export interface Metrics {
  /** Records a response and its duration. `entry` is null if no operation matches the request. */
  recordResponse(entry: MatchedRoute | null, method: string, status: number, seconds: number): void
  /** Counts a rejected or failed request. */
  countRefusal(code: ErrorCode): void
  render(): Promise<CachedText>
}

const require = createRequire(import.meta.url)
// Bypasses the package's index, which loads 80 modules for process metrics.
const Counter = require('prom-client/lib/counter') as typeof prom.Counter
const Gauge = require('prom-client/lib/gauge') as typeof prom.Gauge
const Histogram = require('prom-client/lib/histogram') as typeof prom.Histogram
const Registry = require('prom-client/lib/registry') as typeof prom.Registry

// Unknown methods share one series; otherwise clients could create any number of series.
const OTHER_METHOD = 'other'
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE'])
// Milliseconds for which a rendered text is reused.
const CACHE_TTL_MS = 1000

/** Prometheus series of one operation. */
interface Series {
  readonly seconds: { observe(value: number): void }
  /** Indexed by status class: 0 for aborted requests, else the first digit of the status. */
  readonly counts: { inc(): void }[]
}

interface MetricsSources {
  readonly db: Database
  /** Reads statistics. */
  readonly reader: Reads
  readonly hub: Hub
  readonly streams: Streams
  readonly replica: ReplicaReads | null
}

/** Creates the metrics. They record responses one by one, and collect all other values at each rendering. */
export function createMetrics(sources: MetricsSources): Metrics {
  return new PromMetrics(sources)
}

class PromMetrics implements Metrics {
  readonly #registry = new Registry()
  readonly #requests = new RequestMetrics(this.#registry)
  readonly #queues = new QueueMetrics(this.#registry)
  readonly #reader: Reads
  #cached: { readonly text: Promise<CachedText>; readonly builtAt: number } | null = null

  constructor(sources: MetricsSources) {
    this.#reader = sources.reader
    registerGauges(this.#registry, sources)
  }

  recordResponse(entry: MatchedRoute | null, method: string, status: number, seconds: number): void {
    this.#requests.recordResponse(entry, method, status, seconds)
  }

  countRefusal(code: ErrorCode): void {
    this.#requests.countRefusal(code)
  }

  render(): Promise<CachedText> {
    if (this.#cached === null || performance.now() - this.#cached.builtAt > CACHE_TTL_MS)
      this.#cached = { text: this.#build(), builtAt: performance.now() }
    return this.#cached.text
  }

  async #build(): Promise<CachedText> {
    await this.#measureProcess()
    // Operators need the other metrics even while the database is down.
    const depths = await this.#reader.text(readQueueDepths, []).catch(() => null)
    this.#queues.set(boundDepths(JSON.parse(depths ?? '[]') as QueueDepth[]))
    const totals = await this.#readTotals().catch(() => null)
    const jobs = totals === null ? '' : formatJobMetrics(totals)
    return new CachedText(`${await this.#registry.metrics()}\n${jobs}`, this.#registry.contentType)
  }

  async #readTotals(): Promise<Totals> {
    const [[tallies, counters, workers], httpWorkers] = await Promise.all([
      this.#reader.texts(readTallyTotals, []),
      this.#reader.text(readHttpWorkerCounts, []),
    ])
    return {
      tallies: JSON.parse(tallies!),
      counters: JSON.parse(counters!),
      workers: JSON.parse(workers!),
      httpWorkers: JSON.parse(httpWorkers!),
    }
  }

  /** Registers process metrics on the first scrape, so that unscraped processes do not load their modules. */
  readonly #measureProcess = createLazy(async (): Promise<void> => {
    const { collectDefaultMetrics } = await import('prom-client')
    collectDefaultMetrics({ register: this.#registry })
    // The suffix `_total` is reserved for counters, but these are gauges. prom-client also exports their values by
    // type.
    for (const kind of ['handles', 'requests', 'resources'])
      this.#registry.removeSingleMetric(`nodejs_active_${kind}_total`)
  })
}

/** Counts and durations of requests. */
class RequestMetrics {
  readonly #seconds: prom.Histogram<'method' | 'route'>
  readonly #requests: prom.Counter<'method' | 'route' | 'status'>
  readonly #refusals: prom.Counter<'code'>
  // Caches series, because a lookup by labels costs more than observing a value.
  readonly #operations = new Map<unknown, Series>()

  constructor(registry: prom.Registry) {
    this.#seconds = new Histogram({
      name: 'http_request_duration_seconds',
      help: 'Response time by operation',
      labelNames: ['method', 'route'],
      buckets: [0.01, 0.1, 1, 10],
      registers: [registry],
    })
    this.#requests = new Counter({
      name: 'http_requests_total',
      help: 'Requests by operation and status class; 0xx: the client disconnected first',
      labelNames: ['method', 'route', 'status'],
      registers: [registry],
    })
    this.#refusals = new Counter({
      name: 'http_refusals_total',
      help: 'Rejected and failed requests by error code; database.too_slow: a statement timed out',
      labelNames: ['code'],
      registers: [registry],
    })
  }

  countRefusal(code: ErrorCode): void {
    this.#refusals.inc({ code })
  }

  recordResponse(entry: MatchedRoute | null, method: string, status: number, seconds: number): void {
    const series = this.#getSeries(entry, method)
    series.seconds.observe(seconds)
    series.counts[Math.floor(status / 100)]!.inc()
  }

  #getSeries(entry: MatchedRoute | null, name: string): Series {
    const key = entry ?? (METHODS.has(name) ? name : OTHER_METHOD)
    let series = this.#operations.get(key)
    if (series === undefined) {
      series =
        entry === null
          ? this.#createSeries(String(key), 'none')
          : this.#createSeries(entry.route.method.toUpperCase(), entry.pattern)
      this.#operations.set(key, series)
    }
    return series
  }

  #createSeries(method: string, route: string): Series {
    const counts = [0, 1, 2, 3, 4, 5].map((status) => ({
      inc: () => this.#requests.inc({ method, route, status: `${status}xx` }),
    }))
    return { seconds: this.#seconds.labels(method, route), counts }
  }
}

/** Gauges of queue depths. */
class QueueMetrics {
  readonly #jobs: prom.Gauge<'queue' | 'status'>
  readonly #age: prom.Gauge<'queue'>

  constructor(registry: prom.Registry) {
    this.#jobs = new Gauge({
      name: 'jobs',
      help: 'Live jobs by queue and status',
      labelNames: ['queue', 'status'],
      registers: [registry],
    })
    this.#age = new Gauge({
      name: 'job_queue_oldest_seconds',
      help: 'Age of the oldest queued job',
      labelNames: ['queue'],
      registers: [registry],
    })
  }

  set(depths: readonly QueueDepth[]): void {
    this.#jobs.reset()
    this.#age.reset()
    for (const { queue, queued, running, waiting, oldest_seconds } of depths) {
      this.#jobs.set({ queue, status: 'queued' }, queued)
      this.#jobs.set({ queue, status: 'running' }, running)
      this.#jobs.set({ queue, status: 'waiting' }, waiting)
      this.#age.set({ queue }, Math.max(0, oldest_seconds ?? 0))
    }
  }
}

/** Registers gauges that read other parts of the process at each rendering. */
function registerGauges(registry: prom.Registry, { streams, hub, db, replica }: MetricsSources): void {
  const gauge = (name: string, help: string, read: () => number): void => {
    new Gauge({
      name,
      help,
      registers: [registry],
      collect() {
        this.set(read())
      },
    })
  }
  gauge('sse_clients', 'Open event streams', () => streams.count)
  gauge('job_watchers', 'Subscriptions to job events', () => hub.watcherCount)
  gauge('db_pool_active', 'Database connections in use', () => db.usage().active)
  gauge('db_pool_idle', 'Idle database connections', () => db.usage().idle)
  gauge('db_pool_waiting', 'Requests waiting for a database connection', () => db.usage().waiting)
  if (replica === null) return
  gauge('replica_used', '1 if reads that may lag use the replica', () => Number(replica.state === 'used'))
  gauge(
    'replica_lag_seconds',
    'Lag of the replica behind the primary',
    () => replica.lagSeconds ?? Number.NaN,
  )
  new Counter({
    name: 'lagging_reads_total',
    help: 'Reads that may lag, by the server that answered',
    labelNames: ['server'],
    registers: [registry],
    collect() {
      this.reset()
      for (const [server, count] of Object.entries(replica.counts)) this.inc({ server }, count)
    },
  })
}
