import type { Queries, Transaction } from '../../../sql/db.ts'
import { Failure, fail } from '../../../sql/errors.ts'
import {
  type Claim,
  claimKey,
  type StoredResponse,
  storeKey,
  storeResponse,
} from '../../../sql/idempotency/idempotency.ts'
import type { SecretKeys } from '../../../tasks/platform/keys.ts'
import {
  type FailureRules,
  formatFailure,
  formatOpenAiFailure,
  type Header,
  type StoredReply,
} from '../../http/reply.ts'
import { statusOf } from '../answer/statuses.ts'
import type { Edge } from '../context.ts'

/** An Idempotency-Key within its scope. Keys of different callers or paths are independent. */
export interface KeyRef {
  readonly scope: string
  readonly key: string
  /** Rules for failures on this route. */
  readonly rules: FailureRules
}

/** An Idempotency-Key with the fingerprint that a repetition must have. */
export interface FingerprintedKey extends KeyRef {
  readonly fingerprint: Buffer
}

/**
 * Returns the fingerprint of a request from its method, path, query and body. It is a MAC, because it is stored, and a
 * plain hash would allow guessing passwords in the body. All processes share its stored key.
 */
export const computeFingerprint = (keys: SecretKeys, ...parts: readonly (string | Uint8Array)[]): Buffer =>
  keys.stored.mac('millrace.idempotency', ...parts)

/**
 * Claims the key until the transaction ends. Returns the row of the first request; null if this request is the first.
 * Throws idempotency.mismatch if the first request was a different one, idempotency.running if it has not committed
 * yet.
 */
export async function claimIdempotencyKey(
  tx: Queries,
  { scope, key, fingerprint }: FingerprintedKey,
): Promise<Claim | null> {
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
 * Returns the stored answer of a claimed key.
 * @throws idempotency.running if there is no answer yet, job.missing if the answer depends on a deleted job.
 */
export function requireStoredAnswer(claim: Claim): StoredReply {
  if (claim.status === null) throw fail(claim.state === 'gone' ? 'job.missing' : 'idempotency.running')
  return { status: claim.status, headers: claim.headers ?? [], body: claim.body ?? '' }
}

/** Marks an answer as a replay, so that clients know that no work was repeated. */
export function markReplayed(answer: StoredReply): StoredReply {
  return { ...answer, headers: [...answer.headers, REPLAYED_HEADER] }
}

export const REPLAYED_HEADER: Header = ['idempotent-replayed', 'true']

/** Stores the answer that a job gave, for repetitions of its request. */
export async function storeJobAnswer(edge: Edge, { scope, key }: KeyRef, answer: StoredReply): Promise<void> {
  await edge.db.run(storeResponse(scope, key, toStored(answer)))
}

/** Returns the storable part of an answer. It excludes cookies, which are credentials, and the request id. */
export function toStored(answer: StoredReply): StoredResponse {
  const headers = answer.headers.filter(([name]) => name !== 'set-cookie' && name !== 'x-request-id')
  return { ...answer, headers }
}

/**
 * Runs work in one transaction, once per key. The key and the answer commit together with the work's writes, so a
 * repetition finds all of them or none. Failures are stored too, unless a retry may succeed ({@link isTransient}).
 * @returns the stored answer for a repetition; null if the work ran.
 */
export async function runOnce(
  edge: Edge,
  key: FingerprintedKey | null,
  work: (tx: Transaction) => Promise<StoredReply>,
): Promise<StoredReply | null> {
  let claimed = false
  try {
    return await edge.db.transaction(async (tx) => {
      const first = key === null ? null : await claimIdempotencyKey(tx, key)
      if (first !== null) return markReplayed(requireStoredAnswer(first))
      claimed = true
      const answer = await work(tx)
      if (key !== null && !isTransient(answer.status))
        await tx.run(storeKey(key, { answer: toStored(answer) }))
      return null
    })
  } catch (error) {
    // The failed transaction has rolled back, so the failure is stored in a new one.
    if (key !== null && claimed && error instanceof Failure && !isTransient(statusOf(error.code)))
      await edge.db.transaction(async (tx) => {
        const { state } = await tx.one(claimKey(key.scope, key.key, key.fingerprint))
        if (state === 'first') await tx.run(storeKey(key, { answer: answerFailure(key.rules, error) }))
      })
    throw error
  }
}

/** True if the same request may succeed later: a limit or quota was reached, or the service failed. */
const isTransient = (status: number): boolean => status === 429 || status >= 500

/** Converts a failure to an answer. */
export function answerFailure({ invalidStatus, errorFormat }: FailureRules, failure: Failure): StoredReply {
  const status = failure.code === 'request.invalid' ? invalidStatus : statusOf(failure.code)
  if (errorFormat === 'plain') return { status, headers: [], body: formatFailure(failure) }
  // Its clients repeat failed requests, which would cost again what cannot succeed.
  const headers: Header[] = failure.retryable ? [] : [['x-should-retry', 'false']]
  return { status, headers, body: formatOpenAiFailure(failure, status) }
}
