import { z } from 'zod'
import { AccountAddress } from '../platform/email-address.ts'
import { countField, flagField } from '../platform/settings/fields.ts'
import { buildOidcSettings, checkOidc, type OidcSettings, oidcShape } from './oidc-settings.ts'
import { checkWebauthn, webauthnShape } from './webauthn.ts'

/** Account settings: registration, lifetimes of credentials, and the location of sign-ins. */

/**
 * Headers in which proxies report the location of an address. `x-client-place` is for proxies whose header name can be
 * configured.
 */
const GEO_HEADERS = [
  'cf-ipcountry',
  'cloudfront-viewer-country',
  'x-appengine-country',
  'x-client-place',
  'x-vercel-ip-country',
] as const

export const accountShape = {
  ADMIN_EMAIL: AccountAddress.optional(),
  ADMIN_PASSWORD: z.string().min(8).max(1024).optional(),
  REGISTRATION_ENABLED: flagField(true),
  INVITES_NEED_VERIFICATION: flagField(false),
  REQUIRE_ADMIN_TOTP: flagField(false),
  ACCESS_TOKEN_MINUTES: countField(15, 1, 1440),
  REFRESH_TOKEN_DAYS: countField(14, 1, 365),
  SESSION_MAX_DAYS: countField(0, 0, 3650),
  RESET_TOKEN_MINUTES: countField(60, 1, 10_080),
  VERIFY_TOKEN_HOURS: countField(24, 1, 8760),
  MAGIC_LINK_MINUTES: countField(15, 0, 1440),
  INVITE_TOKEN_DAYS: countField(14, 1, 365),
  ACCOUNT_DELETION_DAYS: countField(7, 0, 365),
  PASSWORD_MIN_LENGTH: countField(8, 8, 128),
  PASSWORD_MIN_CLASSES: countField(1, 1, 4),
  PASSWORD_REFUSE_COMMON: flagField(true),
  LOGIN_MAX_FAILURES: countField(5, 1, 1000),
  LOGIN_LOCK_SECONDS: countField(900, 1, 86_400),
  ...webauthnShape,
  ...oidcShape,
  TRUST_PROXY: flagField(false),
  GEO_HEADER: z.string().toLowerCase().pipe(z.enum(GEO_HEADERS)).optional(),
}

/** Rules for new passwords. */
export interface PasswordRules {
  readonly minLength: number
  /**
   * Minimum number of character classes. The classes are lower-case letters, upper-case letters, digits, and others.
   */
  readonly minClasses: number
  /**
   * True if common passwords are rejected. The user's address and the name of the service then do not count towards a
   * password's length.
   */
  readonly refuseCommon: boolean
}

export interface AccountSettings {
  readonly adminEmail: string | undefined
  readonly adminPassword: string | undefined
  /** False if only invited addresses and the first admin may register. */
  readonly registrationEnabled: boolean
  /** True if an account accepts invites only once it has verified its address. */
  readonly invitesNeedVerification: boolean
  /** True if admins have only the rights of users unless they use one-time codes or a passkey session. */
  readonly requireAdminTotp: boolean
  readonly accessTokenSeconds: number
  readonly refreshTokenSeconds: number
  /** Maximum lifetime of a session, even if it is refreshed; null means no limit. */
  readonly sessionMaxSeconds: number | null
  readonly resetTokenSeconds: number
  readonly verifyTokenSeconds: number
  readonly inviteTokenSeconds: number
  /** Lifetime of links that sign in; null if they are disabled. */
  readonly magicLinkSeconds: number | null
  /** Number of days in which an account can cancel its own deletion; 0 means immediate deletion. */
  readonly accountDeletionDays: number
  readonly passwordRules: PasswordRules
  /** Null if no issuer is configured. */
  readonly oidc: OidcSettings | null
  /** Number of failed logins that lock an address, and the duration of that lock. */
  readonly loginMaxFailures: number
  readonly loginLockSeconds: number
  readonly trustProxy: boolean
  /** Header in which the trusted proxy reports the location of an address; null if there is no such header. */
  readonly geoHeader: (typeof GEO_HEADERS)[number] | null
}

const AccountEnvironment = z.object(accountShape)

export function buildAccountSettings(env: z.output<typeof AccountEnvironment>): AccountSettings {
  return {
    adminEmail: env.ADMIN_EMAIL,
    adminPassword: env.ADMIN_PASSWORD,
    registrationEnabled: env.REGISTRATION_ENABLED,
    invitesNeedVerification: env.INVITES_NEED_VERIFICATION,
    requireAdminTotp: env.REQUIRE_ADMIN_TOTP,
    accessTokenSeconds: env.ACCESS_TOKEN_MINUTES * 60,
    refreshTokenSeconds: env.REFRESH_TOKEN_DAYS * 86_400,
    sessionMaxSeconds: env.SESSION_MAX_DAYS * 86_400 || null,
    resetTokenSeconds: env.RESET_TOKEN_MINUTES * 60,
    verifyTokenSeconds: env.VERIFY_TOKEN_HOURS * 3600,
    magicLinkSeconds: env.MAGIC_LINK_MINUTES * 60 || null,
    inviteTokenSeconds: env.INVITE_TOKEN_DAYS * 86_400,
    accountDeletionDays: env.ACCOUNT_DELETION_DAYS,
    passwordRules: {
      minLength: env.PASSWORD_MIN_LENGTH,
      minClasses: env.PASSWORD_MIN_CLASSES,
      refuseCommon: env.PASSWORD_REFUSE_COMMON,
    },
    oidc: buildOidcSettings(env),
    loginMaxFailures: env.LOGIN_MAX_FAILURES,
    loginLockSeconds: env.LOGIN_LOCK_SECONDS,
    trustProxy: env.TRUST_PROXY,
    geoHeader: env.GEO_HEADER ?? null,
  }
}

/** Checks combinations of settings by their raw values. Returns one line per problem. */
export function checkAccountSettings(env: Readonly<Record<string, string | undefined>>): string[] {
  const problems: string[] = []
  if ((env.ADMIN_EMAIL === undefined) !== (env.ADMIN_PASSWORD === undefined))
    problems.push('ADMIN_EMAIL: needs ADMIN_PASSWORD, and vice versa')
  // Without a trusted proxy, clients could set the header to any value.
  if (env.GEO_HEADER !== undefined && accountShape.TRUST_PROXY.safeParse(env.TRUST_PROXY).data !== true)
    problems.push('GEO_HEADER: needs TRUST_PROXY=true')
  return [...problems, ...checkWebauthn(env), ...checkOidc(env)]
}
