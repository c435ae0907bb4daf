import { LRUCache } from 'lru-cache'

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
