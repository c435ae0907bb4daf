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

// Size of each of the cache's two generations. A look-up takes 0.4 µs, verifying a token 50 to 190 µs.
const GENERATION_SIZE = 10_000
// Each request brings a new string to hash, so the cache uses only its last characters. They hold 131 secret bits of a
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
    if (this.#recent.size >= GENERATION_SIZE) {
      this.#older = this.#recent
      this.#recent = new Map()
    }
    this.#recent.set(verified.credential.slice(-KEY_CHARACTERS), verified)
  }
}
