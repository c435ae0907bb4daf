import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  hkdfSync,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto'

/**
 * The deployment's keys. The first key of each list makes, and every key verifies and decrypts, so that a rotation
 * breaks nothing.
 */

const CIPHER = 'aes-256-gcm'
const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** Length of the key id at the front of a sealed text, in characters. The indexes of sealed columns contain it. */
export const KEY_ID_LENGTH = 8

/** Texts or bytes that a MAC covers. */
type Parts = readonly (string | Uint8Array)[]

/** Computes and verifies MACs under one of several keys. */
export class MacKeys {
  readonly #keys: readonly string[]

  constructor(keys: readonly string[]) {
    this.#keys = keys
  }

  /** Returns the MAC of a purpose and its parts under the current key (256 bits). */
  mac(purpose: string, ...parts: Parts): Buffer {
    return computeMac(this.#keys[0]!, purpose, parts)
  }

  /** Returns the MAC as a token. */
  token(purpose: string, ...parts: Parts): string {
    return this.mac(purpose, ...parts).toString('base64url')
  }

  /** Returns the tokens under each key, the current one first. */
  tokens(purpose: string, ...parts: Parts): string[] {
    return this.#keys.map((key) => computeMac(key, purpose, parts).toString('base64url'))
  }

  /** True if a text is the token under any of the keys. Compares in constant time. */
  verify(token: string, purpose: string, ...parts: Parts): boolean {
    const given = digestOf(token)
    // Not `some`, which would end at the first match.
    return this.tokens(purpose, ...parts).filter((each) => timingSafeEqual(given, digestOf(each))).length > 0
  }
}

function computeMac(key: string, purpose: string, parts: Parts): Buffer {
  const hmac = createHmac('sha256', key).update(purpose)
  for (const part of parts) hmac.update('\0').update(part)
  return hmac.digest()
}

const digestOf = (text: string): Buffer => createHash('sha256').update(text).digest()

/** Keys as plain data, which threads receive. */
export interface KeyMaterial {
  /** SECRET_KEY, then SECRET_KEYS_PREVIOUS. */
  readonly secrets: readonly string[]
  /** The keys that the database stores, the current one first. */
  readonly stored: readonly string[]
}

/** The keys of SECRET_KEY and SECRET_KEYS_PREVIOUS, and those that the database stores sealed under them. */
export class SecretKeys {
  readonly material: KeyMaterial
  /** MACs that end with their secret key: tokens that grant access. */
  readonly tokens: MacKeys
  /** MACs that survive a rotation, because the job seals their keys under the new secret key. */
  readonly stored: MacKeys
  readonly #sealing: readonly SealingKey[]

  constructor(material: KeyMaterial) {
    this.material = material
    this.tokens = new MacKeys(material.secrets)
    this.stored = new MacKeys(material.stored)
    this.#sealing = material.secrets.map((secret) => new SealingKey(secret))
  }

  /** Id of the current secret key. Reveals nothing about the key. */
  get currentId(): string {
    return this.#sealing[0]!.id
  }

  /** Ids of the previous secret keys. */
  get previousIds(): readonly string[] {
    return this.#sealing.slice(1).map(({ id }) => id)
  }

  /**
   * Encrypts a secret under the current key for one use, such as `document:5`; it can't be decrypted for another use.
   * The text begins with the id of the key.
   */
  seal(use: string, secret: string): string {
    return this.#sealing[0]!.seal(use, secret)
  }

  /** Decrypts a secret; null if it was sealed for another use or under another key. */
  unseal(use: string, sealed: string): string | null {
    const key = this.#sealing.find(({ id }) => sealed.startsWith(`${id}.`))
    return key === undefined ? null : key.unseal(use, sealed)
  }
}

/** Encrypts secrets under one key. */
class SealingKey {
  readonly id: string
  readonly #key: Buffer

  constructor(secret: string) {
    this.#key = Buffer.from(hkdfSync('sha256', secret, '', 'millrace.sealed', KEY_BYTES))
    const id = Buffer.from(hkdfSync('sha256', secret, '', 'millrace.key-id', KEY_BYTES))
    this.id = id.toString('base64url').slice(0, KEY_ID_LENGTH)
  }

  seal(use: string, secret: string): string {
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv(CIPHER, this.#key, nonce, { authTagLength: TAG_BYTES })
    cipher.setAAD(Buffer.from(use))
    const parts = [nonce, cipher.update(secret, 'utf8'), cipher.final(), cipher.getAuthTag()]
    return `${this.id}.${Buffer.concat(parts).toString('base64url')}`
  }

  unseal(use: string, sealed: string): string | null {
    const bytes = Buffer.from(sealed.slice(KEY_ID_LENGTH + 1), 'base64url')
    if (bytes.length < NONCE_BYTES + TAG_BYTES) return null
    const nonce = bytes.subarray(0, NONCE_BYTES)
    const decipher = createDecipheriv(CIPHER, this.#key, nonce, { authTagLength: TAG_BYTES })
    decipher.setAAD(Buffer.from(use))
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
    try {
      const secret = [decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]
      return Buffer.concat(secret).toString('utf8')
    } catch {
      return null // The authentication tag does not match.
    }
  }
}
