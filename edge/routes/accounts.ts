import { createHash, randomBytes } from 'node:crypto'
import { z } from 'zod'
import {
  anyAccount,
  credentials,
  insertAccount,
  insertSession,
  lockFirstAccount,
  readAccount,
  refreshSession,
  revokeSession,
  touchLogin,
} from '../../sql/accounts.ts'
import { fail } from '../../sql/errors.ts'
import { uuidv7 } from '../../sql/ids.ts'
import { readCookie } from '../auth.ts'
import type { Edge } from '../context.ts'
import type { Header } from '../reply.ts'
import { Answer, area, json, route } from '../route.ts'
import { Email, Timestamp } from '../schemas.ts'

const Password = z.string().min(8).max(1024)

const User = z
  .strictObject({
    id: z.int(),
    email: z.string(),
    full_name: z.string().nullable(),
    is_active: z.boolean(),
    is_verified: z.boolean(),
    role: z.enum(['user', 'moderator', 'admin']),
    last_login: Timestamp.nullable(),
    created_at: Timestamp,
    updated_at: Timestamp.nullable(),
  })
  .meta({ id: 'UserResponse' })

/** Whom `AUTH_LEVEL=none` makes of every caller. */
const EVERYBODY: z.input<typeof User> = {
  id: 0,
  email: 'everybody@localhost',
  full_name: null,
  is_active: true,
  is_verified: false,
  role: 'admin',
  last_login: null,
  created_at: '1970-01-01T00:00:00.000Z',
  updated_at: null,
}

const Token = z
  .strictObject({ access_token: z.string(), token_type: z.literal('bearer') })
  .meta({ id: 'TokenResponse' })
const Detail = z.strictObject({ detail: z.string() }).meta({ id: 'Detail' })

const NewUser = z
  .strictObject({
    email: Email,
    password: Password,
    full_name: z.string().trim().max(200).nullish(),
    is_active: z.boolean().default(true),
  })
  .meta({ id: 'UserCreate' })

export const accounts = area('accounts', '/api/v1/auth', { auth: 'user' }, [
  route({
    method: 'post',
    path: '/register',
    summary: 'Create an account and sign in',
    auth: 'public',
    body: NewUser,
    response: User,
    errors: ['account.email_taken', 'auth.registration_closed'],
    sideEffect: true,
    credentials: true,
    handle: async ({ body, edge }) => {
      if (!edge.settings.registrationEnabled) throw fail('auth.registration_closed')
      const passwordHash = await edge.passwords.hash(body.password)
      const refresh = newRefreshToken()
      const sessionId = uuidv7()
      const account = await edge.db.transaction(async (tx) => {
        const first = body.is_active && (await isFirstAccount(edge, tx))
        const inserted = await tx.one(
          insertAccount({
            email: body.email,
            passwordHash,
            fullName: body.full_name ?? null,
            role: first ? 'admin' : 'user',
            isActive: body.is_active,
          }),
        )
        await tx.run(insertSession(sessionId, inserted.id, refresh.digest, edge.settings.refreshTokenSeconds))
        return inserted
      })
      if (account.role === 'admin')
        edge.log.warn({ account: account.id }, 'The first account registered became admin')
      return json(account.json, {
        headers: sessionCookies(edge, await edge.accounts.sign(account, sessionId), refresh.token),
      })
    },
  }),

  route({
    method: 'post',
    path: '/token',
    summary: 'Sign in with email and password',
    auth: 'public',
    bodyType: 'form',
    body: z.object({ username: z.string().min(1).max(320), password: z.string().min(1).max(1024) }),
    response: Token,
    errors: ['auth.credentials', 'auth.inactive'],
    credentials: true,
    handle: async ({ body, edge }) => {
      const found = await edge.db.maybeOne(credentials(body.username.trim().toLowerCase()))
      const matches = await edge.passwords.verify(found?.password_hash ?? null, body.password)
      if (found === null || !matches) throw fail('auth.credentials')
      if (!found.is_active) throw fail('auth.inactive')
      const refresh = newRefreshToken()
      const sessionId = uuidv7()
      await edge.db.transaction(async (tx) => {
        await tx.run(insertSession(sessionId, found.id, refresh.digest, edge.settings.refreshTokenSeconds))
        await tx.run(touchLogin(found.id))
      })
      return signedIn(edge, await edge.accounts.sign(found, sessionId), refresh.token)
    },
  }),

  route({
    method: 'get',
    path: '/me',
    summary: 'The account that calls',
    response: User,
    handle: async ({ caller, edge }) => {
      if (caller.ownerId === null) return EVERYBODY
      const text = await edge.reader.text(readAccount, [caller.id])
      if (text === null) throw fail('auth.required')
      return json(text)
    },
  }),

  route({
    method: 'post',
    path: '/refresh',
    summary: 'Exchange the refresh cookie for a new session token',
    description:
      'Reads only the refresh cookie. A token that was exchanged before revokes its whole session.',
    auth: 'public',
    cookieAuth: true,
    response: Token,
    errors: ['auth.refresh', 'request.cross_site'],
    credentials: true,
    handle: async ({ request, edge }) => {
      const presented = readCookie(request, refreshCookieName(edge))
      if (presented === null) throw fail('auth.refresh')
      const refresh = newRefreshToken()
      const session = await edge.db.maybeOne(
        refreshSession(digestOf(presented), refresh.digest, edge.settings.refreshTokenSeconds),
      )
      if (session === null) throw fail('auth.refresh')
      const account = { id: session.account_id, role: session.role }
      return signedIn(edge, await edge.accounts.sign(account, session.session_id), refresh.token)
    },
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
    handle: async ({ request, caller, edge }) => {
      const cookies = [
        cookie(sessionCookieName(edge), '', '/', 'Lax', 0),
        cookie(refreshCookieName(edge), '', REFRESH_PATH, 'Strict', 0),
      ]
      const headers = cookies.map((value): Header => ['set-cookie', secured(edge, value)])
      // Also when the access token has expired: who presents the refresh token means to end its session.
      const presented = readCookie(request, refreshCookieName(edge))
      const digest = presented === null ? null : digestOf(presented)
      if (digest !== null || caller !== null) {
        await edge.db.run(revokeSession(digest, caller?.sessionId ?? null))
      }
      if (caller === null) {
        return new Answer<{ detail: string }>({
          status: 401,
          headers: [...headers, ['www-authenticate', 'Bearer']],
          value: { detail: 'Not authenticated' },
        })
      }
      return new Answer({ headers, value: { detail: 'Logged out' } })
    },
  }),
])

/** Until there is an account, registrations wait for each other: only one of them is the first. */
async function isFirstAccount(
  edge: Edge,
  tx: Parameters<Parameters<Edge['db']['transaction']>[0]>[0],
): Promise<boolean> {
  if (edge.settings.adminEmail !== undefined || (await tx.one(anyAccount())).any) return false
  await tx.run(lockFirstAccount())
  return !(await tx.one(anyAccount())).any
}

const REFRESH_PATH = '/api/v1/auth'
const sessionCookieName = (edge: Edge): string => `${edge.settings.projectName}_session`
const refreshCookieName = (edge: Edge): string => `${edge.settings.projectName}_refresh`

/** 256 random bits; only their digest is stored. */
function newRefreshToken(): { token: string; digest: Buffer } {
  const token = randomBytes(32).toString('base64url')
  return { token, digest: digestOf(token) }
}

function digestOf(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}

function signedIn(edge: Edge, accessToken: string, refreshToken: string): Answer<z.input<typeof Token>> {
  return new Answer({
    headers: sessionCookies(edge, accessToken, refreshToken),
    value: { access_token: accessToken, token_type: 'bearer' as const },
  })
}

function sessionCookies(edge: Edge, accessToken: string, refreshToken: string): Header[] {
  const { accessTokenSeconds, refreshTokenSeconds } = edge.settings
  return [
    [
      'set-cookie',
      secured(edge, cookie(sessionCookieName(edge), accessToken, '/', 'Lax', accessTokenSeconds)),
    ],
    [
      'set-cookie',
      secured(
        edge,
        cookie(refreshCookieName(edge), refreshToken, REFRESH_PATH, 'Strict', refreshTokenSeconds),
      ),
    ],
  ]
}

/** A Set-Cookie value (RFC 6265, section 4.1); `seconds` 0 deletes the cookie. */
function cookie(
  name: string,
  value: string,
  path: string,
  sameSite: 'Lax' | 'Strict',
  seconds: number,
): string {
  return `${name}=${value}; Path=${path}; Max-Age=${seconds}; HttpOnly; SameSite=${sameSite}`
}

function secured(edge: Edge, value: string): string {
  return edge.settings.publicBaseUrl.startsWith('https:') ? `${value}; Secure` : value
}
