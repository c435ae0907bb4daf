import { createHash, pbkdf2Sync, scryptSync, timingSafeEqual } from 'node:crypto'
import bcrypt from 'bcryptjs'
import { foreignHashOf } from '../password-hashes.ts'
import { verifyArgon2 } from './argon2.ts'

/** Verifies hashes of passwords from elsewhere, whose parameters were checked when they were taken. */

/** True if a hash is that of a password. @throws TypeError for a text that is no hash. */
export function verifyForeign(stored: string, password: string): boolean {
  const found = foreignHashOf(stored)
  switch (found?.kind) {
    case 'bcrypt': {
      const given = found.isPrehashed ? createHash('sha256').update(password).digest('hex') : password
      return bcrypt.compareSync(given, found.stored)
    }
    case 'argon2':
      return verifyArgon2(found.stored, password)
    case 'scrypt': {
      const [ln, r, p] = found.cost
      const N = 2 ** ln
      // Twice the memory that OpenSSL needs.
      const maxmem = 2 * 128 * r * (N + p + 2)
      return isSame(found.bytes, (salt, length) => scryptSync(password, salt, length, { N, r, p, maxmem }))
    }
    case 'pbkdf2': {
      const { digest, iterations } = found
      return isSame(found.bytes, (salt, length) => pbkdf2Sync(password, salt, iterations, length, digest))
    }
    default:
      // It would be wrong for any password, and nobody would know why.
      throw new TypeError('The stored text is no hash of a password')
  }
}

type Derive = (salt: Buffer, length: number) => Buffer

function isSame({ salt, hash }: { salt: Buffer | null; hash: Buffer | null }, derive: Derive): boolean {
  if (salt === null || hash === null) throw new TypeError('The stored text is no hash of a password')
  return timingSafeEqual(derive(salt, hash.length), hash)
}
