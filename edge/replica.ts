import type { Reader } from '../sql/reader.ts'
import { createReplicaReads, MAX_LAG_MS, type ReplicaReads, type ReplicaState } from '../sql/replica.ts'
import type { SlowReads } from '../sql/slow-reads.ts'
import { type Wal, watchWal } from '../sql/wal.ts'
import type { Log } from '../tasks/log.ts'
import type { Settings } from '../tasks/settings.ts'
import { logSlowStatements } from '../tasks/telemetry/tracing.ts'
import { createPositions, type Positions } from './pipeline/positions.ts'

/** A standby that takes lists, searches and statistics, and what is known about what it has to show. */
export interface Replica {
  readonly reads: ReplicaReads
  readonly wal: Wal
  readonly positions: Positions
  close(): Promise<void>
}

const MESSAGES: Readonly<Record<ReplicaState, string>> = {
  used: 'The replica is used for lists, searches and statistics',
  away: 'The replica is not used: it does not answer, or is not a standby',
  foreign: 'The replica is not used: it follows another primary, or another timeline of it',
  behind: `The replica is not used: it is more than ${MAX_LAG_MS / 1000} s behind`,
}

/** Null without `DATABASE_REPLICA_URL`. */
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
      if (state === 'used') log.info(MESSAGES.used)
      else log.warn({ err: error ?? undefined }, MESSAGES[state])
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
