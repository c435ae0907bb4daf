import {
  findRecipientByEmail,
  insertAccount,
  lockCredentials,
  markAddressVerified,
} from '../../../sql/accounts/accounts.ts'
import {
  consumeOidcLogin,
  findIdentityAccount,
  findOidcLogin,
  linkIdentity,
  type OidcLogin,
} from '../../../sql/accounts/oidc.ts'
import type { Transaction } from '../../../sql/db.ts'
import { type Failure, fail } from '../../../sql/errors.ts'
import { uuidv7 } from '../../../sql/ids.ts'
import { hasPendingInvite, lockInvites } from '../../../sql/orgs/invites.ts'
import type { Edge } from '../../pipeline/context.ts'
import type { Answer } from '../../pipeline/route.ts'
import { appendAuditEvent } from '../../pipeline/write/audit.ts'
import { auditVerification } from '../orgs/access.ts'
import { enqueueNotice } from './notices.ts'
import {
  checkFactor,
  findProvenOwner,
  type GivenFactor,
  hashUnknownPassword,
  type ProvenOwner,
  signInOwner,
} from './passwordless.ts'
import { completeSignIn, type SignInInput, type TokenJson } from './sign-in.ts'

/** Starts the session of a person whom the OpenID Connect issuer has signed in. */

type OidcInput = SignInInput<GivenFactor>

export async function signInWithOidc(input: OidcInput, digest: Buffer): Promise<Answer<TokenJson>> {
  const { edge } = input
  const login = await edge.db.maybeOne(findOidcLogin(digest))
  if (login === null) throw fail('oidc.state')
  const linked = await edge.db.maybeOne(findIdentityAccount(login.issuer, login.subject))
  const id = linked?.account_id ?? (await findAccountOfAddress(edge, login))
  if (id === null) return registerWithOidc(input, digest, login)
  const owner = await findProvenOwner(edge, id)
  return input.transaction(async (tx) => {
    if (owner === null) throw fail('auth.sign_in_changed')
    const failure = await checkFactor(input, tx, owner)
    if (failure !== null) return failure
    if ((await tx.maybeOne(consumeOidcLogin(digest))) === null) throw fail('oidc.state')
    const account = await tx.maybeOne(lockCredentials(id, owner.passwordHash))
    // The address that the issuer has verified must still be that of the account.
    if (account === null || (linked === null && account.email !== login.email))
      throw fail('auth.sign_in_changed')
    return signInOwner(input, tx, owner, { method: 'oidc' }, () => link(input, tx, owner, login))
  })
}

/** Returns the id of the account with the verified address; null if there is none. @throws oidc.unverified */
async function findAccountOfAddress(edge: Edge, { email }: OidcLogin): Promise<number | null> {
  if (email === null) throw fail('oidc.unverified')
  return (await edge.db.maybeOne(findRecipientByEmail(email)))?.id ?? null
}

async function link(
  input: OidcInput,
  tx: Transaction,
  { id }: Pick<ProvenOwner, 'id'>,
  { issuer, subject, email }: OidcLogin,
): Promise<Failure | null> {
  const identity = { id: uuidv7(), accountId: id, issuer, subject, email }
  const change = await tx.maybeOne(linkIdentity(identity))
  if (change === null) return fail('oidc.other_subject')
  if (!change.added) return null
  const data = { identity: identity.id, issuer }
  await tx.run(appendAuditEvent(input, 'identity.linked', { actorId: id, accountId: id, data }))
  await enqueueNotice(tx, input, id, 'identity_linked', input.edge.settings.oidc!.name)
  return null
}

/**
 * Registers an account with the verified address, and signs in.
 * @throws auth.registration_closed if neither the settings nor an invite allow it.
 */
async function registerWithOidc(
  input: OidcInput,
  digest: Buffer,
  login: OidcLogin,
): Promise<Answer<TokenJson>> {
  const { edge, exchange, requestId } = input
  const email = login.email!
  const passwordHash = await hashUnknownPassword(edge)
  return input.transaction(async (tx) => {
    if ((await tx.maybeOne(consumeOidcLogin(digest))) === null) throw fail('oidc.state')
    await tx.run(lockInvites(email))
    if (!edge.settings.registrationEnabled && !(await tx.one(hasPendingInvite(email))).any)
      throw fail('auth.registration_closed')
    const fields = { email, passwordHash, fullName: login.full_name, role: 'user', isActive: true } as const
    const account = await tx.one(insertAccount(fields))
    await tx.run(markAddressVerified(account.id))
    const from = { caller: null, requestId, exchange }
    await tx.run(appendAuditEvent(from, 'account.registered', { actorId: account.id, accountId: account.id }))
    await auditVerification(tx, from, { account_id: account.id, email })
    const refusal = await link(input, tx, account, login)
    return refusal ?? completeSignIn(input, tx, account, { method: 'oidc' })
  })
}
