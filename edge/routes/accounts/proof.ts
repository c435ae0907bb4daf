import { z } from 'zod'
import {
  findCredentialsById,
  findRecentSession,
  lockAccount,
  lockCredentials,
  type StoredTotp,
} from '../../../sql/accounts/accounts.ts'
import { checkCredentialsAreLive } from '../../../sql/accounts/credentials.ts'
import type { Queries } from '../../../sql/db.ts'
import { type ErrorCode, Failure, fail } from '../../../sql/errors.ts'
import {
  decideLogin,
  findLoginLock,
  type LoginOutcome,
  type PresentedFactor,
} from '../../../sql/limits/limits.ts'
import { digestRecoveryCode } from '../../../tasks/accounts/tokens.ts'
import type { Caller } from '../../pipeline/access/auth.ts'
import type { Edge } from '../../pipeline/context.ts'
import { appendAuditEvent, type EventRequest } from '../../pipeline/write/audit.ts'
import { deriveLoginFailureKey } from './known-device.ts'
import { findStep } from './one-time-codes.ts'

/** Checks the identity of a signed-in caller before a change of credentials or of the account itself. */

/** A one-time code as people type it, perhaps with full-width digits. */
export const TotpCode = z
  .string()
  .max(40)
  .normalize('NFKC')
  .trim()
  .regex(/^\d{3} ?\d{3}$/, 'must be six digits')
  .transform((code) => code.replace(' ', ''))

/** Second factor of an account with one-time codes. Requests send one of these in addition to the password. */
export const factorFields = {
  totp_code: TotpCode.optional().meta({ description: 'Code of the authenticator app' }),
  recovery_code: z.string().min(16).max(40).optional().meta({ description: 'In place of `totp_code`' }),
}

/** Fields that prove the caller's identity. A recent sign-in replaces the password. */
export const proofFields = { password: z.string().min(1).max(1024).optional(), ...factorFields }

/** Sentence for descriptions of routes that need a proof of identity. */
export const PROOF_DESCRIPTION =
  'Requires the password, with a one-time code if those are enabled, or a sign-in within the last 10 minutes; a wrong password or code counts as a failed login.'

/** Errors of requests that need a proof of identity. */
export const PROOF_ERRORS = [
  'account.nobody',
  'account.proof_wrong',
  'auth.locked',
  'auth.proof_required',
  'request.limited',
] as const satisfies readonly ErrorCode[]

interface GivenProof {
  readonly password?: string | undefined
  readonly totp_code?: string | undefined
  readonly recovery_code?: string | undefined
}

/** Parses the second factor of a request; null if the account has no one-time codes. */
export function parseFactor(
  edge: Edge,
  totp: StoredTotp | null,
  { totp_code, recovery_code }: GivenProof,
): PresentedFactor | null {
  if (totp === null) return null
  const totpId = totp.id
  // A one-time code has precedence, to save the recovery code.
  if (totp_code !== undefined) {
    return { totpId, step: findStep(edge, totp, totp_code), recovery: null }
  }
  return {
    totpId,
    step: null,
    recovery: recovery_code === undefined ? null : digestRecoveryCode(recovery_code),
  }
}

/** Seconds after a sign-in during which a caller does not have to repeat the password. */
const RECENT_SIGN_IN_SECONDS = 600

type ProofInput = EventRequest & { readonly caller: Caller; readonly edge: Edge }

/** Evidence that the caller owns the account and does not use a stolen session. */
export interface Proof {
  readonly id: number
  /** True if the request had the right password. */
  readonly passwordMatches: boolean
  /**
   * Completes the check in the transaction of the change, and locks the account. Callers must return a failure instead
   * of throwing it, so that the failed login is counted.
   */
  confirm(tx: Queries): Promise<Failure | { readonly email: string }>
}

/**
 * Verifies the password of a caller. Run it outside of any transaction.
 * @throws `account.nobody` if the caller has no account.
 */
export async function checkProof(input: ProofInput, given: GivenProof): Promise<Proof> {
  const { caller, edge, exchange } = input
  const id = caller.ownerId
  if (id === null) throw fail('account.nobody')
  if (given.password === undefined)
    return { id, passwordMatches: false, confirm: (tx) => requireRecentSignIn(tx, id, caller.sessionId) }
  const account = await edge.db.maybeOne(findCredentialsById(id))
  // The account was deleted after the caller was authenticated.
  if (account === null) throw fail('auth.required')
  const { email, password_hash: hash, totp } = account
  const { password } = given
  const subject = deriveLoginFailureKey(edge, exchange.request, email, { id, password_hash: hash })
  const matches = await edge.signInMutex.run(email, async () => {
    const isLocked = (await edge.db.maybeOne(findLoginLock(subject))) !== null
    return isLocked ? null : edge.passwords.verify(hash, password)
  })
  const factor = parseFactor(edge, totp, given)
  const { loginMaxFailures, loginLockSeconds } = edge.settings
  const confirm: Proof['confirm'] = async (tx) => {
    if (matches === null) return recordFailedProof(tx, input, 'locked', 'account.proof_wrong')
    const login = decideLogin(subject, matches, loginMaxFailures, loginLockSeconds, factor)
    const { outcome } = await tx.one(login)
    // The lock returns null if another change has replaced the verified password.
    if (outcome === 'ok') return (await tx.maybeOne(lockCredentials(id, hash))) ?? fail('account.proof_wrong')
    if (outcome === 'incomplete') return fail('auth.proof_required')
    return recordFailedProof(tx, input, outcome, 'account.proof_wrong')
  }
  return { id, passwordMatches: matches === true, confirm }
}

/**
 * Audits a wrong proof, which has already counted as a failed login. Callers must return the failure, because throwing
 * it would undo the event.
 */
export async function recordFailedProof(
  tx: Queries,
  input: EventRequest & { readonly caller: Caller },
  outcome: LoginOutcome,
  wrong: 'account.proof_wrong' | 'account.totp_code',
): Promise<Failure> {
  const accountId = input.caller.ownerId
  await tx.run(appendAuditEvent(input, 'account.sign_in_failed', { accountId, data: { outcome } }))
  if (outcome === 'wrong, now locked') await tx.run(appendAuditEvent(input, 'account.locked', { accountId }))
  return fail(outcome === 'locked' ? 'auth.locked' : wrong)
}

async function requireRecentSignIn(
  tx: Queries,
  id: number,
  sessionId: string | null,
): Promise<Failure | { readonly email: string }> {
  const account = await tx.maybeOne(lockCredentials(id, null))
  if (account === null) return fail('auth.required')
  // The session may have ended while this request waited for the lock.
  const isRecent = (await tx.maybeOne(findRecentSession(id, sessionId, RECENT_SIGN_IN_SECONDS))) !== null
  return isRecent ? account : fail('auth.proof_required')
}

/**
 * Locks the account of a caller before a change that outlasts their session or API key. An ended session or key must
 * not make such a change. Either may end during the wait for the lock.
 * @throws auth.required if the account is gone, or the session or key has ended.
 */
export async function lockCaller(tx: Queries, { ownerId, sessionId, key }: Caller): Promise<void> {
  const exists = (await tx.maybeOne(lockAccount(ownerId ?? 0))) !== null
  if (!exists || !(await tx.one(checkCredentialsAreLive(sessionId, key?.id ?? null))).live)
    throw fail('auth.required')
}

/** True if the proof failed. Otherwise the result is the account. */
export const isFailure = (result: Failure | { readonly email: string }): result is Failure =>
  result instanceof Failure
