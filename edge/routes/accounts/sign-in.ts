import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { credentials, insertSession, touchLogin } from '../../../sql/accounts.ts'
import type { Queries, Transaction } from '../../../sql/db.ts'
import { type Failure, fail } from '../../../sql/errors.ts'
import { uuidv7 } from '../../../sql/ids.ts'
import { endLogin, type LoginEnd, lockedLogin } from '../../../sql/limits.ts'
import { digestOf } from '../../../tasks/accounts/tokens.ts'
import { deviceOf } from '../../devices.ts'
import type { Header } from '../../http/reply.ts'
import { audit } from '../../pipeline/audit.ts'
import type { Caller } from '../../pipeline/auth.ts'
import type { Edge } from '../../pipeline/context.ts'
import type { RequestContext } from '../../pipeline/request-context.ts'
import { Answer, type Input, route, type Writes } from '../../pipeline/route.ts'
import { sessionCookies } from './cookies.ts'
import { knownDevice, subjectOf } from './known-device.ts'
import { factorFields, givenFactor } from './proof.ts'
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
has one-time codes, the right password alone is answered with 401 and the code \`totp_required\`, which is not a failure; a \
wrong code is. Each code is accepted once.`,
  auth: 'public',
  bodyType: 'form',
  body: Login,
  response: Token,
  errors: ['auth.credentials', 'auth.totp_required', 'auth.totp_wrong', 'auth.locked', 'auth.inactive'],
  credentials: true,
  signsIn: true,
  limit: 'login',
  repeatable: 'each call starts a new session, and tokens are never stored',
  handle: signIn,
})

export type SignedIn = z.input<typeof Token>
export type SigningIn<B> = Input<undefined, undefined, B, Caller | null> & Writes<SignedIn>

async function signIn(input: SigningIn<z.output<typeof Login>>): Promise<Answer<SignedIn>> {
  const email = input.body.username.trim().toLowerCase()
  return input.edge.signInTurns.run(email, async () => {
    try {
      return await attempt(input, email, false)
    } catch (error) {
      if (error instanceof Changed) return attempt(input, email, true)
      throw error
    }
  })
}

/** The account has changed since the lookup, for example because another sign-in replaced an imported hash. */
class Changed extends Error {}

/** Tries to sign in. @throws Changed, except on the last attempt; the rollback leaves a one-time code unused. */
async function attempt(
  input: SigningIn<z.output<typeof Login>>,
  email: string,
  isLast: boolean,
): Promise<Answer<SignedIn>> {
  const { body, edge, request } = input
  const { loginMaxFailures, loginLockSeconds } = edge.settings
  // The same work for every address, known or not: two lookups, one hash, one transaction.
  const found = await edge.db.maybeOne(credentials(email))
  const subject = subjectOf(edge, request, email, found)
  // The actor is unknown: only the address is given.
  const about = { actorId: null, accountId: found?.id ?? null }
  if ((await edge.db.maybeOne(lockedLogin(subject))) !== null)
    return input.transaction(async (tx) => {
      await tx.run(audit(input, 'account.sign_in_failed', { ...about, data: { outcome: 'locked' } }))
      return fail('auth.locked')
    })
  const { matches, rehashed } = await edge.passwords.check(found?.password_hash ?? null, body.password)
  const factor = matches ? givenFactor(edge, found!.totp_id, body) : null
  return input.transaction(async (tx) => {
    const ended = endLogin(subject, matches, loginMaxFailures, loginLockSeconds, factor)
    const { outcome } = await tx.one(ended)
    if (outcome === 'incomplete') {
      await tx.run(audit(input, 'account.totp_asked', about))
      return fail('auth.totp_required')
    }
    // Since the lookup, the password may have changed or an admin deactivated the account: then start no session.
    const checked = found && { passwordHash: found.password_hash, totpId: found.totp_id, rehashed }
    const account = outcome === 'ok' ? await tx.maybeOne(touchLogin(found!.id, checked!)) : null
    if (outcome === 'ok' && account === null && !isLast) throw new Changed()
    if (account?.is_active === true) {
      const by = factor === null ? {} : { factor: factor.recovery === null ? 'totp' : 'recovery_code' }
      return beginSignedIn(input, tx, { id: found!.id, role: account.role }, by)
    }
    await tx.run(audit(input, 'account.sign_in_failed', { ...about, data: { outcome } }))
    if (outcome === 'wrong, now locked') await tx.run(audit(input, 'account.locked', about))
    return refusalOf(outcome, matches, account !== null)
  })
}

function refusalOf(outcome: LoginEnd, matches: boolean, isInactive: boolean): Failure {
  if (outcome === 'locked') return fail('auth.locked')
  if (isInactive) return fail('auth.inactive')
  // After the right password, the answer may reveal that only the code was wrong.
  return fail(matches && outcome !== 'ok' ? 'auth.totp_wrong' : 'auth.credentials')
}

/** Starts a session for the verified owner of an account, audits the sign-in, and answers with the tokens. */
export async function beginSignedIn(
  input: SigningIn<unknown>,
  tx: Transaction,
  account: { readonly id: number; readonly role: string },
  by: Readonly<Record<string, unknown>>,
): Promise<Answer<SignedIn>> {
  const { edge, exchange } = input
  const { id } = account
  const begun = await beginSession(edge, tx, id, exchange, by.factor === 'passkey')
  const data = { session: begun.sessionId, ...by }
  await tx.run(audit(input, 'account.signed_in', { actorId: id, accountId: id, data }))
  await edge.accounts.changed(tx, id)
  return signedIn(edge, account, begun)
}

/** A new session: the contents of its cookies and body. */
interface Begun {
  readonly sessionId: string
  readonly refreshToken: string
  /** The seconds until the session must end; null: no limit. */
  readonly secondsLeft: number | null
  /** The cookie that makes the browser known; absent: unchanged. */
  readonly device?: Header
}

/** Starts a session of an account. */
export async function beginSession(
  edge: Edge,
  tx: Queries,
  accountId: number,
  exchange: RequestContext,
  byPasskey = false,
): Promise<Begun> {
  const sessionId = uuidv7()
  const refreshToken = newRefreshToken()
  const userAgent = exchange.request.header('user-agent')
  const origin = {
    address: exchange.address || null,
    place: exchange.place,
    userAgent: userAgent || null,
    device: await deviceOf(userAgent),
    byPasskey,
  }
  const { refreshTokenSeconds, sessionMaxSeconds: secondsLeft } = edge.settings
  const lifetimeSeconds = Math.min(refreshTokenSeconds, secondsLeft ?? refreshTokenSeconds)
  const { password_hash } = await tx.one(
    insertSession(sessionId, accountId, digestOf(refreshToken), lifetimeSeconds, origin),
  )
  const device = knownDevice(edge, exchange.request, accountId, password_hash)
  return { sessionId, refreshToken, secondsLeft, device }
}

/** Sets the cookies of a session and, after a sign-in, the cookie of its browser. */
export const cookiesOf = (edge: Edge, accessToken: string, { refreshToken, device }: Begun): Header[] => [
  ...sessionCookies(edge, accessToken, refreshToken),
  ...(device === undefined ? [] : [device]),
]

/** 256 random bits; only their digest is stored. */
export function newRefreshToken(): string {
  return randomBytes(32).toString('base64url')
}

/** Answers with the tokens of a session in cookies and body. */
export async function signedIn(
  edge: Edge,
  account: { readonly id: number; readonly role: string },
  begun: Begun,
): Promise<Answer<SignedIn>> {
  const accessToken = await edge.accounts.sign(account, begun.sessionId, begun.secondsLeft)
  return new Answer({
    headers: cookiesOf(edge, accessToken, begun),
    value: { access_token: accessToken, token_type: 'bearer' as const },
  })
}
