import type { HealthCheck } from '../../sql/connections/health-check.ts'
import type { Publisher } from '../../sql/connections/notify.ts'
import type { Database } from '../../sql/db.ts'
import type { Reader } from '../../sql/reads/reader.ts'
import type { ReplicaReads } from '../../sql/reads/replica.ts'
import type { SlowReads } from '../../sql/reads/slow-reads.ts'
import type { Blobs } from '../../tasks/documents/blobs/blobs.ts'
import type { SecretKeys } from '../../tasks/platform/keys.ts'
import type { Log } from '../../tasks/platform/log.ts'
import type { Settings } from '../../tasks/platform/settings/settings.ts'
import type { Tallies } from '../../tasks/platform/tally.ts'
import type { Tracing } from '../../tasks/platform/telemetry/tracing.ts'
import type { Retrieval } from '../../tasks/rag/retrieval.ts'
import type { ClaimWaits } from '../../tasks/worker-queues/claim-waits.ts'
import type { SchemaChecker } from '../../tasks/worker-queues/schema-checker.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { KeyedMutex } from '../passwords/keyed-mutex.ts'
import type { Passwords } from '../passwords/passwords.ts'
import type { Hub } from '../streams/hub.ts'
import type { Overview } from '../streams/overview.ts'
import type { Authenticator } from './access/auth.ts'
import type { KeyLimits } from './access/key-limits.ts'
import type { RateLimits } from './access/limits.ts'
import type { Batcher, Enqueuer } from './write/enqueuer.ts'

/** The services that handlers use; created once per edge process. */
export interface Edge {
  readonly settings: Settings
  /** Health check of the database, which also provides its clock. */
  readonly healthCheck: HealthCheck
  /** Writes and transactions. */
  readonly db: Database
  /** Reads rows by key, and returns PostgreSQL's JSON unchanged. */
  readonly reader: Reader
  /** Runs reads whose cost grows with the amount of data. */
  readonly slowReads: SlowReads
  /** Runs the reads of routes that may lag on a standby; null without one. */
  readonly replica: ReplicaReads | null
  /** Stores the bytes of documents. */
  readonly blobs: Blobs
  readonly hub: Hub
  readonly overview: Overview
  /** Adds jobs for requests that write nothing else. */
  readonly enqueuer: Enqueuer
  /** Cancels jobs by id. */
  readonly cancellations: Batcher<string, unknown>
  readonly publisher: Publisher
  /** Claims of HTTP workers that wait for jobs. */
  readonly claims: ClaimWaits
  /** Checks values against the schemas of worker queues. */
  readonly schemas: SchemaChecker
  /** Counts the attempts that HTTP workers report. */
  readonly tallies: Tallies
  readonly authenticator: Authenticator
  readonly passwords: Passwords
  /** Serializes sign-in attempts for one email address. */
  readonly signInMutex: KeyedMutex
  readonly retrieval: Retrieval
  readonly limits: RateLimits
  /** Rate limits of API keys; null if they are unlimited. */
  readonly keyLimits: KeyLimits | null
  readonly metrics: Metrics
  readonly log: Log
  /** Null if tracing is disabled. */
  readonly tracing: Tracing | null
  readonly keys: SecretKeys
}
