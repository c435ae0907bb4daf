import type { Transaction } from '../../sql/db.ts'
import { Failure } from '../../sql/errors.ts'
import type { JobSpec } from '../../sql/jobs.ts'
import { checked, textOf } from './answers.ts'
import type { Ending } from './ending.ts'
import { type KeyRef, once, refusalOf } from './idempotency.ts'
import { Answer, type Writes } from './route.ts'

/** The {@link Writes} of one request. */
export class RequestWrites implements Writes<unknown> {
  /** True if the handler has called `transaction`, which uses the request's key. */
  wrote = false
  private readonly ending: Ending
  private readonly key: KeyRef | null

  constructor(ending: Ending, key: KeyRef | null) {
    this.ending = ending
    this.key = key
  }

  /** The handler's input, extended by the ways to write. */
  inputOf(input: object): object {
    const { transaction, enqueue } = this
    return { ...input, transaction: transaction.bind(this), enqueue: enqueue.bind(this) }
  }

  async transaction(
    work: (tx: Transaction) => Promise<unknown>,
    fingerprint = this.ending.fingerprint,
  ): Promise<Answer<unknown>> {
    const { edge, entry } = this.ending
    const { key } = this
    this.wrote = true
    if (this.hasReadBody) await this.ending.readmit()
    let refusal: Failure | null = null
    let answer = new Answer<unknown>({})
    const used = key === null ? null : { ...key, fingerprint: fingerprint() }
    const repeated = await once(edge, used, async (tx) => {
      const result = await work(tx)
      refusal = result instanceof Failure ? result : null
      if (refusal !== null) return refusalOf(entry.area, refusal)
      const given = checked(edge, entry, result)
      const { status = 200, headers } = given
      const body = textOf(given)
      answer = new Answer({ status, headers, json: body })
      return { status, headers, body }
    })
    if (refusal !== null) throw refusal
    return repeated === null ? answer : new Answer({ ...repeated, json: repeated.body })
  }

  async enqueue(
    specs: readonly JobSpec[],
    answer: (jobIds: readonly string[]) => unknown,
  ): Promise<Answer<unknown>> {
    const { enqueuer } = this.ending.edge
    const add = async (tx?: Transaction) => (await enqueuer.add(specs, tx)).map(({ job_id }) => job_id)
    if (this.key !== null) return this.transaction(async (tx) => answer(await add(tx)))
    if (this.hasReadBody) await this.ending.readmit()
    return new Answer({ value: answer(await add()) })
  }

  /** True if the handler itself reads the body, after the caller was admitted: only `raw` does. */
  private get hasReadBody(): boolean {
    return this.ending.entry.route.raw !== undefined
  }
}
