import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { MailedTokenKind } from '../../sql/accounts/accounts.ts'
import type { AddressSide } from '../../sql/accounts/email-changes.ts'

/**
 * Derives tokens from the deployment's key and the id of a row. The service can derive such a token again from its row,
 * but an attacker who has only the database cannot.
 */

/** Returns the MAC of a purpose and its parts under the deployment's key (256 bits). */
export function computeMac(
  secretKey: string,
  purpose: string,
  ...parts: readonly (string | Uint8Array)[]
): Buffer {
  const hmac = createHmac('sha256', secretKey).update(purpose)
  for (const part of parts) hmac.update('\0').update(part)
  return hmac.digest()
}

/** Returns the SHA-256 of a token, which is stored instead of the token. */
export function digestOf(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}

/**
 * Returns the token of the setup link that creates the first admin (256 bits). It is the same in every process and
 * useless once there is an admin.
 */
export function setupTokenOf(secretKey: string): string {
  return computeMac(secretKey, 'millrace.setup').toString('base64url')
}

/** Returns a log line with the setup link, which startup logs while there is no admin. */
export const formatSetupNotice = (baseUrl: string, secretKey: string): string =>
  `There is no admin yet. Create one with this link: ${baseUrl}/setup?token=${setupTokenOf(secretKey)}`

/** Returns the token for an email (256 bits). */
export function mailedTokenOf(secretKey: string, kind: MailedTokenKind, id: string): string {
  return computeMac(secretKey, `millrace.mail.${kind}`, id).toString('base64url')
}

/** Returns the token that confirms an email change (256 bits). The old and the new address get different tokens. */
export function emailChangeTokenOf(secretKey: string, side: AddressSide, id: string): string {
  return computeMac(secretKey, `millrace.email-change.${side}`, id).toString('base64url')
}

/**
 * Returns the proof that a device has signed in to an account (256 bits). It is valid until the account's password
 * changes.
 */
export function deviceProofOf(secretKey: string, device: string, id: number, passwordHash: string): string {
  return computeMac(secretKey, 'millrace.device', device, String(id), passwordHash).toString('base64url')
}

/**
 * Derives the successor of a refresh token from the idempotency key of the request. Equal requests get equal
 * successors.
 */
export function deriveSuccessorToken(secretKey: string, presented: string, idempotencyKey: string): string {
  return computeMac(secretKey, 'millrace.refresh', presented, idempotencyKey).toString('base64url')
}

/**
 * Returns the token of an invite: the invite's id and a MAC, which proves that this deployment issued it for this
 * address.
 */
export function inviteTokenOf(secretKey: string, id: number, email: string): string {
  return `${id}.${computeMac(secretKey, 'millrace.invite', String(id), email).toString('base64url')}`
}

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
export function isInviteToken(secretKey: string, token: string, id: number, email: string): boolean {
  return timingSafeEqual(digestOf(token), digestOf(inviteTokenOf(secretKey, id, email)))
}

/** Returns the one-time code secret for a row of `account_totp`: 160 bits (RFC 4226, section 4). */
export function totpSecretOf(secretKey: string, id: string): Buffer {
  return computeMac(secretKey, 'millrace.totp', id).subarray(0, 20)
}

// Digits of Crockford's Base 32, which omits look-alikes.
const CROCKFORD_DIGITS = '0123456789abcdefghjkmnpqrstvwxyz'
const RECOVERY_CODE_COUNT = 10

/**
 * Returns the recovery codes of a batch. Each code has 80 bits, so that it cannot be found from its stored digest.
 * Because the digests are stored, the codes stay valid when the deployment's key changes.
 */
export function recoveryCodesOf(secretKey: string, batch: string): string[] {
  return Array.from({ length: RECOVERY_CODE_COUNT }, (_, n) => {
    const bytes = computeMac(secretKey, 'millrace.recovery', batch, String(n)).subarray(0, 16)
    const digits = [...bytes].map((byte) => CROCKFORD_DIGITS[byte % CROCKFORD_DIGITS.length]).join('')
    return digits.replace(/(.{4})(?=.)/g, '$1-')
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
