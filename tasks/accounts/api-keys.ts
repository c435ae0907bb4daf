import { crc32 } from 'node:zlib'
import { mac } from './tokens.ts'

/** The text of API keys: a prefix that scanners for leaked secrets know, 256 bits, and a checksum that tells typing errors. */

const PREFIX = 'mill_live_'
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
// As many digits as 256 and 32 bits need.
const SECRET_DIGITS = 43
const CHECKSUM_DIGITS = 6
const PATTERN = new RegExp(`^${PREFIX}[0-9A-Za-z]{${SECRET_DIGITS + CHECKSUM_DIGITS}}$`)

/**
 * The key of a row of `api_key`: derived from its id and the deployment's key, so that a repeated request to make it
 * can be answered alike. It stays valid when the deployment's key changes, by its digest.
 */
export function apiKeyOf(secretKey: string, id: string): string {
  const secret = mac(secretKey, 'millrace.api-key', id).toString('hex')
  const text = PREFIX + base62(BigInt(`0x${secret}`), SECRET_DIGITS)
  return text + checksumOf(text)
}

/** Whether a credential says that it is an API key. */
export const hasKeyPrefix = (text: string): boolean => text.startsWith(PREFIX)

/** Whether a text has the form and the checksum of an API key. */
export function isApiKey(text: string): boolean {
  const end = text.length - CHECKSUM_DIGITS
  return PATTERN.test(text) && checksumOf(text.slice(0, end)) === text.slice(end)
}

const checksumOf = (text: string): string => base62(BigInt(crc32(text)), CHECKSUM_DIGITS)

function base62(value: bigint, length: number): string {
  let digits = ''
  for (let rest = value; digits.length < length; rest /= 62n) digits = DIGITS[Number(rest % 62n)] + digits
  return digits
}
