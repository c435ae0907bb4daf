import { setTimeout as delay } from 'node:timers/promises'
import { confirmCommits, confirmedReads } from '../sql/confirmed.ts'
import { createDatabase } from '../sql/db.ts'
import { Connections } from '../sql/driver.ts'
import { type Listener, listen } from '../sql/listen.ts'
import { ACCOUNT_CHANGED, createPublisher, JOB_EVENTS, WORKER_CHANGED } from '../sql/notify.ts'
import { type Pulse, startPulse } from '../sql/pulse.ts'
import { createReader } from '../sql/reader.ts'
import { createSettled, type Settled } from '../sql/settled.ts'
import { createSlowReads } from '../sql/slow-reads.ts'
import { createBlobs } from '../tasks/documents/blobs.ts'
import type { Log } from '../tasks/log.ts'
import { untilReached } from '../tasks/outage.ts'
import { createRetrieval } from '../tasks/rag/retrieval.ts'
import type { Settings } from '../tasks/settings.ts'
import { type ShutdownStep, shutDown, step } from '../tasks/shutdown.ts'
import { openTracing } from '../tasks/telemetry/open.ts'
import { logSlowStatements } from '../tasks/telemetry/tracing.ts'
import { ensureAdmin } from './admin.ts'
import { commonHeaders } from './http/reply.ts'
import { createServer } from './http/server.ts'
import { createMetrics } from './metrics.ts'
import { serveMetrics } from './metrics-port.ts'
import { Turns } from './passwords/turns.ts'
import { createPasswords, type Passwords } from './passwords.ts'
import { createAccounts } from './pipeline/auth.ts'
import type { Edge } from './pipeline/context.ts'
import { createDispatch, type Dispatch } from './pipeline/dispatch.ts'
import { createEnqueuer } from './pipeline/enqueuer.ts'
import { createKeyLimits } from './pipeline/key-limits.ts'
import { createLimits } from './pipeline/limits.ts'
import type { Area } from './pipeline/route.ts'
import { createUses, type Uses } from './pipeline/uses.ts'
import { createReplica } from './replica.ts'
import { areas as allAreas } from './routes/index.ts'
import { createHub } from './streams/hub.ts'
import { createOverview } from './streams/overview.ts'
import { createStreams, type Streams } from './streams/sse.ts'

export interface EdgeOptions {
  readonly settings: Settings
  readonly databaseUrl: string
  /** A direct connection for LISTEN, when the other one goes through a pooler. */
  readonly directUrl: string
  readonly secretKey: string
  readonly log: Log
  /** Other routes, for tests. */
  readonly areas?: readonly Area[]
  /** Shared password threads, which it does not close: tests share cheap ones. */
  readonly passwords?: Passwords
  /** How long the database may be silent, in ms, before requests are refused; the default of `startPulse`. */
  readonly silenceMs?: number
}

/** An edge without its socket, which `serveEdge` adds. */
interface EdgeParts {
  readonly edge: Edge
  readonly dispatch: Dispatch
  /** Ends every stream, asking its reader to reconnect. */
  closeStreams(): void
  close(): Promise<void>
}

/** Connects to the database and creates what requests need. */
async function createEdge(options: EdgeOptions): Promise<EdgeParts> {
  const streams = createStreams(options.settings.maxStreams)
  const core = await createCore(options, streams)
  const listener = await listenToChanges(options, core, streams)
  const edge: Edge = { ...core, ...createServices(options, core) }
  const ownsPasswords = options.passwords === undefined
  const steps = closingSteps({ edge, streams, listener, uses: core.uses, ownsPasswords })
  return {
    edge,
    dispatch: createDispatch(edge, options.areas ?? allAreas, streams),
    closeStreams: () => streams.close(),
    close: () => shutDown(steps),
  }
}

/** What exists before the first notification arrives. */
type Core = Pick<
  Edge,
  | 'pulse'
  | 'settings'
  | 'log'
  | 'db'
  | 'reader'
  | 'confirmed'
  | 'slowReads'
  | 'replica'
  | 'hub'
  | 'overview'
  | 'accounts'
  | 'publisher'
  | 'metrics'
  | 'tracing'
>

// How long a write waits for one of the pool's connections.
const CONNECTION_MS = 5_000
// The caller of what the edge reads for itself, so that callers without a credential (0) don't hold it up.
const ITSELF = -1

const nameOf = ({ projectName }: Settings, what = ''): string => `${projectName}-edge${what}`

async function createCore(
  options: EdgeOptions,
  streams: Streams,
): Promise<Core & { readonly connections: Connections; readonly uses: Uses }> {
  const { settings, databaseUrl: url, secretKey, log } = options
  const warn = (message: string) => (error: unknown) => log.warn({ err: error }, message)
  const { checked: validateRows, databasePooled: pooled, keepResultSeconds } = settings
  const connections = new Connections()
  const { pulse, settled } = await untilReached(log, () => feelPulse(options, connections))
  const common = { url, connections, pooled, slow: slowOf(options) }
  const reader = createReader({
    ...common,
    applicationName: nameOf(settings, '-reads'),
    answerMs: settings.readTimeoutMs,
  })
  const slowReads = createSlowReads({
    ...common,
    applicationName: nameOf(settings, '-slow-reads'),
    limits: settings.slowReadMs,
  })
  const replica = createReplica(settings, { reader, slowReads }, log)
  const db = createDatabase({
    ...common,
    applicationName: nameOf(settings),
    size: 4,
    validateRows,
    statementMs: settings.writeTimeoutMs,
    waitMs: CONNECTION_MS,
    ...(replica && { onCommit: (position) => replica.wal.committed(position) }),
  })
  const uses = createUses(db, warn('The last use of API keys or sessions was not stored'))
  // What the edge reads for itself stays on the primary: notifications come from there.
  const statistics = slowReads.of(ITSELF, 'statistics')
  const confirmed = confirmedReads(reader, () => db.run(confirmCommits()))
  const hub = createHub({
    reader: replica?.wal.covering(confirmed) ?? confirmed,
    lists: slowReads.of(ITSELF, 'list'),
    now: () => pulse.now(),
    settledUntil: settled.until,
    onError: warn('Events could not be read'),
  })
  return {
    settings,
    log,
    pulse,
    connections,
    db,
    reader,
    confirmed,
    slowReads,
    replica,
    hub,
    overview: createOverview(statistics, keepResultSeconds, warn('The overview could not be read')),
    uses,
    accounts: createAccounts({ settings, reader, secretKey, now: () => pulse.now(), uses }),
    publisher: createPublisher(db, warn('A notification was not sent')),
    metrics: createMetrics({ db, reader: statistics, hub, streams, replica }),
    tracing: await openTracing(settings.tracing, 'edge', log),
  }
}

const slowOf = ({ settings, log }: EdgeOptions) =>
  logSlowStatements(settings.slowQueryMs, (data, message) => log.warn(data, message))

/** Checks once a second whether the database answers, and until when all is settled; logs changes. */
async function feelPulse(
  { settings, databaseUrl: url, log, silenceMs: answerMs }: EdgeOptions,
  connections: Connections,
): Promise<{ readonly pulse: Pulse; readonly settled: Settled }> {
  const settled = createSettled(settings.writeTimeoutMs, () => pulse.now())
  const pulse = await startPulse({
    url,
    probe: settled.probe,
    onProbe: settled.onProbe,
    ...(answerMs === undefined ? {} : { answerMs }),
    applicationName: nameOf(settings, '-pulse'),
    connections,
    onChange: (state, error) => {
      if (state === 'silent') log.error({ err: error }, 'The database does not answer: requests are refused')
      else if (state === 'read-only') log.error('The database takes no writes: it is a standby, or read-only')
      else log.info('The database answers, and takes writes')
    },
    onClock: (offsetMs) =>
      log.warn(
        { offsetSeconds: Math.round(offsetMs / 1000) },
        "This machine's clock and the database's differ, or no longer do: the database's is used",
      ),
  })
  return { pulse, settled }
}

/** Forwards the database's notifications. */
function listenToChanges(
  options: EdgeOptions,
  core: Core & { readonly connections: Connections },
  streams: Streams,
): Promise<Listener> {
  const { pulse, hub, overview, accounts, connections } = core
  const accountChanged = (accountId: number | null): void => {
    accounts.forget(accountId)
    streams.recheck(accountId)
  }
  // Notifications may have been missed, and their effects may have failed.
  const changed = (): void => {
    hub.notified(null)
    overview.notified()
    accountChanged(null)
  }
  pulse.onBack(changed)
  return listen({
    url: options.directUrl,
    applicationName: nameOf(options.settings, '-listen'),
    connections,
    channels: {
      [JOB_EVENTS]: (payload) => {
        hub.notified(payload)
        overview.notified()
      },
      [WORKER_CHANGED]: () => overview.notified(),
      [ACCOUNT_CHANGED]: (payload) => accountChanged(Number(payload)),
    },
    onReconnect: changed,
    onError: (error) => options.log.warn({ err: error }, 'The LISTEN connection was lost'),
  })
}

/** Services that only requests use. */
function createServices(options: EdgeOptions, { db, publisher }: Core): Omit<Edge, keyof Core> {
  const { settings, databaseUrl: url, secretKey } = options
  const { checked: validateRows, databasePooled: pooled } = settings
  return {
    blobs: createBlobs(db, settings),
    enqueuer: createEnqueuer({ db, publisher, waitingQuota: settings.quotas.waiting_jobs }),
    passwords: options.passwords ?? createPasswords(),
    signInTurns: new Turns(),
    retrieval: createRetrieval({
      url,
      applicationName: nameOf(settings, '-search'),
      validateRows,
      pooled,
      readTimeoutMs: settings.slowReadMs.search,
      writeTimeoutMs: settings.writeTimeoutMs,
      slow: slowOf(options),
    }),
    limits: createLimits(db, settings),
    keyLimits: settings.apiKeyRate && createKeyLimits(db, settings.apiKeyRate),
    secretKey,
  }
}

interface Closing {
  readonly edge: Edge
  readonly streams: Streams
  readonly listener: Listener
  readonly uses: Uses
  readonly ownsPasswords: boolean
}

/** First what clients reach, last what the other steps need. */
function closingSteps({ edge, streams, listener, uses, ownsPasswords }: Closing): ShutdownStep[] {
  return [
    step('end the streams', () => streams.close()),
    step('stop following jobs', () => edge.hub.close()),
    step('stop watching all', () => edge.overview.close()),
    step('stop listening', () => listener.close()),
    step('end the password threads', () => (ownsPasswords ? edge.passwords.close() : undefined)),
    step('end the search thread', () => edge.retrieval.close()),
    step('tell what is to be told', () => edge.publisher.close()),
    step('store the last use of API keys and sessions', () => uses.close()),
    step('leave the replica', () => edge.replica?.close()),
    step('end the readers', () => Promise.all([edge.reader.close(), edge.slowReads.close()])),
    step('leave the store of bytes', () => edge.blobs.close()),
    step('leave the database', () => edge.db.close()),
    step('stop the pulse', () => edge.pulse.close()),
    step('send the last spans', () => edge.tracing?.close()),
  ]
}

/** An edge behind a port. */
export interface ServingEdge {
  readonly edge: Edge
  readonly port: number
  /** An orderly, bounded stop: accept no connections, end the streams, let requests finish, close. */
  stop(): Promise<void>
}

// An idle connection is closed after this time; until then its next answer says that it closes.
const IDLE_MS = 3_000
// Requests, and clients that take their answers, may take this long; after that their clients retry at another process.
const IN_FLIGHT_MS = 6_000
// Requests that still wait for a job after this time are answered 202.
const WAIT_MS = 4_000

/** `lingers`: clients can go to other edges, so it waits until they have. */
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
    {
      headers: commonHeaders(options.settings),
      onError: (error) => options.log.error({ err: error }, 'The server failed to answer'),
    },
  )
  // Before anyone can register that address, or see the service ready without its admin.
  await ensureAdmin(parts.edge)
  const { host, port } = options.settings
  const bound = await server.listen({ host, port, exclusive: at.exclusive })
  const metrics = await serveMetrics(parts.edge, at.exclusive)
  return {
    edge: parts.edge,
    port: bound.port,
    stop: async () => {
      const startedAt = performance.now()
      const waiting = setTimeout(() => parts.edge.hub.stopWaiting(), WAIT_MS)
      await server.leave()
      parts.closeStreams()
      if (at.lingers) await within(IDLE_MS, server.deserted())
      const answered = new Promise<void>((resolve) => {
        idle = resolve
      })
      const left = (): number => IN_FLIGHT_MS - (performance.now() - startedAt)
      if (inFlight > 0) await within(left(), answered)
      await within(left(), server.taken())
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
