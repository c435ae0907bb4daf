/** The tasks' interface to the OpenID Connect issuer. `workers/providers` implements it. */

/** The values of one sign-in, which all derive from its id. */
export interface OidcRequest {
  readonly state: string
  readonly nonce: string
  readonly codeVerifier: string
  readonly redirectUri: string
}

/** The person that the issuer has signed in. */
export interface OidcClaims {
  readonly subject: string
  readonly email: string | null
  /** True if the issuer has verified the address. */
  readonly isVerified: boolean
  readonly name: string | null
}

export interface OpenIdProvider {
  /** Returns the URL of the issuer's sign-in page. @throws fail('oidc.failed') */
  buildUrl(request: OidcRequest, signal: AbortSignal): Promise<string>
  /**
   * Exchanges the code in the parameters that the issuer added to the redirect URI.
   * @throws fail('oidc.refused') if the issuer or the checks of its answer refuse it, fail('oidc.failed')
   */
  exchange(request: OidcRequest, parameters: string, signal: AbortSignal): Promise<OidcClaims>
}
