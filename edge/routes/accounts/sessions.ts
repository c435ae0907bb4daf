import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import {
  accountChanged,
  credentials,
  endSession,
  insertSession,
  readSessions,
  refreshSession,
  revokeSession,
  touchLogin,
} from '../../../sql/accounts.ts'
import type { Queries } from '../../../sql/db.ts'
import { fail } from '../../../sql/errors.ts'
import { isUuid, uuidv7 } from '../../../sql/ids.ts'
import { endLogin } from '../../../sql/limits.ts'
import { digestOf, successorOf } from '../../../tasks/accounts/tokens.ts'
import { audit } from '../../pipeline/audit.ts'
import type { Caller } from '../../pipeline/auth.ts'
import type { Edge } from '../../pipeline/context.ts'
import type { RequestContext } from '../../pipeline/request-context.ts'
import { Answer, type Input, json, route, verbatim } from '../../pipeline/route.ts'
import { Timestamp } from '../../pipeline/schemas.ts'
import { clearedCookies, refreshCookie, sessionCookies } from './cookies.ts'
import { Detail, Token, User } from './shapes.ts'

const Login = z.object({ username: z.string().min(1).max(320), password: z.string().min(1).max(1024) })

const Session = z
  .strictObject({
    id: z.uuid(),
    created_at: Timestamp,
    last_used_at: Timestamp,
    expires_at: Timestamp,
    address: z.string().nullable(),
    user_agent: z.string().nullable(),
    is_current: z.boolean(),
  })
  .meta({ id: 'Session' })

/** Signing in and out, and the sessions that come of it. */
export const sessionRoutes = [
  route({
    method: 'post',
    path: '/token',
    summary: 'Sign in with email and password',
    description:
      'After LOGIN_MAX_FAILURES failures an address is locked for LOGIN_LOCK_SECONDS, whether it has an account or not.',
    auth: 'public',
    bodyType: 'form',
    body: Login,
    response: Token,
    errors: ['auth.credentials', 'auth.locked', 'auth.inactive'],
    credentials: true,
    signsIn: true,
    limit: 'login',
    handle: signIn,
  }),

  route({
    method: 'get',
    path: '/me',
    summary: 'The account that calls',
    response: User,
    handle: ({ caller }) => verbatim(caller.profile),
  }),

  route({
    method: 'post',
    path: '/refresh',
    summary: 'RequestContext the refresh cookie for a new session token',
    description: `Reads only the refresh cookie. A token that was exchanged before revokes its whole session. With an \
Idempotency-Key, a client that lost the answer gets it again by the same request, until the new token is used.`,
    auth: 'public',
    cookieAuth: true,
    response: Token,
    errors: ['auth.refresh', 'request.cross_site'],
    credentials: true,
    handle: refresh,
  }),

  route({
    method: 'post',
    path: '/logout',
    summary: 'End the session',
    description:
      'Revokes the refresh token and clears both cookies. The access token stays good until it expires.',
    auth: 'public',
    cookieAuth: true,
    response: Detail,
    errors: ['auth.required', 'request.cross_site'],
    credentials: true,
    handle: signOut,
  }),

  route({
    method: 'get',
    path: '/sessions',
    summary: 'The sessions of the caller that are alive, the last used first',
    response: z.array(Session),
    handle: async ({ caller, edge }) =>
      json((await edge.reader.text(readSessions, [caller.ownerId ?? 0, caller.sessionId])) ?? '[]'),
  }),

  route({
    method: 'delete',
    path: '/sessions/:session_id',
    summary: 'End one session of the caller at once, its access tokens too',
    params: z.object({ session_id: z.string() }),
    errors: ['account.session_missing'],
    handle: async (input) => {
      const { caller, params, edge } = input
      if (!isUuid(params.session_id) || caller.ownerId === null) throw fail('account.session_missing')
      await edge.db.transaction(async (tx) => {
        const ended = await tx.maybeOne(endSession(caller.id, params.session_id))
        if (ended === null) throw fail('account.session_missing')
        await tx.run(
          audit(input, 'session.ended', { accountId: caller.id, data: { session: params.session_id } }),
        )
        await tx.run(accountChanged(caller.id))
      })
      edge.accounts.forget(caller.id)
      return undefined
    },
  }),
]

type Public<B = undefined> = Input<undefined, undefined, B, Caller | null>

/** A session that has begun: what its cookies and body carry. */
interface Begun {
  readonly sessionId: string
  readonly refreshToken: string
}

/** Begins a session of an account. */
export async function beginSession(
  edge: Edge,
  tx: Queries,
  accountId: number,
  exchange: RequestContext,
): Promise<Begun> {
  const sessionId = uuidv7()
  const refreshToken = newRefreshToken()
  const userAgent = exchange.request.header('user-agent') || null
  const origin = { address: exchange.address || null, userAgent }
  await tx.run(
    insertSession(sessionId, accountId, digestOf(refreshToken), edge.settings.refreshTokenSeconds, origin),
  )
  return { sessionId, refreshToken }
}

async function signIn(input: Public<z.output<typeof Login>>): Promise<Answer<z.input<typeof Token>>> {
  const { body, edge, exchange } = input
  const { loginMaxFailures, loginLockSeconds } = edge.settings
  const email = body.username.trim().toLowerCase()
  // The same work for every address, known or not: one look, one hash, one transaction.
  const found = await edge.db.maybeOne(credentials(email))
  const matches = await edge.passwords.verify(found?.password_hash ?? null, body.password)
  const about = { actorId: found?.id ?? null, accountId: found?.id ?? null }
  const ended = await edge.db.transaction(async (tx) => {
    const { outcome } = await tx.one(endLogin(digestOf(email), matches, loginMaxFailures, loginLockSeconds))
    // The password may have been changed, or the account deactivated, since it was looked at: no session outlives that.
    const account = outcome === 'ok' ? await tx.maybeOne(touchLogin(found!.id, found!.password_hash)) : null
    if (account?.is_active === true) {
      const begun = await beginSession(edge, tx, found!.id, exchange)
      await tx.run(audit(input, 'account.signed_in', { ...about, data: { session: begun.sessionId } }))
      await tx.run(accountChanged(found!.id))
      return { outcome, account, begun }
    }
    await tx.run(audit(input, 'account.sign_in_failed', { ...about, data: { outcome } }))
    if (outcome === 'wrong, now locked') await tx.run(audit(input, 'account.locked', about))
    return { outcome, account, begun: null }
  })
  if (ended.outcome === 'locked') throw fail('auth.locked')
  if (ended.account === null) throw fail('auth.credentials')
  if (ended.begun === null) throw fail('auth.inactive')
  const account = { id: found!.id, role: ended.account.role }
  edge.accounts.forget(account.id)
  const { sessionId, refreshToken } = ended.begun
  return signedIn(edge, await edge.accounts.sign(account, sessionId), refreshToken)
}

async function refresh(input: Public): Promise<Answer<z.input<typeof Token>>> {
  const { edge, request } = input
  const presented = refreshCookie(edge, request)
  if (presented === null) throw fail('auth.refresh')
  const key = request.header('idempotency-key')
  const successor = key === '' ? newRefreshToken() : successorOf(edge.secretKey, presented, key)
  const { refreshTokenSeconds } = edge.settings
  const session = await edge.db.transaction(async (tx) => {
    const row = await tx.maybeOne(
      refreshSession(digestOf(presented), digestOf(successor), refreshTokenSeconds),
    )
    if (row?.replayed !== true) return row
    const data = { session: row.session_id }
    await tx.run(audit(input, 'session.replayed', { actorId: null, accountId: row.account_id, data }))
    await tx.run(accountChanged(row.account_id))
    return row
  })
  if (session?.replayed === true) edge.accounts.forget(session.account_id)
  if (session === null || session.replayed) throw fail('auth.refresh')
  const account = { id: session.account_id, role: session.role }
  return signedIn(edge, await edge.accounts.sign(account, session.session_id), successor)
}

async function signOut(input: Public): Promise<Answer<z.input<typeof Detail>>> {
  const { edge, request, caller } = input
  // Also when the access token has expired: who presents the refresh token means to end its session.
  const presented = refreshCookie(edge, request)
  const digest = presented === null ? null : digestOf(presented)
  if (digest !== null || caller !== null) {
    await edge.db.transaction(async (tx) => {
      for (const { id, account_id } of await tx.any(revokeSession(digest, caller?.sessionId ?? null)))
        await tx.run(
          audit(input, 'account.signed_out', {
            actorId: account_id,
            accountId: account_id,
            data: { session: id },
          }),
        )
    })
  }
  const headers = clearedCookies(edge)
  if (caller !== null) return new Answer({ headers, value: { detail: 'Logged out' } })
  return new Answer({
    status: 401,
    headers: [...headers, ['www-authenticate', 'Bearer']],
    value: { detail: 'Not authenticated' },
  })
}

/** 256 random bits; only their digest is stored. */
function newRefreshToken(): string {
  return randomBytes(32).toString('base64url')
}

function signedIn(edge: Edge, accessToken: string, refreshToken: string): Answer<z.input<typeof Token>> {
  return new Answer({
    headers: sessionCookies(edge, accessToken, refreshToken),
    value: { access_token: accessToken, token_type: 'bearer' as const },
  })
}
