import { z } from 'zod'
import { isLive } from '../../../sql/accounts/credentials.ts'
import { credentialsOf, lockAccount, lockCredentials, recentSession } from '../../../sql/accounts.ts'
import type { Queries } from '../../../sql/db.ts'
import { type ErrorCode, Failure, fail } from '../../../sql/errors.ts'
import { endLogin, type GivenFactor, type LoginEnd, lockedLogin } from '../../../sql/limits.ts'
import { recoveryDigestOf, totpSecretOf } from '../../../tasks/accounts/tokens.ts'
import { audit, type EventRequest } from '../../pipeline/audit.ts'
import type { Caller } from '../../pipeline/auth.ts'
import type { Edge } from '../../pipeline/context.ts'
import { stepOf } from '../../totp.ts'
import { subjectOf } from './known-device.ts'

/** How those who are signed in already show that it is them: before what they sign in with, or the account itself, is changed. */

export const TotpCode = z
  .string()
  .regex(/^\d{3} ?\d{3}$/, 'must be six digits')
  .transform((code) => code.replace(' ', ''))

/** What an account with one-time codes needs beside its password: one of these. */
export const factorFields = {
  totp_code: TotpCode.optional().meta({ description: 'Of the authenticator app' }),
  recovery_code: z.string().min(16).max(40).optional().meta({ description: 'In its place' }),
}

/** What shows that it is them; without a password, a session that has just begun does. */
export const proofFields = { password: z.string().min(1).max(1024).optional(), ...factorFields }

/** The errors of a request that has to prove who calls. */
export const PROOF_ERRORS = [
  'account.nobody',
  'account.proof_wrong',
  'auth.locked',
  'auth.proof_required',
  'request.limited',
] as const satisfies readonly ErrorCode[]

interface Given {
  readonly password?: string | undefined
  readonly totp_code?: string | undefined
  readonly recovery_code?: string | undefined
}

/** The second factor of an account as it came with a request; null when the account has none. */
export function givenFactor(
  edge: Edge,
  totpId: string | null,
  { totp_code, recovery_code }: Given,
): GivenFactor | null {
  if (totpId === null) return null
  // Of two, the one that is not used up for it.
  if (totp_code !== undefined) {
    const step = stepOf(totpSecretOf(edge.secretKey, totpId), totp_code, edge.pulse.now())
    return { totpId, step, recovery: null }
  }
  return {
    totpId,
    step: null,
    recovery: recovery_code === undefined ? null : recoveryDigestOf(recovery_code),
  }
}

/** For how long after a sign-in nobody is asked for the password again, in seconds. */
const RECENT_SECONDS = 600

type Asking = EventRequest & { readonly caller: Caller; readonly edge: Edge }

/** Whether it is the account's own person who calls, and not somebody who has found a session of theirs. */
export interface Proof {
  readonly id: number
  /** Whether the password was right; false without one. */
  readonly matches: boolean
  /**
   * Decides in the transaction of what is to be proven, and locks the account. A wrong password or code counts as a failed
   * login, so a refusal is to be returned, not thrown.
   */
  settle(tx: Queries): Promise<Failure | { readonly email: string }>
}

/** Verifies a password now, outside of any transaction. @throws account.nobody where nobody signs in. */
export async function proofOf(input: Asking, given: Given): Promise<Proof> {
  const { caller, edge, exchange } = input
  const id = caller.ownerId
  if (id === null) throw fail('account.nobody')
  if (given.password === undefined)
    return { id, matches: false, settle: (tx) => signedInLately(tx, id, caller.sessionId) }
  const account = await edge.db.maybeOne(credentialsOf(id))
  // Deleted since it was authenticated.
  if (account === null) throw fail('auth.required')
  const { email, password_hash: hash, totp_id } = account
  const { password } = given
  const subject = subjectOf(edge, exchange.request, email, { id, password_hash: hash })
  const matches = await edge.signInTurns.run(email, async () => {
    const isLocked = (await edge.db.maybeOne(lockedLogin(subject))) !== null
    return isLocked ? null : edge.passwords.verify(hash, password)
  })
  const factor = givenFactor(edge, totp_id, given)
  const { loginMaxFailures, loginLockSeconds } = edge.settings
  const settle: Proof['settle'] = async (tx) => {
    if (matches === null) return countedFailure(tx, input, 'locked', 'account.proof_wrong')
    const ended = endLogin(subject, matches, loginMaxFailures, loginLockSeconds, factor)
    const { outcome } = await tx.one(ended)
    // Another change may have come first, so that this is not the password that was compared.
    if (outcome === 'ok') return (await tx.maybeOne(lockCredentials(id, hash))) ?? fail('account.proof_wrong')
    if (outcome === 'incomplete') return fail('auth.proof_required')
    return countedFailure(tx, input, outcome, 'account.proof_wrong')
  }
  return { id, matches: matches === true, settle }
}

/** The refusal of a proof that has counted as a failed login, once it is in the audit log; to be returned, not thrown. */
export async function countedFailure(
  tx: Queries,
  input: EventRequest & { readonly caller: Caller },
  outcome: LoginEnd,
  wrong: 'account.proof_wrong' | 'account.totp_code',
): Promise<Failure> {
  const accountId = input.caller.ownerId
  await tx.run(audit(input, 'account.sign_in_failed', { accountId, data: { outcome } }))
  if (outcome === 'wrong, now locked') await tx.run(audit(input, 'account.locked', { accountId }))
  return fail(outcome === 'locked' ? 'auth.locked' : wrong)
}

async function signedInLately(
  tx: Queries,
  id: number,
  sessionId: string | null,
): Promise<Failure | { readonly email: string }> {
  const account = await tx.maybeOne(lockCredentials(id, null))
  if (account === null) return fail('auth.required')
  // Whoever has had the lock before may have ended the session.
  const isRecent = (await tx.maybeOne(recentSession(id, sessionId, RECENT_SECONDS))) !== null
  return isRecent ? account : fail('auth.proof_required')
}

/**
 * Locks the account of a caller for what is to last longer than the session or API key that they came with. What admitted them may
 * be seconds old, or have ended while they waited for the lock: then its owner would not get rid of it.
 * @throws auth.required when the account is gone, or the session or key has ended.
 */
export async function lockCaller(tx: Queries, { ownerId, sessionId, key }: Caller): Promise<void> {
  const isThere = (await tx.maybeOne(lockAccount(ownerId ?? 0))) !== null
  if (!isThere || !(await tx.one(isLive(sessionId, key?.id ?? null))).live) throw fail('auth.required')
}

/** Tells a refusal from the account. */
export const isRefused = (settled: Failure | { readonly email: string }): settled is Failure =>
  settled instanceof Failure
