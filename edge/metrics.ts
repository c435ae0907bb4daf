import { collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { Database } from '../sql/db.ts'
import { readQueueDepths } from '../sql/jobs.ts'
import type { Reader } from '../sql/reader.ts'
import type { Hub } from './hub.ts'
import type { Streams } from './sse.ts'

/** What `/metrics` shows, in the names that Prometheus recommends (https://prometheus.io/docs/practices/naming/). */
export interface Metrics {
  /** Counts an answered request; seconds since it came. */
  answered(route: string, method: string, status: number, seconds: number): void
  text(): Promise<string>
  readonly contentType: string
}

// Clients choose the method's name; a series of its own for each would be theirs to add.
const OTHER = 'other'
const METHODS = ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE', OTHER]

interface Child {
  observe(value: number): void
}

interface QueueDepth {
  readonly queue: string
  readonly status: string
  readonly count: number
  readonly oldest_seconds: number | null
}

export function createMetrics(parts: { db: Database; reader: Reader; hub: Hub; streams: Streams }): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const requests = new Histogram({
    name: 'http_request_duration_seconds',
    help: 'Requests by route and status',
    labelNames: ['method', 'route', 'status'] as const,
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60],
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

  // Finding a histogram's child by labels costs more than the observation, and making one text of them no less.
  const children = new Map<string, Map<string, Child[]>>(METHODS.map((name) => [name, new Map()]))
  return {
    answered: (route, name, status, seconds) => {
      const method = children.has(name) ? name : OTHER
      const routes = children.get(method)!
      let byStatus = routes.get(route)
      if (byStatus === undefined) {
        byStatus = []
        routes.set(route, byStatus)
      }
      byStatus[status] ??= requests.labels(method, route, String(status))
      byStatus[status].observe(seconds)
    },
    text: async () => {
      // While the database is down, the rest is what an operator looks at.
      const depths = await parts.reader.text(readQueueDepths, []).catch(() => null)
      jobs.reset()
      age.reset()
      for (const row of JSON.parse(depths ?? '[]') as QueueDepth[]) {
        jobs.set({ queue: row.queue, status: row.status }, row.count)
        if (row.status === 'queued') age.set({ queue: row.queue }, Math.max(0, row.oldest_seconds ?? 0))
      }
      return registry.metrics()
    },
    contentType: registry.contentType,
  }
}
