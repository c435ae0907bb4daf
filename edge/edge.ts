import { setTimeout as delay } from 'node:timers/promises'
import { createDatabase } from '../sql/db.ts'
import { type Listener, listen } from '../sql/listen.ts'
import { ACCOUNT_CHANGED, createPublisher, JOB_EVENTS, WORKER_CHANGED } from '../sql/notify.ts'
import { createReader } from '../sql/reader.ts'
import { createBlobs } from '../tasks/documents/blobs.ts'
import type { Log } from '../tasks/log.ts'
import { createRetrieval } from '../tasks/rag/retrieval.ts'
import type { Settings } from '../tasks/settings.ts'
import { shutDown } from '../tasks/shutdown.ts'
import { ensureAdmin } from './admin.ts'
import { createServer } from './http/server.ts'
import { createMetrics } from './metrics.ts'
import { serveMetrics } from './metrics-port.ts'
import { createPasswords, type Passwords } from './passwords.ts'
import { createAccounts } from './pipeline/auth.ts'
import type { Edge } from './pipeline/context.ts'
import { createDispatch, type Dispatch } from './pipeline/dispatch.ts'
import { createEnqueuer } from './pipeline/enqueuer.ts'
import { createLimits } from './pipeline/limits.ts'
import type { Area } from './pipeline/route.ts'
import { areas as allAreas } from './routes/index.ts'
import { createHub } from './streams/hub.ts'
import { createOverview } from './streams/overview.ts'
import { createStreams } from './streams/sse.ts'

export interface EdgeOptions {
  readonly settings: Settings
  readonly databaseUrl: string
  /** A direct connection for LISTEN, when the other one goes through a pooler. */
  readonly directUrl: string
  readonly secretKey: string
  readonly log: Log
  /** Another set of routes, for tests. */
  readonly areas?: readonly Area[]
  /** Others than its own, which it does not close: tests share some that cost little. */
  readonly passwords?: Passwords
}

/** An edge without its socket: what tests call, and what `serveEdge` puts behind a port. */
export interface EdgeParts {
  readonly edge: Edge
  readonly dispatch: Dispatch
  /** Ends every stream, asking its reader to come back. */
  closeStreams(): void
  close(): Promise<void>
}

export async function createEdge(options: EdgeOptions): Promise<EdgeParts> {
  const { settings, databaseUrl, directUrl, secretKey, log } = options
  const applicationName = `${settings.projectName}-edge`
  const { checked: validateRows, databasePooled: pooled } = settings
  const db = createDatabase({ url: databaseUrl, applicationName, size: 4, validateRows, pooled })
  const reader = await createReader({ url: databaseUrl, applicationName: `${applicationName}-reads` })
  const hub = createHub(reader, (error) => log.warn({ err: error }, 'Events could not be read'))
  const overview = createOverview(db, settings.keepResultSeconds, (error) =>
    log.warn({ err: error }, 'The overview could not be read'),
  )
  const streams = createStreams(settings.maxStreams)
  const accounts = createAccounts({ settings, reader, secretKey })
  const forget = (accountId: number | null): void => {
    accounts.forget(accountId)
    streams.recheck(accountId)
  }
  const publisher = createPublisher(db, (error) => log.warn({ err: error }, 'A notification was not sent'))
  const metrics = createMetrics({ db, reader, hub, streams })
  const listener: Listener = await listen({
    url: directUrl,
    applicationName: `${applicationName}-listen`,
    channels: {
      [JOB_EVENTS]: (payload) => {
        hub.notified(payload)
        overview.notified()
      },
      [WORKER_CHANGED]: () => overview.notified(),
      [ACCOUNT_CHANGED]: (payload) => forget(Number(payload)),
    },
    onReconnect: () => {
      hub.notified(null)
      overview.notified()
      forget(null)
    },
    onError: (error) => log.warn({ err: error }, 'The LISTEN connection was lost'),
  })
  const edge: Edge = {
    settings,
    db,
    reader,
    blobs: createBlobs(db, settings),
    hub,
    overview,
    enqueuer: createEnqueuer(db, publisher),
    publisher,
    accounts,
    passwords: options.passwords ?? createPasswords(),
    retrieval: createRetrieval({
      url: databaseUrl,
      applicationName: `${applicationName}-search`,
      validateRows,
      pooled,
    }),
    limits: createLimits(db, settings),
    metrics,
    log,
    secretKey,
  }
  return {
    edge,
    dispatch: createDispatch(edge, options.areas ?? allAreas, streams),
    closeStreams: () => streams.close(),
    close: () =>
      shutDown([
        { name: 'end the streams', limitMs: 3000, run: () => streams.close() },
        { name: 'stop following jobs', limitMs: 3000, run: () => hub.close() },
        { name: 'stop watching all', limitMs: 3000, run: () => overview.close() },
        { name: 'stop listening', limitMs: 3000, run: () => listener.close() },
        {
          name: 'end the password threads',
          limitMs: 3000,
          run: () => options.passwords ?? edge.passwords.close(),
        },
        { name: 'end the search thread', limitMs: 3000, run: () => edge.retrieval.close() },
        { name: 'tell what is to be told', limitMs: 3000, run: () => publisher.close() },
        { name: 'end the reader', limitMs: 3000, run: () => reader.close() },
        { name: 'leave the store of bytes', limitMs: 3000, run: () => edge.blobs.close() },
        { name: 'leave the database', limitMs: 3000, run: () => db.close() },
      ]),
  }
}

/** An edge behind a port. */
export interface ServingEdge {
  readonly edge: Edge
  readonly port: number
  /** Orderly and bounded: accept no more, end the streams, let requests in flight and those of open connections end, close. */
  stop(): Promise<void>
}

// A connection that nobody asked anything on for so long is closed; until then it may be told that it closes.
const IDLE_MS = 3_000
// Requests that wait for a job may take their time; their clients come back to another process.
const IN_FLIGHT_MS = 6_000
// Those that wait for a job longer are answered 202 while they can still be answered.
const WAIT_MS = 4_000

/** `lingers`: there are other edges for its clients to go to, so that it waits for them to do so. */
export async function serveEdge(
  options: EdgeOptions,
  at: { exclusive: boolean; lingers: boolean },
): Promise<ServingEdge> {
  const parts = await createEdge(options)
  let inFlight = 0
  let idle: (() => void) | null = null
  const server = createServer(
    async (request, responder) => {
      inFlight++
      try {
        await parts.dispatch(request, responder)
      } finally {
        inFlight--
        if (inFlight === 0) idle?.()
      }
    },
    { onError: (error) => options.log.error({ err: error }, 'The server failed to answer') },
  )
  // Before anybody can register the address, or find the service ready without its admin.
  await ensureAdmin(parts.edge)
  const { host, port } = options.settings
  const bound = await server.listen({ host, port, exclusive: at.exclusive })
  const metrics = await serveMetrics(parts.edge, at.exclusive)
  return {
    edge: parts.edge,
    port: bound.port,
    stop: async () => {
      const startedAt = Date.now()
      const waiting = setTimeout(() => parts.edge.hub.stopWaiting(), WAIT_MS)
      await server.leave()
      parts.closeStreams()
      if (at.lingers) await within(IDLE_MS, server.deserted())
      const answered = new Promise<void>((resolve) => {
        idle = resolve
      })
      if (inFlight > 0) await within(IN_FLIGHT_MS - (Date.now() - startedAt), answered)
      clearTimeout(waiting)
      server.close()
      metrics.close()
      await parts.close()
    },
  }
}

async function within(ms: number, what: Promise<void>): Promise<void> {
  const late = new AbortController()
  await Promise.race([what, delay(ms, undefined, { signal: late.signal }).catch(() => {})])
  late.abort()
}
