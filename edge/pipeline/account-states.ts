import { z } from 'zod'
import { readAccountState } from '../../sql/accounts.ts'
import { fail } from '../../sql/errors.ts'
import type { Reader } from '../../sql/reader.ts'
import type { Role } from './access.ts'

/** What decides whether an account's callers are let in, and as what. */
export interface AccountState {
  readonly role: Role
  readonly active: boolean
  /** Sessions whose access tokens are refused. */
  readonly ended: ReadonlySet<string>
  readonly profile: string
  readonly readAt: number
}

// A change of role or activity drops its entry by NOTIFY; this bounds what a lost notification can cost.
const STATE_MS = 5_000
const MAX_STATES = 100_000

const StateRow = z.object({
  account: z.looseObject({ role: z.enum(['user', 'moderator', 'admin']), is_active: z.boolean() }),
  ended: z.array(z.string()),
})

/** What decides access, as it was last read of each account. */
export class AccountStates {
  readonly #reader: Reader
  readonly #known = new Map<number, AccountState>()
  readonly #readings = new Map<number, Promise<AccountState>>()

  constructor(reader: Reader) {
    this.#reader = reader
  }

  /** What is known of an account, if it is fresh; what has changed was forgotten. */
  fresh(accountId: number): AccountState | undefined {
    const state = this.#known.get(accountId)
    return state !== undefined && performance.now() - state.readAt < STATE_MS ? state : undefined
  }

  async current(accountId: number): Promise<AccountState> {
    return this.fresh(accountId) ?? this.read(accountId)
  }

  /** Reads an account, once for all who ask meanwhile. @throws fail('auth.required') when there is none. */
  read(accountId: number): Promise<AccountState> {
    const underWay = this.#readings.get(accountId)
    if (underWay !== undefined) return underWay
    const reading: Promise<AccountState> = this.#readRow(accountId).then(
      (state) => {
        // Forgotten while it was read: it may show what was before the change, and is good for this once only.
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

  /** Null: all. */
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
    const { account, ended } = StateRow.parse(JSON.parse(text))
    const { role, is_active: active } = account
    return {
      role,
      active,
      ended: new Set(ended),
      profile: JSON.stringify(account),
      readAt: performance.now(),
    }
  }
}
