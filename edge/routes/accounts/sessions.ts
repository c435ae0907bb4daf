import { z } from 'zod'
import {
  endSession,
  endSessions,
  readSessions,
  refreshSession,
  revokeSession,
  SESSION_ORDER,
} from '../../../sql/accounts/accounts.ts'
import { fail } from '../../../sql/errors.ts'
import { isUuid } from '../../../sql/ids.ts'
import { deriveSuccessorToken, digestOf } from '../../../tasks/accounts/tokens.ts'
import { formatFailure, type Header } from '../../http/reply.ts'
import type { Caller } from '../../pipeline/access/auth.ts'
import { buildChallenge } from '../../pipeline/access/challenges.ts'
import { answerArray, buildCursorSchema } from '../../pipeline/request/lists.ts'
import { count, Timestamp } from '../../pipeline/request/schemas.ts'
import { Answer, answerCompactJson, type Input, route, type Writes } from '../../pipeline/route.ts'
import { appendAuditEvent } from '../../pipeline/write/audit.ts'
import { buildExpiredCookies, readRefreshCookie } from './cookies.ts'
import { Detail, Token, User } from './shapes.ts'
import { answerWithTokens, createRefreshToken, signInRoute, type TokenJson } from './sign-in.ts'

const Session = z
  .strictObject({
    id: z.uuid(),
    created_at: Timestamp,
    last_used_at: Timestamp.meta({ description: 'Lags by up to a minute' }),
    expires_at: Timestamp,
    address: z.string().nullable().meta({ description: 'Client address of the sign-in' }),
    place: z
      .string()
      .nullable()
      .meta({ description: 'Location of that address; null if the proxy does not send it' }),
    last_address: z.string().nullable(),
    last_place: z.string().nullable(),
    user_agent: z.string().nullable(),
    device: z.string().nullable().meta({ description: 'Readable name of the user agent' }),
    is_current: z.boolean(),
  })
  .meta({ id: 'Session' })

/** Routes that sign in and out, and that list and end sessions. */
export const sessionRoutes = [
  signInRoute,

  route({
    method: 'get',
    path: '/me',
    allowsOrganizationKeys: true,
    summary: 'Get the account of the caller',
    response: User,
    handle: ({ caller }) => answerCompactJson(caller.profile),
  }),

  route({
    method: 'post',
    path: '/refresh',
    summary: 'Refresh the tokens of a session',
    description: `Reads only the refresh cookie. Reuse of an exchanged refresh token revokes its whole session. No session \
lasts longer than \`SESSION_MAX_DAYS\`, if that is set. With an Idempotency-Key, a client that lost the response can repeat \
the request until the new token is used.`,
    auth: 'public',
    cookieAuth: true,
    response: Token,
    errors: ['auth.refresh', 'request.cross_site'],
    hasCredentials: true,
    whyRepeatable: 'the new refresh token is derived from the key, so a repeat returns the same one',
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
    hasCredentials: true,
    needsSession: true,
    whyRepeatable: 'the session has already ended',
    handle: signOut,
  }),

  route({
    method: 'get',
    path: '/sessions',
    summary: 'List active sessions of the caller, newest first',
    query: z.object({
      limit: count({ min: 1, max: 1000, fallback: 100 }),
      cursor: buildCursorSchema(SESSION_ORDER),
    }),
    response: z.array(Session),
    needsSession: true,
    reads: 'list',
    handle: async ({ query: { limit, cursor = null }, caller, reader, request }) => {
      const values = [caller.ownerId ?? 0, caller.sessionId, cursor, 0, limit] as const
      return answerArray((await reader.text(readSessions, values))!, request)
    },
  }),

  route({
    method: 'delete',
    path: '/sessions',
    summary: 'End every other session of the caller',
    description: 'Their access tokens become invalid immediately.',
    needsSession: true,
    handle: (input) => {
      const { caller, edge } = input
      return input.transaction(async (tx) => {
        const ended = caller.ownerId === null ? 0 : await tx.run(endSessions(caller.id, caller.sessionId))
        if (ended === 0) return undefined
        await tx.run(
          appendAuditEvent(input, 'session.ended', { accountId: caller.id, data: { others: ended } }),
        )
        await edge.authenticator.invalidate(tx, caller.id)
        return undefined
      })
    },
  }),

  route({
    method: 'delete',
    path: '/sessions/:session_id',
    summary: 'End a session of the caller',
    description: 'Its access tokens become invalid immediately.',
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
          appendAuditEvent(input, 'session.ended', {
            accountId: caller.id,
            data: { session: params.session_id },
          }),
        )
        await edge.authenticator.invalidate(tx, caller.id)
        return undefined
      })
    },
  }),
]

type PublicInput<R, B = undefined> = Input<undefined, undefined, B, Caller | null> & Writes<R>
type DetailJson = z.input<typeof Detail>

async function refresh(input: PublicInput<TokenJson>): Promise<Answer<TokenJson>> {
  const { edge, request } = input
  const refreshToken = readRefreshCookie(edge, request)
  if (refreshToken === null) throw fail('auth.refresh')
  const key = request.header('idempotency-key')
  const successor = key === '' ? createRefreshToken() : deriveSuccessorToken(edge.keys, refreshToken, key)
  const { refreshTokenSeconds, sessionMaxSeconds } = edge.settings
  return input.transaction(async (tx) => {
    const session = await tx.maybeOne(
      refreshSession(digestOf(refreshToken), digestOf(successor), refreshTokenSeconds, sessionMaxSeconds),
    )
    if (session === null) throw fail('auth.refresh')
    const { account_id: id, session_id: sessionId } = session
    const newSession = { sessionId, refreshToken: successor, secondsLeft: session.seconds_left }
    if (!session.replayed) return answerWithTokens(edge, { id, role: session.role }, newSession)
    await tx.run(
      appendAuditEvent(input, 'session.replayed', {
        actorId: null,
        accountId: id,
        data: { session: sessionId },
      }),
    )
    await edge.authenticator.invalidate(tx, id)
    return fail('auth.refresh')
  })
}

async function signOut(input: PublicInput<DetailJson>): Promise<Answer<DetailJson>> {
  const { edge, request, caller } = input
  // Signing out must also work with an expired access token, so the refresh token suffices.
  const refreshToken = readRefreshCookie(edge, request)
  const digest = refreshToken === null ? null : digestOf(refreshToken)
  const headers = buildExpiredCookies(edge)
  return input.transaction(async (tx) => {
    if (digest !== null || caller !== null)
      for (const { id, account_id } of await tx.any(revokeSession(digest, caller?.sessionId ?? null)))
        await tx.run(
          appendAuditEvent(input, 'account.signed_out', {
            actorId: account_id,
            accountId: account_id,
            data: { session: id },
          }),
        )
    if (caller !== null) return new Answer({ headers, value: { detail: 'Logged out' } })
    const failure = input.exchange.credentialFailure ?? fail('auth.required')
    const challenge: Header[] = [['www-authenticate', buildChallenge(failure)!]]
    return new Answer({ status: 401, headers: [...headers, ...challenge], json: formatFailure(failure) })
  })
}
