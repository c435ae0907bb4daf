import { Secret, TOTP } from 'otpauth'

/** One-time codes by time (RFC 6238): SHA-1, six digits, 30 seconds, as every authenticator app has them. */

const PERIOD_MS = 30_000
// For a clock that is off by up to a period, and a code that was typed as it ended (RFC 6238, section 5.2).
const WINDOW = 1

function generator(secret: Uint8Array, issuer = '', label = ''): TOTP {
  const { buffer } = Uint8Array.from(secret)
  const period = PERIOD_MS / 1000
  return new TOTP({ issuer, label, algorithm: 'SHA1', digits: 6, period, secret: new Secret({ buffer }) })
}

/** What an authenticator app is set up with: the secret in Base 32, and a URI that has it. */
export function totpSetup(
  secret: Uint8Array,
  issuer: string,
  label: string,
): { secret: string; uri: string } {
  const totp = generator(secret, issuer, label)
  return { secret: totp.secret.base32, uri: totp.toString() }
}

/** The time step at which a code is right, at a time in ms or one step beside it; -1: at none. */
export function stepOf(secret: Uint8Array, code: string, now: number): number {
  if (!/^\d{6}$/.test(code)) return -1
  const delta = generator(secret).validate({ token: code, timestamp: now, window: WINDOW })
  return delta === null ? -1 : Math.floor(now / PERIOD_MS) + delta
}
