import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Chance } from '../../chance.ts'
import { type Answer, post, recordViolation } from './api.ts'
import { QUEUE } from './messages.ts'
import { Reports } from './reports.ts'
import { type ClaimedJob, execute, type Run } from './run.ts'

const LEASE_SECONDS = 5
const MAX_RUNNING = 8
const MAX_CLAIMED = 5
const MAX_WAIT_SECONDS = 3
const CLAIM_LOOPS = 2
const PAUSE_MS = 30
const ANSWER_TIMEOUT_MS = 3_000
const REPEAT_PROBABILITY = 0.1
// A claim holds the lease for longer than this.
const MAX_REPEAT_MS = 2_000

/** The work of one lease, until the service no longer knows it. */
export class Session {
  readonly #id = randomUUID()
  readonly #chance: Chance
  readonly #runs = new Map<string, Run>()
  readonly #reports: Reports
  #isHeld = false
  #isOver = false

  constructor(chance: Chance) {
    this.#chance = chance
    this.#reports = new Reports(this.#runs, (items) => this.#post(`${this.#path}/reports`, { items }), chance)
  }

  /** Works until the lease is gone, and returns the runs that had sent no end. `late` are those of the lease before. */
  async work(late: readonly Run[]): Promise<Run[]> {
    let rest = late
    const claim = async (): Promise<void> => {
      await this.#claim()
      if (!this.#isHeld || rest.length === 0) return
      const items = rest
      rest = []
      await this.#reports.checkLate(items)
    }
    const loops = [
      () => this.#renew(),
      () => this.#report(),
      ...Array.from({ length: CLAIM_LOOPS }, () => claim),
    ]
    await Promise.all(
      loops.map(async (act) => {
        while (!this.#isOver) await act()
      }),
    )
    const left = [...this.#runs.values()]
    for (const run of left) run.isStopped = true
    return left.filter((run) => !run.isEndSent)
  }

  get #path(): string {
    return `/api/v1/workers/leases/${this.#id}`
  }

  async #post(path: string, body: object, timeoutMs = ANSWER_TIMEOUT_MS): Promise<Answer | null> {
    const answer = await post(path, body, { timeoutMs, isOver: () => this.#isOver })
    if (answer?.status !== 404) return answer
    this.#isOver = true
    return null
  }

  async #claim(): Promise<void> {
    const isFull = this.#runs.size >= MAX_RUNNING || [...this.#runs.values()].some(({ job }) => job.alone)
    if (isFull) return delay(PAUSE_MS)
    const wait = this.#chance.between(1, MAX_WAIT_SECONDS)
    const body = {
      worker: process.env.NAME,
      lease_id: this.#id,
      lease_seconds: LEASE_SECONDS,
      claim_id: randomUUID(),
      max: this.#chance.between(1, MAX_CLAIMED),
      wait_seconds: wait,
    }
    const sentAt = performance.now()
    const claim = () =>
      this.#post(`/api/v1/worker-queues/${QUEUE}/claims`, body, wait * 1000 + ANSWER_TIMEOUT_MS)
    const answer = await claim()
    if (answer === null) return
    this.#isHeld = true
    const jobs: readonly ClaimedJob[] = answer.json.jobs
    const runs = jobs.map((job) => this.#hold(job))
    if (jobs.length > 0 && this.#chance.isHit(REPEAT_PROBABILITY)) {
      const again = await claim()
      if (again !== null) runs.push(...this.#compare(jobs, again.json.jobs, sentAt))
    }
    for (const run of runs) void this.#execute(run)
  }

  /** Checks the answer to a repeated claim. Returns the runs that only this answer has. */
  #compare(jobs: readonly ClaimedJob[], again: readonly ClaimedJob[], sentAt: number): Run[] {
    const keyOf = ({ job_id, attempt }: ClaimedJob): string => `${job_id} ${attempt}`
    const [first, second] = [jobs.map(keyOf).sort(), again.map(keyOf).sort()]
    if (first.join() !== second.join() && performance.now() - sentAt < MAX_REPEAT_MS)
      recordViolation(`a claim got ${first}, but its repetition ${second}`)
    return again.filter((job) => !first.includes(keyOf(job))).map((job) => this.#hold(job))
  }

  #hold(job: ClaimedJob): Run {
    const run: Run = { job, n: 0, isStopped: false, isEndSent: false }
    const before = this.#runs.get(job.job_id)
    if (before !== undefined) before.isStopped = true
    this.#runs.set(job.job_id, run)
    return run
  }

  async #execute(run: Run): Promise<void> {
    // A job that must run alone waits until all others have ended.
    while (run.job.alone && this.#runs.size > 1 && !run.isStopped) await delay(PAUSE_MS)
    await execute(run, (item) => this.#reports.add(run, item))
  }

  async #renew(): Promise<void> {
    await delay((LEASE_SECONDS * 1000) / 3)
    if (!this.#isHeld) return
    const jobs = [...this.#runs.values()].map(({ job: { job_id, attempt } }) => ({ job_id, attempt }))
    const answer = await this.#post(this.#path, { jobs })
    const superseded: readonly string[] = answer?.json.superseded ?? []
    for (const { job_id, attempt } of jobs.filter(({ job_id }) => superseded.includes(job_id))) {
      const run = this.#runs.get(job_id)
      // The answer to a report says how an attempt has ended whose end is under way.
      if (run?.job.attempt !== attempt || run.isEndSent) continue
      run.isStopped = true
      this.#runs.delete(job_id)
    }
  }

  async #report(): Promise<void> {
    await this.#reports.send()
    await delay(PAUSE_MS)
  }
}
