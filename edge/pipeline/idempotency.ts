import type { Queries, Transaction } from '../../sql/db.ts'
import { Failure, fail } from '../../sql/errors.ts'
import { type Claim, claimKey, keepKey, type StoredAnswer, storeAnswer } from '../../sql/idempotency.ts'
import { mac } from '../../tasks/accounts/tokens.ts'
import { failureBody, type Header, type KeptAnswer } from '../http/reply.ts'
import type { Edge } from './context.ts'
import { statusOf } from './statuses.ts'

/** Whose key it is: the same key of another caller, or on another route, is another key. */
export interface KeyRef {
  readonly scope: string
  readonly key: string
  /** What invalid input is answered with on this route. */
  readonly invalidStatus: number
}

/** A key as a request uses it: `fingerprint` is what its repetition must equal. */
export interface UsedKey extends KeyRef {
  readonly fingerprint: Buffer
}

/**
 * What a request's repetition must equal: method, path, query and body. It is kept, and a body may have a password, which a
 * plain hash would let be guessed quickly: so it needs the deployment's key.
 */
export const fingerprintOf = (secretKey: string, ...parts: readonly (string | Uint8Array)[]): Buffer =>
  mac(secretKey, 'millrace.idempotency', ...parts)

/**
 * Takes the key until the end of the transaction.
 * @returns the first request's row when there was one, null when this is the first.
 * @throws fail('idempotency.mismatch') when the first request was another one, fail('idempotency.running') while it has
 *   not been committed.
 */
export async function takeKey(tx: Queries, { scope, key, fingerprint }: UsedKey): Promise<Claim | null> {
  const claim = await tx.one(claimKey(scope, key, fingerprint))
  if (claim.state === 'first') return null
  if (claim.state === 'running') throw fail('idempotency.running')
  if (claim.state === 'other') {
    const msg = 'was already used with a different request'
    const problems = [{ loc: ['header', 'idempotency-key'], msg, type: 'custom' }]
    throw fail('idempotency.mismatch', {}, { problems })
  }
  return claim
}

/**
 * The kept answer of a claim.
 * @throws fail('idempotency.running') while there is none, fail('job.missing') when its job, which had it, was deleted.
 */
export function keptAnswer(claim: Claim): KeptAnswer {
  if (claim.status === null) throw fail(claim.state === 'gone' ? 'job.missing' : 'idempotency.running')
  return { status: claim.status, headers: claim.headers ?? [], body: claim.body ?? '' }
}

/** An answer as a repetition gets it: it says that nothing was done again. */
export function replayed(answer: KeptAnswer): KeptAnswer {
  return { ...answer, headers: [...answer.headers, REPLAYED] }
}

export const REPLAYED: Header = ['idempotent-replayed', 'true']

/** Keeps the answer of a key's job for repetitions. */
export async function keepAnswer(edge: Edge, { scope, key }: KeyRef, answer: KeptAnswer): Promise<void> {
  await edge.db.run(storeAnswer(scope, key, stored(answer)))
}

/** Cookies are credentials and are not kept. */
export function stored(answer: KeptAnswer): StoredAnswer {
  const headers = answer.headers.filter(([name]) => name !== 'set-cookie' && name !== 'x-request-id')
  return { ...answer, headers }
}

/**
 * Runs work in one transaction, once per key: the key and the answer are committed with what it writes, so that a
 * repetition finds all of it or nothing. A refusal is kept too, unless trying again can help.
 * @returns the kept answer of a repetition, null when the work was done.
 */
export async function once(
  edge: Edge,
  key: UsedKey | null,
  work: (tx: Transaction) => Promise<KeptAnswer>,
): Promise<KeptAnswer | null> {
  let begun = false
  try {
    return await edge.db.transaction(async (tx) => {
      const first = key === null ? null : await takeKey(tx, key)
      if (first !== null) return replayed(keptAnswer(first))
      begun = true
      const answer = await work(tx)
      if (key !== null) await tx.run(keepKey(key, { answer: stored(answer) }))
      return null
    })
  } catch (error) {
    // What it wrote is undone; the refusal is kept by itself.
    if (key !== null && begun && error instanceof Failure && statusOf(error.code) < 500)
      await edge.db.transaction(async (tx) => {
        const { state } = await tx.one(claimKey(key.scope, key.key, key.fingerprint))
        if (state === 'first') await tx.run(keepKey(key, { answer: refusalOf(key, error) }))
      })
    throw error
  }
}

/** A refusal as it is answered. */
export function refusalOf({ invalidStatus }: Pick<KeyRef, 'invalidStatus'>, failure: Failure): KeptAnswer {
  const status = failure.code === 'request.invalid' ? invalidStatus : statusOf(failure.code)
  return { status, headers: [], body: failureBody(failure) }
}
