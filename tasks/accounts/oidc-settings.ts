import { z } from 'zod'
import { isLoopback } from '../platform/addresses.ts'

/** The OpenID Connect issuer whose accounts may sign in. */
export interface OidcSettings {
  readonly issuer: string
  readonly clientId: string
  /** Null for a public client. */
  readonly clientSecret: string | null
  readonly scopes: string
  /** Name of the issuer for people. */
  readonly name: string
}

const isIssuer = (text: string): boolean => {
  if (!URL.canParse(text)) return false
  const { protocol, hostname, search, hash } = new URL(text)
  return (protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname))) && search + hash === ''
}

export const oidcShape = {
  OIDC_ISSUER: z
    .string()
    .refine((text) => isIssuer(text), 'must be an https URL without query, such as https://id.example.com')
    .optional(),
  OIDC_CLIENT_ID: z.string().min(1).optional(),
  OIDC_CLIENT_SECRET: z.string().min(1).optional(),
  OIDC_SCOPES: z
    .string()
    .refine(
      (text) => text.split(' ').includes('openid'),
      'must be scopes with spaces between, among them openid',
    )
    .default('openid email profile'),
  OIDC_NAME: z.string().min(1).max(100).default('OpenID Connect'),
}

type Environment = z.output<z.ZodObject<typeof oidcShape>>

export function buildOidcSettings(env: Environment): OidcSettings | null {
  const { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: clientId } = env
  if (issuer === undefined || clientId === undefined) return null
  return {
    issuer,
    clientId,
    clientSecret: env.OIDC_CLIENT_SECRET ?? null,
    scopes: env.OIDC_SCOPES,
    name: env.OIDC_NAME,
  }
}

/** Checks the combination by raw values. Returns one line per problem. */
export function checkOidc(env: Readonly<Record<string, string | undefined>>): string[] {
  const needsIssuer =
    env.OIDC_ISSUER === undefined && (env.OIDC_CLIENT_ID ?? env.OIDC_CLIENT_SECRET) !== undefined
  if (needsIssuer) return ['OIDC_ISSUER: required with OIDC_CLIENT_ID']
  return env.OIDC_ISSUER !== undefined && env.OIDC_CLIENT_ID === undefined
    ? ['OIDC_CLIENT_ID: required with OIDC_ISSUER']
    : []
}
