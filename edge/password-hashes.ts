/**
 * Parses password hashes of other systems, and says which of them are accepted. A sign-in with one costs what its
 * parameters say.
 */

/** bcrypt's modular format: cost, then 22 and 31 digits of its own Base 64. */
const BCRYPT = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/
/** The PHC format (https://github.com/P-H-C/phc-string-format); without a version it is 1.0 (v=16). */
const ARGON2 =
  /^\$argon2(?:id|i|d)(?:\$v=(?:16|19))?\$m=(\d{1,10}),t=(\d{1,10}),p=(\d{1,10})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/
/** The same for scrypt, as passlib has it: N = 2^ln. */
const SCRYPT = /^\$scrypt\$ln=(\d{1,10}),r=(\d{1,10}),p=(\d{1,10})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/
/** passlib's format of PBKDF2, whose Base 64 has `.` in place of `+`. */
const PBKDF2 = /^\$pbkdf2-(sha256|sha512)\$(\d{1,10})\$([A-Za-z0-9./]+)\$([A-Za-z0-9./]+)$/
/** Django's, whose salt is the text itself. */
const DJANGO_PBKDF2 = /^pbkdf2_(sha256)\$(\d{1,10})\$([^$]+)\$([A-Za-z0-9+/]+=*)$/

// About 0.3 s of a core each; one thread computes them.
const MAX_BCRYPT = 12
const MAX_ARGON2 = { lanes: 16, kib: 65_536, passes: 3 }
const MAX_SCRYPT = { lanes: 16, kib: 32_768 }
const MAX_PBKDF2 = { sha256: 1_200_000, sha512: 600_000 } as const

/** A parsed hash; its bytes are null if their Base 64 is not canonical. */
export type ForeignHash =
  | { readonly kind: 'bcrypt'; readonly stored: string; readonly cost: number; readonly isPrehashed: boolean }
  | { readonly kind: 'argon2'; readonly stored: string; readonly cost: Cost; readonly bytes: Bytes }
  | { readonly kind: 'scrypt'; readonly cost: Cost; readonly bytes: Bytes }
  | {
      readonly kind: 'pbkdf2'
      readonly digest: keyof typeof MAX_PBKDF2
      readonly iterations: number
      readonly bytes: Bytes
    }

/** m, t, p of argon2; ln, r, p of scrypt. */
type Cost = readonly [number, number, number]
interface Bytes {
  readonly salt: Buffer | null
  readonly hash: Buffer | null
}

const isBetween = (value: number, min: number, max: number): boolean => value >= min && value <= max

/** A hash in its parts; null if it has none of the formats. */
export function foreignHashOf(given: string): ForeignHash | null {
  // Django puts a name of its own before what others begin with.
  const [, wrapped, stored = given] = /^(bcrypt|bcrypt_sha256|argon2)\$(\$2.*|argon2.*)$/s.exec(given) ?? []
  if (wrapped === 'argon2') return argon2Of(`$${stored}`)
  const bcrypt = BCRYPT.exec(stored)
  if (bcrypt !== null)
    return { kind: 'bcrypt', stored, cost: Number(bcrypt[1]), isPrehashed: wrapped === 'bcrypt_sha256' }
  return wrapped === undefined ? (argon2Of(given) ?? scryptOf(given) ?? pbkdf2Of(given)) : null
}

function argon2Of(stored: string): ForeignHash | null {
  const found = ARGON2.exec(stored)
  return found && { kind: 'argon2', stored, cost: costOf(found), bytes: bytesOf(found[4]!, found[5]!) }
}

function scryptOf(stored: string): ForeignHash | null {
  const found = SCRYPT.exec(stored)
  return found && { kind: 'scrypt', cost: costOf(found), bytes: bytesOf(found[4]!, found[5]!) }
}

function pbkdf2Of(stored: string): ForeignHash | null {
  const django = DJANGO_PBKDF2.exec(stored)
  const found = django ?? PBKDF2.exec(stored)
  if (found === null) return null
  const [, digest, iterations, salt, hash] = found as unknown as [string, 'sha256', string, string, string]
  const kind = { kind: 'pbkdf2', digest, iterations: Number(iterations) } as const
  if (django === null)
    return { ...kind, bytes: bytesOf(salt.replaceAll('.', '+'), hash.replaceAll('.', '+')) }
  const padded = Buffer.from(hash, 'base64')
  return {
    ...kind,
    bytes: { salt: Buffer.from(salt), hash: padded.toString('base64') === hash ? padded : null },
  }
}

const costOf = (found: RegExpExecArray): Cost => [Number(found[1]), Number(found[2]), Number(found[3])]
const bytesOf = (salt: string, hash: string): Bytes => ({ salt: canonical(salt), hash: canonical(hash) })

/** The bytes of a text that is their only spelling. */
function canonical(text: string): Buffer | null {
  const bytes = Buffer.from(text, 'base64')
  return bytes.toString('base64').replace(/=+$/, '') === text ? bytes : null
}

/** Why a hash is refused; null: it is accepted. */
export function hashProblem(stored: string): string | null {
  const found = foreignHashOf(stored)
  switch (found?.kind) {
    case 'bcrypt':
      return isBetween(found.cost, 4, MAX_BCRYPT) ? null : `the cost of bcrypt must be 4 to ${MAX_BCRYPT}`
    case 'argon2':
      return argon2Problem(found.cost) ?? bytesProblem(found.bytes)
    case 'scrypt':
      return scryptProblem(found.cost) ?? bytesProblem(found.bytes)
    case 'pbkdf2': {
      const max = MAX_PBKDF2[found.digest]
      if (!isBetween(found.iterations, 1, max)) return `${found.digest} iterations must be 1 to ${max}`
      return bytesProblem(found.bytes)
    }
    default:
      return 'must be a hash of bcrypt ($2a$, $2b$, $2y$), argon2 ($argon2id$, $argon2i$, $argon2d$), scrypt ($scrypt$) or PBKDF2 ($pbkdf2-sha256$, $pbkdf2-sha512$), or one of Django (pbkdf2_sha256$, bcrypt$, bcrypt_sha256$, argon2$)'
  }
}

function argon2Problem([m, t, p]: Cost): string | null {
  const { lanes, kib, passes } = MAX_ARGON2
  if (!isBetween(p, 1, lanes)) return `p of argon2 must be 1 to ${lanes}`
  if (!isBetween(m, 8 * p, kib)) return `m of argon2 must be 8 p to ${kib}`
  return isBetween(t, 1, passes) ? null : `t of argon2 must be 1 to ${passes}`
}

function scryptProblem([ln, r, p]: Cost): string | null {
  const { lanes, kib } = MAX_SCRYPT
  if (!isBetween(p, 1, lanes)) return `p of scrypt must be 1 to ${lanes}`
  if (!isBetween(ln, 1, 15) || !isBetween(r, 1, 64)) return 'scrypt: ln must be 1 to 15, r 1 to 64'
  return (2 ** ln * r * p) / 8 > kib ? `scrypt: 2^ln r p / 8 must be ${kib} or less` : null
}

/** Refuses what a short hash or salt would be: one of many passwords that are right. */
function bytesProblem({ salt, hash }: Bytes): string | null {
  if (salt === null || hash === null) return 'salt and hash must be canonical Base 64'
  return isBetween(salt.length, 8, 48) && isBetween(hash.length, 16, 64)
    ? null
    : 'the salt must have 8 to 48 bytes, and the hash 16 to 64'
}

/** bcrypt reads no more of a password: a longer one may match without being the right one. */
const BCRYPT_BYTES = 72

/** True if a hash is of the beginning of a password only. */
export function isCut(stored: string, password: string): boolean {
  const found = foreignHashOf(stored)
  return found?.kind === 'bcrypt' && !found.isPrehashed && Buffer.byteLength(password) > BCRYPT_BYTES
}
