import { CHALLENGE_SECONDS } from '../../../sql/accounts/passkeys.ts'
import { fail } from '../../../sql/errors.ts'
import type { Settings } from '../../../tasks/platform/settings/settings.ts'

/** Options that browsers need to create or use a passkey (WebAuthn Level 3), in the JSON format that they parse. */

/** This service as a WebAuthn relying party. */
export interface RelyingParty {
  readonly rpId: string
  readonly origins: readonly string[]
}

/**
 * Returns the relying party of this deployment.
 * @throws passkey.not_configured if its domain would be an IP address, which browsers reject (section 5.1.3).
 */
export function createRelyingParty({ webauthn: { rpId, origins } }: Settings): RelyingParty {
  if (rpId === null) throw fail('passkey.not_configured')
  return { rpId, origins }
}

/**
 * Returns the user handle of an account in base64url. It encodes the account id, which reveals nothing about the person
 * (section 14.6.1) and never changes, unlike a value derived from the deployment's key.
 */
export const userHandleOf = (accountId: number): string =>
  Buffer.from(String(accountId)).toString('base64url')

const buildCommonOptions = (challenge: Buffer) => ({
  challenge: challenge.toString('base64url'),
  timeout: CHALLENGE_SECONDS * 1000,
})

// The COSE algorithms EdDSA, ES256 and RS256. Every authenticator supports at least one of them.
const ALGORITHMS = [-8, -7, -257]

interface KnownPasskey {
  readonly credential_id: Uint8Array
  readonly transports: readonly string[]
}

/** For `PublicKeyCredential.parseCreationOptionsFromJSON`. */
export function buildCreationOptions(
  { projectName }: Settings,
  { rpId }: RelyingParty,
  challenge: Buffer,
  account: { readonly id: number; readonly email: string; readonly passkeys: readonly KnownPasskey[] },
) {
  return {
    ...buildCommonOptions(challenge),
    rp: { id: rpId, name: projectName },
    user: { id: userHandleOf(account.id), name: account.email, displayName: account.email },
    pubKeyCredParams: ALGORITHMS.map((alg) => ({ type: 'public-key', alg })),
    excludeCredentials: account.passkeys.map(({ credential_id, transports }) => ({
      type: 'public-key',
      id: Buffer.from(credential_id).toString('base64url'),
      transports,
    })),
    // A sign-in names no account, so the authenticator must store the account with the credential.
    authenticatorSelection: {
      residentKey: 'required',
      requireResidentKey: true,
      userVerification: 'required',
    },
    attestation: 'none',
  }
}

/** For `PublicKeyCredential.parseRequestOptionsFromJSON`. */
export function buildRequestOptions({ rpId }: RelyingParty, challenge: Buffer) {
  return { ...buildCommonOptions(challenge), rpId, allowCredentials: [], userVerification: 'required' }
}

/** Returns the challenge in a browser's client data; null if this service could not have issued it. */
export function parseChallenge(clientDataJSON: string): Buffer | null {
  try {
    const { challenge } = JSON.parse(Buffer.from(clientDataJSON, 'base64url').toString()) as {
      challenge: unknown
    }
    const bytes = typeof challenge === 'string' ? Buffer.from(challenge, 'base64url') : null
    return bytes?.length === 32 && bytes.toString('base64url') === challenge ? bytes : null
  } catch {
    // The client data is not a JSON object.
    return null
  }
}
