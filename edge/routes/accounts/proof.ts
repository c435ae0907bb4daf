import { z } from 'zod'
import { isRecentSession } from '../../../sql/accounts/totp.ts'
import { credentialsOf } from '../../../sql/accounts.ts'
import type { Queries } from '../../../sql/db.ts'
import { type Failure, fail } from '../../../sql/errors.ts'
import { endLogin, type GivenFactor } from '../../../sql/limits.ts'
import { digestOf, recoveryDigestOf, totpSecretOf } from '../../../tasks/accounts/tokens.ts'
import { audit } from '../../pipeline/audit.ts'
import type { Caller } from '../../pipeline/auth.ts'
import type { Edge } from '../../pipeline/context.ts'
import type { RequestContext } from '../../pipeline/request-context.ts'
import { stepOf } from '../../totp.ts'

/** How those who are signed in already show that it is them: before what they sign in with is changed. */

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

const RECENT_SECONDS = 600

interface Asking {
  readonly caller: Caller
  readonly edge: Edge
  readonly requestId: string
  readonly exchange: RequestContext
}

/** An account, and the check in a transaction of what its owner gave: a refusal, which is to be committed, or null. */
export interface Proof {
  readonly id: number
  readonly email: string
  check(tx: Queries): Promise<Failure | null>
}

/**
 * Verifies a password now, outside of any transaction; a wrong password or code counts as a failed login.
 * @throws account.nobody where nobody signs in.
 */
export async function proofOf(input: Asking, given: Given): Promise<Proof> {
  const { caller, edge } = input
  const id = caller.ownerId
  if (id === null) throw fail('account.nobody')
  const account = await edge.db.maybeOne(credentialsOf(id))
  // Deleted since it was authenticated.
  if (account === null) throw fail('auth.required')
  const { email, password_hash, totp_id } = account
  const matches =
    given.password === undefined ? null : await edge.passwords.verify(password_hash, given.password)
  const factor = givenFactor(edge, totp_id, given)
  const { loginMaxFailures, loginLockSeconds } = edge.settings
  const check = async (tx: Queries): Promise<Failure | null> => {
    if (matches === null) {
      const recent =
        caller.sessionId !== null && (await tx.one(isRecentSession(caller.sessionId, RECENT_SECONDS))).recent
      return recent ? null : fail('auth.proof_required')
    }
    const ended = endLogin(digestOf(email), matches, loginMaxFailures, loginLockSeconds, factor)
    const { outcome } = await tx.one(ended)
    if (outcome === 'ok') return null
    if (outcome === 'incomplete') return fail('auth.proof_required')
    await tx.run(audit(input, 'account.sign_in_failed', { accountId: id, data: { outcome } }))
    if (outcome === 'wrong, now locked') await tx.run(audit(input, 'account.locked', { accountId: id }))
    return fail(outcome === 'locked' ? 'auth.locked' : 'account.proof_wrong')
  }
  return { id, email, check }
}
