import { isIP } from 'node:net'
import { z } from 'zod'
import { normalizeDomain } from '../platform/email-address.ts'
import { isOrigin, listField } from '../platform/settings/fields.ts'

/** The names under which browsers and apps know this service as a relying party of passkeys (WebAuthn). */
export interface WebauthnSettings {
  /** Domain that passkeys belong to; null if `PUBLIC_BASE_URL` has an IP address, which browsers reject. */
  readonly rpId: string | null
  /** Origins whose pages and apps may use these passkeys. */
  readonly origins: readonly string[]
}

// Base64url of the SHA-256 of an Android app's signing certificate.
const ANDROID_ORIGIN = /^android:apk-key-hash:[\w-]{43}$/

const isPasskeyOrigin = (origin: string): boolean => ANDROID_ORIGIN.test(origin) || isWebOrigin(origin)
const isWebOrigin = (origin: string): boolean => /^https?:/.test(origin) && isOrigin(origin)

export const webauthnShape = {
  WEBAUTHN_RP_ID: z
    .string()
    .transform((name) => (name === 'localhost' ? name : normalizeDomain(name)))
    .refine((name) => name !== null, 'must be a domain such as example.com')
    .optional(),
  WEBAUTHN_ORIGINS: listField()
    .refine(
      (origins) => origins.length > 0 && origins.every(isPasskeyOrigin),
      'must be a comma-separated list of origins such as https://app.example.com or android:apk-key-hash:HASH',
    )
    .optional(),
}

interface Names {
  readonly rpId: string | null | undefined
  readonly origins: readonly string[] | undefined
  readonly publicBaseUrl: string
  readonly corsOrigins: readonly string[]
}

/** Returns the relying party. Unless given, its origins are those of this service and of pages that may call it. */
export function resolveWebauthn({ rpId, origins, publicBaseUrl, corsOrigins }: Names): WebauthnSettings {
  const id = rpId ?? findDomain(publicBaseUrl)
  if (id === null) return { rpId: null, origins: [] }
  const known = [new URL(publicBaseUrl).origin, ...corsOrigins].filter((origin) => isCovered(id, origin))
  return { rpId: id, origins: origins ?? [...new Set(known)] }
}

/** Returns the host name of a URL; null if it is an IP address. */
function findDomain(url: string): string | null {
  const { hostname } = new URL(url)
  return isIP(hostname.replace(/^\[(.*)\]$/, '$1')) === 0 ? hostname : null
}

/** True if browsers let a page of this origin use passkeys of a domain: its host is the domain, or below it. */
function isCovered(rpId: string, origin: string): boolean {
  if (ANDROID_ORIGIN.test(origin)) return true
  const { hostname } = new URL(origin)
  return hostname === rpId || hostname.endsWith(`.${rpId}`)
}

/** Checks the combination by raw values. Returns one line per problem. */
export function checkWebauthn(env: Readonly<Record<string, string | undefined>>): string[] {
  const rpId = webauthnShape.WEBAUTHN_RP_ID.safeParse(env.WEBAUTHN_RP_ID)
  const origins = webauthnShape.WEBAUTHN_ORIGINS.safeParse(env.WEBAUTHN_ORIGINS)
  const publicBaseUrl = env.PUBLIC_BASE_URL ?? `http://${env.HOST ?? '127.0.0.1'}`
  // The checks of single values report these.
  const isUrl = /^https?:/.test(publicBaseUrl) && URL.canParse(publicBaseUrl)
  if (!rpId.success || !origins.success || !isUrl) return []
  const corsOrigins = (env.CORS_ORIGINS ?? '').split(',').map((origin) => origin.trim())
  const names = { publicBaseUrl, corsOrigins: corsOrigins.filter(isWebOrigin) }
  const party = resolveWebauthn({ ...names, rpId: rpId.data, origins: origins.data })
  if (party.rpId === null) return origins.data === undefined ? [] : ['WEBAUTHN_ORIGINS: needs WEBAUTHN_RP_ID']
  const stray = party.origins.find((origin) => !isCovered(party.rpId!, origin))
  if (stray !== undefined)
    return [`WEBAUTHN_ORIGINS: the host of ${stray} must be ${party.rpId} or below it (WEBAUTHN_RP_ID)`]
  return rpId.data === undefined || party.origins.length > 0
    ? []
    : ['WEBAUTHN_RP_ID: must cover the host of PUBLIC_BASE_URL or of an origin in CORS_ORIGINS']
}
