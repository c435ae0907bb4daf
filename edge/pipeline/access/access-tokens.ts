import { JOSEError, JWSSignatureVerificationFailed, JWTExpired } from 'jose/errors'
import { SignJWT } from 'jose/jwt/sign'
import { jwtVerify } from 'jose/jwt/verify'
import { z } from 'zod'
import { fail } from '../../../sql/errors.ts'
import { uuidv7 } from '../../../sql/ids.ts'
import type { SecretKeys } from '../../../tasks/platform/keys.ts'
import type { Settings } from '../../../tasks/platform/settings/settings.ts'
import type { VerifiedCredential } from './credentials.ts'

/** Tolerated difference between the clocks of the signing and the verifying process. */
export const CLOCK_TOLERANCE_SECONDS = 60
const MAX_ACCOUNT_ID = 2_147_483_647

const Claims = z.object({
  sub: z
    .string()
    .regex(/^\d{1,10}$/)
    .transform(Number)
    .refine((id) => id <= MAX_ACCOUNT_ID),
  sid: z.uuid(),
  exp: z.number(),
})

/** Signs and verifies access tokens. */
export class AccessTokens {
  /** The current key signs; all of them verify. */
  readonly #keys: readonly Uint8Array[]
  /** Issuer and audience of each token. */
  readonly #issuer: string
  readonly #lifetimeSeconds: number
  readonly #now: () => number

  /** @param now returns the database's time in ms, because one process signs a token and another verifies it. */
  constructor(settings: Settings, keys: SecretKeys, now: () => number) {
    this.#now = now
    this.#keys = keys.material.secrets.map((secret) => new TextEncoder().encode(secret))
    this.#issuer = settings.projectName
    this.#lifetimeSeconds = settings.accessTokenSeconds
  }

  /** Verifies a token. @throws fail('auth.token_expired') or fail('auth.token_invalid'). */
  async verify(token: string): Promise<VerifiedCredential> {
    if (!isCanonicalToken(token)) throw fail('auth.token_invalid')
    const payload = await this.#verifySignature(token).catch((error) => {
      if (error instanceof JWTExpired) throw fail('auth.token_expired', {}, { cause: error })
      if (error instanceof JOSEError) throw fail('auth.token_invalid', {}, { cause: error })
      throw error
    })
    // The same key may sign other tokens, but only session tokens are credentials.
    const claims = Claims.safeParse(payload)
    if (!claims.success) throw fail('auth.token_invalid', {}, { cause: claims.error })
    const { sub: accountId, sid: sessionId, exp: expiresAt } = claims.data
    return { credential: token, accountId, sessionId, keyId: null, expiresAt }
  }

  /** Returns the claims of a token that any of the keys has signed. @throws a JOSEError. */
  async #verifySignature(token: string): Promise<unknown> {
    const options = {
      algorithms: ['HS256'],
      issuer: this.#issuer,
      audience: this.#issuer,
      currentDate: new Date(this.#now()),
      clockTolerance: CLOCK_TOLERANCE_SECONDS,
    }
    let failure: unknown
    for (const key of this.#keys)
      try {
        return (await jwtVerify(token, key, options)).payload
      } catch (error) {
        failure = error
        if (!(error instanceof JWSSignatureVerificationFailed)) break
      }
    throw failure
  }

  sign(
    account: { id: number; role: string },
    sessionId: string,
    secondsLeft: number | null,
  ): Promise<string> {
    const lifetimeSeconds = Math.min(this.#lifetimeSeconds, secondsLeft ?? this.#lifetimeSeconds)
    const issuedAt = Math.floor(this.#now() / 1000)
    return new SignJWT({ role: account.role, sid: sessionId })
      .setProtectedHeader({ alg: 'HS256' })
      .setIssuer(this.#issuer)
      .setAudience(this.#issuer)
      .setSubject(String(account.id))
      .setIssuedAt(issuedAt)
      .setJti(uuidv7())
      .setExpirationTime(issuedAt + lifetimeSeconds)
      .sign(this.#keys[0]!)
  }
}

/**
 * True if each part is the canonical base64url of its bytes. Decoders also accept padding, the other alphabet, and any
 * value of the last character's unused bits. The cache uses the text as its key, so a token must have only one
 * encoding.
 */
function isCanonicalToken(token: string): boolean {
  return token.split('.').every((part) => Buffer.from(part, 'base64url').toString('base64url') === part)
}
