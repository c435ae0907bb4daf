import type { Chance } from '../../chance.ts'
import { type Answer, recordViolation, send } from './api.ts'
import type { Item, Run } from './run.ts'

const MAX_ITEMS = 200
const REPEAT_PROBABILITY = 0.1
const LATE_N = 1_000_000

interface Pending {
  readonly run: Run
  readonly item: Item
}

interface ItemAnswer {
  readonly job_id: string
  readonly status: string
  readonly reason?: string
}

/** The reports of one lease, in order: one request at a time. */
export class Reports {
  readonly #runs: Map<string, Run>
  readonly #post: (items: readonly object[]) => Promise<Answer | null>
  readonly #chance: Chance
  #pending: Pending[] = []

  constructor(
    runs: Map<string, Run>,
    post: (items: readonly object[]) => Promise<Answer | null>,
    chance: Chance,
  ) {
    this.#runs = runs
    this.#post = post
    this.#chance = chance
  }

  add(run: Run, item: Item): void {
    this.#pending.push({ run, item })
  }

  /** Sends the items so far. Sometimes repeats the request, which must change nothing. */
  async send(): Promise<void> {
    const batch = this.#pending.splice(0, MAX_ITEMS).filter(({ run }) => !run.isStopped)
    if (batch.length === 0) return
    for (const { run, item } of batch) if (isEnd(item)) run.isEndSent = true
    const items = batch.map(({ run, item }) => ({ ...identify(run), ...item }))
    const answers = await this.#ask(items)
    if (answers === null) return
    for (const [i, { run, item }] of batch.entries()) this.#settle(run, item, answers[i]!)
    if (!this.#chance.isHit(REPEAT_PROBABILITY)) return
    const again = await this.#ask(items)
    for (const [i, { item }] of batch.entries())
      if (isEnd(item) && again !== null && again[i]!.status !== answers[i]!.status)
        recordViolation(
          `an end was answered ${answers[i]!.status}, but its repetition ${again[i]!.status}: ${JSON.stringify(items[i])}`,
        )
  }

  /** Reports about attempts whose lease has expired, as a worker does that has not noticed. All must be refused. */
  async checkLate(runs: readonly Run[]): Promise<void> {
    const items = runs.flatMap((run) => [
      { ...identify(run), n: LATE_N, progress: { label: 'late' } },
      { ...identify(run), done: { result: { word: 'late', attempt: run.job.attempt } } },
    ])
    const answers = await this.#ask(items)
    for (const [i, { status }] of (answers ?? []).entries()) {
      const { job_id: jobId, attempt } = items[i]!
      if (status === 'superseded') send({ kind: 'refused', jobId, attempt, isLate: true })
      else recordViolation(`a late report was answered ${status}: ${JSON.stringify(items[i])} (job ${jobId})`)
    }
  }

  async #ask(items: readonly object[]): Promise<readonly ItemAnswer[] | null> {
    const answer = await this.#post(items)
    if (answer === null) return null
    const answers: readonly ItemAnswer[] = answer.json.items
    if (answers.length === items.length) return answers
    recordViolation(`${items.length} items got ${answers.length} answers`)
    return null
  }

  #settle(run: Run, item: Item, { status, reason }: ItemAnswer): void {
    const { job_id: jobId, attempt } = run.job
    if (status === 'invalid') recordViolation(`${JSON.stringify(item)} is invalid: ${reason} (job ${jobId})`)
    if (status === 'superseded') {
      run.isStopped = true
      if (isEnd(item)) send({ kind: 'refused', jobId, attempt, isLate: false })
    }
    if (status === 'ok' && item.done !== undefined) send({ kind: 'ended', jobId, attempt })
    if ((status === 'superseded' || isEnd(item)) && this.#runs.get(jobId) === run) this.#runs.delete(jobId)
  }
}

const isEnd = ({ done, failed, release }: Item): boolean => (done ?? failed ?? release) !== undefined

const identify = ({ job: { job_id, attempt } }: Run) => ({ job_id, attempt })
