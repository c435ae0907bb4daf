import { createRequire } from 'node:module'
import type * as prom from 'prom-client'
import type { Database } from '../sql/db.ts'
import { readQueueDepths } from '../sql/jobs.ts'
import type { Reader } from '../sql/reader.ts'
import { KeptText } from './http/kept-text.ts'
import type { Found } from './pipeline/request-context.ts'
import type { Hub } from './streams/hub.ts'
import type { Streams } from './streams/sse.ts'

/**
 * What `/metrics` shows, in the names that Prometheus recommends (https://prometheus.io/docs/practices/naming/). A count by
 * class of status and a coarse histogram for each operation: with all 160 in use that is 150 KB.
 */
export interface Metrics {
  /** Counts an answered request, of no operation when the entry is null; seconds since it came. */
  answered(entry: Found | null, method: string, status: number, seconds: number): void
  text(): Promise<KeptText>
}

const require = createRequire(import.meta.url)
// What counts, without the package's index: with that come 80 modules for measurements of the process.
const Counter = require('prom-client/lib/counter') as typeof prom.Counter
const Gauge = require('prom-client/lib/gauge') as typeof prom.Gauge
const Histogram = require('prom-client/lib/histogram') as typeof prom.Histogram
const Registry = require('prom-client/lib/registry') as typeof prom.Registry

// Clients choose the method's name; a series of its own for each would be theirs to add.
const OTHER = 'other'
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE'])
// A text serves for so long, to whoever asks.
const KEPT_MS = 1000

/** The series of one operation. */
interface Series {
  readonly seconds: { observe(value: number): void }
  /** By class of status. */
  readonly counts: { inc(): void }[]
}

interface QueueDepth {
  readonly queue: string
  readonly status: string
  readonly count: number
  readonly oldest_seconds: number | null
}

export function createMetrics(parts: { db: Database; reader: Reader; hub: Hub; streams: Streams }): Metrics {
  const registry = new Registry()
  const seconds = new Histogram({
    name: 'http_request_duration_seconds',
    help: 'Time to the answer by operation',
    labelNames: ['method', 'route'] as const,
    buckets: [0.01, 0.1, 1, 10],
    registers: [registry],
  })
  const requests = new Counter({
    name: 'http_requests_total',
    help: 'Requests by operation and class of status; 0xx: the client left before',
    labelNames: ['method', 'route', 'status'] as const,
    registers: [registry],
  })
  const jobs = new Gauge({
    name: 'jobs',
    help: 'Live jobs by queue and state',
    labelNames: ['queue', 'status'] as const,
    registers: [registry],
  })
  const age = new Gauge({
    name: 'job_queue_oldest_seconds',
    help: 'Age of the oldest waiting job',
    labelNames: ['queue'] as const,
    registers: [registry],
  })
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
  gauge('sse_clients', 'Open event streams', () => parts.streams.count)
  gauge('job_watchers', 'Subscriptions to job events', () => parts.hub.watchers)
  gauge('db_pool_active', 'Database connections in use', () => parts.db.usage().active)
  gauge('db_pool_idle', 'Database connections at rest', () => parts.db.usage().idle)
  gauge('db_pool_waiting', 'Requests that wait for a database connection', () => parts.db.usage().waiting)

  // Finding a series by labels costs more than the observation.
  const operations = new Map<unknown, Series>()
  const seriesOf = (entry: Found | null, name: string): Series => {
    const key = entry ?? (METHODS.has(name) ? name : OTHER)
    let series = operations.get(key)
    if (series === undefined) {
      const method = entry === null ? String(key) : entry.route.method.toUpperCase()
      const route = entry?.pattern ?? 'none'
      const counts = [0, 1, 2, 3, 4, 5].map((status) => ({
        inc: () => requests.inc({ method, route, status: `${status}xx` }),
      }))
      series = { seconds: seconds.labels(method, route), counts }
      operations.set(key, series)
    }
    return series
  }
  let measuring: Promise<void> | null = null
  /** Measures the process from the first look on: nobody compares with what was before. */
  const measureProcess = (): Promise<void> =>
    (measuring ??= import('prom-client').then(({ collectDefaultMetrics }) =>
      collectDefaultMetrics({ register: registry }),
    ))
  const build = async (): Promise<KeptText> => {
    await measureProcess()
    // While the database is down, the rest is what an operator looks at.
    const depths = await parts.reader.text(readQueueDepths, []).catch(() => null)
    jobs.reset()
    age.reset()
    for (const row of JSON.parse(depths ?? '[]') as QueueDepth[]) {
      jobs.set({ queue: row.queue, status: row.status }, row.count)
      if (row.status === 'queued') age.set({ queue: row.queue }, Math.max(0, row.oldest_seconds ?? 0))
    }
    return new KeptText(await registry.metrics(), registry.contentType)
  }
  let kept: { readonly text: Promise<KeptText>; readonly builtAt: number } | null = null
  return {
    answered: (entry, method, status, elapsed) => {
      const series = seriesOf(entry, method)
      series.seconds.observe(elapsed)
      series.counts[Math.floor(status / 100)]!.inc()
    },
    text: () => {
      if (kept === null || performance.now() - kept.builtAt > KEPT_MS)
        kept = { text: build(), builtAt: performance.now() }
      return kept.text
    },
  }
}
