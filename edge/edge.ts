import { setTimeout as delay } from 'node:timers/promises'
import { ConnectionGroup } from '../sql/connections/driver.ts'
import { type HealthCheck, startHealthCheck } from '../sql/connections/health-check.ts'
import {
  ACCOUNT_CHANGED_CHANNEL,
  createPublisher,
  JOB_EVENTS_CHANNEL,
  type Listener,
  listen,
  QUEUE_CHANGED_CHANNEL,
  WORKER_CHANGED_CHANNEL,
  WORKER_DELIVERIES_CHANNEL,
} from '../sql/connections/notify.ts'
import { createDatabase } from '../sql/db.ts'
import { cancelJobs } from '../sql/jobs/jobs.ts'
import { createReader } from '../sql/reads/reader.ts'
import { createSlowReads } from '../sql/reads/slow-reads.ts'
import { createVisibilityTracker, type VisibilityTracker } from '../sql/reads/visibility.ts'
import { createBlobs } from '../tasks/documents/blobs/blobs.ts'
import type { SecretKeys } from '../tasks/platform/keys.ts'
import type { Log } from '../tasks/platform/log.ts'
import { waitForDatabase } from '../tasks/platform/outage.ts'
import type { Settings } from '../tasks/platform/settings/settings.ts'
import { createStep, type ShutdownStep, shutDown } from '../tasks/platform/shutdown.ts'
import { createTallies } from '../tasks/platform/tally.ts'
import { openTracing } from '../tasks/platform/telemetry/open.ts'
import { logSlowStatements } from '../tasks/platform/telemetry/tracing.ts'
import { createRetrieval } from '../tasks/rag/retrieval.ts'
import { createClaimWaits } from '../tasks/worker-queues/claim-waits.ts'
import { createSchemaChecker } from '../tasks/worker-queues/schema-checker.ts'
import { ensureAdmin } from './admin/admin.ts'
import { buildCommonHeaders } from './http/reply.ts'
import { createServer } from './http/server.ts'
import { createMetrics } from './metrics/metrics.ts'
import { serveMetrics } from './metrics/port.ts'
import { KeyedMutex } from './passwords/keyed-mutex.ts'
import { createPasswords, type Passwords } from './passwords/passwords.ts'
import { createAuthenticator } from './pipeline/access/auth.ts'
import { type CredentialUses, createCredentialUses } from './pipeline/access/credentials.ts'
import { createKeyLimits } from './pipeline/access/key-limits.ts'
import { createRateLimits } from './pipeline/access/limits.ts'
import type { Edge } from './pipeline/context.ts'
import { createDispatch, type Dispatch } from './pipeline/dispatch.ts'
import { createReplica } from './pipeline/request/replica.ts'
import type { Area } from './pipeline/route.ts'
import { createBatcher, createEnqueuer } from './pipeline/write/enqueuer.ts'
import { areas as allAreas } from './routes/index.ts'
import { createHub } from './streams/hub.ts'
import { createOverview } from './streams/overview.ts'
import { createStreams, type Streams } from './streams/sse.ts'

export interface EdgeOptions {
  readonly settings: Settings
  readonly databaseUrl: string
  /** URL that bypasses any pooler, because poolers do not support LISTEN. */
  readonly directUrl: string
  readonly keys: SecretKeys
  readonly log: Log
  /** Areas to serve; defaults to all. Only tests set this option. */
  readonly areas?: readonly Area[]
  /** Password threads that several edges share. These edges do not close them. Only tests set this option. */
  readonly passwords?: Passwords
  /** Milliseconds without a database reply before the edge rejects requests; see `startHealthCheck` for the default. */
  readonly healthTimeoutMs?: number
}

/** An edge that does not listen yet; `serveEdge` opens its socket. */
interface EdgeParts {
  readonly edge: Edge
  readonly dispatch: Dispatch
  /** Ends every stream and asks its subscriber to reconnect. */
  closeStreams(): void
  close(): Promise<void>
}

/** Connects to the database and creates the services that requests need. */
async function createEdge(options: EdgeOptions): Promise<EdgeParts> {
  const streams = createStreams(options.settings.maxStreams)
  const core = await createCore(options, streams)
  const listener = await listenToChanges(options, core, streams)
  const edge: Edge = { ...core, ...createServices(options, core) }
  const ownsPasswords = options.passwords === undefined
  const steps = listShutdownSteps({ edge, streams, listener, uses: core.uses, ownsPasswords })
  return {
    edge,
    dispatch: createDispatch(edge, options.areas ?? allAreas, streams),
    closeStreams: () => streams.close(),
    close: () => shutDown(steps),
  }
}

/** Services that must exist before the first notification arrives. */
type CoreServices = Pick<
  Edge,
  | 'healthCheck'
  | 'settings'
  | 'log'
  | 'db'
  | 'reader'
  | 'slowReads'
  | 'replica'
  | 'hub'
  | 'overview'
  | 'authenticator'
  | 'publisher'
  | 'claims'
  | 'metrics'
  | 'tracing'
>

// Maximum time that a write waits for a pool connection.
const CONNECTION_WAIT_MS = 5_000
// Caller id for the edge's own slow reads, so that requests without a credential (caller 0) do not delay them.
const EDGE_CALLER_ID = -1

const formatConnectionName = ({ projectName }: Settings, suffix = ''): string =>
  `${projectName}-edge${suffix}`

async function createCore(
  options: EdgeOptions,
  streams: Streams,
): Promise<CoreServices & { readonly connections: ConnectionGroup; readonly uses: CredentialUses }> {
  const { settings, databaseUrl: url, keys, log } = options
  const warn = (message: string) => (error: unknown) => log.warn({ err: error }, message)
  const { validateSchemas: validateRows, databasePooled: pooled, jobRetention } = settings
  const connections = new ConnectionGroup()
  const { healthCheck, settled } = await waitForDatabase(log, () => openHealthCheck(options, connections))
  const common = { url, connections, pooled, slow: createSlowStatementLogger(options) }
  const reader = createReader({
    ...common,
    applicationName: formatConnectionName(settings, '-reads'),
    answerMs: settings.readTimeoutMs,
  })
  const slowReads = createSlowReads({
    ...common,
    applicationName: formatConnectionName(settings, '-slow-reads'),
    limits: settings.slowReadMs,
  })
  const replica = createReplica(settings, { reader, slowReads }, log)
  const db = createDatabase({
    ...common,
    applicationName: formatConnectionName(settings),
    size: 4,
    validateRows,
    statementMs: settings.writeTimeoutMs,
    waitMs: CONNECTION_WAIT_MS,
  })
  const uses = createCredentialUses(db, warn('Storing the last use of API keys or sessions failed'))
  // Notifications come from the primary. The reads that they trigger use it too, because a standby may lag behind.
  const statistics = slowReads.readsFor(EDGE_CALLER_ID, 'statistics')
  const hub = createHub({
    reader,
    listReader: slowReads.readsFor(EDGE_CALLER_ID, 'list'),
    now: () => healthCheck.now(),
    visibilityHorizon: settled.visibilityHorizon,
    onError: warn('Reading job events failed'),
  })
  return {
    settings,
    log,
    healthCheck,
    connections,
    db,
    reader,
    slowReads,
    replica,
    hub,
    overview: createOverview(statistics, jobRetention, warn('Reading the overview failed')),
    uses,
    authenticator: createAuthenticator({ settings, reader, keys, now: () => healthCheck.now(), uses }),
    publisher: createPublisher(db, warn('Sending a notification failed')),
    claims: createClaimWaits(),
    metrics: createMetrics({ db, reader: statistics, hub, streams, replica }),
    tracing: await openTracing(settings.tracing, 'edge', log),
  }
}

const createSlowStatementLogger = ({ settings, log }: EdgeOptions) =>
  logSlowStatements(settings.slowQueryMs, (data, message) => log.warn(data, message))

/** Starts a health check that probes the database and the visibility horizon once a second and logs state changes. */
async function openHealthCheck(
  { settings, databaseUrl: url, log, healthTimeoutMs: answerMs }: EdgeOptions,
  connections: ConnectionGroup,
): Promise<{ readonly healthCheck: HealthCheck; readonly settled: VisibilityTracker }> {
  const settled = createVisibilityTracker(settings.writeTimeoutMs, () => healthCheck.now())
  const healthCheck = await startHealthCheck({
    url,
    expression: settled.expression,
    onValue: settled.onValue,
    ...(answerMs === undefined ? {} : { answerMs }),
    applicationName: formatConnectionName(settings, '-health'),
    connections,
    onChange: (state, error) => {
      if (state === 'silent') log.error({ err: error }, 'The database does not answer: rejecting requests')
      else if (state === 'read-only') log.error('The database rejects writes: it is a standby or read-only')
      else log.info('The database answers and accepts writes')
    },
    onClock: (offsetMs) =>
      log.warn(
        { offsetSeconds: Math.round(offsetMs / 1000) },
        "The clock offset to the database crossed 10 s; using the database's clock",
      ),
  })
  return { healthCheck, settled }
}

/** Listens for database notifications and forwards each to its handler. */
function listenToChanges(
  options: EdgeOptions,
  core: CoreServices & { readonly connections: ConnectionGroup },
  streams: Streams,
): Promise<Listener> {
  const { healthCheck, hub, overview, authenticator, claims, connections } = core
  const accountChanged = (accountId: number | null): void => {
    authenticator.forget(accountId)
    streams.recheck(accountId)
  }
  // Notifications may be lost and their handlers may fail during an outage, so refresh everything after it.
  const refreshAll = (): void => {
    hub.handleNotification(null)
    overview.scheduleRead()
    claims.wakeAll()
    accountChanged(null)
  }
  healthCheck.onRecovered(refreshAll)
  return listen({
    url: options.directUrl,
    applicationName: formatConnectionName(options.settings, '-listen'),
    connections,
    channels: {
      [JOB_EVENTS_CHANNEL]: (payload) => {
        hub.handleNotification(payload)
        overview.scheduleRead()
      },
      [WORKER_CHANGED_CHANNEL]: () => {
        overview.scheduleRead()
        // One of them may have been drained or resumed.
        claims.handleWorkerChange()
      },
      [WORKER_DELIVERIES_CHANNEL]: (payload) => claims.handleDeliveries(payload),
      [QUEUE_CHANGED_CHANNEL]: (queue) => claims.handleQueueChange(queue),
      [ACCOUNT_CHANGED_CHANNEL]: (payload) => accountChanged(Number(payload)),
    },
    onReconnect: refreshAll,
    onError: (error) => options.log.warn({ err: error }, 'Lost the LISTEN connection; reconnecting'),
  })
}

// Requests to cancel a job that share a transaction. It locks a mailbox for each job that has a limit.
const MAX_CANCELLATIONS = 100

/** Creates the services that only requests use. */
function createServices(
  options: EdgeOptions,
  { db, publisher, log }: CoreServices,
): Omit<Edge, keyof CoreServices> {
  const { settings, databaseUrl: url, keys } = options
  const { validateSchemas: validateRows, databasePooled: pooled } = settings
  return {
    blobs: createBlobs(db, settings),
    enqueuer: createEnqueuer({ db, waitingQuota: settings.quotas.waiting_jobs }),
    cancellations: createBatcher({
      max: MAX_CANCELLATIONS,
      runAll: async (ids) => {
        for (const { id } of await db.any(cancelJobs(ids))) publisher.notify(id)
        return ids
      },
    }),
    passwords: options.passwords ?? createPasswords(),
    signInMutex: new KeyedMutex(),
    retrieval: createRetrieval({
      url,
      applicationName: formatConnectionName(settings, '-search'),
      validateRows,
      pooled,
      readTimeoutMs: settings.slowReadMs.search,
      writeTimeoutMs: settings.writeTimeoutMs,
      slowStatements: createSlowStatementLogger(options),
    }),
    schemas: createSchemaChecker(),
    tallies: createTallies(db, log),
    limits: createRateLimits(db, settings),
    keyLimits: settings.apiKeyRate && createKeyLimits(db, settings.apiKeyRate),
    keys,
  }
}

interface ClosingParts {
  readonly edge: Edge
  readonly streams: Streams
  readonly listener: Listener
  readonly uses: CredentialUses
  readonly ownsPasswords: boolean
}

/** Lists the shutdown steps: client-facing parts close first, shared dependencies last. */
function listShutdownSteps({ edge, streams, listener, uses, ownsPasswords }: ClosingParts): ShutdownStep[] {
  return [
    createStep('end the streams', () => streams.close()),
    createStep('close the hub', () => edge.hub.close()),
    createStep('close the overview', () => edge.overview.close()),
    createStep('close the LISTEN connection', () => listener.close()),
    createStep('stop the password threads', () => (ownsPasswords ? edge.passwords.close() : undefined)),
    createStep('stop the schema processes', () => edge.schemas.close()),
    createStep('store the job statistics', () => edge.tallies.close()),
    createStep('stop the search thread', () => edge.retrieval.close()),
    createStep('send pending notifications', () => edge.publisher.close()),
    createStep('store the last use of API keys and sessions', () => uses.close()),
    createStep('close the replica', () => edge.replica?.close()),
    createStep('close the readers', () => Promise.all([edge.reader.close(), edge.slowReads.close()])),
    createStep('close the blob store', () => edge.blobs.close()),
    createStep('close the database pool', () => edge.db.close()),
    createStep('stop the health check', () => edge.healthCheck.close()),
    createStep('send the last spans', () => edge.tracing?.close()),
  ]
}

/** An edge that listens on a port. */
export interface ServingEdge {
  readonly edge: Edge
  readonly port: number
  /**
   * Stops accepting connections, ends the streams, lets requests finish within a time limit, then closes everything.
   */
  stop(): Promise<void>
}

// Time on shutdown for clients to close idle connections. Each response during this time asks its client to do so.
const IDLE_CONNECTION_MS = 3_000
// Time on shutdown for requests to finish and clients to read responses. Clients of unfinished requests retry at
// another process.
const DRAIN_TIMEOUT_MS = 6_000
// Requests that still wait for a job this long after the start of a shutdown get a 202.
const JOB_WAIT_MS = 4_000

/**
 * Starts an edge on the configured port. With `waitsForClients`, `stop` waits until clients have moved to other edges.
 */
export async function serveEdge(
  options: EdgeOptions,
  listenOptions: { exclusive: boolean; waitsForClients: boolean },
): Promise<ServingEdge> {
  const parts = await createEdge(options)
  let inFlight = 0
  let onIdle: (() => void) | null = null
  const server = createServer(
    async (request, responder) => {
      inFlight++
      try {
        await parts.dispatch(request, responder)
      } finally {
        inFlight--
        if (inFlight === 0) onIdle?.()
      }
    },
    {
      headers: buildCommonHeaders(options.settings),
      onError: (error) => options.log.error({ err: error }, 'A request handler failed'),
    },
  )
  // Must precede listen(): otherwise anyone could register the address, or see the service ready without its admin.
  await ensureAdmin(parts.edge)
  const { host, port } = options.settings
  const bound = await server.listen({ host, port, exclusive: listenOptions.exclusive })
  const metrics = await serveMetrics(parts.edge, listenOptions.exclusive)
  return {
    edge: parts.edge,
    port: bound.port,
    stop: async () => {
      const startedAt = performance.now()
      parts.edge.claims.stop()
      const jobWaitTimer = setTimeout(() => parts.edge.hub.stopWaiting(), JOB_WAIT_MS)
      await server.drain()
      parts.closeStreams()
      if (listenOptions.waitsForClients) await waitAtMost(IDLE_CONNECTION_MS, server.whenDisconnected())
      const allAnswered = new Promise<void>((resolve) => {
        onIdle = resolve
      })
      const remainingMs = (): number => DRAIN_TIMEOUT_MS - (performance.now() - startedAt)
      if (inFlight > 0) await waitAtMost(remainingMs(), allAnswered)
      await waitAtMost(remainingMs(), server.whenAllSent())
      clearTimeout(jobWaitTimer)
      server.close()
      metrics.close()
      await parts.close()
    },
  }
}

async function waitAtMost(ms: number, promise: Promise<void>): Promise<void> {
  const timeout = new AbortController()
  await Promise.race([promise, delay(ms, undefined, { signal: timeout.signal }).catch(() => {})])
  timeout.abort()
}
