import { type FinishEntry, serializeEntries } from '../../../sql/jobs/jobs.ts'
import { sendReport } from '../../../sql/jobs/reports.ts'
import type { HeldLease } from '../../../sql/worker-queues/claims.ts'
import type { Edge } from '../../pipeline/context.ts'

/** Ends attempts, and returns the ids of the jobs whose attempt was current. */
export async function endAttempts(
  { db, publisher }: Pick<Edge, 'db' | 'publisher'>,
  entries: readonly FinishEntry[],
): Promise<readonly string[]> {
  if (entries.length === 0) return []
  return (await sendReport(db, publisher, { progress: [], ends: serializeEntries(entries) })).ended
}

/** Counts the attempts that the ledger has ended. */
export function countEnded(
  { tallies }: Pick<Edge, 'tallies'>,
  { queue, jobs }: Pick<HeldLease, 'queue' | 'jobs'>,
  entries: readonly Pick<FinishEntry, 'id' | 'outcome'>[],
  ended: ReadonlySet<string>,
): void {
  const byId = new Map(jobs.map((job) => [job.id, job]))
  for (const { id, outcome } of entries) {
    const job = byId.get(id)
    if (job === undefined || !ended.has(id)) continue
    tallies.countAttempt({
      queue,
      name: job.name,
      outcome: outcome as 'done' | 'failed' | 'retry' | 'release',
      runSeconds: job.claimed_seconds ?? 0,
      waitSeconds: job.waited_seconds ?? 0,
    })
  }
}
