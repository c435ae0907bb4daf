import {
  type AuthenticationResponseJSON,
  type RegistrationResponseJSON,
  verifyAuthenticationResponse,
  verifyRegistrationResponse,
} from '@simplewebauthn/server'
import { decodeAttestationObject, isoBase64URL, isoCBOR } from '@simplewebauthn/server/helpers'
import type { PasskeyAnswer, PasskeyWork } from './work.ts'

/** Verifies what authenticators have signed (https://www.w3.org/TR/webauthn-3/#sctn-rp-operations). */

export async function verifyPasskey(work: PasskeyWork): Promise<PasskeyAnswer> {
  const { challenge, origin, rpId } = work
  // An authenticator that knows its user by a PIN or a finger is two factors in one.
  const expected = {
    expectedChallenge: challenge,
    expectedOrigin: origin,
    expectedRPID: rpId,
    requireUserVerification: true,
  }
  try {
    return work.kind === 'registration' ? await registered(work, expected) : await signedIn(work, expected)
  } catch (error) {
    return { refused: String(error) }
  }
}

interface Expected {
  readonly expectedChallenge: string
  readonly expectedOrigin: string
  readonly expectedRPID: string
  readonly requireUserVerification: boolean
}

async function registered({ response }: PasskeyWork, expected: Expected): Promise<PasskeyAnswer> {
  const { verified, registrationInfo } = await verifyRegistrationResponse({
    ...expected,
    response: unattested(response as unknown as RegistrationResponseJSON),
  })
  if (!verified || registrationInfo === undefined) return { refused: 'its signature is wrong' }
  const { credential, credentialBackedUp: isSynced } = registrationInfo
  return { ...credential, isSynced }
}

/**
 * The answer without what attests to the make of its authenticator, as browsers give it to whom asks for none (section 5.1.3). To
 * verify that would mean to fetch what its certificates say is revoked, from wherever their maker, who may be anybody, likes.
 */
function unattested(answer: RegistrationResponseJSON): RegistrationResponseJSON {
  const authData = decodeAttestationObject(isoBase64URL.toBuffer(answer.response.attestationObject)).get(
    'authData',
  )
  const none = new Map<string, string | Uint8Array | Map<string, string>>([
    ['fmt', 'none'],
    ['attStmt', new Map<string, string>()],
    ['authData', authData],
  ])
  const attestationObject = isoBase64URL.fromBuffer(isoCBOR.encode(none))
  return { ...answer, response: { ...answer.response, attestationObject } }
}

async function signedIn({ response, known }: PasskeyWork, expected: Expected): Promise<PasskeyAnswer> {
  const { verified, authenticationInfo } = await verifyAuthenticationResponse({
    ...expected,
    response: response as unknown as AuthenticationResponseJSON,
    credential: { ...known!, publicKey: Uint8Array.from(known!.publicKey) },
  })
  if (!verified) return { refused: 'its signature is wrong' }
  const { newCounter: counter, credentialBackedUp: isSynced } = authenticationInfo
  return { id: known!.id, publicKey: known!.publicKey, counter, isSynced }
}
