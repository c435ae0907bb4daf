import { createPublisher } from '../../sql/connections/notify.ts'
import { createDatabase, type Database } from '../../sql/db.ts'
import { claimJobs, parseClaims } from '../../sql/jobs/claims.ts'
import { endAttempts, enqueueJobs } from '../../sql/jobs/jobs.ts'
import { insertLease } from '../../sql/jobs/leases.ts'
import { sendReport } from '../../sql/jobs/reports.ts'
import { noop } from '../../tasks/system/noop.task.ts'
import { buildJobSpecs } from '../../tasks/task.ts'
import { createJobSettings } from '../job-settings.ts'

/** Runs jobs in this process and reports their progress as a worker does. */
export interface Publisher {
  readonly jobIds: readonly string[]
  /** Every 100 ms, reports progress of the next `perTick` jobs. The label is the send time and the padding. */
  start(perTick: number, padding?: string): void
  stop(): Promise<void>
  /** Ends all jobs, and returns the number of the last event by job id. */
  finish(): Promise<ReadonlyMap<string, number>>
  close(): Promise<void>
}

const TICK_MS = 100
const LEASE_ID = '00000000-0000-4000-8000-000000000001'

export async function startPublishing(url: string, ownerId: number, count: number): Promise<Publisher> {
  const db = createDatabase({ url, applicationName: 'bench-publisher', size: 4, validateRows: false })
  const publisher = createPublisher(db, (error) => {
    throw error
  })
  const jobIds = await createRunningJobs(db, ownerId, count)
  const reported = new Map<string, number>()
  let next = 0
  let current: Promise<void> = Promise.resolve()
  let timer: NodeJS.Timeout | undefined

  const tick = async (perTick: number, padding: string): Promise<void> => {
    const ids = Array.from({ length: perTick }, () => jobIds[next++ % jobIds.length]!)
    const entries = ids.map((id) => {
      const n = (reported.get(id) ?? 0) + 1
      reported.set(id, n)
      return {
        id,
        attempt: 1,
        n,
        kind: 'status',
        data: { status: 'running', label: `${Date.now()}${padding}`, current: n, total: 1_000_000 },
      }
    })
    const stored = await sendReport(db, publisher, { progress: entries, ends: '[]' })
    if (stored.progressed.length !== ids.length) throw new Error('Progress was rejected')
  }

  return {
    jobIds,
    start: (perTick, padding = '') => {
      timer = setInterval(() => {
        current = current.then(() => tick(perTick, padding))
      }, TICK_MS)
    },
    stop: async () => {
      clearInterval(timer)
      await current
    },
    finish: async () => {
      for (let from = 0; from < jobIds.length; from += 100) {
        const batch = jobIds.slice(from, from + 100)
        await endAttempts(
          db,
          batch.map((id) => ({
            id,
            attempt: 1,
            outcome: 'done' as const,
            result: '{"echo":""}',
            actor: null,
          })),
        )
        for (const id of batch) publisher.notify(id)
      }
      // Event 1 is the claim. Progress events and the end follow.
      return new Map(jobIds.map((id) => [id, (reported.get(id) ?? 0) + 2]))
    },
    close: async () => {
      await publisher.close()
      await db.close()
    },
  }
}

async function createRunningJobs(db: Database, ownerId: number, count: number): Promise<string[]> {
  const use = { poolIds: [], threads: 0, busy: 0, memoryBytes: 0 }
  await db.run(insertLease({ id: LEASE_ID, name: 'bench', queues: [], load: use }, 3_600_000))
  const specs = buildJobSpecs(
    noop,
    Array.from({ length: count }, () => ({ echo: '' })),
    { ownerId, settings: createJobSettings(3) },
  )
  await db.any(enqueueJobs(specs, 0))
  const { id, name: task, mailbox } = specs[0]!
  const delivery = { task, mailbox, limit: null, owner: ownerId, first: 0, id }
  const claimed = parseClaims(await db.one(claimJobs(LEASE_ID, [{ delivery, freeSlots: count }])))
  if (claimed.length !== count) throw new Error('Not all jobs could be claimed')
  return claimed.map(({ id }) => id)
}
