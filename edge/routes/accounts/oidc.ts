import { z } from 'zod'
import { fail } from '../../../sql/errors.ts'
import { isUuid, uuidv7 } from '../../../sql/ids.ts'
import { RedirectTo } from '../../../tasks/accounts/links.ts'
import { oidcStateOf } from '../../../tasks/accounts/oidc.ts'
import { beginOidc } from '../../../tasks/accounts/oidc-begin.task.ts'
import { exchangeOidc } from '../../../tasks/accounts/oidc-exchange.task.ts'
import type { OidcSettings } from '../../../tasks/accounts/oidc-settings.ts'
import { digestOf } from '../../../tasks/accounts/tokens.ts'
import { createJob } from '../../../tasks/task.ts'
import type { Edge } from '../../pipeline/context.ts'
import { failInvalidField } from '../../pipeline/request/input.ts'
import { route } from '../../pipeline/route.ts'
import { signInWithOidc } from './oidc-sign-in.ts'
import { factorFields } from './proof.ts'
import { resolveRedirect } from './redirects.ts'
import { Token } from './shapes.ts'

/** Time to sign in at the issuer. */
const MAX_STATE_AGE_MS = 600_000

const EXAMPLE_STATE = '01997c1e-7a1b-7c33-8d4e-2f6a9b0c1d2e.x3kfO9rYQm6bV0tJ5nWcLw2aHsDpEuG7iZq1T8yXo4M'
const EXAMPLE_BINDING = 'mV0tJ5nWcLw2aHsDpEuG7iZq1T8yXo4Mx3kfO9rYQm6b'

const Binding = z
  .string()
  .min(32)
  .max(200)
  .meta({ description: 'Random text that only this browser or app has', examples: [EXAMPLE_BINDING] })
const ReturnPage = RedirectTo.meta({
  description:
    'Page to which the issuer returns, without query and fragment: of the origin of `PUBLIC_BASE_URL` or of one in `CORS_ORIGINS`, and the same in both requests. Default: `/oidc` of this service',
  examples: ['https://app.example.com/oidc'],
})
const State = z
  .string()
  .min(1)
  .max(200)
  .meta({ examples: [EXAMPLE_STATE] })

export const OidcSignIn = z
  .strictObject({ state: State, binding: Binding, ...factorFields })
  .meta({ id: 'OidcSignIn' })

/** Routes that sign in with an OpenID Connect issuer. */
export const oidcRoutes = [
  route({
    method: 'get',
    path: '/oidc',
    summary: 'Get the OpenID Connect issuer that may sign in',
    auth: 'public',
    response: z.strictObject({ name: z.string() }).meta({ id: 'OidcIssuer' }),
    errors: ['oidc.not_configured'],
    handle: ({ edge }) => ({ name: requireOidc(edge).name }),
  }),

  route({
    method: 'post',
    path: '/oidc/begin',
    summary: 'Begin a sign-in with OpenID Connect',
    description: `Returns the URL of the issuer's sign-in page (code flow with PKCE). Keep \`binding\`: the next two requests need \
the same one. The issuer returns to \`redirect_to\`, by default \`/oidc\` of this service, which must be registered there.`,
    auth: 'public',
    body: z.strictObject({ binding: Binding, redirect_to: ReturnPage }).meta({ id: 'OidcBegin' }),
    response: z
      .strictObject({
        authorization_url: z.string().meta({ examples: ['https://id.example.com/authorize?client_id=mill'] }),
        state: State,
      })
      .meta({ id: 'OidcBegun' }),
    errors: ['oidc.not_configured', 'oidc.failed'],
    sideEffect: true,
    alwaysWaits: true,
    limit: 'login',
    task: ({ body, edge }) => {
      requireOidc(edge)
      const redirectUri = resolveRedirectUri(edge, body)
      const state = oidcStateOf(edge.keys, uuidv7(), body.binding, redirectUri)
      return createJob(beginOidc, { state, redirect_uri: redirectUri })
    },
  }),

  route({
    method: 'post',
    path: '/oidc/callback',
    summary: "Exchange the issuer's answer",
    description: `Takes the query with which the issuer returned, within ten minutes, and the values of \`/oidc/begin\`. Afterwards \
\`/oidc/sign-in\` starts the session.`,
    auth: 'public',
    body: z
      .strictObject({
        binding: Binding,
        parameters: z
          .string()
          .min(1)
          .max(8000)
          .meta({ description: 'Query of the URL', examples: [`code=abc&state=${EXAMPLE_STATE}`] }),
        redirect_to: ReturnPage,
      })
      .meta({ id: 'OidcCallback' }),
    response: z.strictObject({ status: z.literal('ready') }).meta({ id: 'OidcReady' }),
    errors: ['oidc.not_configured', 'oidc.state', 'oidc.refused', 'oidc.failed'],
    sideEffect: true,
    alwaysWaits: true,
    hasCredentials: true,
    limit: 'login',
    task: ({ body, edge }) => {
      requireOidc(edge)
      const { binding, parameters } = body
      const redirectUri = resolveRedirectUri(edge, body)
      const state = new URLSearchParams(parameters).get('state') ?? ''
      requireState(edge, state, binding, redirectUri)
      const login_digest = digestOf(`${state}.${binding}`).toString('hex')
      return createJob(exchangeOidc, { state, redirect_uri: redirectUri, parameters, login_digest })
    },
  }),

  route({
    method: 'post',
    path: '/oidc/sign-in',
    summary: 'Sign in after an exchange with OpenID Connect',
    description: `Responds like a sign-in with a password, within five minutes after \`/oidc/callback\`. Signs in the account to which \
the identity is linked, or links it to the account of the address that the issuer has verified. Without such an account it \
registers one, if registration is open or the address has a pending invite. One-time codes are still required.`,
    auth: 'public',
    body: OidcSignIn,
    response: Token,
    errors: [
      'oidc.not_configured',
      'oidc.state',
      'oidc.unverified',
      'oidc.other_subject',
      'account.email_taken',
      'auth.registration_closed',
      'auth.totp_required',
      'auth.totp_wrong',
      'auth.locked',
      'auth.inactive',
      'auth.sign_in_changed',
    ],
    hasCredentials: true,
    signsIn: true,
    limit: 'login',
    whyRepeatable: 'an exchange starts one session, and tokens are never stored',
    handle: (input) => {
      requireOidc(input.edge)
      return signInWithOidc(input, digestOf(`${input.body.state}.${input.body.binding}`))
    },
  }),
]

/** @throws oidc.not_configured */
function requireOidc({ settings }: Edge): OidcSettings {
  if (settings.oidc === null) throw fail('oidc.not_configured')
  return settings.oidc
}

/**
 * Returns the page to which the issuer returns.
 * @throws request.invalid if its origin is not allowed, or it has a query or fragment, which the issuer replaces.
 */
function resolveRedirectUri(edge: Edge, body: { readonly redirect_to?: string | undefined }): string {
  const { redirect_to } = resolveRedirect(edge, body)
  if (redirect_to === undefined) return `${edge.settings.publicBaseUrl}/oidc`
  const { search, hash, href } = new URL(redirect_to)
  if (search + hash !== '')
    throw failInvalidField('body', 'redirect_to', 'must have no query and no fragment', 'custom')
  return href
}

/** @throws oidc.state if this service did not issue the state to this browser, or too long ago. */
function requireState(edge: Edge, state: string, binding: string, redirectUri: string): void {
  const id = state.split('.', 1)[0]!
  if (!isUuid(id)) throw fail('oidc.state')
  const expected = oidcStateOf(edge.keys, id, binding, redirectUri)
  // UUIDs of version 7 begin with the time in ms.
  const ageMs = Date.now() - Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)
  if (!digestOf(expected).equals(digestOf(state)) || ageMs > MAX_STATE_AGE_MS) throw fail('oidc.state')
}
