import { randomBytes } from 'node:crypto'
import { Secret, TOTP } from 'otpauth'
import type { StoredTotp } from '../../../sql/accounts/accounts.ts'
import type { SecretKeys } from '../../../tasks/platform/keys.ts'
import type { Edge } from '../../pipeline/context.ts'

/**
 * Time-based one-time codes (RFC 6238) with SHA-1, six digits and 30 seconds, which every authenticator app supports.
 */

const PERIOD_MS = 30_000
// Tolerates a clock offset of one period and a code entered just after it expired (RFC 6238, section 5.2).
const WINDOW_STEPS = 1

function createTotp(secret: Uint8Array, issuer = '', label = ''): TOTP {
  const { buffer } = Uint8Array.from(secret)
  const period = PERIOD_MS / 1000
  return new TOTP({ issuer, label, algorithm: 'SHA1', digits: 6, period, secret: new Secret({ buffer }) })
}

// 160 bits (RFC 4226, section 4).
const SECRET_BYTES = 20

const sealUseOf = (id: string): string => `totp:${id}`

export const createTotpSecret = (): Buffer => randomBytes(SECRET_BYTES)

/** Seals the secret of a row of `account_totp`. */
export const sealTotpSecret = (keys: SecretKeys, id: string, secret: Buffer): string =>
  keys.seal(sealUseOf(id), secret.toString('base64url'))

/**
 * Returns the time step that a code of an account matches, or -1 if it matches none. Returns null, and logs it, if no key
 * opens the secret: the code may be right, so it must not count as a guess.
 */
export function findStep(
  { keys, healthCheck, log }: Edge,
  { id, secret }: StoredTotp,
  code: string,
): number | null {
  const opened = keys.unseal(sealUseOf(id), secret)
  if (opened !== null) return findMatchingStep(Buffer.from(opened, 'base64url'), code, healthCheck.now())
  log.warn({ totp: id }, 'No key opens the secret of a one-time code: see "Lost key" in deploy/operating.md')
  return null
}

/** Returns the setup data for an authenticator app: the secret in Base32 and its `otpauth:` URI. */
export function createTotpSetup(
  secret: Uint8Array,
  issuer: string,
  label: string,
): { secret: string; uri: string } {
  const totp = createTotp(secret, issuer, label)
  return { secret: totp.secret.base32, uri: totp.toString() }
}

/** Returns the time step that a code matches, within one step of `now` (ms), or -1 if it matches none. */
export function findMatchingStep(secret: Uint8Array, code: string, now: number): number {
  if (!/^\d{6}$/.test(code)) return -1
  const delta = createTotp(secret).validate({ token: code, timestamp: now, window: WINDOW_STEPS })
  return delta === null ? -1 : Math.floor(now / PERIOD_MS) + delta
}
