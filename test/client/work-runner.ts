import type { Attempt } from './work-attempt.ts'
import type { Lease } from './work-lease.ts'
import type { TaskFunction } from './work-types.ts'

/** Runs the attempts of a worker. A job that must be alone waits until all others have ended. */

export class Runner {
  /** Functions that run, including those of attempts that are over. */
  running = 0
  readonly #tasks: ReadonlyMap<string, TaskFunction>
  readonly #onReturn: () => void
  #held: Attempt[] = []
  /** Job that must be alone and has started; null if there is none. */
  #alone: Attempt | null = null

  constructor(tasks: ReadonlyMap<string, TaskFunction>, onReturn: () => void) {
    this.#tasks = tasks
    this.#onReturn = onReturn
  }

  /** Attempts that run or wait for their start. */
  get size(): number {
    return this.running + this.#held.length
  }

  /** True if a job that must be alone runs or waits, so that the lease gets no others. */
  get isAlone(): boolean {
    return this.#alone !== null || this.#held.length > 0
  }

  add(attempt: Attempt): void {
    if (attempt.job.alone || this.#alone !== null) this.#held.push(attempt)
    else void this.#run(attempt)
  }

  /** Starts the held attempts that may run now. */
  advance(lease: Lease): void {
    if (this.#alone !== null) {
      if (!this.#alone.isOver || this.running > 0) return
      this.#alone = null
    }
    if (this.#held.length === 0) return
    const held = this.#held.filter(({ isClosed }) => !isClosed)
    this.#held = held.filter(({ job }) => job.alone)
    for (const attempt of held) if (!attempt.job.alone) void this.#run(attempt)
    if (this.running > 0 || lease.attempts.size > this.#held.length) return
    this.#alone = this.#held.shift() ?? null
    if (this.#alone !== null) void this.#run(this.#alone)
  }

  /** Starts no more attempts. */
  drop(): void {
    this.#held = []
  }

  async #run(attempt: Attempt): Promise<void> {
    const { job } = attempt
    const run = this.#tasks.get(job.task)
    if (run === undefined) return attempt.release()
    this.running++
    attempt.hasStarted = true
    try {
      attempt.done(await run(job.args, attempt))
    } catch (error) {
      attempt.fail(error)
    }
    this.running--
    this.#onReturn()
  }
}
