import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { Side } from '../../sql/accounts/email-changes.ts'
import type { MailedKind } from '../../sql/accounts.ts'

/**
 * Tokens derived from the deployment's key and the id of a row: the service can derive a token again from its row, but
 * the database alone is not enough.
 */

/** What a purpose and the parts of a token come to under the deployment's key; 256 bits. */
export function mac(secretKey: string, purpose: string, ...parts: readonly (string | Uint8Array)[]): Buffer {
  const hmac = createHmac('sha256', secretKey).update(purpose)
  for (const part of parts) hmac.update('\0').update(part)
  return hmac.digest()
}

/** The SHA-256 of a token, which is all that is stored. */
export function digestOf(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}

/** The token of the link that makes the first admin; 256 bits. The same in every process, and of no use once there is an admin. */
export function setupTokenOf(secretKey: string): string {
  return mac(secretKey, 'millrace.setup').toString('base64url')
}

/** What operators read while there is no admin. */
export const setupNotice = (baseUrl: string, secretKey: string): string =>
  `There is no admin yet. This link makes one: ${baseUrl}/setup?token=${setupTokenOf(secretKey)}`

/** The token that a mail carries; 256 bits. */
export function mailedTokenOf(secretKey: string, kind: MailedKind, id: string): string {
  return mac(secretKey, `millrace.mail.${kind}`, id).toString('base64url')
}

/** The token with which one of the two addresses of a change confirms it; 256 bits. */
export function emailChangeTokenOf(secretKey: string, side: Side, id: string): string {
  return mac(secretKey, `millrace.email-change.${side}`, id).toString('base64url')
}

/** What proves that a device has signed in to an account, until the account's password changes; 256 bits. */
export function deviceProofOf(secretKey: string, device: string, id: number, passwordHash: string): string {
  return mac(secretKey, 'millrace.device', device, String(id), passwordHash).toString('base64url')
}

/** The successor of a refresh token for a client with an idempotency key: the same for the same request. */
export function successorOf(secretKey: string, presented: string, idempotencyKey: string): string {
  return mac(secretKey, 'millrace.refresh', presented, idempotencyKey).toString('base64url')
}

/** The token of an invite: its id and a MAC, which proves that it was issued here for this address. */
export function inviteTokenOf(secretKey: string, id: number, email: string): string {
  return `${id}.${mac(secretKey, 'millrace.invite', String(id), email).toString('base64url')}`
}

/** The id of the invite that a token names, still to be verified by `isInviteToken`; null when it names none. */
export function inviteIdOf(token: string): number | null {
  const match = /^([1-9]\d{0,9})\.[\w-]{43}$/.exec(token)
  const id = Number(match?.[1])
  return match !== null && id <= 2_147_483_647 ? id : null
}

/** Whether a token is the invite's, compared in constant time. */
export function isInviteToken(secretKey: string, token: string, id: number, email: string): boolean {
  return timingSafeEqual(digestOf(token), digestOf(inviteTokenOf(secretKey, id, email)))
}

/** The secret of one-time codes of a row of `account_totp`: 160 bits (RFC 4226, section 4). */
export function totpSecretOf(secretKey: string, id: string): Buffer {
  return mac(secretKey, 'millrace.totp', id).subarray(0, 20)
}

// Those of Crockford's Base 32, without what looks alike.
const DIGITS = '0123456789abcdefghjkmnpqrstvwxyz'
const RECOVERY_CODES = 10

/**
 * The recovery codes of a batch, 80 bits each: enough that their stored digests give none away. They stay valid when the
 * deployment's key changes, by their digests.
 */
export function recoveryCodesOf(secretKey: string, batch: string): string[] {
  return Array.from({ length: RECOVERY_CODES }, (_, n) => {
    const bytes = mac(secretKey, 'millrace.recovery', batch, String(n)).subarray(0, 16)
    const digits = [...bytes].map((byte) => DIGITS[byte % DIGITS.length]).join('')
    return digits.replace(/(.{4})(?=.)/g, '$1-')
  })
}

/** The digest of a recovery code, however it was typed. */
export function recoveryDigestOf(code: string): Buffer {
  const typed = code.toLowerCase().replace(/[\s-]/g, '')
  return digestOf(typed.replaceAll('o', '0').replace(/[il]/g, '1'))
}
