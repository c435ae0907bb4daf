import { Secret, TOTP } from 'otpauth'

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
