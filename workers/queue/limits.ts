import type { Database } from '../../sql/db.ts'
import { readQueueShares } from '../../sql/jobs/queues.ts'
import type { Log } from '../../tasks/platform/log.ts'
import { runPeriodically } from '../../tasks/platform/periodic.ts'
import type { QueueRunner } from './runner.ts'

/** Applies the limits, pauses and drains that admins set to the runners of a worker. */
export interface QueueLimits {
  /** Reads and applies the limits immediately. */
  refresh(): void
  /** Stops reading the limits; resolves once a running read has finished. */
  stop(): Promise<void>
}

export interface QueueLimitsOptions {
  readonly db: Database
  readonly log: Log
  readonly leaseId: () => string
  readonly runners: readonly QueueRunner[]
  readonly intervalMs?: number
}

// Polling catches changes that no notification announces: the notification was lost, or a worker's lease has expired.
const INTERVAL_MS = 5_000

/** Starts to apply the limits; resolves once the first read is applied. @throws Failure if that read fails. */
export async function startQueueLimits(options: QueueLimitsOptions): Promise<QueueLimits> {
  await applyShares(options)
  const { request, stop } = runPeriodically(
    options.intervalMs ?? INTERVAL_MS,
    () => applyShares(options),
    (error) => options.log.warn({ err: error }, 'Failed to read the queue limits'),
  )
  return { refresh: request, stop }
}

async function applyShares({ db, leaseId, runners }: QueueLimitsOptions): Promise<void> {
  const shares = new Map((await db.any(readQueueShares(leaseId()))).map((row) => [row.queue, row]))
  for (const runner of runners) {
    const { concurrency, drained: isDrained } = shares.get(runner.queue) ?? {
      concurrency: null,
      drained: false,
    }
    runner.setLimits({ concurrency, isDrained })
  }
}
