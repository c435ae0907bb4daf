import { availableParallelism } from 'node:os'
import { fail } from '../sql/errors.ts'
import { isCut } from './password-hashes.ts'
import { Threads } from './passwords/threads.ts'
import type { PasskeyAnswer, PasskeyWork, PasswordCost } from './passwords/work.ts'

/**
 * Hashes and verifies passwords, about 22 ms of CPU each, and verifies passkeys, on dedicated threads of low priority. At
 * most one per two cores runs at a time, or a burst of logins would starve the rest of the machine. A thread of their own
 * verifies hashes from elsewhere, one at a time: a stranger chose their cost.
 */
export interface Passwords {
  hash(password: string): Promise<string>
  /**
   * Compares with a stored hash; without one it compares with a decoy, so that both take equally long.
   * @throws request.limited while too many hashes from elsewhere wait.
   */
  verify(stored: string | null, password: string): Promise<boolean>
  /**
   * The same for a sign-in, which replaces a hash by other rules than those for new ones: `rehashed` is the one that takes its place,
   * once the password was right; null: it stays.
   */
  check(stored: string | null, password: string): Promise<CheckedPassword>
  /** True for one of the 10,000 most common passwords. */
  isCommon(password: string): Promise<boolean>
  verifyPasskey(work: PasskeyWork): Promise<PasskeyAnswer>
  close(): Promise<void>
}

export interface CheckedPassword {
  readonly matches: boolean
  readonly rehashed: string | null
}

const THREAD = new URL('./passwords/thread.ts', import.meta.url)
const FOREIGN_THREAD = new URL('./passwords/foreign-thread.ts', import.meta.url)

// Each takes up to half a second.
const MAX_WAITING_FOREIGN = 40
const RETRY_SECONDS = 10

export interface PasswordOptions {
  /** Maximum number of threads for hashes of our own. Default: one per two cores. */
  readonly concurrency?: number
  readonly cost?: PasswordCost
}

// 19 MiB and two passes (OWASP Password Storage Cheat Sheet).
const COST: PasswordCost = { memoryCost: 19_456, timeCost: 2 }

/** The threads start on first use. */
export function createPasswords(options: PasswordOptions = {}): Passwords {
  return new PasswordThreads(options)
}

class PasswordThreads implements Passwords {
  readonly #cost: PasswordCost
  readonly #own: Threads
  readonly #foreign = new Threads(FOREIGN_THREAD, 1)
  /** The hash that a password is compared with when none is stored. */
  #decoy: Promise<string> | null = null

  constructor(options: PasswordOptions) {
    const concurrency = options.concurrency ?? Math.max(1, Math.floor(availableParallelism() / 2))
    this.#cost = options.cost ?? COST
    this.#own = new Threads(THREAD, concurrency, this.#cost)
  }

  hash(password: string): Promise<string> {
    return this.#own.run({ password }) as Promise<string>
  }

  async verify(stored: string | null, password: string): Promise<boolean> {
    if (stored !== null && !this.#isOwn(stored)) return this.#verifyForeign(stored, password)
    this.#decoy ??= this.hash('no account has this password')
    const matches = await this.#own.run({ password, against: stored ?? (await this.#decoy) })
    return stored !== null && matches === true
  }

  async check(stored: string | null, password: string): Promise<CheckedPassword> {
    const matches = await this.verify(stored, password)
    const isReplaced = stored !== null && !this.#isOwn(stored) && !isCut(stored, password)
    if (!isReplaced) return { matches, rehashed: null }
    // Also for a wrong password, so that both cost the same.
    const rehashed = await this.hash(password)
    return { matches, rehashed: matches ? rehashed : null }
  }

  isCommon(password: string): Promise<boolean> {
    return this.#own.run({ common: password }) as Promise<boolean>
  }

  verifyPasskey(work: PasskeyWork): Promise<PasskeyAnswer> {
    return this.#own.run(work) as Promise<PasskeyAnswer>
  }

  async close(): Promise<void> {
    await Promise.all([this.#own.close(), this.#foreign.close()])
  }

  /** True if a hash is by the rules for new ones, so that its cost is ours. */
  #isOwn(stored: string): boolean {
    const { memoryCost, timeCost } = this.#cost
    return stored.startsWith(`$argon2id$v=19$m=${memoryCost},t=${timeCost},p=1$`)
  }

  async #verifyForeign(stored: string, password: string): Promise<boolean> {
    if (this.#foreign.waiting >= MAX_WAITING_FOREIGN)
      throw fail('request.limited', { seconds: RETRY_SECONDS }, { retryAfter: RETRY_SECONDS })
    return (await this.#foreign.run({ password, against: stored })) === true
  }
}
