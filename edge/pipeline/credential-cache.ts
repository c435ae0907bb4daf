/** The content of a valid credential. */
export interface Verified {
  readonly credential: string
  readonly accountId: number
  /** The session of an access token; null for an API key. */
  readonly sessionId: string | null
  /** The row id of an API key; null for an access token. */
  readonly keyId: string | null
  /** Seconds since the epoch; Infinity for an API key, whose expiry is in the account state. */
  readonly expiresAt: number
}

// Verifying a token takes 50-190 us, a cache look-up 0.4 us. The cache has two generations of this size.
const PER_GENERATION = 10_000
// Each request brings a new string to hash, so only its last characters are the key. They hold 131 secret bits of a
// token's signature, or 95 of an API key.
const TELLING_CHARACTERS = 22

/** Recently verified credentials. */
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
