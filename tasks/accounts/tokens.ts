import { createHash, randomBytes } from 'node:crypto'
import type { MailedTokenKind } from '../../sql/accounts/accounts.ts'
import type { AddressSide } from '../../sql/accounts/email-changes.ts'
import type { SecretKeys } from '../platform/keys.ts'

/**
 * Derives tokens from the deployment's keys and the id of a row. The service can derive such a token again from its row,
 * but an attacker who has only the database cannot. `keys.tokens` derives tokens that grant access. `keys.stored` derives
 * those that must outlive a rotation of SECRET_KEY, and those that every process must derive equally during one.
 */

/** Returns the SHA-256 of a token, which is stored instead of the token. */
export function digestOf(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}

/**
 * Returns the token of the setup link that creates the first admin (256 bits). It is the same in every process with the
 * same SECRET_KEY, and useless once there is an admin.
 */
export function setupTokenOf(keys: Pick<SecretKeys, 'tokens'>): string {
  return keys.tokens.token(SETUP_PURPOSE)
}

/** Returns true if a text is the token of the setup link, under any of the keys. Compares in constant time. */
export function isSetupToken(keys: SecretKeys, token: string): boolean {
  return keys.tokens.verify(token, SETUP_PURPOSE)
}

const SETUP_PURPOSE = 'millrace.setup'

/** Returns a log line with the setup link, which startup logs while there is no admin. */
export const formatSetupNotice = (baseUrl: string, keys: Pick<SecretKeys, 'tokens'>): string =>
  `There is no admin yet. Create one with this link: ${baseUrl}/setup?token=${setupTokenOf(keys)}`

/** Returns the tokens for an email (256 bits each), one for each key, the current one first. */
export function mailedTokensOf(keys: SecretKeys, kind: MailedTokenKind, id: string): string[] {
  return keys.tokens.tokens(`millrace.mail.${kind}`, id)
}

/**
 * Returns the tokens that confirm an email change (256 bits each), one for each key, the current one first. The old and
 * the new address get different tokens.
 */
export function emailChangeTokensOf(keys: SecretKeys, side: AddressSide, id: string): string[] {
  return keys.tokens.tokens(`millrace.email-change.${side}`, id)
}

/**
 * Returns the token with a stored digest; null if there is none. The process that stored the digest may have had another
 * current key.
 */
export const findToken = (tokens: readonly string[], digest: Uint8Array): string | null =>
  tokens.find((token) => digestOf(token).equals(digest)) ?? null

/**
 * Returns the proof that a device has signed in to an account (256 bits). It is valid until the account's password
 * changes.
 */
export function deviceProofOf(keys: SecretKeys, device: string, id: number, passwordHash: string): string {
  return keys.stored.token(DEVICE_PURPOSE, device, String(id), passwordHash)
}

/** Returns true if a text proves that the device has signed in to the account. Compares in constant time. */
export function isDeviceProof(
  keys: SecretKeys,
  proof: string,
  ...[device, id, passwordHash]: [device: string, id: number, passwordHash: string]
): boolean {
  return keys.stored.verify(proof, DEVICE_PURPOSE, device, String(id), passwordHash)
}

const DEVICE_PURPOSE = 'millrace.device'

/**
 * Derives the successor of a refresh token from the idempotency key of the request. Equal requests get equal
 * successors, from every process.
 */
export function deriveSuccessorToken(keys: SecretKeys, presented: string, idempotencyKey: string): string {
  return keys.stored.token('millrace.refresh', presented, idempotencyKey)
}

/**
 * Returns the token of an invite: the invite's id and a MAC, which proves that this deployment issued it for this
 * address.
 */
export function inviteTokenOf(keys: SecretKeys, id: number, email: string): string {
  return `${id}.${keys.stored.token(INVITE_PURPOSE, String(id), email)}`
}

const INVITE_PURPOSE = 'millrace.invite'

/**
 * Returns the invite id in a token, or null if the token has none. Do not trust the id until `isInviteToken` has
 * verified the token.
 */
export function parseInviteId(token: string): number | null {
  const match = /^([1-9]\d{0,9})\.[\w-]{43}$/.exec(token)
  const id = Number(match?.[1])
  return match !== null && id <= 2_147_483_647 ? id : null
}

/** Returns true if a token belongs to the invite. Compares in constant time. */
export function isInviteToken(keys: SecretKeys, token: string, id: number, email: string): boolean {
  const mac = token.slice(token.indexOf('.') + 1)
  return parseInviteId(token) === id && keys.stored.verify(mac, INVITE_PURPOSE, String(id), email)
}

// Digits of Crockford's Base 32, which omits look-alikes.
const CROCKFORD_DIGITS = '0123456789abcdefghjkmnpqrstvwxyz'
const RECOVERY_CODE_COUNT = 10

/** Returns new recovery codes. Each has 80 bits, so that it cannot be found from its stored digest. */
export function createRecoveryCodes(): string[] {
  return Array.from({ length: RECOVERY_CODE_COUNT }, () => {
    const digits = [...randomBytes(16)].map((byte) => CROCKFORD_DIGITS[byte % CROCKFORD_DIGITS.length])
    return digits.join('').replace(/(.{4})(?=.)/g, '$1-')
  })
}

/** Returns the digest of a recovery code. Ignores case, spaces, dashes, width and look-alike letters. */
export function digestRecoveryCode(code: string): Buffer {
  const typed = code
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[\s\p{Pd}\u2212]/gu, '')
  return digestOf(typed.replaceAll('o', '0').replace(/[il]/g, '1'))
}
