import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import {
  accountChanged,
  credentials,
  endSession,
  endSessions,
  insertSession,
  readSessions,
  refreshSession,
  revokeSession,
  SESSION_ORDER,
  touchLogin,
} from '../../../sql/accounts.ts'
import type { Queries } from '../../../sql/db.ts'
import { fail } from '../../../sql/errors.ts'
import { isUuid, uuidv7 } from '../../../sql/ids.ts'
import { endLogin } from '../../../sql/limits.ts'
import { digestOf, successorOf } from '../../../tasks/accounts/tokens.ts'
import { deviceOf } from '../../devices.ts'
import { audit } from '../../pipeline/audit.ts'
import type { Caller } from '../../pipeline/auth.ts'
import type { Edge } from '../../pipeline/context.ts'
import { array, cursor } from '../../pipeline/lists.ts'
import type { RequestContext } from '../../pipeline/request-context.ts'
import { Answer, type Input, route, verbatim, type Writes } from '../../pipeline/route.ts'
import { count, Timestamp } from '../../pipeline/schemas.ts'
import { clearedCookies, refreshCookie, sessionCookies } from './cookies.ts'
import { Detail, Token, User } from './shapes.ts'

const Login = z.object({ username: z.string().min(1).max(320), password: z.string().min(1).max(1024) })

const Session = z
  .strictObject({
    id: z.uuid(),
    created_at: Timestamp,
    last_used_at: Timestamp.meta({ description: 'Up to a minute behind' }),
    expires_at: Timestamp,
    address: z.string().nullable().meta({ description: 'Of the sign-in' }),
    place: z
      .string()
      .nullable()
      .meta({ description: 'Of that address, if the proxy of the service says it' }),
    last_address: z.string().nullable(),
    last_place: z.string().nullable(),
    user_agent: z.string().nullable(),
    device: z.string().nullable().meta({ description: 'What the user agent says of itself, in words' }),
    is_current: z.boolean(),
  })
  .meta({ id: 'Session' })

/** Signing in and out, and the resulting sessions. */
export const sessionRoutes = [
  route({
    method: 'post',
    path: '/token',
    summary: 'Sign in with email and password',
    description:
      'After LOGIN_MAX_FAILURES failures an address is locked for LOGIN_LOCK_SECONDS, whether or not it has an account.',
    auth: 'public',
    bodyType: 'form',
    body: Login,
    response: Token,
    errors: ['auth.credentials', 'auth.locked', 'auth.inactive'],
    credentials: true,
    signsIn: true,
    limit: 'login',
    repeatable: 'each call starts a session of its own, and tokens are never stored',
    handle: signIn,
  }),

  route({
    method: 'get',
    path: '/me',
    summary: 'Get the account of the caller',
    response: User,
    handle: ({ caller }) => verbatim(caller.profile),
  }),

  route({
    method: 'post',
    path: '/refresh',
    summary: 'Exchange the refresh cookie for a new session token',
    description: `Reads only the refresh cookie. Using a token that was already exchanged revokes its whole session. \
With an Idempotency-Key, a client that lost the response can repeat the request to get it again, until the new token \
is used.`,
    auth: 'public',
    cookieAuth: true,
    response: Token,
    errors: ['auth.refresh', 'request.cross_site'],
    credentials: true,
    repeatable: 'the new refresh token is derived from the key, so a repeat returns the same one',
    handle: refresh,
  }),

  route({
    method: 'post',
    path: '/logout',
    summary: 'Sign out',
    description:
      'Revokes the refresh token and clears both cookies. The access token stays valid until it expires.',
    auth: 'public',
    cookieAuth: true,
    response: Detail,
    errors: ['auth.required', 'request.cross_site'],
    credentials: true,
    needsSession: true,
    repeatable: 'the session has already ended',
    handle: signOut,
  }),

  route({
    method: 'get',
    path: '/sessions',
    summary: 'List the active sessions of the caller, newest first',
    query: z.object({
      limit: count({ min: 1, max: 1000, fallback: 100 }),
      cursor: cursor(SESSION_ORDER),
    }),
    response: z.array(Session),
    needsSession: true,
    reads: 'list',
    handle: async ({ query: { limit, cursor = null }, caller, reader, request }) => {
      const values = [caller.ownerId ?? 0, caller.sessionId, cursor, 0, limit] as const
      return array((await reader.text(readSessions, values))!, request)
    },
  }),

  route({
    method: 'delete',
    path: '/sessions',
    summary: 'End every other session of the caller and its access tokens at once',
    needsSession: true,
    handle: (input) => {
      const { caller, edge } = input
      return input.transaction(async (tx) => {
        const ended = caller.ownerId === null ? 0 : await tx.run(endSessions(caller.id, caller.sessionId))
        if (ended === 0) return undefined
        await tx.run(audit(input, 'session.ended', { accountId: caller.id, data: { others: ended } }))
        await tx.run(accountChanged(caller.id))
        tx.afterCommit(() => edge.accounts.forget(caller.id))
        return undefined
      })
    },
  }),

  route({
    method: 'delete',
    path: '/sessions/:session_id',
    summary: 'End a session of the caller and its access tokens at once',
    params: z.object({ session_id: z.string() }),
    errors: ['account.session_missing'],
    needsSession: true,
    handle: async (input) => {
      const { caller, params, edge } = input
      if (!isUuid(params.session_id) || caller.ownerId === null) throw fail('account.session_missing')
      return input.transaction(async (tx) => {
        const ended = await tx.maybeOne(endSession(caller.id, params.session_id))
        if (ended === null) throw fail('account.session_missing')
        await tx.run(
          audit(input, 'session.ended', { accountId: caller.id, data: { session: params.session_id } }),
        )
        await tx.run(accountChanged(caller.id))
        tx.afterCommit(() => edge.accounts.forget(caller.id))
        return undefined
      })
    },
  }),
]

type Public<R, B = undefined> = Input<undefined, undefined, B, Caller | null> & Writes<R>
type SignedIn = z.input<typeof Token>
type SignedOut = z.input<typeof Detail>

/** A new session: the contents of its cookies and body. */
interface Begun {
  readonly sessionId: string
  readonly refreshToken: string
}

/** Starts a session of an account. */
export async function beginSession(
  edge: Edge,
  tx: Queries,
  accountId: number,
  exchange: RequestContext,
): Promise<Begun> {
  const sessionId = uuidv7()
  const refreshToken = newRefreshToken()
  const userAgent = exchange.request.header('user-agent')
  const origin = {
    address: exchange.address || null,
    place: exchange.place,
    userAgent: userAgent || null,
    device: await deviceOf(userAgent),
  }
  await tx.run(
    insertSession(sessionId, accountId, digestOf(refreshToken), edge.settings.refreshTokenSeconds, origin),
  )
  return { sessionId, refreshToken }
}

async function signIn(input: Public<SignedIn, z.output<typeof Login>>): Promise<Answer<SignedIn>> {
  const { body, edge, exchange } = input
  const { loginMaxFailures, loginLockSeconds } = edge.settings
  const email = body.username.trim().toLowerCase()
  // The same work for every address, known or not: one lookup, one hash, one transaction.
  const found = await edge.db.maybeOne(credentials(email))
  const matches = await edge.passwords.verify(found?.password_hash ?? null, body.password)
  const about = { actorId: found?.id ?? null, accountId: found?.id ?? null }
  return input.transaction(async (tx) => {
    const { outcome } = await tx.one(endLogin(digestOf(email), matches, loginMaxFailures, loginLockSeconds))
    // The password may have changed, or the account been deactivated, since the lookup: no session may outlive that.
    const account = outcome === 'ok' ? await tx.maybeOne(touchLogin(found!.id, found!.password_hash)) : null
    if (account?.is_active === true) {
      const begun = await beginSession(edge, tx, found!.id, exchange)
      await tx.run(audit(input, 'account.signed_in', { ...about, data: { session: begun.sessionId } }))
      await tx.run(accountChanged(found!.id))
      tx.afterCommit(() => edge.accounts.forget(found!.id))
      return signedIn(edge, { id: found!.id, role: account.role }, begun)
    }
    await tx.run(audit(input, 'account.sign_in_failed', { ...about, data: { outcome } }))
    if (outcome === 'wrong, now locked') await tx.run(audit(input, 'account.locked', about))
    if (outcome === 'locked') return fail('auth.locked')
    return fail(account === null ? 'auth.credentials' : 'auth.inactive')
  })
}

async function refresh(input: Public<SignedIn>): Promise<Answer<SignedIn>> {
  const { edge, request } = input
  const presented = refreshCookie(edge, request)
  if (presented === null) throw fail('auth.refresh')
  const key = request.header('idempotency-key')
  const successor = key === '' ? newRefreshToken() : successorOf(edge.secretKey, presented, key)
  const { refreshTokenSeconds } = edge.settings
  return input.transaction(async (tx) => {
    const session = await tx.maybeOne(
      refreshSession(digestOf(presented), digestOf(successor), refreshTokenSeconds),
    )
    if (session === null) throw fail('auth.refresh')
    const { account_id: id, session_id: sessionId } = session
    if (!session.replayed)
      return signedIn(edge, { id, role: session.role }, { sessionId, refreshToken: successor })
    await tx.run(
      audit(input, 'session.replayed', { actorId: null, accountId: id, data: { session: sessionId } }),
    )
    await tx.run(accountChanged(id))
    tx.afterCommit(() => edge.accounts.forget(id))
    return fail('auth.refresh')
  })
}

async function signOut(input: Public<SignedOut>): Promise<Answer<SignedOut>> {
  const { edge, request, caller } = input
  // Also when the access token has expired: presenting the refresh token is enough to end its session.
  const presented = refreshCookie(edge, request)
  const digest = presented === null ? null : digestOf(presented)
  const headers = clearedCookies(edge)
  return input.transaction(async (tx) => {
    if (digest !== null || caller !== null)
      for (const { id, account_id } of await tx.any(revokeSession(digest, caller?.sessionId ?? null)))
        await tx.run(
          audit(input, 'account.signed_out', {
            actorId: account_id,
            accountId: account_id,
            data: { session: id },
          }),
        )
    if (caller !== null) return new Answer({ headers, value: { detail: 'Logged out' } })
    return new Answer({
      status: 401,
      headers: [...headers, ['www-authenticate', 'Bearer']],
      value: { detail: 'Not authenticated' },
    })
  })
}

/** 256 random bits; only their digest is stored. */
function newRefreshToken(): string {
  return randomBytes(32).toString('base64url')
}

async function signedIn(
  edge: Edge,
  account: { readonly id: number; readonly role: string },
  { sessionId, refreshToken }: Begun,
): Promise<Answer<SignedIn>> {
  const accessToken = await edge.accounts.sign(account, sessionId)
  return new Answer({
    headers: sessionCookies(edge, accessToken, refreshToken),
    value: { access_token: accessToken, token_type: 'bearer' as const },
  })
}
