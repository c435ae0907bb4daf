import { createHash } from 'node:crypto'
import type { Queries } from '../../sql/db.ts'
import { Failure, fail } from '../../sql/errors.ts'
import { type Claim, claimKey, releaseKey, storeAnswer } from '../../sql/idempotency.ts'
import { failureBody, type KeptAnswer } from '../http/reply.ts'
import type { Edge } from './context.ts'
import { statusOf } from './statuses.ts'

/** Whose key it is: the same key of another caller, or on another route, is another key. */
export interface KeyRef {
  readonly scope: string
  readonly key: string
  /** What invalid input is answered with on this route. */
  readonly invalidStatus: number
}

// A request that dies without an answer holds its key this long on top of the longest wait.
const LOCK_MARGIN_SECONDS = 60

/** What a request's repetition must equal: method, path, query and body. */
export function fingerprintOf(...parts: readonly (string | Uint8Array)[]): Buffer {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part).update('\0')
  return hash.digest()
}

/**
 * Takes the key inside a transaction.
 * @returns the first request's row when there was one, null when this is the first.
 * @throws fail('idempotency.mismatch') when the first request was another one.
 */
export async function takeKey(
  edge: Edge,
  tx: Queries,
  ref: KeyRef,
  fingerprint: Buffer,
): Promise<Claim | null> {
  const lock = edge.settings.requestWaitSeconds + LOCK_MARGIN_SECONDS
  const claim = await tx.one(claimKey(ref.scope, ref.key, fingerprint, lock))
  if (claim.fresh) return null
  if (!claim.same) {
    const msg = 'was already used with a different request'
    const problems = [{ loc: ['header', 'idempotency-key'], msg, type: 'custom' }]
    throw fail('idempotency.mismatch', {}, { problems })
  }
  return claim
}

/** The kept answer of a claim. @throws fail('idempotency.running') while there is none. */
export function keptAnswer(claim: Claim): KeptAnswer {
  if (claim.status === null) throw fail('idempotency.running')
  return { status: claim.status, headers: claim.headers ?? [], body: claim.body ?? '' }
}

/** Keeps an answer for repetitions; cookies are credentials and are not kept. */
export async function keepAnswer(edge: Edge, ref: KeyRef, answer: KeptAnswer): Promise<void> {
  const headers = answer.headers.filter(([name]) => name !== 'set-cookie' && name !== 'x-request-id')
  await edge.db.run(storeAnswer(ref.scope, ref.key, { ...answer, headers }))
}

/** Runs work once per key: its answer is kept, unless it failed in a way that is worth another try. */
export async function once(
  edge: Edge,
  ref: KeyRef | null,
  fingerprint: () => Buffer,
  work: () => Promise<KeptAnswer>,
): Promise<KeptAnswer> {
  if (ref === null) return work()
  const first = await takeKey(edge, edge.db, ref, fingerprint())
  if (first !== null) return keptAnswer(first)
  try {
    const answer = await work()
    await keepAnswer(edge, ref, answer)
    return answer
  } catch (error) {
    const final = error instanceof Failure && statusOf(error.code) < 500
    if (final)
      await keepAnswer(edge, ref, {
        status: error.code === 'request.invalid' ? ref.invalidStatus : statusOf(error.code),
        headers: [],
        body: failureBody(error),
      })
    else await edge.db.run(releaseKey(ref.scope, ref.key))
    throw error
  }
}
