import type { OidcRequest } from './oidc-ports.ts'
import { computeMac } from './tokens.ts'

/**
 * The values of a sign-in with OpenID Connect derive from its id and the deployment's key, so nothing is stored before
 * the issuer answers.
 */

const compute = (secretKey: string, purpose: string, ...parts: readonly string[]): string =>
  computeMac(secretKey, `millrace.oidc.${purpose}`, ...parts).toString('base64url')

/** Returns the state of a sign-in, which only the browser that began it, with its secret, can use. */
export const oidcStateOf = (secretKey: string, id: string, binding: string, redirectUri: string): string =>
  `${id}.${compute(secretKey, 'state', id, binding, redirectUri)}`

/** Returns the values that the issuer gets and checks. */
export function createOidcRequest(secretKey: string, state: string, redirectUri: string): OidcRequest {
  return {
    state,
    redirectUri,
    nonce: compute(secretKey, 'nonce', state),
    codeVerifier: compute(secretKey, 'verifier', state),
  }
}
