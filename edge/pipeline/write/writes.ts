import type { Transaction } from '../../../sql/db.ts'
import { Failure } from '../../../sql/errors.ts'
import type { JobSpec } from '../../../sql/jobs/jobs.ts'
import { bodyOf, toCheckedAnswer } from '../answer/answers.ts'
import type { AdmittedRequest } from '../request/admitted-request.ts'
import { Answer, type Writes } from '../route.ts'
import { answerFailure, type KeyRef, runOnce } from './idempotency.ts'

/** Implements the {@link Writes} of one request. */
export class RequestWrites implements Writes<unknown> {
  /** True if the handler has called `transaction`, which uses the request's Idempotency-Key. */
  hasUsedKey = false
  private readonly admitted: AdmittedRequest
  private readonly key: KeyRef | null

  constructor(admitted: AdmittedRequest, key: KeyRef | null) {
    this.admitted = admitted
    this.key = key
  }

  /** Adds the methods that write to the input of a handler. */
  extendInput(input: object): object {
    const { transaction, enqueue } = this
    return { ...input, transaction: transaction.bind(this), enqueue: enqueue.bind(this) }
  }

  async transaction(
    work: (tx: Transaction) => Promise<unknown>,
    fingerprint = this.admitted.fingerprint,
  ): Promise<Answer<unknown>> {
    const { edge, entry } = this.admitted
    const { key } = this
    this.hasUsedKey = true
    if (this.hasReadBody) await this.admitted.readmit()
    let refusal: Failure | null = null
    let answer = new Answer<unknown>({})
    const used = key === null ? null : { ...key, fingerprint: fingerprint() }
    const repeated = await runOnce(edge, used, async (tx) => {
      const result = await work(tx)
      refusal = result instanceof Failure ? result : null
      if (refusal !== null) return answerFailure(entry.area, refusal)
      const given = toCheckedAnswer(edge, entry, result)
      const { status = 200, headers } = given
      const body = bodyOf(given)
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
    const { enqueuer } = this.admitted.edge
    const add = async (tx?: Transaction) => (await enqueuer.add(specs, tx)).map(({ job_id }) => job_id)
    if (this.key !== null) return this.transaction(async (tx) => answer(await add(tx)))
    if (this.hasReadBody) await this.admitted.readmit()
    return new Answer({ value: answer(await add()) })
  }

  /** True if the handler itself reads the body after admission, which only `raw` handlers do. */
  private get hasReadBody(): boolean {
    return this.admitted.entry.route.raw !== undefined
  }
}
