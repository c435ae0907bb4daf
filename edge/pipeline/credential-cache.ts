/** What a valid credential says. */
export interface Verified {
  readonly credential: string
  readonly accountId: number
  /** The session of an access token; null for an API key. */
  readonly sessionId: string | null
  /** The row of an API key; null for an access token. */
  readonly keyId: string | null
  /** Seconds since the epoch; Infinity for an API key, whose account's state says it. */
  readonly expiresAt: number
}

// Verifying a token costs 50-190 us, a cache look-up 0.4 us: two generations of this many are cached.
const PER_GENERATION = 10_000
// A look-up hashes its key, and each request has a new string: its end (131 secret bits of a token's signature, 95 of an
// API key) suffices as the key.
const TELLING_CHARACTERS = 22

/** The credentials that were verified lately. */
export class CredentialCache {
  #recent = new Map<string, Verified>()
  #older = new Map<string, Verified>()

  get(credential: string): Verified | undefined {
    const end = credential.slice(-TELLING_CHARACTERS)
    const found = this.#recent.get(end) ?? this.#older.get(end)
    return found?.credential === credential ? found : undefined
  }

  add(verified: Verified): void {
    if (this.#recent.size >= PER_GENERATION) {
      this.#older = this.#recent
      this.#recent = new Map()
    }
    this.#recent.set(verified.credential.slice(-TELLING_CHARACTERS), verified)
  }
}
