import { availableParallelism } from 'node:os'
import { fail } from '../../sql/errors.ts'
import { createLazy } from '../../tasks/platform/lazy.ts'
import { isTruncated } from './hashes.ts'
import type { PasskeyRequest, PasskeyResult, PasswordCost } from './messages.ts'
import { listPasswordForms, normalizePassword } from './normalize.ts'
import { ThreadPool } from './thread-pool.ts'

/**
 * Hashes and verifies passwords (about 22 ms of CPU each) and verifies passkeys, on low-priority threads. At most one
 * thread per two cores runs at a time, so that a burst of sign-ins does not starve the machine. A separate thread
 * verifies imported hashes one at a time, because other systems chose their cost.
 */
export interface Passwords {
  /** Hashes the normalized form of a password. */
  hash(password: string): Promise<string>
  /**
   * True if the password matches the stored hash, normalized or as typed. Null compares with a decoy, to take the same time.
   * @throws request.limited while too many imported hashes wait.
   */
  verify(stored: string | null, password: string): Promise<boolean>
  /**
   * Verifies the password of a sign-in. `rehashed` is a new hash to store. It is null if the password is wrong, or the
   * old hash has the current parameters and covers the normalized password.
   */
  verifyAndRehash(stored: string | null, password: string): Promise<CheckedPassword>
  /** True if the password is among the 10,000 most common ones of at least 8 characters. */
  isCommon(password: string): Promise<boolean>
  verifyPasskey(request: PasskeyRequest): Promise<PasskeyResult>
  close(): Promise<void>
}

export interface CheckedPassword {
  readonly matches: boolean
  readonly rehashed: string | null
}

const THREAD_FILE = new URL('./thread.ts', import.meta.url)
const FOREIGN_THREAD_FILE = new URL('./foreign-thread.ts', import.meta.url)

// Maximum number of waiting verifications of imported hashes, each of which takes up to 0.5 s.
const MAX_WAITING_FOREIGN_HASHES = 40
const RETRY_SECONDS = 10

export interface PasswordOptions {
  /** Maximum number of threads for new hashes. Default: one per two cores. */
  readonly concurrency?: number
  readonly cost?: PasswordCost
}

// 19 MiB and two passes (OWASP Password Storage Cheat Sheet).
const DEFAULT_COST: PasswordCost = { memoryCost: 19_456, timeCost: 2 }

/** Creates the service, whose threads start on first use. */
export function createPasswords(options: PasswordOptions = {}): Passwords {
  return new PasswordThreads(options)
}

class PasswordThreads implements Passwords {
  readonly #cost: PasswordCost
  readonly #ownThreads: ThreadPool
  readonly #foreignThreads = new ThreadPool(FOREIGN_THREAD_FILE, 1)
  /** Hash to compare with if none is stored. */
  readonly #decoy = createLazy(() => this.hash('no account has this password'))

  constructor(options: PasswordOptions) {
    const concurrency = options.concurrency ?? Math.max(1, Math.floor(availableParallelism() / 2))
    this.#cost = options.cost ?? DEFAULT_COST
    this.#ownThreads = new ThreadPool(THREAD_FILE, concurrency, this.#cost)
  }

  hash(password: string): Promise<string> {
    return this.#ownThreads.run({ password: normalizePassword(password) }) as Promise<string>
  }

  async verify(stored: string | null, password: string): Promise<boolean> {
    return (await this.#findMatchingForm(stored, password)) !== null
  }

  async verifyAndRehash(stored: string | null, password: string): Promise<CheckedPassword> {
    const normalized = normalizePassword(password)
    const form = await this.#findMatchingForm(stored, password)
    const matches = form !== null
    const isCurrent = stored === null || this.#hasCurrentParameters(stored)
    const needsRehash = isCurrent ? matches && form !== normalized : !isTruncated(stored, form ?? normalized)
    if (!needsRehash) return { matches, rehashed: null }
    // Hash even a wrong password, so that the response time does not reveal the result.
    const rehashed = await this.hash(normalized)
    return { matches, rehashed: matches ? rehashed : null }
  }

  isCommon(password: string): Promise<boolean> {
    return this.#ownThreads.run({ common: normalizePassword(password) }) as Promise<boolean>
  }

  verifyPasskey(request: PasskeyRequest): Promise<PasskeyResult> {
    return this.#ownThreads.run(request) as Promise<PasskeyResult>
  }

  async close(): Promise<void> {
    await Promise.all([this.#ownThreads.close(), this.#foreignThreads.close()])
  }

  /** True if a hash has the parameters of new hashes. */
  #hasCurrentParameters(stored: string): boolean {
    const { memoryCost, timeCost } = this.#cost
    return stored.startsWith(`$argon2id$v=19$m=${memoryCost},t=${timeCost},p=1$`)
  }

  /** Returns the form of a password that matches; null if none does. */
  async #findMatchingForm(stored: string | null, password: string): Promise<string | null> {
    for (const form of listPasswordForms(password)) if (await this.#matches(stored, form)) return form
    return null
  }

  async #matches(stored: string | null, password: string): Promise<boolean> {
    if (stored !== null && !this.#hasCurrentParameters(stored)) return this.#verifyForeign(stored, password)
    // Always, so that the first unknown account takes no longer.
    const decoy = await this.#decoy()
    const matches = await this.#ownThreads.run({ password, against: stored ?? decoy })
    return stored !== null && matches === true
  }

  async #verifyForeign(stored: string, password: string): Promise<boolean> {
    if (this.#foreignThreads.waitingCount >= MAX_WAITING_FOREIGN_HASHES)
      throw fail('request.limited', { seconds: RETRY_SECONDS }, { retryAfter: RETRY_SECONDS })
    return (await this.#foreignThreads.run({ password, against: stored })) === true
  }
}
