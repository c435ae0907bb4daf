/**
 * Parses and validates password hashes of other systems. The parameters of a hash determine the cost of each sign-in,
 * so they have upper bounds.
 */

/** bcrypt's modular crypt format: cost, then salt (22) and hash (31 characters) in bcrypt's Base64 alphabet. */
const BCRYPT_FORMAT = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/
/** The PHC format (https://github.com/P-H-C/phc-string-format); the default version is 1.0 (v=16). */
const ARGON2_FORMAT =
  /^\$argon2(?:id|i|d)(?:\$v=(?:16|19))?\$m=(\d{1,10}),t=(\d{1,10}),p=(\d{1,10})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/
/** passlib's PHC format of scrypt: N = 2^ln. */
const SCRYPT_FORMAT =
  /^\$scrypt\$ln=(\d{1,10}),r=(\d{1,10}),p=(\d{1,10})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/
/** passlib's format of PBKDF2, and the PHC format with `i=` and `l=`. passlib's Base64 has `.` instead of `+`. */
const PBKDF2_FORMAT =
  /^\$pbkdf2(?:-(sha256|sha512))?\$(?:i=)?(\d{1,10})(?:,l=\d{1,3})?\$([A-Za-z0-9./+]+)\$([A-Za-z0-9./+]+)$/
/** Django's format of PBKDF2; its salt is plain text, not Base64. */
const DJANGO_PBKDF2_FORMAT = /^pbkdf2_(sha256)\$(\d{1,10})\$([^$]+)\$([A-Za-z0-9+/]+=*)$/
/** Better Auth's format of scrypt with N=2^14, r=16, p=1: the salt is the text before the colon. */
const HEX_SCRYPT_FORMAT = /^([0-9a-f]{32}):([0-9a-f]{128})$/
/** ASP.NET Core Identity: Base64 of a version byte, and PBKDF2's parameters, salt and hash. */
const ASPNET_FORMAT = /^A[A-Za-z0-9+/]{50,200}={0,2}$/
/** The portable hashes of phpass, as of WordPress before 6.8: log2 of the rounds, salt (8) and hash (22 characters). */
const PHPASS_FORMAT = /^\$[PH]\$([./0-9A-Za-z])([./0-9A-Za-z]{8})([./0-9A-Za-z]{22})$/

// Each bound allows about 0.3 s of CPU per hash, because a single thread verifies all imported hashes.
const MAX_BCRYPT_COST = 12
const MAX_ARGON2_COST = { lanes: 16, kib: 65_536, passes: 3 }
const MAX_SCRYPT_COST = { lanes: 16, kib: 32_768 }
const MAX_PBKDF2_ROUNDS = { sha1: 1_200_000, sha256: 1_200_000, sha512: 600_000 } as const
const MAX_PHPASS_LOG2 = 18

/** A parsed hash. Its salt or hash is null if the Base64 is not canonical. */
export type ForeignHash =
  | {
      readonly kind: 'bcrypt'
      readonly stored: string
      readonly cost: number
      /** The digest of the password that bcrypt reads: Django's or WordPress's; null if it reads the password. */
      readonly prehash: 'django' | 'wordpress' | null
    }
  | { readonly kind: 'argon2'; readonly stored: string; readonly cost: Cost; readonly bytes: SaltAndHash }
  | { readonly kind: 'scrypt'; readonly cost: Cost; readonly bytes: SaltAndHash }
  | {
      readonly kind: 'pbkdf2'
      readonly digest: keyof typeof MAX_PBKDF2_ROUNDS
      readonly iterations: number
      readonly bytes: SaltAndHash
    }
  | { readonly kind: 'phpass'; readonly log2: number; readonly salt: string; readonly hash: string }

/** m, t and p of argon2, or ln, r and p of scrypt. */
type Cost = readonly [number, number, number]
interface SaltAndHash {
  readonly salt: Buffer | null
  readonly hash: Buffer | null
}

const isBetween = (value: number, min: number, max: number): boolean => value >= min && value <= max

/** Parses a hash; null if its format is unknown. */
export function parseForeignHash(given: string): ForeignHash | null {
  // Django adds its own algorithm name as a prefix.
  const [, wrapped, stored = given] = /^(bcrypt|bcrypt_sha256|argon2)\$(\$2.*|argon2.*)$/s.exec(given) ?? []
  if (wrapped === 'argon2') return parseArgon2(`$${stored}`)
  if (wrapped !== undefined) return parseBcrypt(stored, wrapped === 'bcrypt_sha256' ? 'django' : null)
  if (given.startsWith('$wp$')) return parseBcrypt(given.slice('$wp'.length), 'wordpress')
  return (
    parseBcrypt(given, null) ??
    parseArgon2(given) ??
    parseScrypt(given) ??
    parsePbkdf2(given) ??
    parseAspNet(given) ??
    parsePhpass(given)
  )
}

function parseBcrypt(stored: string, prehash: 'django' | 'wordpress' | null): ForeignHash | null {
  const found = BCRYPT_FORMAT.exec(stored)
  return found && { kind: 'bcrypt', stored, cost: Number(found[1]), prehash }
}

/** Parses versions 2 (marker 0) and 3 (marker 1: digest, rounds and length of the salt, 4 bytes each). */
function parseAspNet(stored: string): ForeignHash | null {
  const bytes = ASPNET_FORMAT.test(stored) ? Buffer.from(stored, 'base64') : Buffer.alloc(0)
  const split = (at: number, end: number): SaltAndHash => ({
    salt: bytes.subarray(at, end),
    hash: bytes.subarray(end),
  })
  if (bytes.length < 49 || bytes.toString('base64') !== stored) return null
  if (bytes[0] === 0 && bytes.length === 49)
    return { kind: 'pbkdf2', digest: 'sha1', iterations: 1000, bytes: split(1, 17) }
  const digest = (['sha1', 'sha256', 'sha512'] as const)[bytes.readUInt32BE(1)]
  const saltBytes = bytes.readUInt32BE(9)
  if (bytes[0] !== 1 || digest === undefined || saltBytes > bytes.length - 13) return null
  return { kind: 'pbkdf2', digest, iterations: bytes.readUInt32BE(5), bytes: split(13, 13 + saltBytes) }
}

export const PHPASS_ALPHABET = './0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

function parsePhpass(stored: string): ForeignHash | null {
  const [, rounds, salt, hash] = PHPASS_FORMAT.exec(stored) ?? []
  if (rounds === undefined) return null
  return { kind: 'phpass', log2: PHPASS_ALPHABET.indexOf(rounds), salt: salt!, hash: hash! }
}

function parseArgon2(stored: string): ForeignHash | null {
  const found = ARGON2_FORMAT.exec(stored)
  return found && { kind: 'argon2', stored, cost: parseCost(found), bytes: decodeBytes(found[4]!, found[5]!) }
}

function parseScrypt(stored: string): ForeignHash | null {
  const [, salt, hash] = HEX_SCRYPT_FORMAT.exec(stored) ?? []
  if (salt !== undefined)
    return {
      kind: 'scrypt',
      cost: [14, 16, 1],
      bytes: { salt: Buffer.from(salt), hash: Buffer.from(hash!, 'hex') },
    }
  const found = SCRYPT_FORMAT.exec(stored)
  return found && { kind: 'scrypt', cost: parseCost(found), bytes: decodeBytes(found[4]!, found[5]!) }
}

function parsePbkdf2(stored: string): ForeignHash | null {
  const django = DJANGO_PBKDF2_FORMAT.exec(stored)
  const found = django ?? PBKDF2_FORMAT.exec(stored)
  if (found === null) return null
  const [, digest = 'sha1', iterations, salt, hash] = found as unknown as [
    ...[string, 'sha256' | undefined, string, string, string],
  ]
  const kind = { kind: 'pbkdf2', digest, iterations: Number(iterations) } as const
  if (django === null)
    return { ...kind, bytes: decodeBytes(salt.replaceAll('.', '+'), hash.replaceAll('.', '+')) }
  const padded = Buffer.from(hash, 'base64')
  return {
    ...kind,
    bytes: { salt: Buffer.from(salt), hash: padded.toString('base64') === hash ? padded : null },
  }
}

const parseCost = (found: RegExpExecArray): Cost => [Number(found[1]), Number(found[2]), Number(found[3])]
const decodeBytes = (salt: string, hash: string): SaltAndHash => ({
  salt: decodeCanonical(salt),
  hash: decodeCanonical(hash),
})

/** Decodes Base64; null if it is not canonical. */
function decodeCanonical(text: string): Buffer | null {
  const bytes = Buffer.from(text, 'base64')
  return bytes.toString('base64').replace(/=+$/, '') === text ? bytes : null
}

/** Returns the reason for rejecting a hash; null if it is accepted. */
export function findHashProblem(stored: string): string | null {
  const parsed = parseForeignHash(stored)
  switch (parsed?.kind) {
    case 'bcrypt':
      return isBetween(parsed.cost, 4, MAX_BCRYPT_COST)
        ? null
        : `the cost of bcrypt must be 4 to ${MAX_BCRYPT_COST}`
    case 'argon2':
      return findArgon2Problem(parsed.cost) ?? findBytesProblem(parsed.bytes)
    case 'scrypt':
      return findScryptProblem(parsed.cost) ?? findBytesProblem(parsed.bytes)
    case 'pbkdf2': {
      const max = MAX_PBKDF2_ROUNDS[parsed.digest]
      if (!isBetween(parsed.iterations, 1, max)) return `${parsed.digest} iterations must be 1 to ${max}`
      return findBytesProblem(parsed.bytes)
    }
    case 'phpass':
      return isBetween(parsed.log2, 7, MAX_PHPASS_LOG2)
        ? null
        : `phpass: log2 of the rounds must be 7 to ${MAX_PHPASS_LOG2}`
    default:
      return 'must be a hash of bcrypt ($2a$, $2b$, $2y$), argon2 ($argon2id$, $argon2i$, $argon2d$), scrypt ($scrypt$) or PBKDF2 ($pbkdf2$, $pbkdf2-sha256$, $pbkdf2-sha512$), or one of Django, WordPress, ASP.NET Core Identity or Better Auth'
  }
}

function findArgon2Problem([m, t, p]: Cost): string | null {
  const { lanes, kib, passes } = MAX_ARGON2_COST
  if (!isBetween(p, 1, lanes)) return `p of argon2 must be 1 to ${lanes}`
  if (!isBetween(m, 8 * p, kib)) return `m of argon2 must be 8 p to ${kib}`
  return isBetween(t, 1, passes) ? null : `t of argon2 must be 1 to ${passes}`
}

function findScryptProblem([ln, r, p]: Cost): string | null {
  const { lanes, kib } = MAX_SCRYPT_COST
  if (!isBetween(p, 1, lanes)) return `p of scrypt must be 1 to ${lanes}`
  if (!isBetween(ln, 1, 15) || !isBetween(r, 1, 64)) return 'scrypt: ln must be 1 to 15, r 1 to 64'
  return (2 ** ln * r * p) / 8 > kib ? `scrypt: 2^ln r p / 8 must be ${kib} or less` : null
}

/** Rejects non-canonical Base64, and hashes so short that several passwords could match. Returns the reason or null. */
function findBytesProblem({ salt, hash }: SaltAndHash): string | null {
  if (salt === null || hash === null) return 'salt and hash must be canonical Base 64'
  return isBetween(salt.length, 8, 48) && isBetween(hash.length, 16, 64)
    ? null
    : 'the salt must have 8 to 48 bytes, and the hash 16 to 64'
}

/** bcrypt ignores all bytes beyond this number, so a wrong but longer password may match. */
const BCRYPT_BYTES = 72

/** True if the hash covers only the first 72 bytes of the password. */
export function isTruncated(stored: string, password: string): boolean {
  const found = parseForeignHash(stored)
  return found?.kind === 'bcrypt' && found.prehash === null && Buffer.byteLength(password) > BCRYPT_BYTES
}
