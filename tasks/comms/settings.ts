import { z } from 'zod'
import { count } from '../setting-fields.ts'

/** The settings of email and telephony. */

const isSmtpUrl = (text: string): boolean => {
  try {
    const { hostname, username, password } = new URL(text)
    // A lone % in a password is an easy mistake.
    decodeURIComponent(username + password)
    return /^smtps?:\/\/\S+$/.test(text) && hostname !== ''
  } catch {
    return false
  }
}

// Resend takes 40 MB in all (https://resend.com/docs/dashboard/emails/attachments). Base64 makes 4 bytes of 3 and a line of 76,
// so that 25 MiB are 36 MB, which leaves room for the texts.
const DEFAULT_ATTACHMENTS_BYTES = 25 * 1024 * 1024
// What is sent within the time limit of a mail: see `LIMITS` of the mailer.
const MAX_ATTACHMENTS_BYTES = 64 * 1024 * 1024

/** The URL of an HTTP API, without a trailing slash. */
const apiBase = (fallback: string) =>
  z
    .url({ protocol: /^https?$/ })
    .transform((url) => url.replace(/\/+$/, ''))
    .default(fallback)

export const commsShape = {
  EMAIL_PROVIDER_API_KEY: z.string().min(1).optional(),
  EMAIL_PROVIDER_FROM_EMAIL: z.email().optional(),
  EMAIL_SMTP_URL: z
    .string()
    .refine((text) => text === 'outbox:' || isSmtpUrl(text), 'must be smtp://…, smtps://… or outbox:')
    .optional(),
  EMAIL_ATTACHMENTS_MAX_BYTES: count(DEFAULT_ATTACHMENTS_BYTES, 0, MAX_ATTACHMENTS_BYTES),
  EMAIL_PROVIDER_WEBHOOK_SECRET: z
    .string()
    .regex(/^whsec_[A-Za-z0-9+/]{16,}={0,2}$/, 'must be whsec_ and base64, as the provider shows it')
    .optional(),
  EMAIL_PROVIDER_API_BASE_URL: apiBase('https://api.resend.com'),
  TELEPHONY_ACCOUNT_SID: z
    .string()
    .regex(/^AC[0-9a-fA-F]{32}$/, 'must be AC and 32 hexadecimal digits')
    .optional(),
  TELEPHONY_AUTH_TOKEN: z.string().min(1).optional(),
  TELEPHONY_PHONE_NUMBER: z
    .string()
    .regex(/^\+[1-9]\d{6,14}$/, 'must be a number in E.164 form such as +14155552671')
    .optional(),
  TELEPHONY_API_BASE_URL: apiBase('https://api.twilio.com'),
}

type CommsEnvironment = z.output<z.ZodObject<typeof commsShape>>

export interface EmailSettings {
  /** Where mail goes: an SMTP server, .eml files in `DATA_DIR`, or nowhere. */
  readonly smtpUrl: string | 'outbox:' | null
  /** The sender; empty when none is set. */
  readonly from: string
  /** The key of the provider's REST API, which lists the domains; null without one. */
  readonly apiKey: string | null
  readonly apiBaseUrl: string
  /** How many bytes the attachments of one email may have in all, before they are encoded. */
  readonly attachmentsMaxBytes: number
  /** What signs the provider's events; null: they are not taken. */
  readonly webhookSecret: string | null
}

export interface TelephonySettings {
  readonly accountSid: string | null
  readonly authToken: string | null
  /** The sender, in E.164 form. */
  readonly phoneNumber: string | null
  readonly apiBaseUrl: string
}

export function emailSettings(
  env: CommsEnvironment & { PROJECT_NAME: string },
  production: boolean,
): EmailSettings {
  return {
    smtpUrl: smtpUrl(env, production),
    from: env.EMAIL_PROVIDER_FROM_EMAIL ?? (production ? '' : `${env.PROJECT_NAME}@localhost`),
    apiKey: env.EMAIL_PROVIDER_API_KEY ?? null,
    apiBaseUrl: env.EMAIL_PROVIDER_API_BASE_URL,
    attachmentsMaxBytes: env.EMAIL_ATTACHMENTS_MAX_BYTES,
    webhookSecret: env.EMAIL_PROVIDER_WEBHOOK_SECRET ?? null,
  }
}

/** Default: the provider's relay with the key as its password; in development without a key, files. */
function smtpUrl(env: CommsEnvironment, production: boolean): string | null {
  if (env.EMAIL_SMTP_URL !== undefined) return env.EMAIL_SMTP_URL
  if (env.EMAIL_PROVIDER_API_KEY !== undefined)
    return `smtps://resend:${encodeURIComponent(env.EMAIL_PROVIDER_API_KEY)}@smtp.resend.com:465`
  return production ? null : 'outbox:'
}

export function telephonySettings(env: CommsEnvironment): TelephonySettings {
  return {
    accountSid: env.TELEPHONY_ACCOUNT_SID ?? null,
    authToken: env.TELEPHONY_AUTH_TOKEN ?? null,
    phoneNumber: env.TELEPHONY_PHONE_NUMBER ?? null,
    apiBaseUrl: env.TELEPHONY_API_BASE_URL,
  }
}

/** Names of the settings that are missing for email. */
export function missingForEmail({ smtpUrl, from }: EmailSettings): readonly string[] {
  return [
    ...(smtpUrl === null ? ['EMAIL_PROVIDER_API_KEY'] : []),
    ...(from === '' ? ['EMAIL_PROVIDER_FROM_EMAIL'] : []),
  ]
}

/** The same for text messages and calls. */
export function missingForTelephony(settings: TelephonySettings): readonly string[] {
  return [
    ...(settings.accountSid === null ? ['TELEPHONY_ACCOUNT_SID'] : []),
    ...(settings.authToken === null ? ['TELEPHONY_AUTH_TOKEN'] : []),
    ...(settings.phoneNumber === null ? ['TELEPHONY_PHONE_NUMBER'] : []),
  ]
}
