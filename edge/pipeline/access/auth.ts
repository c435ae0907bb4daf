import { notifyAccountChanged } from '../../../sql/accounts/accounts.ts'
import type { Transaction } from '../../../sql/db.ts'
import { type Failure, fail } from '../../../sql/errors.ts'
import { readApiKey } from '../../../sql/keys/api-keys.ts'
import type { Reader } from '../../../sql/reads/reader.ts'
import { hasKeyPrefix, isApiKey } from '../../../tasks/accounts/api-keys.ts'
import { digestOf } from '../../../tasks/accounts/tokens.ts'
import type { SecretKeys } from '../../../tasks/platform/keys.ts'
import type { Settings } from '../../../tasks/platform/settings/settings.ts'
import { formatCookieName, readCookie } from '../../http/cookies.ts'
import type { EdgeRequest } from '../../http/server.ts'
import type { Auth, Role } from './access.ts'
import { AccessTokens, CLOCK_TOLERANCE_SECONDS } from './access-tokens.ts'
import { isUnauthenticated } from './challenges.ts'
import {
  type AccountState,
  AccountStates,
  type ApiKey,
  CredentialCache,
  type CredentialUses,
  type VerifiedCredential,
} from './credentials.ts'

/** The caller of a request. The role comes from the database, not from the token. */
export interface Caller {
  readonly id: number
  /** Owner id of the caller's rows; null without authentication. */
  readonly ownerId: number | null
  readonly role: Role
  /** True if the required second factor is missing, which reduces an admin to the role `user`. */
  readonly lacksFactor?: boolean
  /** Session (refresh family) of the access token; null without authentication or with an API key. */
  readonly sessionId: string | null
  /** API key of the request; null without one. */
  readonly key: ApiKey | null
  /** JSON text of the account's public profile. */
  readonly profile: string
}

const PLACEHOLDER_PROFILE = {
  id: 0,
  email: 'everybody@localhost',
  full_name: null,
  is_active: true,
  is_verified: false,
  role: 'admin',
  last_login: null,
  created_at: '1970-01-01T00:00:00.000Z',
  updated_at: null,
  deletion_at: null,
}

/** Caller of every route under `AUTH_LEVEL=none`. */
const LOCAL_ADMIN: Caller = {
  id: 0,
  ownerId: null,
  role: 'admin',
  sessionId: null,
  key: null,
  profile: JSON.stringify(PLACEHOLDER_PROFILE),
}

/** Caller without a credential in an open area. */
export const ANONYMOUS_CALLER: Caller = {
  id: 0,
  ownerId: null,
  role: 'user',
  sessionId: null,
  key: null,
  profile: JSON.stringify({ ...PLACEHOLDER_PROFILE, role: 'user' }),
}

/** Authenticates callers. */
export interface Authenticator {
  /** Returns the caller; null without a credential. @throws one of `CREDENTIAL_ERRORS` for an invalid credential. */
  authenticate(request: EdgeRequest): Caller | null | Promise<Caller | null>
  /**
   * Signs an access token that expires no later than its session; `secondsLeft` is null if the session has no fixed
   * end.
   */
  sign(account: { id: number; role: string }, sessionId: string, secondsLeft?: number | null): Promise<string>
  /**
   * Checks the account of an admitted caller again, but ignores the token's expiry.
   * @throws fail('auth.token_invalid') or fail('auth.key_invalid') if the account, session or key has ended.
   */
  renew(caller: Caller): Caller | Promise<Caller>
  /** True if {@link renew} still admits the caller with an unchanged role. */
  isStillAuthorized(caller: Caller): Promise<boolean>
  /**
   * Makes every edge process drop its cached state of an account. This process does so when the transaction commits,
   * the others when they receive the notification.
   */
  invalidate(tx: Transaction, accountId: number): Promise<void>
  /** Drops the cached state of an account; null drops all. */
  forget(accountId: number | null): void
}

interface AccountsOptions {
  readonly settings: Settings
  readonly reader: Reader
  readonly keys: SecretKeys
  /** Returns the database's time in ms. */
  readonly now: () => number
  readonly uses: Pick<CredentialUses, 'recordKey' | 'recordSession'>
}

/** Creates an authenticator for access tokens signed with the deployment's keys, and for API keys. */
export function createAuthenticator(options: AccountsOptions): Authenticator {
  return new TokenAuthenticator(options)
}

class TokenAuthenticator implements Authenticator {
  readonly #settings: Settings
  readonly #cookie: string
  readonly #reader: Reader
  readonly #now: () => number
  readonly #uses: Pick<CredentialUses, 'recordKey' | 'recordSession'>
  readonly #known = new CredentialCache()
  readonly #tokens: AccessTokens
  readonly #states: AccountStates

  constructor({ settings, reader, keys, now, uses }: AccountsOptions) {
    this.#settings = settings
    this.#reader = reader
    this.#now = now
    this.#uses = uses
    this.#cookie = formatCookieName(settings, 'session')
    this.#tokens = new AccessTokens(settings, keys, now)
    this.#states = new AccountStates(reader)
  }

  authenticate(request: EdgeRequest): Caller | null | Promise<Caller | null> {
    if (this.#settings.authLevel === 'none') return LOCAL_ADMIN
    const given = readCredential(request, this.#cookie)
    if (given === null) return null
    const verified = this.#findVerified(given)
    const state = verified && this.#states.getCached(verified.accountId)
    // This hot path needs only two cache look-ups and no await.
    return state === undefined
      ? this.#authenticateSlowly(given, request)
      : this.#callerOf(verified!, state, request)
  }

  async #authenticateSlowly(given: string, request: EdgeRequest): Promise<Caller> {
    let verified = this.#findVerified(given)
    if (verified === undefined) {
      verified = await (hasKeyPrefix(given) ? this.#verifyKey(given) : this.#tokens.verify(given))
      this.#known.add(verified)
    }
    return this.#callerOf(verified, await this.#states.getCurrent(verified.accountId), request)
  }

  /** Returns the cached verification of a credential; undefined if there is none or it has expired. */
  #findVerified(given: string): VerifiedCredential | undefined {
    const found = this.#known.get(given)
    return found !== undefined && (found.expiresAt + CLOCK_TOLERANCE_SECONDS) * 1000 > this.#now()
      ? found
      : undefined
  }

  /** Verifies an API key. @throws fail('auth.key_invalid') if it is unknown or malformed. */
  async #verifyKey(given: string): Promise<VerifiedCredential> {
    const found = isApiKey(given)
      ? await this.#reader.text(readApiKey, [digestOf(given).toString('hex')])
      : null
    if (found === null) throw fail('auth.key_invalid')
    const [keyId, account] = found.split(' ') as [string, string]
    const accountId = Number(account)
    // The cached state may lack the key, because creating a key sends no notification.
    this.#states.forget(accountId)
    return { credential: given, accountId, sessionId: null, keyId, expiresAt: Number.POSITIVE_INFINITY }
  }

  /**
   * Returns the caller of a verified credential.
   * @throws fail('auth.token_invalid') if the account or session has ended, fail('auth.key_invalid') if the key has.
   */
  #callerOf(
    { accountId, sessionId, keyId }: VerifiedCredential,
    state: AccountState | null,
    request: EdgeRequest,
  ): Caller {
    const caller = this.#callerIn(state, accountId, sessionId, keyId)
    if (caller.key !== null) this.#uses.recordKey(caller.key.id)
    else if (sessionId !== null) this.#uses.recordSession(sessionId, () => this.#from(request))
    return caller
  }

  #callerIn(state: AccountState | null, id: number, sessionId: string | null, keyId: string | null): Caller {
    const key = keyId === null ? null : state === null ? undefined : this.#keyOf(state, keyId)
    const isEnded = sessionId !== null && state?.endedSessions.has(sessionId)
    if (state === null || !state.active || isEnded || key === undefined)
      throw fail(keyId === null ? 'auth.token_invalid' : 'auth.key_invalid')
    const { role, profile } = state
    const lacksFactor = this.#settings.requireAdminTotp && lacksSecondFactor(state, sessionId)
    const caller: Caller = { id, ownerId: id, role, sessionId, key, profile }
    return lacksFactor ? { ...caller, role: 'user', lacksFactor } : caller
  }

  #from(request: EdgeRequest) {
    return {
      address: readClientAddress(this.#settings, request) || null,
      place: readClientLocation(this.#settings, request),
    }
  }

  #keyOf(state: AccountState, keyId: string): ApiKey | undefined {
    const key = state.keys.get(keyId)
    return key !== undefined && key.expiresAt * 1000 > this.#now() ? key : undefined
  }

  renew(caller: Caller): Caller | Promise<Caller> {
    const { id, sessionId, key } = caller
    if (sessionId === null && key === null) return caller
    const renewed = (state: AccountState | null): Caller =>
      this.#callerIn(state, id, sessionId, key?.id ?? null)
    const state = this.#states.getCached(id)
    return state === undefined ? this.#states.getCurrent(id).then(renewed) : renewed(state)
  }

  async isStillAuthorized(caller: Caller): Promise<boolean> {
    try {
      const { role } = await this.renew(caller)
      return role === caller.role
    } catch (error) {
      if (isUnauthenticated(error)) return false
      throw error
    }
  }

  sign(
    account: { id: number; role: string },
    sessionId: string,
    secondsLeft: number | null = null,
  ): Promise<string> {
    return this.#tokens.sign(account, sessionId, secondsLeft)
  }

  async invalidate(tx: Transaction, accountId: number): Promise<void> {
    await tx.run(notifyAccountChanged(accountId))
    tx.afterCommit(() => this.forget(accountId))
  }

  forget(accountId: number | null): void {
    this.#states.forget(accountId)
  }
}

/** True if an admin has no one-time codes and did not begin the session with a passkey. */
function lacksSecondFactor({ factors }: AccountState, sessionId: string | null): boolean {
  if (factors === null || factors.totp) return false
  return sessionId === null || !factors.passkeySessions.has(sessionId)
}

/** Returns the bearer token or API key, otherwise the session cookie; null without any of them. */
function readCredential(request: EdgeRequest, cookie: string): string | null {
  const authorization = request.header('authorization')
  if (authorization !== '') {
    const match = /^Bearer +([A-Za-z0-9._~+/=-]+) *$/i.exec(authorization)
    if (match !== null) return match[1]!
    // A request with another authentication scheme counts as one without a credential.
    throw fail(/^Bearer\b/i.test(authorization) ? 'auth.token_invalid' : 'auth.required')
  }
  return readCookie(request, cookie)
}

const ROLE_RANK: Readonly<Record<Role, number>> = { user: 0, moderator: 1, admin: 2 }

/** Returns the lowest role that an access rule admits; null if it admits any account. */
export function findRequiredRole(auth: Auth, settings: Settings): Role | null {
  if (auth === 'editor' || auth === 'operator') {
    if (settings.authLevel === 'basic') return null
    return auth === 'editor' ? 'moderator' : 'admin'
  }
  return auth === 'admin' || auth === 'moderator' ? auth : null
}

/** Returns the failure of a caller whose role is too low; null if the role suffices. */
export function findRoleFailure(caller: Caller, role: Role): Failure | null {
  if (ROLE_RANK[caller.role] >= ROLE_RANK[role]) return null
  if (caller.lacksFactor === true) return fail('auth.admin_factor')
  return fail('auth.forbidden', { roles: role === 'moderator' ? 'moderator or admin' : role })
}

/**
 * Rejects a caller who has no account and so owns no rows, unless the caller is an admin.
 * @throws fail('auth.required')
 */
export function requireOwner({ ownerId, role }: Caller): void {
  if (ownerId === null && role !== 'admin') throw fail('auth.required')
}

/**
 * Returns the client's IP address. Behind a trusted proxy it is the last entry of `X-Forwarded-For`, which the proxy
 * adds. A client can forge the earlier entries.
 */
export function readClientAddress({ trustProxy }: Settings, request: EdgeRequest): string {
  const forwarded = trustProxy ? request.header('x-forwarded-for').split(',').at(-1)!.trim() : ''
  return forwarded === '' ? request.address : forwarded
}

const LOCATION_FORMAT = /^[^\p{Cc}]{1,100}$/u

/** Returns the location that the trusted proxy reports for the address, such as `DE`; null if it reports none. */
export function readClientLocation({ geoHeader }: Settings, request: EdgeRequest): string | null {
  const place = geoHeader === null ? '' : request.header(geoHeader).trim()
  return LOCATION_FORMAT.test(place) ? place : null
}
