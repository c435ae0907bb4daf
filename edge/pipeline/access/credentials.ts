import { LRUCache } from 'lru-cache'
import { z } from 'zod'
import { readAccountState } from '../../../sql/accounts/accounts.ts'
import { recordSessionUse, type UsedSession } from '../../../sql/accounts/sessions.ts'
import type { Database } from '../../../sql/db.ts'
import { recordKeyUse } from '../../../sql/keys/api-keys.ts'
import type { Reader } from '../../../sql/reads/reader.ts'
import { storePeriodically } from '../../../tasks/platform/periodic.ts'
import type { Role } from './access.ts'

/** The part of an account that determines access. */
export interface AccountState {
  readonly role: Role
  readonly active: boolean
  /** Ended sessions, whose access tokens are refused. */
  readonly endedSessions: ReadonlySet<string>
  /** API keys by id. */
  readonly keys: ReadonlyMap<string, ApiKey>
  /** Second factors of an admin; null for other roles. */
  readonly factors: { readonly totp: boolean; readonly passkeySessions: ReadonlySet<string> } | null
  readonly profile: string
  readonly readAt: number
}

/** The part of an API key that determines access. */
export interface ApiKey {
  readonly id: string
  /** Scopes such as `AREA:read` or `AREA:write`; `*` means every area. */
  readonly scopes: ReadonlySet<string>
  /** The only organization that the key may access; null if it may access everything that its account may. */
  readonly organizationId: number | null
  /** Seconds since the epoch; Infinity if it never expires. */
  readonly expiresAt: number
}

// A NOTIFY drops the entry of a changed account. This limit bounds the effect of a lost notification.
const STATE_TTL_MS = 5_000
const MAX_STATES = 100_000

const StateRow = z.object({
  account: z.looseObject({ role: z.enum(['user', 'moderator', 'admin']), is_active: z.boolean() }),
  ended: z.array(z.string()),
  factors: z.object({ totp: z.boolean(), sessions: z.array(z.string()) }).nullable(),
  keys: z.array(
    z
      .object({
        id: z.string(),
        scopes: z.array(z.string()),
        organization_id: z.int().nullable(),
        expires_at: z.number().nullable(),
      })
      .transform(
        ({ id, scopes, organization_id: organizationId, expires_at }): ApiKey => ({
          id,
          scopes: new Set(scopes),
          organizationId,
          expiresAt: expires_at ?? Number.POSITIVE_INFINITY,
        }),
      ),
  ),
})

/** Caches the access states of accounts. */
export class AccountStates {
  readonly #reader: Reader
  readonly #known = new Map<number, AccountState>()
  readonly #readings = new Map<number, Promise<AccountState | null>>()

  constructor(reader: Reader) {
    this.#reader = reader
  }

  /** Returns the cached state of an account; undefined if it is missing or older than 5 s. */
  getCached(accountId: number): AccountState | undefined {
    const state = this.#known.get(accountId)
    return state !== undefined && performance.now() - state.readAt < STATE_TTL_MS ? state : undefined
  }

  /** Returns the state of an account; null if the account does not exist. */
  async getCurrent(accountId: number): Promise<AccountState | null> {
    return this.getCached(accountId) ?? this.read(accountId)
  }

  /** Reads the state of an account; null if the account does not exist. Concurrent callers share one read. */
  read(accountId: number): Promise<AccountState | null> {
    const pending = this.#readings.get(accountId)
    if (pending !== undefined) return pending
    const read: Promise<AccountState | null> = this.#readRow(accountId).then(
      (state) => {
        // The entry was dropped during the read, so this state may predate the change and must not be cached.
        if (this.#readings.get(accountId) !== read) return state
        this.#readings.delete(accountId)
        if (state === null) return null
        if (this.#known.size > MAX_STATES) this.#known.clear()
        this.#known.set(accountId, state)
        return state
      },
      (error) => {
        if (this.#readings.get(accountId) === read) this.#readings.delete(accountId)
        throw error
      },
    )
    this.#readings.set(accountId, read)
    return read
  }

  /** Drops the cached state of an account; null drops all. */
  forget(accountId: number | null): void {
    if (accountId === null) {
      this.#known.clear()
      this.#readings.clear()
    } else {
      this.#known.delete(accountId)
      this.#readings.delete(accountId)
    }
  }

  async #readRow(accountId: number): Promise<AccountState | null> {
    const text = await this.#reader.text(readAccountState, [accountId])
    if (text === null) return null
    const { account, ended, keys, factors } = StateRow.parse(JSON.parse(text))
    const { role, is_active: active } = account
    return {
      role,
      active,
      endedSessions: new Set(ended),
      factors: factors && { totp: factors.totp, passkeySessions: new Set(factors.sessions) },
      keys: new Map(keys.map((key) => [key.id, key])),
      profile: JSON.stringify(account),
      readAt: performance.now(),
    }
  }
}

/** The content of a valid credential. */
export interface VerifiedCredential {
  readonly credential: string
  readonly accountId: number
  /** Session of an access token; null for an API key. */
  readonly sessionId: string | null
  /** Row id of an API key; null for an access token. */
  readonly keyId: string | null
  /** Seconds since the epoch; Infinity for an API key, because its account state has the expiry. */
  readonly expiresAt: number
}

// A look-up takes less than a microsecond, verifying a token 50 to 190 µs.
const MAX_CREDENTIALS = 20_000
// Each request brings a new string to hash, so the cache uses only its last characters. They hold 131 secret bits of a
// token's signature, or 95 of an API key.
const KEY_CHARACTERS = 22

/** Recently verified credentials. */
export class CredentialCache {
  readonly #bySuffix = new LRUCache<string, VerifiedCredential>({ max: MAX_CREDENTIALS })

  get(credential: string): VerifiedCredential | undefined {
    const cached = this.#bySuffix.get(credential.slice(-KEY_CHARACTERS))
    return cached?.credential === credential ? cached : undefined
  }

  add(verified: VerifiedCredential): void {
    this.#bySuffix.set(verified.credential.slice(-KEY_CHARACTERS), verified)
  }
}

/**
 * Records the last use of API keys and sessions, and where a session was used from. Uses are written once a minute, so
 * that requests neither wait nor write a row each.
 */
export interface CredentialUses {
  recordKey(keyId: string): void
  /** Calls `from` only for the first use since the last write, because reading every address costs too much. */
  recordSession(sessionId: string, from: () => Omit<UsedSession, 'id'>): void
  /** Writes all pending uses. */
  close(): Promise<void>
}

const WRITE_INTERVAL_MS = 60_000

export function createCredentialUses(db: Database, onError: (error: unknown) => void): CredentialUses {
  const keys = createUseBatch<string>((some) => db.run(recordKeyUse(some.map(([id]) => id))), onError)
  const sessions = createUseBatch<Omit<UsedSession, 'id'>>(
    (some) => db.run(recordSessionUse(some.map(([id, from]) => ({ id, ...from })))),
    onError,
  )
  const write = async (): Promise<void> => {
    await keys.write()
    await sessions.write()
  }
  const close = storePeriodically(WRITE_INTERVAL_MS, write, onError)
  return {
    recordKey: (keyId) => keys.add(keyId, () => keyId),
    recordSession: (sessionId, from) => sessions.add(sessionId, from),
    close,
  }
}

/** Collects uses by id until the next write, and keeps only the first use of each id. */
function createUseBatch<T>(
  store: (used: readonly (readonly [id: string, use: T])[]) => Promise<unknown>,
  onError: (error: unknown) => void,
) {
  let used = new Map<string, T>()
  return {
    add: (id: string, use: () => T): void => {
      if (!used.has(id)) used.set(id, use())
    },
    write: async (): Promise<void> => {
      if (used.size === 0) return
      const written = used
      used = new Map()
      try {
        await store([...written])
      } catch (error) {
        // Retry these uses with the next write.
        used = new Map([...written, ...used])
        onError(error)
      }
    },
  }
}
