import { z } from 'zod'
import { readAccountState } from '../../sql/accounts.ts'
import { fail } from '../../sql/errors.ts'
import type { Reader } from '../../sql/reader.ts'
import type { Role } from './access.ts'

/** What decides whether an account's callers are admitted, and with which role. */
export interface AccountState {
  readonly role: Role
  readonly active: boolean
  /** Sessions whose access tokens are refused. */
  readonly ended: ReadonlySet<string>
  /** Its API keys by id. */
  readonly keys: ReadonlyMap<string, ApiKey>
  /** The second factors of an admin; null for other roles. */
  readonly factors: { readonly totp: boolean; readonly passkeySessions: ReadonlySet<string> } | null
  readonly profile: string
  readonly readAt: number
}

/** An API key, as far as it decides access. */
export interface ApiKey {
  readonly id: string
  /** `AREA:read`, `AREA:write`, and `*` for every area. */
  readonly scopes: ReadonlySet<string>
  /** The only organization that it reaches; null: all of its account. */
  readonly organizationId: number | null
  /** Seconds since the epoch; Infinity: never. */
  readonly expiresAt: number
}

// A change of role or activity drops the entry by NOTIFY; this bounds the effect of a lost notification.
const STATE_MS = 5_000
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

/** The access state of each account, as last read. */
export class AccountStates {
  readonly #reader: Reader
  readonly #known = new Map<number, AccountState>()
  readonly #readings = new Map<number, Promise<AccountState>>()

  constructor(reader: Reader) {
    this.#reader = reader
  }

  /** The cached state of an account, if it is fresh; changed ones were dropped. */
  fresh(accountId: number): AccountState | undefined {
    const state = this.#known.get(accountId)
    return state !== undefined && performance.now() - state.readAt < STATE_MS ? state : undefined
  }

  async current(accountId: number): Promise<AccountState> {
    return this.fresh(accountId) ?? this.read(accountId)
  }

  /** Reads an account; concurrent callers share one read. @throws fail('auth.required') if there is none. */
  read(accountId: number): Promise<AccountState> {
    const underWay = this.#readings.get(accountId)
    if (underWay !== undefined) return underWay
    const reading: Promise<AccountState> = this.#readRow(accountId).then(
      (state) => {
        // Dropped while it was read: it may predate the change, and is used only this once.
        if (this.#readings.get(accountId) !== reading) return state
        this.#readings.delete(accountId)
        if (this.#known.size > MAX_STATES) this.#known.clear()
        this.#known.set(accountId, state)
        return state
      },
      (error) => {
        if (this.#readings.get(accountId) === reading) this.#readings.delete(accountId)
        throw error
      },
    )
    this.#readings.set(accountId, reading)
    return reading
  }

  /** Drops the state of an account; null: of all. */
  forget(accountId: number | null): void {
    if (accountId === null) {
      this.#known.clear()
      this.#readings.clear()
    } else {
      this.#known.delete(accountId)
      this.#readings.delete(accountId)
    }
  }

  async #readRow(accountId: number): Promise<AccountState> {
    const text = await this.#reader.text(readAccountState, [accountId])
    if (text === null) throw fail('auth.required')
    const { account, ended, keys, factors } = StateRow.parse(JSON.parse(text))
    const { role, is_active: active } = account
    return {
      role,
      active,
      ended: new Set(ended),
      factors: factors && { totp: factors.totp, passkeySessions: new Set(factors.sessions) },
      keys: new Map(keys.map((key) => [key.id, key])),
      profile: JSON.stringify(account),
      readAt: performance.now(),
    }
  }
}
