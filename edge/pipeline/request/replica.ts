import type { Reader } from '../../../sql/reads/reader.ts'
import {
  createReplicaReads,
  MAX_LAG_MS,
  type ReplicaReads,
  type ReplicaState,
} from '../../../sql/reads/replica.ts'
import type { SlowReads } from '../../../sql/reads/slow-reads.ts'
import { type Wal, watchWal } from '../../../sql/reads/wal.ts'
import type { Log } from '../../../tasks/platform/log.ts'
import type { Settings } from '../../../tasks/platform/settings/settings.ts'
import { logSlowStatements } from '../../../tasks/platform/telemetry/tracing.ts'
import { createPositions, type Positions } from './positions.ts'

/** The standby for lists, searches and statistics, with the WAL positions that its results must include. */
export interface Replica {
  readonly reads: ReplicaReads
  readonly wal: Wal
  readonly positions: Positions
  close(): Promise<void>
}

const STATE_MESSAGES: Readonly<Record<ReplicaState, string>> = {
  used: 'Using the replica for lists, searches and statistics',
  away: 'Not using the replica: it does not answer or is not a standby',
  foreign: 'Not using the replica: it follows another primary or timeline',
  behind: `Not using the replica: it lags by more than ${MAX_LAG_MS / 1000} s`,
}

/** Connects to the replica; null if `DATABASE_REPLICA_URL` is unset. */
export function createReplica(
  settings: Settings,
  primary: { readonly reader: Reader; readonly slowReads: SlowReads },
  log: Log,
): Replica | null {
  const { databaseReplicaUrl: url, databasePooled: pooled, slowReadMs: limits, projectName } = settings
  if (url === undefined) return null
  const wal = watchWal(primary.reader, MAX_LAG_MS)
  const reads = createReplicaReads({
    url,
    pooled,
    limits,
    wal,
    slow: logSlowStatements(settings.slowQueryMs, (data, message) => log.warn(data, message)),
    applicationName: `${projectName}-edge-replica`,
    primary: primary.slowReads,
    onChange: (state, error) => {
      if (state === 'used') log.info(STATE_MESSAGES.used)
      else log.warn({ err: error ?? undefined }, STATE_MESSAGES[state])
    },
  })
  return {
    reads,
    wal,
    positions: createPositions(settings, wal, MAX_LAG_MS),
    close: async () => {
      wal.close()
      await reads.close()
    },
  }
}
