import { Failure, fail } from '../../sql/errors.ts'
import type { Reader } from '../../sql/reader.ts'
import type { Settings } from '../../tasks/settings.ts'
import { readCookie } from '../http/cookies.ts'
import type { EdgeRequest } from '../http/server.ts'
import type { Auth, Role } from './access.ts'
import { AccessTokens, type Verified } from './access-tokens.ts'
import { type AccountState, AccountStates } from './account-states.ts'

/** The caller of a request. The role is the database's, not the token's. */
export interface Caller {
  readonly id: number
  /** The owner id of the caller's rows; null without authentication. */
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

/** The caller of an open area without a credential. */
export const ANONYMOUS: Caller = {
  id: 0,
  ownerId: null,
  role: 'user',
  sessionId: null,
  profile: JSON.stringify({ ...NOBODY, role: 'user' }),
}

/** Authentication of callers. */
export interface Accounts {
  /** Null without a credential. @throws fail('auth.required') for an invalid one. */
  authenticate(request: EdgeRequest): Caller | null | Promise<Caller | null>
  sign(account: { id: number; role: string }, sessionId: string): Promise<string>
  /** Whether an admitted caller would still be admitted with the same role; the token's expiry does not matter. */
  isStillAuthorized(caller: Caller): Promise<boolean>
  /** Drops what is cached about an account that has changed; null: about all. */
  forget(accountId: number | null): void
}

interface AccountsOptions {
  readonly settings: Settings
  readonly reader: Reader
  readonly secretKey: string
  /** The database's time in ms. */
  readonly now: () => number
}

/** Authenticates callers by access tokens signed with `secretKey`. */
export function createAccounts(options: AccountsOptions): Accounts {
  return new TokenAccounts(options)
}

class TokenAccounts implements Accounts {
  readonly #authDisabled: boolean
  readonly #cookie: string
  readonly #tokens: AccessTokens
  readonly #states: AccountStates

  constructor({ settings, reader, secretKey, now }: AccountsOptions) {
    this.#authDisabled = settings.authLevel === 'none'
    this.#cookie = `${settings.projectName}_session`
    this.#tokens = new AccessTokens(settings, secretKey, now)
    this.#states = new AccountStates(reader)
  }

  authenticate(request: EdgeRequest): Caller | null | Promise<Caller | null> {
    if (this.#authDisabled) return EVERYBODY
    const token = credential(request, this.#cookie)
    if (token === null) return null
    const verified = this.#tokens.known(token)
    const state = verified && this.#states.fresh(verified.accountId)
    // The hot path: two look-ups and no await.
    return state === undefined ? this.#authenticateSlowly(token) : callerOf(verified!, state)
  }

  async #authenticateSlowly(token: string): Promise<Caller> {
    const verified = this.#tokens.known(token) ?? (await this.#tokens.verify(token))
    return callerOf(verified, await this.#states.read(verified.accountId))
  }

  async isStillAuthorized(caller: Caller): Promise<boolean> {
    if (caller.sessionId === null) return true
    const state = await this.#states.current(caller.id).catch((error) => {
      if (error instanceof Failure && error.code === 'auth.required') return null
      throw error
    })
    return state?.active === true && state.role === caller.role && !state.ended.has(caller.sessionId)
  }

  sign(account: { id: number; role: string }, sessionId: string): Promise<string> {
    return this.#tokens.sign(account, sessionId)
  }

  forget(accountId: number | null): void {
    this.#states.forget(accountId)
  }
}

/** @throws fail('auth.required') for an account that is not active, or a session that has ended. */
function callerOf({ accountId, sessionId }: Verified, state: AccountState): Caller {
  if (!state.active || state.ended.has(sessionId)) throw fail('auth.required')
  const { role, profile } = state
  return { id: accountId, ownerId: accountId, role, sessionId, profile }
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

const RANK: Readonly<Record<Role, number>> = { user: 0, moderator: 1, admin: 2 }

/** The lowest role that an access rule requires; null: any account. */
export function roleFor(auth: Auth, settings: Settings): Role | null {
  if (auth === 'editor' || auth === 'operator') {
    if (settings.authLevel === 'basic') return null
    return auth === 'editor' ? 'moderator' : 'admin'
  }
  return auth === 'admin' || auth === 'moderator' ? auth : null
}

/** The refusal of a caller whose role is too low, or null. */
export function requireRole(caller: Caller, role: Role): Failure | null {
  return RANK[caller.role] >= RANK[role]
    ? null
    : fail('auth.forbidden', { roles: role === 'moderator' ? 'moderator or admin' : role })
}
