import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'

/**
 * Encrypts callers' secrets for storage. The encryption key is derived from the deployment's key, so the secrets cannot
 * be read from the database or its backups alone.
 */

const CIPHER = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16

const deriveKey = (secretKey: string): Buffer =>
  Buffer.from(hkdfSync('sha256', secretKey, '', 'millrace.sealed', 32))

/** Encrypts a secret for one use, such as `document:5`; it can't be decrypted for another use. */
export function seal(secretKey: string, use: string, secret: string): string {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(CIPHER, deriveKey(secretKey), nonce, { authTagLength: TAG_BYTES })
  cipher.setAAD(Buffer.from(use))
  const sealed = Buffer.concat([nonce, cipher.update(secret, 'utf8'), cipher.final()])
  return Buffer.concat([sealed, cipher.getAuthTag()]).toString('base64url')
}

/** Decrypts a secret; null if it was sealed for another use or under another key. */
export function unseal(secretKey: string, use: string, sealed: string): string | null {
  const bytes = Buffer.from(sealed, 'base64url')
  if (bytes.length < NONCE_BYTES + TAG_BYTES) return null
  const nonce = bytes.subarray(0, NONCE_BYTES)
  const decipher = createDecipheriv(CIPHER, deriveKey(secretKey), nonce, { authTagLength: TAG_BYTES })
  decipher.setAAD(Buffer.from(use))
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
  try {
    const secret = [decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]
    return Buffer.concat(secret).toString('utf8')
  } catch {
    return null // The authentication tag does not match.
  }
}
