import { createHash, pbkdf2Sync, scryptSync, timingSafeEqual } from 'node:crypto'
import bcrypt from 'bcryptjs'
import { verifyArgon2 } from './argon2.ts'
import { parseForeignHash } from './hashes.ts'

/** Verifies imported password hashes; the import has validated their parameters. */

/** True if the password matches the hash. @throws TypeError if the text is not a password hash. */
export function verifyForeign(stored: string, password: string): boolean {
  const found = parseForeignHash(stored)
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

type Derive = (salt: Buffer, length: number) => Buffer

function matchesHash({ salt, hash }: { salt: Buffer | null; hash: Buffer | null }, derive: Derive): boolean {
  if (salt === null || hash === null) throw new TypeError('The stored text is not a password hash')
  return timingSafeEqual(derive(salt, hash.length), hash)
}
