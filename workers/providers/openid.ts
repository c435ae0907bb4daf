import { type Failure, fail } from '../../sql/errors.ts'
import type { OpenIdProvider } from '../../tasks/accounts/oidc-ports.ts'
import type { OidcSettings } from '../../tasks/accounts/oidc-settings.ts'
import { createLazy } from '../../tasks/platform/lazy.ts'
import { recordCall } from './call.ts'
import { waitFor } from './wait.ts'

/** Signs people in with OpenID Connect. The only importer of `openid-client`. */

// Loaded on demand, because most threads never need it.
const loadClient = createLazy(() => import('openid-client'))
type Client = Awaited<ReturnType<typeof loadClient>>
type Configuration = Awaited<ReturnType<Client['discovery']>>

// An issuer may change its endpoints and keys, so its description is read again.
const DISCOVERY_LIFETIME_MS = 3_600_000
const ANSWER_SECONDS = 10
// The description, its keys, the token and the claims, one after the other.
const LONGEST_MS = 4 * ANSWER_SECONDS * 1000

const UNCONFIGURED: OpenIdProvider = {
  buildUrl: () => Promise.reject(fail('oidc.not_configured')),
  exchange: () => Promise.reject(fail('oidc.not_configured')),
}

/** Creates the client of the configured issuer. */
export function createOpenIdProvider({ oidc }: { readonly oidc: OidcSettings | null }): OpenIdProvider {
  if (oidc === null) return UNCONFIGURED
  const discover = createDiscovery(oidc)
  const call = <T>(
    operation: string,
    signal: AbortSignal,
    work: (client: Client) => Promise<T>,
  ): Promise<T> =>
    recordCall({ provider: 'oidc', operation, url: oidc.issuer }, async () => {
      const client = await loadClient()
      const result = await waitFor(work(client), LONGEST_MS, signal)
      if (result.kind === 'answer') return result.value
      signal.throwIfAborted()
      throw result.kind === 'error' ? describeFailure(client, result.error) : fail('oidc.failed')
    })
  return {
    buildUrl: ({ state, nonce, codeVerifier, redirectUri }, signal) =>
      call('discovery', signal, async (client) => {
        const parameters = {
          redirect_uri: redirectUri,
          scope: oidc.scopes,
          state,
          nonce,
          code_challenge: await client.calculatePKCECodeChallenge(codeVerifier),
          code_challenge_method: 'S256',
        }
        return client.buildAuthorizationUrl(await discover(client), parameters).href
      }),
    exchange: ({ state, nonce, codeVerifier, redirectUri }, parameters, signal) =>
      call('token', signal, async (client) => {
        const configuration = await discover(client)
        const url = new URL(redirectUri)
        url.search = parameters
        const checks = {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: codeVerifier,
          idTokenExpected: true,
        }
        const tokens = await client.authorizationCodeGrant(configuration, url, checks)
        const claims = tokens.claims()!
        const hasUserInfo = configuration.serverMetadata().userinfo_endpoint !== undefined
        // Issuers may omit the address from the token if they have an endpoint for it (OpenID Connect Core, section 5.4).
        const more =
          claims.email === undefined && hasUserInfo
            ? await client.fetchUserInfo(configuration, tokens.access_token, claims.sub)
            : claims
        const { email, email_verified: isVerified, name } = more
        return {
          subject: claims.sub,
          email: typeof email === 'string' ? email : null,
          // Some issuers send a text, such as Amazon Cognito.
          isVerified: [true, 'true'].includes(isVerified as boolean | string),
          name: typeof name === 'string' ? name : null,
        }
      }),
  }
}

/** Returns a function that reads the issuer's description, at most once an hour. */
function createDiscovery(oidc: OidcSettings): (client: Client) => Promise<Configuration> {
  let known: { readonly configuration: Promise<Configuration>; readonly at: number } | null = null
  return (client) => {
    if (known !== null && performance.now() - known.at < DISCOVERY_LIFETIME_MS) return known.configuration
    const isPlain = oidc.issuer.startsWith('http:')
    const configuration = client.discovery(
      new URL(oidc.issuer),
      oidc.clientId,
      oidc.clientSecret ?? undefined,
      oidc.clientSecret === null ? client.None() : undefined,
      {
        timeout: ANSWER_SECONDS,
        // Verifies the signature of each ID token, although it comes over TLS.
        execute: [client.enableNonRepudiationChecks, ...(isPlain ? [client.allowInsecureRequests] : [])],
      },
    )
    const entry = { configuration, at: performance.now() }
    known = entry
    configuration.catch(() => {
      if (known === entry) known = null
    })
    return configuration
  }
}

// Checks of an answer that failed. Other codes are about an issuer that is broken or misconfigured.
const REFUSAL_CODES = new Set([
  'OAUTH_INVALID_RESPONSE',
  'OAUTH_JWT_CLAIM_COMPARISON_FAILED',
  'OAUTH_JWT_TIMESTAMP_CHECK_FAILED',
  'OAUTH_KEY_SELECTION_FAILED',
])

/** Distinguishes a refusal, which a new sign-in may cure, from an issuer that does not work. */
function describeFailure(client: Client, error: unknown): Failure {
  const isRefusal =
    error instanceof client.AuthorizationResponseError ||
    (error instanceof client.ResponseBodyError && error.status < 500) ||
    (error instanceof client.ClientError && REFUSAL_CODES.has(error.code ?? ''))
  return fail(isRefusal ? 'oidc.refused' : 'oidc.failed', {}, { cause: error })
}
