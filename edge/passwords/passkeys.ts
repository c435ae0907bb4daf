import {
  type AuthenticationResponseJSON,
  type RegistrationResponseJSON,
  verifyAuthenticationResponse,
  verifyRegistrationResponse,
} from '@simplewebauthn/server'
import { decodeAttestationObject, isoBase64URL, isoCBOR } from '@simplewebauthn/server/helpers'
import type { PasskeyRequest, PasskeyResult } from './messages.ts'

/** Verifies responses of authenticators (https://www.w3.org/TR/webauthn-3/#sctn-rp-operations). */

export async function verifyPasskey(request: PasskeyRequest): Promise<PasskeyResult> {
  const { challenge, origins, rpId } = request
  // With user verification (PIN or biometrics), a passkey counts as two factors.
  const expected = {
    expectedChallenge: challenge,
    expectedOrigin: [...origins],
    expectedRPID: rpId,
    requireUserVerification: true,
  }
  try {
    return request.kind === 'registration'
      ? await verifyRegistration(request, expected)
      : await verifySignIn(request, expected)
  } catch (error) {
    return { refused: String(error) }
  }
}

interface Expected {
  readonly expectedChallenge: string
  readonly expectedOrigin: string[]
  readonly expectedRPID: string
  readonly requireUserVerification: boolean
}

async function verifyRegistration({ response }: PasskeyRequest, expected: Expected): Promise<PasskeyResult> {
  const { verified, registrationInfo } = await verifyRegistrationResponse({
    ...expected,
    response: stripAttestation(response as unknown as RegistrationResponseJSON),
  })
  if (!verified || registrationInfo === undefined) return { refused: 'invalid signature' }
  const { credential, credentialBackedUp: isSynced } = registrationInfo
  return { ...credential, isSynced }
}

/**
 * Removes the attestation of the authenticator's model, as browsers do if the service requests none (section 5.1.3).
 * Verifying the attestation would fetch revocation lists from any URL that the certificates name.
 */
function stripAttestation(response: RegistrationResponseJSON): RegistrationResponseJSON {
  const authData = decodeAttestationObject(isoBase64URL.toBuffer(response.response.attestationObject)).get(
    'authData',
  )
  const withoutAttestation = new Map<string, string | Uint8Array | Map<string, string>>([
    ['fmt', 'none'],
    ['attStmt', new Map<string, string>()],
    ['authData', authData],
  ])
  const attestationObject = isoBase64URL.fromBuffer(isoCBOR.encode(withoutAttestation))
  return { ...response, response: { ...response.response, attestationObject } }
}

async function verifySignIn({ response, known }: PasskeyRequest, expected: Expected): Promise<PasskeyResult> {
  const { verified, authenticationInfo } = await verifyAuthenticationResponse({
    ...expected,
    response: response as unknown as AuthenticationResponseJSON,
    credential: { ...known!, publicKey: Uint8Array.from(known!.publicKey) },
  })
  if (!verified) return { refused: 'invalid signature' }
  const { newCounter: counter, credentialBackedUp: isSynced } = authenticationInfo
  return { id: known!.id, publicKey: known!.publicKey, counter, isSynced }
}
