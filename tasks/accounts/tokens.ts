import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { Side } from '../../sql/accounts/email-changes.ts'
import type { MailedKind } from '../../sql/accounts.ts'

/**
 * Tokens derived from the deployment's key and the id of a row. The service can derive a token again from its row; the
 * database alone is not enough.
 */

/** The MAC of a purpose and parts under the deployment's key; 256 bits. */
export function mac(secretKey: string, purpose: string, ...parts: readonly (string | Uint8Array)[]): Buffer {
  const hmac = createHmac('sha256', secretKey).update(purpose)
  for (const part of parts) hmac.update('\0').update(part)
  return hmac.digest()
}

/** The SHA-256 of a token; only this is stored. */
export function digestOf(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}

/**
 * The token of the setup link, which creates the first admin; 256 bits. It is the same in every process and useless
 * once there is an admin.
 */
export function setupTokenOf(secretKey: string): string {
  return mac(secretKey, 'millrace.setup').toString('base64url')
}

/** The log line for operators while there is no admin. */
export const setupNotice = (baseUrl: string, secretKey: string): string =>
  `There is no admin yet. Create one with this link: ${baseUrl}/setup?token=${setupTokenOf(secretKey)}`

/** The token in an email; 256 bits. */
export function mailedTokenOf(secretKey: string, kind: MailedKind, id: string): string {
  return mac(secretKey, `millrace.mail.${kind}`, id).toString('base64url')
}

/** The token with which one address of a change confirms it; 256 bits. */
export function emailChangeTokenOf(secretKey: string, side: Side, id: string): string {
  return mac(secretKey, `millrace.email-change.${side}`, id).toString('base64url')
}

/** Proof that a device has signed in to an account; valid until the account's password changes; 256 bits. */
export function deviceProofOf(secretKey: string, device: string, id: number, passwordHash: string): string {
  return mac(secretKey, 'millrace.device', device, String(id), passwordHash).toString('base64url')
}

/** The successor of a refresh token for a client with an idempotency key: equal for equal requests. */
export function successorOf(secretKey: string, presented: string, idempotencyKey: string): string {
  return mac(secretKey, 'millrace.refresh', presented, idempotencyKey).toString('base64url')
}

/** The token of an invite: its id and a MAC, which proves that this deployment issued it for this address. */
export function inviteTokenOf(secretKey: string, id: number, email: string): string {
  return `${id}.${mac(secretKey, 'millrace.invite', String(id), email).toString('base64url')}`
}

/** The invite id in a token, which `isInviteToken` must still verify; null if the token has none. */
export function inviteIdOf(token: string): number | null {
  const match = /^([1-9]\d{0,9})\.[\w-]{43}$/.exec(token)
  const id = Number(match?.[1])
  return match !== null && id <= 2_147_483_647 ? id : null
}

/** True if a token belongs to the invite; compares in constant time. */
export function isInviteToken(secretKey: string, token: string, id: number, email: string): boolean {
  return timingSafeEqual(digestOf(token), digestOf(inviteTokenOf(secretKey, id, email)))
}

/** The one-time code secret of a row of `account_totp`: 160 bits (RFC 4226, section 4). */
export function totpSecretOf(secretKey: string, id: string): Buffer {
  return mac(secretKey, 'millrace.totp', id).subarray(0, 20)
}

// Crockford's Base 32, which omits look-alikes.
const DIGITS = '0123456789abcdefghjkmnpqrstvwxyz'
const RECOVERY_CODES = 10

/**
 * The recovery codes of a batch, 80 bits each: enough that their stored digests can't be reversed. The digests keep
 * them valid when the deployment's key changes.
 */
export function recoveryCodesOf(secretKey: string, batch: string): string[] {
  return Array.from({ length: RECOVERY_CODES }, (_, n) => {
    const bytes = mac(secretKey, 'millrace.recovery', batch, String(n)).subarray(0, 16)
    const digits = [...bytes].map((byte) => DIGITS[byte % DIGITS.length]).join('')
    return digits.replace(/(.{4})(?=.)/g, '$1-')
  })
}

/** The digest of a recovery code; ignores case, spaces, dashes and look-alike letters. */
export function recoveryDigestOf(code: string): Buffer {
  const typed = code.toLowerCase().replace(/[\s-]/g, '')
  return digestOf(typed.replaceAll('o', '0').replace(/[il]/g, '1'))
}
