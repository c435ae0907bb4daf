import type { SecretKeys } from '../platform/keys.ts'
import type { OidcRequest } from './oidc-ports.ts'

/**
 * The values of a sign-in with OpenID Connect derive from its id and the deployment's stored key. So nothing is stored
 * before the issuer answers, and every process derives the same values.
 */

const compute = (keys: SecretKeys, purpose: string, ...parts: readonly string[]): string =>
  keys.stored.token(`millrace.oidc.${purpose}`, ...parts)

/** Returns the state of a sign-in, which only the browser that began it, with its secret, can use. */
export const oidcStateOf = (keys: SecretKeys, id: string, binding: string, redirectUri: string): string =>
  `${id}.${compute(keys, 'state', id, binding, redirectUri)}`

/** Returns the values that the issuer gets and checks. */
export function createOidcRequest(keys: SecretKeys, state: string, redirectUri: string): OidcRequest {
  return {
    state,
    redirectUri,
    nonce: compute(keys, 'nonce', state),
    codeVerifier: compute(keys, 'verifier', state),
  }
}
