import { isIP } from 'node:net'
import { fail } from '../sql/errors.ts'
import { CHALLENGE_SECONDS } from '../sql/passkeys.ts'
import type { Settings } from '../tasks/settings.ts'

/** What browsers are asked when a passkey is made or used (WebAuthn level 3), in the JSON that they parse themselves. */

/** This service as authenticators know it. */
export interface RelyingParty {
  readonly rpId: string
  readonly origin: string
}

/** @throws passkey.not_configured where `PUBLIC_BASE_URL` names no host: browsers take no address (section 5.1.3). */
export function relyingParty({ publicBaseUrl }: Settings): RelyingParty {
  const { hostname: rpId, origin } = new URL(publicBaseUrl)
  if (isIP(rpId.replace(/^\[(.*)\]$/, '$1')) !== 0) throw fail('passkey.not_configured')
  return { rpId, origin }
}

/**
 * The name that authenticators keep of an account, in base64url: its id, which says nothing of the person (section 14.6.1) and,
 * unlike what is derived from the deployment's key, never changes.
 */
export const userHandleOf = (accountId: number): string =>
  Buffer.from(String(accountId)).toString('base64url')

const common = (challenge: Buffer) => ({
  challenge: challenge.toString('base64url'),
  timeout: CHALLENGE_SECONDS * 1000,
})

// COSE algorithms: EdDSA, ES256, RS256, which every authenticator has one of.
const ALGORITHMS = [-8, -7, -257]

interface Known {
  readonly credential_id: Uint8Array
  readonly transports: readonly string[]
}

/** For `PublicKeyCredential.parseCreationOptionsFromJSON`. */
export function creationOptions(
  { projectName }: Settings,
  { rpId }: RelyingParty,
  challenge: Buffer,
  account: { readonly id: number; readonly email: string; readonly passkeys: readonly Known[] },
) {
  return {
    ...common(challenge),
    rp: { id: rpId, name: projectName },
    user: { id: userHandleOf(account.id), name: account.email, displayName: account.email },
    pubKeyCredParams: ALGORITHMS.map((alg) => ({ type: 'public-key', alg })),
    excludeCredentials: account.passkeys.map(({ credential_id, transports }) => ({
      type: 'public-key',
      id: Buffer.from(credential_id).toString('base64url'),
      transports,
    })),
    // A sign-in names no account: the authenticator has to know which it has.
    authenticatorSelection: {
      residentKey: 'required',
      requireResidentKey: true,
      userVerification: 'required',
    },
    attestation: 'none',
  }
}

/** For `PublicKeyCredential.parseRequestOptionsFromJSON`. */
export function requestOptions({ rpId }: RelyingParty, challenge: Buffer) {
  return { ...common(challenge), rpId, allowCredentials: [], userVerification: 'required' }
}

/** The challenge that a browser's answer says it is of; null when it is none of ours. */
export function challengeIn(clientDataJSON: string): Buffer | null {
  try {
    const { challenge } = JSON.parse(Buffer.from(clientDataJSON, 'base64url').toString()) as {
      challenge: unknown
    }
    const bytes = typeof challenge === 'string' ? Buffer.from(challenge, 'base64url') : null
    return bytes?.length === 32 && bytes.toString('base64url') === challenge ? bytes : null
  } catch {
    // No JSON, or null.
    return null
  }
}
