import { JOSEError } from 'jose/errors'
import { SignJWT } from 'jose/jwt/sign'
import { jwtVerify } from 'jose/jwt/verify'
import { z } from 'zod'
import { fail } from '../../sql/errors.ts'
import { uuidv7 } from '../../sql/ids.ts'
import type { Settings } from '../../tasks/settings.ts'

/** The claims of a valid access token. */
export interface Verified {
  readonly token: string
  readonly accountId: number
  readonly sessionId: string
  /** Seconds since the epoch. */
  readonly expiresAt: number
}

// Verifying a token costs 50-190 us, a cache look-up 0.4 us: two generations of this many are cached.
const TOKENS_PER_GENERATION = 10_000
// A look-up hashes its key, and each request has a new string: the end of the signature (132 bits) suffices as the key.
const TELLING_CHARACTERS = 22

// How far apart the clocks of other issuers may be.
const LEEWAY_SECONDS = 60
const LARGEST_INTEGER = 2_147_483_647

const Claims = z.object({
  sub: z
    .string()
    .regex(/^\d{1,10}$/)
    .transform(Number)
    .refine((id) => id <= LARGEST_INTEGER),
  sid: z.uuid(),
  exp: z.number(),
})

/** Signs and verifies access tokens, and caches verified ones. */
export class AccessTokens {
  readonly #key: Uint8Array
  /** Issuer and audience of the tokens. */
  readonly #issuer: string
  readonly #lifetimeSeconds: number
  readonly #now: () => number
  #recent = new Map<string, Verified>()
  #older = new Map<string, Verified>()

  /** @param now the database's time in ms: tokens are signed by one process and read by others. */
  constructor(settings: Settings, secretKey: string, now: () => number) {
    this.#now = now
    this.#key = new TextEncoder().encode(secretKey)
    this.#issuer = settings.projectName
    this.#lifetimeSeconds = settings.accessTokenSeconds
  }

  /** The cached claims of a token that has not expired. */
  known(token: string): Verified | undefined {
    const end = token.slice(-TELLING_CHARACTERS)
    const found = this.#recent.get(end) ?? this.#older.get(end)
    return found?.token === token && (found.expiresAt + LEEWAY_SECONDS) * 1000 > this.#now()
      ? found
      : undefined
  }

  /** @throws fail('auth.required') for an invalid token. */
  async verify(token: string): Promise<Verified> {
    if (!isOneSpelling(token)) throw fail('auth.required')
    const { payload } = await jwtVerify(token, this.#key, {
      algorithms: ['HS256'],
      issuer: this.#issuer,
      audience: this.#issuer,
      currentDate: new Date(this.#now()),
      clockTolerance: LEEWAY_SECONDS,
    }).catch((error) => {
      if (error instanceof JOSEError) throw fail('auth.required', {}, { cause: error })
      throw error
    })
    // The key may sign other tokens, too; only those of a session are credentials here.
    const claims = Claims.safeParse(payload)
    if (!claims.success) throw fail('auth.required', {}, { cause: claims.error })
    const { sub: accountId, sid: sessionId, exp: expiresAt } = claims.data
    const verified = { token, accountId, sessionId, expiresAt }
    this.#remember(verified)
    return verified
  }

  sign(account: { id: number; role: string }, sessionId: string): Promise<string> {
    const issuedAt = Math.floor(this.#now() / 1000)
    return new SignJWT({ role: account.role, sid: sessionId })
      .setProtectedHeader({ alg: 'HS256' })
      .setIssuer(this.#issuer)
      .setAudience(this.#issuer)
      .setSubject(String(account.id))
      .setIssuedAt(issuedAt)
      .setJti(uuidv7())
      .setExpirationTime(issuedAt + this.#lifetimeSeconds)
      .sign(this.#key)
  }

  #remember(verified: Verified): void {
    if (this.#recent.size >= TOKENS_PER_GENERATION) {
      this.#older = this.#recent
      this.#recent = new Map()
    }
    this.#recent.set(verified.token.slice(-TELLING_CHARACTERS), verified)
  }
}

/**
 * Whether each part is the canonical base64url of its bytes: decoders also accept padding, the other alphabet, and any
 * value of the last character's spare bits. A token that is cached by its text must have only one spelling.
 */
function isOneSpelling(token: string): boolean {
  return token.split('.').every((part) => Buffer.from(part, 'base64url').toString('base64url') === part)
}
