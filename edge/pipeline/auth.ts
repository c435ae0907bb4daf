import { JOSEError } from 'jose/errors'
import { SignJWT } from 'jose/jwt/sign'
import { jwtVerify } from 'jose/jwt/verify'
import { z } from 'zod'
import { readStanding } from '../../sql/accounts.ts'
import { Failure, fail } from '../../sql/errors.ts'
import { uuidv7 } from '../../sql/ids.ts'
import type { Reader } from '../../sql/reader.ts'
import type { Settings } from '../../tasks/settings.ts'
import type { EdgeRequest } from '../http/server.ts'
import type { Auth } from './access.ts'

export type Role = 'user' | 'moderator' | 'admin'

/** Who calls. What decides is the database's role, not the token's. */
export interface Caller {
  readonly id: number
  /** What rows of the caller carry; null without authentication. */
  readonly ownerId: number | null
  readonly role: Role
  /** The session (refresh family) of the access token; null without authentication. */
  readonly sessionId: string | null
  /** The account as clients see it, as JSON text. */
  readonly profile: string
}

const NOBODY = {
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

/** The caller of everything under `AUTH_LEVEL=none`. */
const EVERYBODY: Caller = {
  id: 0,
  ownerId: null,
  role: 'admin',
  sessionId: null,
  profile: JSON.stringify(NOBODY),
}

/** The caller of an open area who came without a credential. */
export const ANONYMOUS: Caller = {
  id: 0,
  ownerId: null,
  role: 'user',
  sessionId: null,
  profile: JSON.stringify({ ...NOBODY, role: 'user' }),
}

export interface Accounts {
  /** Null when no credential came. @throws fail('auth.required') for one that is no good. */
  authenticate(request: EdgeRequest): Caller | null | Promise<Caller | null>
  sign(account: { id: number; role: string }, sessionId: string): Promise<string>
  /** Whether a caller who was let in still would be, and in the same role; when the token runs out does not matter. */
  stillAdmits(caller: Caller): Promise<boolean>
  /** An account has changed: forget what is cached of it; null for all. */
  forget(accountId: number | null): void
}

interface Verified {
  readonly token: string
  readonly accountId: number
  readonly sessionId: string
  /** Seconds since the epoch. */
  readonly expiresAt: number
}

interface Standing {
  readonly role: Role
  readonly active: boolean
  /** Sessions whose access tokens are refused. */
  readonly ended: ReadonlySet<string>
  readonly profile: string
  readonly readAt: number
}

// Verifying a token costs 50-190 us, looking it up 0.4: two generations of this many are kept.
const TOKENS_PER_GENERATION = 10_000
// A look-up hashes its key, and each request brings its token anew: the end of the signature tells tokens apart (132 bits).
const TELLING_CHARACTERS = 22
// A change of role or activity drops its entry by NOTIFY; this bounds what a lost notification can cost.
const STANDING_MS = 5_000

const LARGEST_INTEGER = 2_147_483_647

const Claims = z.object({
  sub: z
    .string()
    .regex(/^\d{1,10}$/)
    .transform(Number)
    .refine((id) => id <= LARGEST_INTEGER),
  sid: z.uuid(),
  exp: z.number(),
})
const StandingRow = z.object({
  account: z.looseObject({ role: z.enum(['user', 'moderator', 'admin']), is_active: z.boolean() }),
  ended: z.array(z.string()),
})

export function createAccounts(options: { settings: Settings; reader: Reader; secretKey: string }): Accounts {
  const { settings, reader } = options
  const key = new TextEncoder().encode(options.secretKey)
  const cookie = `${settings.projectName}_session`
  let tokens = new Map<string, Verified>()
  let olderTokens = new Map<string, Verified>()
  const standings = new Map<number, Standing>()
  const readings = new Map<number, Promise<Standing>>()

  const known = (token: string): Verified | undefined => {
    const end = token.slice(-TELLING_CHARACTERS)
    const found = tokens.get(end) ?? olderTokens.get(end)
    return found?.token === token && found.expiresAt * 1000 > Date.now() ? found : undefined
  }

  const verify = async (token: string): Promise<Verified> => {
    if (!isOneSpelling(token)) throw fail('auth.required')
    const { payload } = await jwtVerify(token, key, {
      algorithms: ['HS256'],
      issuer: settings.projectName,
      audience: settings.projectName,
    }).catch((error) => {
      if (error instanceof JOSEError) throw fail('auth.required', {}, { cause: error })
      throw error
    })
    // The key may sign other things for other readers; what is not a session's is no credential here.
    const claims = Claims.safeParse(payload)
    if (!claims.success) throw fail('auth.required', {}, { cause: claims.error })
    const { sub: accountId, sid: sessionId, exp: expiresAt } = claims.data
    const verified = { token, accountId, sessionId, expiresAt }
    if (tokens.size >= TOKENS_PER_GENERATION) {
      olderTokens = tokens
      tokens = new Map()
    }
    tokens.set(token.slice(-TELLING_CHARACTERS), verified)
    return verified
  }

  const readOnce = async (accountId: number): Promise<Standing> => {
    const text = await reader.text(readStanding, [accountId])
    if (text === null) throw fail('auth.required')
    const { account, ended } = StandingRow.parse(JSON.parse(text))
    const { role, is_active: active } = account
    return { role, active, ended: new Set(ended), profile: JSON.stringify(account), readAt: Date.now() }
  }

  const standingOf = (accountId: number): Promise<Standing> => {
    const under = readings.get(accountId)
    if (under !== undefined) return under
    const reading: Promise<Standing> = readOnce(accountId).then(
      (standing) => {
        // Forgotten while it was read: it may show what was before the change, and is good for this once only.
        if (readings.get(accountId) !== reading) return standing
        readings.delete(accountId)
        if (standings.size > 100_000) standings.clear()
        standings.set(accountId, standing)
        return standing
      },
      (error) => {
        if (readings.get(accountId) === reading) readings.delete(accountId)
        throw error
      },
    )
    readings.set(accountId, reading)
    return reading
  }

  /** What is known of an account, if it is fresh; what has changed was forgotten. */
  const fresh = (accountId: number): Standing | undefined => {
    const standing = standings.get(accountId)
    return standing !== undefined && Date.now() - standing.readAt < STANDING_MS ? standing : undefined
  }
  const knownStanding = async (accountId: number): Promise<Standing> =>
    fresh(accountId) ?? standingOf(accountId)

  const admit = ({ accountId, sessionId }: Verified, standing: Standing): Caller => {
    if (!standing.active || standing.ended.has(sessionId)) throw fail('auth.required')
    const { role, profile } = standing
    return { id: accountId, ownerId: accountId, role, sessionId, profile }
  }

  const slowly = async (token: string): Promise<Caller> => {
    const verified = known(token) ?? (await verify(token))
    return admit(verified, await standingOf(verified.accountId))
  }

  return {
    authenticate: (request) => {
      if (settings.authLevel === 'none') return EVERYBODY
      const token = credential(request, cookie)
      if (token === null) return null
      const verified = known(token)
      const standing = verified && fresh(verified.accountId)
      // The whole hot path: two look-ups, no await.
      return standing === undefined ? slowly(token) : admit(verified!, standing)
    },
    stillAdmits: async (caller) => {
      if (caller.sessionId === null) return true
      const standing = await knownStanding(caller.id).catch((error) => {
        if (error instanceof Failure && error.code === 'auth.required') return null
        throw error
      })
      return (
        standing?.active === true && standing.role === caller.role && !standing.ended.has(caller.sessionId)
      )
    },
    sign: (account, sessionId) =>
      new SignJWT({ role: account.role, sid: sessionId })
        .setProtectedHeader({ alg: 'HS256' })
        .setIssuer(settings.projectName)
        .setAudience(settings.projectName)
        .setSubject(String(account.id))
        .setIssuedAt()
        .setJti(uuidv7())
        .setExpirationTime(Math.floor(Date.now() / 1000) + settings.accessTokenSeconds)
        .sign(key),
    forget: (accountId) => {
      if (accountId === null) {
        standings.clear()
        readings.clear()
      } else {
        standings.delete(accountId)
        readings.delete(accountId)
      }
    },
  }
}

/**
 * Whether each part is how base64url spells its bytes: decoders also take padding, the other alphabet, and any value of
 * the bits that the last character has too many. A token that is known by its text must have one.
 */
function isOneSpelling(token: string): boolean {
  return token.split('.').every((part) => Buffer.from(part, 'base64url').toString('base64url') === part)
}

/** The bearer token, or else the session cookie; null when neither came. */
function credential(request: EdgeRequest, cookie: string): string | null {
  const authorization = request.header('authorization')
  if (authorization !== '') {
    const match = /^Bearer +([A-Za-z0-9._~+/=-]+) *$/i.exec(authorization)
    if (match === null) throw fail('auth.required')
    return match[1]!
  }
  return readCookie(request, cookie)
}

/** The value of a cookie of a request, or null (RFC 6265, section 5.4). */
export function readCookie(request: EdgeRequest, name: string): string | null {
  const header = request.header('cookie')
  if (header === '') return null
  for (const pair of header.split(';')) {
    const equals = pair.indexOf('=')
    if (equals > 0 && pair.slice(0, equals).trim() === name) return pair.slice(equals + 1).trim()
  }
  return null
}

const RANK: Readonly<Record<Role, number>> = { user: 0, moderator: 1, admin: 2 }

/** The least role that a way of admission asks for; null: that of any account. */
export function roleFor(auth: Auth, settings: Settings): Role | null {
  if (auth === 'editor' || auth === 'operator') {
    if (settings.authLevel === 'basic') return null
    return auth === 'editor' ? 'moderator' : 'admin'
  }
  return auth === 'admin' || auth === 'moderator' ? auth : null
}

/** Refuses a caller below a role. */
export function requireRole(caller: Caller, role: Role): Failure | null {
  return RANK[caller.role] >= RANK[role]
    ? null
    : fail('auth.forbidden', { roles: role === 'moderator' ? 'moderator or admin' : role })
}
