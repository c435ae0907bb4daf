import type { Confirmed } from '../../sql/confirmed.ts'
import type { Database } from '../../sql/db.ts'
import type { Publisher } from '../../sql/notify.ts'
import type { Pulse } from '../../sql/pulse.ts'
import type { Reader } from '../../sql/reader.ts'
import type { SlowReads } from '../../sql/slow-reads.ts'
import type { Blobs } from '../../tasks/documents/blobs.ts'
import type { Log } from '../../tasks/log.ts'
import type { Retrieval } from '../../tasks/rag/retrieval.ts'
import type { Settings } from '../../tasks/settings.ts'
import type { Tracing } from '../../tasks/telemetry/tracing.ts'
import type { Metrics } from '../metrics.ts'
import type { Turns } from '../passwords/turns.ts'
import type { Passwords } from '../passwords.ts'
import type { Replica } from '../replica.ts'
import type { Hub } from '../streams/hub.ts'
import type { Overview } from '../streams/overview.ts'
import type { Accounts } from './auth.ts'
import type { Enqueuer } from './enqueuer.ts'
import type { KeyLimits } from './key-limits.ts'
import type { Limits } from './limits.ts'

/** What handlers work with: made once per edge process. */
export interface Edge {
  readonly settings: Settings
  /** Whether the database answers, and its clock. */
  readonly pulse: Pulse
  /** Writes and transactions. */
  readonly db: Database
  /** Reads by key: JSON built by PostgreSQL, passed on as it is. */
  readonly reader: Reader
  /** The same, of what no failover takes back: for what tells that a job has ended. */
  readonly confirmed: Confirmed
  /** Reads whose cost depends on how much there is. */
  readonly slowReads: SlowReads
  /** What takes such reads from the primary; null: nothing does. */
  readonly replica: Replica | null
  /** The bytes of documents. */
  readonly blobs: Blobs
  readonly hub: Hub
  readonly overview: Overview
  /** Jobs of requests that write nothing else. */
  readonly enqueuer: Enqueuer
  readonly publisher: Publisher
  readonly accounts: Accounts
  readonly passwords: Passwords
  /** Has attempts to sign in to one address wait for each other. */
  readonly signInTurns: Turns
  readonly retrieval: Retrieval
  readonly limits: Limits
  /** Null: API keys may request as much as they like. */
  readonly keyLimits: KeyLimits | null
  readonly metrics: Metrics
  readonly log: Log
  /** Null: nothing is traced. */
  readonly tracing: Tracing | null
  readonly secretKey: string
}
