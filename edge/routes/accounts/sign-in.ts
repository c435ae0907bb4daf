import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { findCredentialsByEmail, insertSession, recordLogin } from '../../../sql/accounts/accounts.ts'
import type { Queries, Transaction } from '../../../sql/db.ts'
import { type Failure, fail } from '../../../sql/errors.ts'
import { uuidv7 } from '../../../sql/ids.ts'
import { decideLogin, findLoginLock, type LoginOutcome } from '../../../sql/limits/limits.ts'
import { digestOf } from '../../../tasks/accounts/tokens.ts'
import { normalizeAccountAddress } from '../../../tasks/platform/email-address.ts'
import type { Header } from '../../http/reply.ts'
import type { Caller } from '../../pipeline/access/auth.ts'
import type { Edge } from '../../pipeline/context.ts'
import type { RequestContext } from '../../pipeline/request/request-context.ts'
import { Answer, type Input, route, type Writes } from '../../pipeline/route.ts'
import { appendAuditEvent } from '../../pipeline/write/audit.ts'
import { buildTokenCookies } from './cookies.ts'
import { describeDevice } from './devices.ts'
import { deriveLoginFailureKey, rememberDevice } from './known-device.ts'
import { factorFields, parseFactor } from './proof.ts'
import { Token } from './shapes.ts'

const Login = z.object({
  username: z.string().min(1).max(320),
  password: z.string().min(1).max(1024),
  ...factorFields,
})

export const signInRoute = route({
  method: 'post',
  path: '/token',
  summary: 'Sign in with email and password',
  description: `After LOGIN_MAX_FAILURES failures an address is locked for LOGIN_LOCK_SECONDS, whether or not it has an \
account: sign-ins are then answered with 403, and their passwords are not checked. Failures from a browser that has signed \
in to the account before count separately, by the cookie that each sign-in sets, until the password changes. If the account \
has one-time codes, the right password alone is answered with 401 and the code \`auth.totp_required\`, which is not a failure; a \
wrong code is. Each code is accepted once.`,
  auth: 'public',
  bodyType: 'form',
  body: Login,
  response: Token,
  errors: ['auth.credentials', 'auth.totp_required', 'auth.totp_wrong', 'auth.locked', 'auth.inactive'],
  hasCredentials: true,
  signsIn: true,
  limit: 'login',
  whyRepeatable: 'each call starts a new session, and tokens are never stored',
  handle: signIn,
})

export type TokenJson = z.input<typeof Token>
export type SignInInput<B> = Input<undefined, undefined, B, Caller | null> & Writes<TokenJson>

async function signIn(input: SignInInput<z.output<typeof Login>>): Promise<Answer<TokenJson>> {
  const { username } = input.body
  // An invalid address has no account. Its failures are counted as those of any other address.
  const email = normalizeAccountAddress(username) ?? username.trim().toLowerCase()
  return input.edge.signInMutex.run(email, async () => {
    try {
      return await trySignIn(input, email, false)
    } catch (error) {
      if (error instanceof AccountChanged) return trySignIn(input, email, true)
      throw error
    }
  })
}

/**
 * Thrown if the account has changed since the lookup, for example because another sign-in replaced an imported hash.
 */
class AccountChanged extends Error {}

/**
 * Makes one attempt to sign in. The rollback of a thrown error leaves a one-time code unused.
 * @throws AccountChanged, except on the last attempt.
 */
async function trySignIn(
  input: SignInInput<z.output<typeof Login>>,
  email: string,
  isLast: boolean,
): Promise<Answer<TokenJson>> {
  const { body, edge, request } = input
  const { loginMaxFailures, loginLockSeconds } = edge.settings
  // A sign-in takes the same time for known and unknown addresses: two lookups, one hash, one transaction.
  const found = await edge.db.maybeOne(findCredentialsByEmail(email))
  const subject = deriveLoginFailureKey(edge, request, email, found)
  // The actor is unknown, because the request only claims the address.
  const eventFields = { actorId: null, accountId: found?.id ?? null }
  if ((await edge.db.maybeOne(findLoginLock(subject))) !== null)
    return input.transaction(async (tx) => {
      await tx.run(
        appendAuditEvent(input, 'account.sign_in_failed', { ...eventFields, data: { outcome: 'locked' } }),
      )
      return fail('auth.locked')
    })
  const { matches, rehashed } = await edge.passwords.verifyAndRehash(
    found?.password_hash ?? null,
    body.password,
  )
  const factor = matches ? parseFactor(edge, found!.totp, body) : null
  return input.transaction(async (tx) => {
    const login = decideLogin(subject, matches, loginMaxFailures, loginLockSeconds, factor)
    const { outcome } = await tx.one(login)
    if (outcome === 'incomplete') {
      await tx.run(appendAuditEvent(input, 'account.totp_asked', eventFields))
      return fail('auth.totp_required')
    }
    // Do not start a session if the password has changed since the lookup, or an admin has deactivated the account.
    const checked = found && { passwordHash: found.password_hash, totpId: found.totp?.id ?? null, rehashed }
    const account = outcome === 'ok' ? await tx.maybeOne(recordLogin(found!.id, checked!)) : null
    if (outcome === 'ok' && account === null && !isLast) throw new AccountChanged()
    if (account?.is_active === true) {
      const by = factor === null ? {} : { factor: factor.recovery === null ? 'totp' : 'recovery_code' }
      return completeSignIn(input, tx, { id: found!.id, role: account.role }, by)
    }
    await tx.run(appendAuditEvent(input, 'account.sign_in_failed', { ...eventFields, data: { outcome } }))
    if (outcome === 'wrong, now locked') await tx.run(appendAuditEvent(input, 'account.locked', eventFields))
    return findSignInFailure(outcome, matches, account !== null)
  })
}

function findSignInFailure(outcome: LoginOutcome, matches: boolean, isInactive: boolean): Failure {
  if (outcome === 'locked') return fail('auth.locked')
  if (isInactive) return fail('auth.inactive')
  // The password was right, so the answer may reveal that only the code was wrong.
  return fail(matches && outcome !== 'ok' ? 'auth.totp_wrong' : 'auth.credentials')
}

/** Starts a session for the verified owner of an account, audits the sign-in, and answers with the tokens. */
export async function completeSignIn(
  input: SignInInput<unknown>,
  tx: Transaction,
  account: { readonly id: number; readonly role: string },
  by: Readonly<Record<string, unknown>>,
): Promise<Answer<TokenJson>> {
  const { edge, exchange } = input
  const { id } = account
  const newSession = await beginSession(edge, tx, id, exchange, by.factor === 'passkey')
  const data = { session: newSession.sessionId, ...by }
  await tx.run(appendAuditEvent(input, 'account.signed_in', { actorId: id, accountId: id, data }))
  await edge.authenticator.invalidate(tx, id)
  return answerWithTokens(edge, account, newSession)
}

/** A new session, with the contents of its cookies and response body. */
interface NewSession {
  readonly sessionId: string
  readonly refreshToken: string
  /** Seconds until the session must end; null if it has no limit. */
  readonly secondsLeft: number | null
  /** Header that sets the device cookie; absent if the cookie stays. */
  readonly device?: Header
}

/** Starts a session of an account. */
export async function beginSession(
  edge: Edge,
  tx: Queries,
  accountId: number,
  exchange: RequestContext,
  byPasskey = false,
): Promise<NewSession> {
  const sessionId = uuidv7()
  const refreshToken = createRefreshToken()
  const userAgent = exchange.request.header('user-agent')
  const origin = {
    address: exchange.address || null,
    place: exchange.location,
    userAgent: userAgent || null,
    device: await describeDevice(userAgent),
    byPasskey,
  }
  const { refreshTokenSeconds, sessionMaxSeconds: secondsLeft } = edge.settings
  const lifetimeSeconds = Math.min(refreshTokenSeconds, secondsLeft ?? refreshTokenSeconds)
  const { password_hash } = await tx.one(
    insertSession(sessionId, accountId, digestOf(refreshToken), lifetimeSeconds, origin),
  )
  const device = rememberDevice(edge, exchange.request, accountId, password_hash)
  return { sessionId, refreshToken, secondsLeft, device }
}

/** Returns headers that set the cookies of a session and, after a sign-in, the device cookie. */
export const buildSessionCookies = (
  edge: Edge,
  accessToken: string,
  { refreshToken, device }: NewSession,
): Header[] => [
  ...buildTokenCookies(edge, accessToken, refreshToken),
  ...(device === undefined ? [] : [device]),
]

/** Returns 256 random bits, of which only the digest is stored. */
export function createRefreshToken(): string {
  return randomBytes(32).toString('base64url')
}

/** Answers with the tokens of a session, both in cookies and in the body. */
export async function answerWithTokens(
  edge: Edge,
  account: { readonly id: number; readonly role: string },
  newSession: NewSession,
): Promise<Answer<TokenJson>> {
  const accessToken = await edge.authenticator.sign(account, newSession.sessionId, newSession.secondsLeft)
  return new Answer({
    headers: buildSessionCookies(edge, accessToken, newSession),
    value: { access_token: accessToken, token_type: 'bearer' as const },
  })
}
