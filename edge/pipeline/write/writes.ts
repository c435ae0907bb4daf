import type { Transaction } from '../../../sql/db.ts'
import { Failure } from '../../../sql/errors.ts'
import type { EnqueuedJob, JobSpec } from '../../../sql/jobs/jobs.ts'
import type { Edge } from '../context.ts'
import type { AdmittedRequest } from '../request/admitted-request.ts'
import type { RouteEntry } from '../request/match.ts'
import type { RequestContext } from '../request/request-context.ts'
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
    answer: (jobs: readonly EnqueuedJob[]) => unknown,
    link?: (tx: Transaction, jobs: readonly EnqueuedJob[]) => Promise<void>,
  ): Promise<Answer<unknown>> {
    const { enqueuer } = this.admitted.edge
    if (this.key !== null || link !== undefined)
      return this.transaction(async (tx) => {
        const jobs = await enqueuer.add(specs, tx)
        await link?.(tx, jobs)
        return answer(jobs)
      })
    if (this.hasReadBody) await this.admitted.readmit()
    return new Answer({ value: answer(await enqueuer.add(specs)) })
  }

  /** True if the handler itself reads the body after admission, which only `raw` handlers do. */
  private get hasReadBody(): boolean {
    return this.admitted.entry.route.raw !== undefined
  }
}

/**
 * Converts the result of a handler to an answer with its status. Tests and development also check it against the
 * route's schema.
 */
export function toCheckedAnswer(edge: Edge, entry: RouteEntry, result: unknown): Answer<unknown> {
  const { route } = entry
  const given = result instanceof Answer ? result : new Answer<unknown>({ value: result })
  const status = given.status ?? route.status ?? (route.response === undefined ? 204 : 200)
  if (edge.settings.validateSchemas && route.response !== undefined && status < 300 && status !== 204) {
    const { json, value } = completeAnswer(edge, entry, given)
    route.response.parse(json === undefined ? value : JSON.parse(json))
  }
  return (given.status ?? 200) === status ? given : given.withStatus(status)
}

/** Adds the parts of an answer that are never stored (see `route.addUnstored`). */
export function completeAnswer(edge: Edge, entry: RouteEntry, answer: Answer<unknown>): Answer<unknown> {
  if (entry.route.addUnstored === undefined) return answer
  const { status = 200, headers } = answer
  if (status >= 300) return answer
  return new Answer({ status, headers, json: entry.route.addUnstored(edge, bodyOf(answer)) })
}

/** Sends an answer with the common headers. */
export function sendAnswer(exchange: RequestContext, answer: Answer<unknown>): Promise<void> | void {
  const status = answer.status ?? 200
  const text = bodyOf(answer)
  return text === ''
    ? exchange.sendEmpty(status, answer.headers)
    : exchange.sendJson(status, answer.headers, text)
}

/** Returns the body of an answer; '' if it has none. */
export function bodyOf(answer: Answer<unknown>): string {
  if (answer.json !== undefined) return answer.json
  return answer.value === undefined ? '' : JSON.stringify(answer.value)
}
