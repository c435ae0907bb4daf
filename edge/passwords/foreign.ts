import { createHash, createHmac, pbkdf2Sync, scryptSync, timingSafeEqual } from 'node:crypto'
import bcrypt from 'bcryptjs'
import { verifyArgon2 } from './argon2.ts'
import { PHPASS_ALPHABET, parseForeignHash } from './hashes.ts'

/** Verifies imported password hashes; the import has validated their parameters. */

/** True if the password matches the hash. @throws TypeError if the text is not a password hash. */
export function verifyForeign(stored: string, password: string): boolean {
  const found = parseForeignHash(stored)
  switch (found?.kind) {
    case 'bcrypt':
      return bcrypt.compareSync(prehash(found.prehash, password), found.stored)
    case 'phpass':
      return timingSafeEqual(
        Buffer.from(computePhpass(password, found.log2, found.salt)),
        Buffer.from(found.hash),
      )
    case 'argon2':
      return verifyArgon2(found.stored, password)
    case 'scrypt': {
      const [ln, r, p] = found.cost
      const N = 2 ** ln
      // Allows twice the memory that OpenSSL needs.
      const maxmem = 2 * 128 * r * (N + p + 2)
      return matchesHash(found.bytes, (salt, length) =>
        scryptSync(password, salt, length, { N, r, p, maxmem }),
      )
    }
    case 'pbkdf2': {
      const { digest, iterations } = found
      return matchesHash(found.bytes, (salt, length) =>
        pbkdf2Sync(password, salt, iterations, length, digest),
      )
    }
    default:
      // Returning false would hide the corrupt hash behind failed sign-ins.
      throw new TypeError('The stored text is not a password hash')
  }
}

function prehash(kind: 'django' | 'wordpress' | null, password: string): string {
  if (kind === 'django') return createHash('sha256').update(password).digest('hex')
  if (kind === 'wordpress') return createHmac('sha384', 'wp-sha384').update(password.trim()).digest('base64')
  return password
}

/** Computes phpass's portable hash: repeated MD5, in its own Base64, which begins with the lowest bits. */
function computePhpass(password: string, log2: number, salt: string): string {
  let hash = createHash('md5').update(salt).update(password).digest()
  for (let i = 0; i < 2 ** log2; i++) hash = createHash('md5').update(hash).update(password).digest()
  let text = ''
  for (let at = 0; at < hash.length; at += 3) {
    const bits = hash[at]! | ((hash[at + 1] ?? 0) << 8) | ((hash[at + 2] ?? 0) << 16)
    const digits = Math.min(4, Math.ceil(((hash.length - at) * 8) / 6))
    for (let i = 0; i < digits; i++) text += PHPASS_ALPHABET[(bits >> (6 * i)) & 63]
  }
  return text
}

type Derive = (salt: Buffer, length: number) => Buffer

function matchesHash({ salt, hash }: { salt: Buffer | null; hash: Buffer | null }, derive: Derive): boolean {
  if (salt === null || hash === null) throw new TypeError('The stored text is not a password hash')
  return timingSafeEqual(derive(salt, hash.length), hash)
}
