import type { Reader } from '../../../sql/reads/reader.ts'
import {
  createReplicaReads,
  MAX_LAG_SECONDS,
  type ReplicaReads,
  type ReplicaState,
} from '../../../sql/reads/replica.ts'
import type { SlowReads } from '../../../sql/reads/slow-reads.ts'
import type { Log } from '../../../tasks/platform/log.ts'
import type { Settings } from '../../../tasks/platform/settings/settings.ts'
import { logSlowStatements } from '../../../tasks/platform/telemetry/tracing.ts'

const STATE_MESSAGES: Readonly<Record<ReplicaState, string>> = {
  used: 'Using the replica for reads that may lag',
  away: 'Not using the replica: it does not answer or is not a standby',
  foreign: 'Not using the replica: it follows another primary',
  behind: `Not using the replica: it lags by more than ${MAX_LAG_SECONDS} s`,
}

/** Connects to the replica; null if `DATABASE_REPLICA_URL` is unset. */
export function createReplica(
  settings: Settings,
  primary: { readonly reader: Reader; readonly slowReads: SlowReads },
  log: Log,
): ReplicaReads | null {
  const { databaseReplicaUrl: url, databasePooled: pooled, slowReadMs: limits, projectName } = settings
  if (url === undefined) return null
  return createReplicaReads({
    url,
    pooled,
    limits,
    slow: logSlowStatements(settings.slowQueryMs, (data, message) => log.warn(data, message)),
    applicationName: `${projectName}-edge-replica`,
    primary,
    onChange: (state, error) => {
      if (state === 'used') log.info(STATE_MESSAGES.used)
      else log.warn({ err: error ?? undefined }, STATE_MESSAGES[state])
    },
  })
}
