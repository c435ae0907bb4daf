import { randomBytes } from 'node:crypto'
import {
  findCredentialsById,
  findRecipientById,
  markAddressVerified,
  recordLogin,
  type StoredTotp,
  setPassword,
} from '../../../sql/accounts/accounts.ts'
import { lockFactors, revokeCredentials } from '../../../sql/accounts/credentials.ts'
import type { Queries, Transaction } from '../../../sql/db.ts'
import { type Failure, fail } from '../../../sql/errors.ts'
import { decideLogin } from '../../../sql/limits/limits.ts'
import { lockInvites } from '../../../sql/orgs/invites.ts'
import type { Edge } from '../../pipeline/context.ts'
import type { Answer } from '../../pipeline/route.ts'
import { appendAuditEvent } from '../../pipeline/write/audit.ts'
import { auditVerification } from '../orgs/access.ts'
import { deriveLoginFailureKey } from './known-device.ts'
import { type factorFields, parseFactor } from './proof.ts'
import { completeSignIn, type SignInInput, type TokenJson } from './sign-in.ts'

/** Sign-ins that prove the ownership of an address in place of a password. One-time codes are still required. */

export type GivenFactor = { readonly [K in keyof typeof factorFields]?: string | undefined }

/** An account whose owner has proved the address, as read before the transaction. */
export interface ProvenOwner {
  readonly id: number
  readonly email: string
  readonly passwordHash: string
  readonly totp: StoredTotp | null
  /**
   * Hash of an unknown password if the address was unverified; null otherwise. Someone else may have registered it, so
   * the sign-in replaces all credentials, the password among them.
   */
  readonly replacedHash: string | null
}

/** Reads an account for a sign-in without its password; null if it is gone. */
export async function findProvenOwner(edge: Edge, id: number): Promise<ProvenOwner | null> {
  const account = await edge.db.maybeOne(findCredentialsById(id))
  const state = await edge.db.maybeOne(findRecipientById(id))
  if (account === null || state === null) return null
  const { email, password_hash: passwordHash, totp } = account
  const replacedHash = state.is_verified ? null : await hashUnknownPassword(edge)
  return { id, email, passwordHash, totp, replacedHash }
}

/** Returns the hash of a password that is not kept, for accounts without one. A reset sets another. */
export const hashUnknownPassword = ({ passwords }: Edge): Promise<string> =>
  passwords.hash(randomBytes(32).toString('base64url'))

/**
 * Requires the code of an account with one-time codes, and locks its factors. Wrong codes count as failed logins.
 * Returns the failure, which callers must return so that it is counted; null if the sign-in may continue.
 */
export async function checkFactor(
  input: SignInInput<GivenFactor>,
  tx: Queries,
  owner: ProvenOwner,
): Promise<Failure | null> {
  const { body, edge, request } = input
  const { id, email, passwordHash, totp, replacedHash } = owner
  if (replacedHash !== null) await tx.run(lockInvites(email))
  // The codes of an unverified account are not the owner's, and end with this sign-in.
  const failure = totp === null || replacedHash !== null ? null : await decide(totp)
  if (failure === null) await tx.run(lockFactors(email))
  return failure

  async function decide(stored: StoredTotp): Promise<Failure | null> {
    const { loginMaxFailures, loginLockSeconds } = edge.settings
    const subject = deriveLoginFailureKey(edge, request, email, { id, password_hash: passwordHash })
    const factor = parseFactor(edge, stored, body)
    const { outcome } = await tx.one(decideLogin(subject, true, loginMaxFailures, loginLockSeconds, factor))
    if (outcome === 'ok') return null
    const eventFields = { actorId: null, accountId: id }
    if (outcome === 'incomplete') {
      await tx.run(appendAuditEvent(input, 'account.totp_asked', eventFields))
      return fail('auth.totp_required')
    }
    await tx.run(appendAuditEvent(input, 'account.sign_in_failed', { ...eventFields, data: { outcome } }))
    if (outcome === 'wrong, now locked') await tx.run(appendAuditEvent(input, 'account.locked', eventFields))
    return fail(outcome === 'locked' ? 'auth.locked' : 'auth.totp_wrong')
  }
}

/**
 * Verifies the address and starts a session. The caller has checked the factor and locked the account. `link` adds a
 * credential, after those of a previous holder have ended.
 * @throws auth.sign_in_changed if the account has changed since it was read.
 */
export async function signInOwner(
  input: SignInInput<unknown>,
  tx: Transaction,
  owner: ProvenOwner,
  by: Readonly<Record<string, unknown>>,
  link: () => Promise<Failure | null> = async () => null,
): Promise<Answer<TokenJson> | Failure> {
  const { id, email, passwordHash, totp, replacedHash } = owner
  const isNewlyVerified = (await tx.run(markAddressVerified(id))) > 0
  if (isNewlyVerified !== (replacedHash !== null)) throw fail('auth.sign_in_changed')
  if (replacedHash !== null) {
    await tx.run(setPassword(id, replacedHash))
    await tx.run(revokeCredentials(id))
    await auditVerification(tx, input, { account_id: id, email })
  }
  const refusal = await link()
  if (refusal !== null) return refusal
  const checked =
    replacedHash === null
      ? { passwordHash, totpId: totp?.id ?? null }
      : { passwordHash: replacedHash, totpId: null }
  const account = await tx.maybeOne(recordLogin(id, checked))
  if (account === null) throw fail('auth.sign_in_changed')
  if (account.is_active) return completeSignIn(input, tx, { id, role: account.role }, by)
  const data = { outcome: by.method }
  await tx.run(appendAuditEvent(input, 'account.sign_in_failed', { actorId: null, accountId: id, data }))
  return fail('auth.inactive')
}
