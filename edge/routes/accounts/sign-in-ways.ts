import { z } from 'zod'
import { countAdmins } from '../../../sql/accounts/accounts.ts'
import { findMissingEmailSettings } from '../../../tasks/comms/settings.ts'
import { answerCompactJson, route } from '../../pipeline/route.ts'
import { readRefreshCookie } from './cookies.ts'
import { User } from './shapes.ts'

const SignInWays = z
  .strictObject({
    account: User.nullable().meta({ description: 'The account that is signed in; null if none is' }),
    can_refresh: z.boolean().meta({ description: 'True if the request has a refresh token' }),
    needs_admin: z.boolean().meta({ description: 'True if there is no admin yet' }),
    registration: z.boolean().meta({ description: 'True if anyone may register' }),
    emails: z.boolean().meta({ description: 'True if the service can send email' }),
    magic_links: z.boolean().meta({ description: 'True if an emailed link may sign in' }),
    passkeys: z.boolean().meta({ description: 'True if passkeys may sign in' }),
    oidc: z
      .string()
      .nullable()
      .meta({
        description: 'Name of the OpenID Connect issuer; null without one',
        examples: ['Mill and Sons'],
      }),
    password: z.strictObject({
      min_length: z.int(),
      min_classes: z.int().meta({
        description: 'Required number of lowercase letters, uppercase letters, digits and other characters',
      }),
      refuses_common: z.boolean(),
    }),
    deletion_days: z.int().meta({ description: 'Days in which an account can cancel its deletion' }),
  })
  .meta({ id: 'SignInWays' })

/** Tells a page everything it needs before a sign-in with one request, which never fails for lack of a session. */
export const signInWaysRoute = route({
  method: 'get',
  path: '/sign-in',
  summary: 'Get the signed-in account and the ways to sign in',
  description: 'No credential is needed. An expired one counts as none, and so does an API key.',
  auth: 'public',
  response: SignInWays,
  handle: async ({ caller, edge, request }) => {
    const { settings } = edge
    const { minLength, minClasses, refuseCommon } = settings.passwordRules
    const emails = findMissingEmailSettings(settings.email).length === 0
    const ways = {
      can_refresh: readRefreshCookie(edge, request) !== null,
      needs_admin: caller === null && (await edge.db.one(countAdmins())).admins === 0,
      registration: settings.registrationEnabled,
      emails,
      magic_links: emails && settings.magicLinkSeconds !== null,
      passkeys: settings.webauthn.rpId !== null,
      oidc: settings.oidc?.name ?? null,
      password: { min_length: minLength, min_classes: minClasses, refuses_common: refuseCommon },
      deletion_days: settings.accountDeletionDays,
    }
    // A key may lack the scope that reads the account.
    const account = caller === null || caller.key !== null ? 'null' : caller.profile
    return answerCompactJson<z.input<typeof SignInWays>>(
      `{"account":${account},${JSON.stringify(ways).slice(1)}`,
    )
  },
})
