import type { Publisher } from '../../sql/connections/notify.ts'
import { createSlots } from '../../sql/connections/slots.ts'
import type { Database } from '../../sql/db.ts'
import { type ClaimedJob, parseClaims } from '../../sql/jobs/claims.ts'
import { claimQueueJobs } from '../../sql/worker-queues/claims.ts'
import { listPushQueues } from '../../sql/worker-queues/push.ts'
import type { Log } from '../../tasks/platform/log.ts'
import { runPeriodically } from '../../tasks/platform/periodic.ts'
import { type ClaimWaits, createClaimWaits } from '../../tasks/worker-queues/claim-waits.ts'
import type { Executor } from '../attempts/executor.ts'

/** Claims the jobs of worker queues that have an endpoint. The executor runs them with the task `push.send`. */
export interface Pusher {
  /** Wakes the claims for a notification of new deliveries. */
  handleDeliveries(payload: string): void
  /** Reads the list of queues again, after a change of one, and wakes the claims that were held. */
  refresh(): void
  /** Stops claiming; resolves once the claimed jobs are done. */
  stop(): Promise<void>
}

export interface PusherOptions {
  readonly db: Database
  readonly publisher: Pick<Publisher, 'notify'>
  readonly executor: Pick<Executor, 'run'>
  readonly log: Log
  readonly leaseId: () => string
}

// Jobs that this process sends at a time, and those of one claim.
const SLOTS = 2048
const MAX_CLAIM = 100
// Polling catches changes whose notification was lost.
const REFRESH_MS = 30_000
const RETRY_MS = 1_000

export function startPusher(options: PusherOptions): Pusher {
  const waits = createClaimWaits()
  const slots = createSlots(SLOTS)
  const loops = new Map<string, { readonly stop: AbortController; readonly done: Promise<void> }>()
  let numbers = 0

  const readQueues = async (): Promise<void> => {
    const names = new Set((await options.db.any(listPushQueues())).map(({ name }) => name))
    for (const [name, { stop }] of loops) if (!names.has(name)) stop.abort()
    for (const name of names) {
      if (loops.has(name)) continue
      const stop = new AbortController()
      const done = new QueueLoop(options, { name, number: ++numbers, waits, slots, signal: stop.signal })
        .run()
        .finally(() => loops.delete(name))
      loops.set(name, { stop, done })
    }
  }
  const periodic = runPeriodically(REFRESH_MS, readQueues, (error) =>
    options.log.warn({ err: error }, 'Failed to read the queues with endpoints'),
  )
  periodic.request()
  return {
    handleDeliveries: (payload) => waits.handleDeliveries(payload),
    refresh: () => {
      periodic.request()
      waits.wakeAll()
    },
    stop: async () => {
      await periodic.stop()
      for (const { stop } of loops.values()) stop.abort()
      waits.stop()
      await Promise.all([...loops.values()].map(({ done }) => done))
      await slots.close()
    },
  }
}

interface LoopParts {
  readonly name: string
  /** Owner of the queue's slots. */
  readonly number: number
  readonly waits: ClaimWaits
  readonly slots: ReturnType<typeof createSlots>
  readonly signal: AbortSignal
}

/** Claims the jobs of one queue, as many as its concurrency allows in all workers together. */
class QueueLoop {
  readonly #options: PusherOptions
  readonly #parts: LoopParts

  constructor(options: PusherOptions, parts: LoopParts) {
    this.#options = options
    this.#parts = parts
  }

  async run(): Promise<void> {
    const { name, number, slots, signal } = this.#parts
    while (!signal.aborted) {
      const reserved = await slots.reserve(number, MAX_CLAIM, Number.POSITIVE_INFINITY, { signal })
      if (reserved === 0) return
      const jobs = await this.#claim(reserved).catch(async (error) => {
        this.#options.log.warn({ err: error, queue: name }, 'Failed to claim jobs for an endpoint')
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
        return []
      })
      slots.release(number, reserved - jobs.length)
      for (const job of jobs) void this.#push(job)
    }
  }

  async #claim(max: number): Promise<readonly ClaimedJob[]> {
    const { db, leaseId } = this.#options
    const { name, waits, signal } = this.#parts
    const wait = { queue: name, tasks: null, waitMs: REFRESH_MS, signal }
    const found = await waits.run(wait, async () => {
      if (signal.aborted) return { claims: null, isDone: true, held: null, mustRepeat: false }
      const claimed = await db.one(claimQueueJobs(name, leaseId(), max))
      const { claims, held, must_repeat: mustRepeat } = claimed
      return { claims, isDone: claims !== null, held, mustRepeat }
    })
    return parseClaims(found)
  }

  async #push(job: ClaimedJob): Promise<void> {
    const { publisher, executor } = this.#options
    const { name, number, waits, slots } = this.#parts
    publisher.notify(job.id)
    await executor.run(job)
    slots.release(number, 1)
    waits.handleEnds(name, 1)
  }
}
