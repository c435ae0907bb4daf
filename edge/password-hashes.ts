/**
 * Hashes of passwords from elsewhere, in the formats that other systems keep them in, and what of them is taken: each sign-in
 * with one costs what its parameters say, whoever tries.
 */

/** bcrypt's modular format: cost, then 22 and 31 digits of its own Base 64. */
const BCRYPT = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/
/** The PHC format (https://github.com/P-H-C/phc-string-format); without a version it is 1.0 (v=16). */
const ARGON2 =
  /^\$argon2(?:id|i|d)(?:\$v=(?:16|19))?\$m=(\d{1,10}),t=(\d{1,10}),p=(\d{1,10})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/
/** The same for scrypt, as passlib has it: N = 2^ln. */
const SCRYPT = /^\$scrypt\$ln=(\d{1,10}),r=(\d{1,10}),p=(\d{1,10})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/

export interface Scrypt {
  readonly N: number
  readonly r: number
  readonly p: number
  readonly salt: Buffer
  readonly hash: Buffer
}

// About a second of a core each; one thread per two cores computes them, each with its own memory.
const MAX_BCRYPT = 14
const MAX_KIB = 262_144
const MAX_ARGON2 = { lanes: 16, kib: 1_048_576 }
const MAX_SCRYPT = { lanes: 16, kib: 262_144 }

const isBetween = (value: number, min: number, max: number): boolean => value >= min && value <= max

/** Why a hash is not taken; null: it is. */
export function hashProblem(stored: string): string | null {
  const bcrypt = BCRYPT.exec(stored)
  if (bcrypt !== null)
    return isBetween(Number(bcrypt[1]), 4, MAX_BCRYPT)
      ? null
      : `the cost of bcrypt must be 4 to ${MAX_BCRYPT}`
  const argon2 = ARGON2.exec(stored)
  if (argon2 !== null) {
    const [m, t, p] = argon2.slice(1, 4).map(Number) as [number, number, number]
    if (!isBetween(p, 1, MAX_ARGON2.lanes)) return `p of argon2 must be 1 to ${MAX_ARGON2.lanes}`
    if (!isBetween(m, 8 * p, MAX_KIB)) return `m of argon2 must be 8 p to ${MAX_KIB}`
    if (!isBetween(m * t, 1, MAX_ARGON2.kib)) return `argon2: m t must be 1 to ${MAX_ARGON2.kib}`
    return bytesProblem(argon2)
  }
  const scrypt = SCRYPT.exec(stored)
  if (scrypt !== null) {
    const [ln, r, p] = scrypt.slice(1, 4).map(Number) as [number, number, number]
    const kib = (2 ** ln * r) / 8
    if (!isBetween(p, 1, MAX_SCRYPT.lanes)) return `p of scrypt must be 1 to ${MAX_SCRYPT.lanes}`
    if (!isBetween(ln, 1, 20) || !isBetween(r, 1, 64)) return 'scrypt: ln must be 1 to 20, r 1 to 64'
    if (kib * p > MAX_SCRYPT.kib) return `scrypt: 2^ln r p / 8 must be ${MAX_SCRYPT.kib} or less`
    return bytesProblem(scrypt)
  }
  return 'must be a hash of bcrypt ($2a$, $2b$, $2y$), argon2 ($argon2id$, $argon2i$, $argon2d$) or scrypt ($scrypt$)'
}

/** What a short hash or salt would be: one of many passwords that are right. */
function bytesProblem(found: RegExpExecArray): string | null {
  const [salt, hash] = [canonical(found[4]!), canonical(found[5]!)]
  if (salt === null || hash === null) return 'salt and hash must be Base 64 without padding'
  return isBetween(salt.length, 8, 48) && isBetween(hash.length, 16, 64)
    ? null
    : 'the salt must have 8 to 48 bytes, and the hash 16 to 64'
}

/** The bytes of a text that is their only spelling. */
function canonical(text: string): Buffer | null {
  const bytes = Buffer.from(text, 'base64')
  return bytes.toString('base64').replace(/=+$/, '') === text ? bytes : null
}

/** A hash of scrypt in its parts; null for any other one. */
export function scryptOf(stored: string): Scrypt | null {
  const found = SCRYPT.exec(stored)
  if (found === null) return null
  const [ln, r, p] = found.slice(1, 4).map(Number) as [number, number, number]
  return { N: 2 ** ln, r, p, salt: Buffer.from(found[4]!, 'base64'), hash: Buffer.from(found[5]!, 'base64') }
}

export const isBcrypt = (stored: string): boolean => BCRYPT.test(stored)
/** bcrypt reads no more of a password: a longer one may match without being the right one. */
export const BCRYPT_BYTES = 72
