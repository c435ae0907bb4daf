import { randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'

/**
 * The format of API keys: a prefix that secret scanners recognize, 256 random bits, and a checksum that detects
 * typing errors.
 */

const KEY_PREFIX = 'mill_live_'
const BASE62_DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
// Number of base-62 digits for 256 bits (secret) and 32 bits (checksum).
const SECRET_DIGITS = 43
const CHECKSUM_DIGITS = 6
const KEY_PATTERN = new RegExp(`^${KEY_PREFIX}[0-9A-Za-z]{${SECRET_DIGITS + CHECKSUM_DIGITS}}$`)

/** Returns a new API key. Only its digest is stored. */
export function createApiKey(): string {
  const text = KEY_PREFIX + encodeBase62(BigInt(`0x${randomBytes(32).toString('hex')}`), SECRET_DIGITS)
  return text + checksumOf(text)
}

/** Returns true if a credential has the prefix of API keys. */
export const hasKeyPrefix = (text: string): boolean => text.startsWith(KEY_PREFIX)

/** Returns true if a text has the format and the checksum of an API key. */
export function isApiKey(text: string): boolean {
  const end = text.length - CHECKSUM_DIGITS
  return KEY_PATTERN.test(text) && checksumOf(text.slice(0, end)) === text.slice(end)
}

const checksumOf = (text: string): string => encodeBase62(BigInt(crc32(text)), CHECKSUM_DIGITS)

function encodeBase62(value: bigint, length: number): string {
  let digits = ''
  for (let rest = value; digits.length < length; rest /= 62n)
    digits = BASE62_DIGITS[Number(rest % 62n)] + digits
  return digits
}
