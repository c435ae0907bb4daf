import { scryptSync, timingSafeEqual } from 'node:crypto'
import bcrypt from 'bcryptjs'
import { isBcrypt, scryptOf } from '../password-hashes.ts'

/** Verifies hashes of passwords from elsewhere, whose parameters were checked when they were taken. */

/** Whether a password has a hash of bcrypt or scrypt. @throws TypeError for any other text. */
export function verifyForeign(stored: string, password: string): boolean {
  const scrypt = scryptOf(stored)
  if (scrypt === null) {
    // What is none would be wrong for any password, and nobody would know why.
    if (!isBcrypt(stored)) throw new TypeError('The stored text is no hash of a password')
    return bcrypt.compareSync(password, stored)
  }
  const { N, r, p, salt, hash } = scrypt
  // What OpenSSL needs, and as much again.
  const maxmem = 2 * 128 * r * (N + p + 2)
  return timingSafeEqual(scryptSync(password, salt, hash.length, { N, r, p, maxmem }), hash)
}
