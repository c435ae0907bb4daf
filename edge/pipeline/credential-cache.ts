/** The content of a valid credential. */
export interface VerifiedCredential {
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
const KEY_CHARACTERS = 22

/** Recently verified credentials. */
export class CredentialCache {
  #recent = new Map<string, VerifiedCredential>()
  #older = new Map<string, VerifiedCredential>()

  get(credential: string): VerifiedCredential | undefined {
    const suffix = credential.slice(-KEY_CHARACTERS)
    const cached = this.#recent.get(suffix) ?? this.#older.get(suffix)
    return cached?.credential === credential ? cached : undefined
  }

  add(verified: VerifiedCredential): void {
    if (this.#recent.size >= PER_GENERATION) {
      this.#older = this.#recent
      this.#recent = new Map()
    }
    this.#recent.set(verified.credential.slice(-KEY_CHARACTERS), verified)
  }
}
