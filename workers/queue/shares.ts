import type { Database } from '../../sql/db.ts'
import { sharesOf } from '../../sql/jobs/queues.ts'
import type { Log } from '../../tasks/log.ts'
import type { QueueRunner } from './runner.ts'

/** Keeps the runners of a worker to what admins have asked of their queues. */
export interface Shares {
  /** Looks at once, because something has changed. */
  look(): void
  /** Looks no more; resolves when a look under way has ended. */
  stop(): Promise<void>
}

export interface SharesOptions {
  readonly db: Database
  readonly log: Log
  readonly leaseId: () => string
  readonly runners: readonly QueueRunner[]
  readonly intervalMs?: number
}

// For what no notification has told: one that was lost, and workers whose lease has expired.
const INTERVAL_MS = 5_000

/** Resolves after the first look. @throws what that fails with */
export async function keepShares(options: SharesOptions): Promise<Shares> {
  const shares = new KeptShares(options)
  await shares.start()
  return shares
}

class KeptShares implements Shares {
  readonly #options: SharesOptions
  #looking: Promise<void> | null = null
  #isOutdated = false
  #isStopped = false
  #timer: NodeJS.Timeout | undefined

  constructor(options: SharesOptions) {
    this.#options = options
  }

  async start(): Promise<void> {
    await this.#look()
    this.#timer = setInterval(() => this.look(), this.#options.intervalMs ?? INTERVAL_MS)
  }

  look(): void {
    this.#isOutdated = true
    this.#looking ??= this.#lookWhileOutdated().finally(() => {
      this.#looking = null
    })
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    clearInterval(this.#timer)
    await this.#looking
  }

  async #lookWhileOutdated(): Promise<void> {
    while (this.#isOutdated && !this.#isStopped) {
      this.#isOutdated = false
      await this.#look().catch((error) =>
        this.#options.log.warn({ err: error }, 'What is asked of the queues could not be read'),
      )
    }
  }

  async #look(): Promise<void> {
    const { db, leaseId, runners } = this.#options
    const places = new Map((await db.any(sharesOf(leaseId()))).map((row) => [row.queue, row.places]))
    for (const runner of runners) runner.allow(places.get(runner.queue) ?? null)
  }
}
