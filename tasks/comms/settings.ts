import { z } from 'zod'
import { Address } from '../platform/email-address.ts'
import { countField } from '../platform/settings/fields.ts'
import { buildMailboxSchema, type Mailbox } from './mailbox.ts'
import { NUMBER_PATTERN, SENDER_PATTERN, SERVICE_PATTERN } from './sender.ts'

/** The settings of email and telephony. */

/** Checks that there is one default sender of text messages, by raw values. Returns the problems. */
export function checkCommsSettings(env: Readonly<Record<string, string | undefined>>): string[] {
  const isTwice = env.TELEPHONY_SMS_FROM !== undefined && env.TELEPHONY_MESSAGING_SERVICE_SID !== undefined
  return isTwice ? ['TELEPHONY_SMS_FROM: must not be set together with TELEPHONY_MESSAGING_SERVICE_SID'] : []
}

const isSmtpUrl = (text: string): boolean => {
  try {
    const { hostname, username, password } = new URL(text)
    // Throws if the password contains an unencoded %, a common mistake.
    decodeURIComponent(username + password)
    return /^smtps?:\/\/\S+$/.test(text) && hostname !== ''
  } catch {
    return false
  }
}

// Resend accepts 40 MB per email (https://resend.com/docs/dashboard/emails/attachments). Base64 with lines of 76
// characters turns 25 MiB into 36 MB, which leaves room for the texts.
const DEFAULT_ATTACHMENTS_BYTES = 25 * 1024 * 1024
// Largest total size that one email can send within its time limit; see `LIMITS` of the mailer.
const MAX_ATTACHMENTS_BYTES = 64 * 1024 * 1024

const HOUR_MS = 3_600_000

/** Defines a setting for the URL of an HTTP API; strips trailing slashes. */
const apiBaseUrlField = (fallback: string) =>
  z
    .url({ protocol: /^https?$/ })
    .transform((url) => url.replace(/\/+$/, ''))
    .default(fallback)

export const commsShape = {
  EMAIL_PROVIDER_API_KEY: z.string().min(1).optional(),
  EMAIL_PROVIDER_FROM_EMAIL: buildMailboxSchema(Address).optional(),
  EMAIL_SMTP_URL: z
    .string()
    .refine((text) => text === 'outbox:' || isSmtpUrl(text), 'must be smtp://…, smtps://… or outbox:')
    .optional(),
  EMAIL_ATTACHMENTS_MAX_BYTES: countField(DEFAULT_ATTACHMENTS_BYTES, 0, MAX_ATTACHMENTS_BYTES),
  EMAIL_RETRY_HOURS: countField(48, 0, 336),
  EMAIL_PROVIDER_WEBHOOK_SECRET: z
    .string()
    .regex(
      /^whsec_[A-Za-z0-9+/]{16,}={0,2}$/,
      'must be whsec_ followed by base64, as the provider displays it',
    )
    .optional(),
  EMAIL_PROVIDER_API_BASE_URL: apiBaseUrlField('https://api.resend.com'),
  TELEPHONY_ACCOUNT_SID: z
    .string()
    .regex(/^AC[0-9a-fA-F]{32}$/, 'must be AC followed by 32 hexadecimal digits')
    .optional(),
  TELEPHONY_AUTH_TOKEN: z.string().min(1).optional(),
  TELEPHONY_PHONE_NUMBER: z
    .string()
    .regex(NUMBER_PATTERN, 'must be a number in E.164 form such as +14155552671')
    .optional(),
  TELEPHONY_SMS_FROM: z
    .string()
    .regex(
      SENDER_PATTERN,
      'must be a number in E.164 form, a short code, or 1 to 11 letters, digits and spaces with a letter',
    )
    .optional(),
  TELEPHONY_MESSAGING_SERVICE_SID: z
    .string()
    .regex(SERVICE_PATTERN, 'must be MG followed by 32 hexadecimal digits')
    .optional(),
  TELEPHONY_API_BASE_URL: apiBaseUrlField('https://api.twilio.com'),
  TELEPHONY_RETRY_HOURS: countField(4, 0, 336),
}

type CommsEnvironment = z.output<z.ZodObject<typeof commsShape>>

export interface EmailSettings {
  /** SMTP server for mail. `outbox:` writes .eml files to `DATA_DIR`; null means that mail is not configured. */
  readonly smtpUrl: string | 'outbox:' | null
  /** The sender; empty if none is set. */
  readonly from: Mailbox
  /** Key for the provider's REST API, which manages domains; null if not set. */
  readonly apiKey: string | null
  readonly apiBaseUrl: string
  /** Maximum total size of an email's attachments in bytes, before encoding. */
  readonly attachmentsMaxBytes: number
  /** Time for which a message that the server did not accept is retried, in ms. */
  readonly retryMs: number
  /** Secret that signs the provider's events; null rejects all events. */
  readonly webhookSecret: string | null
}

export interface TelephonySettings {
  readonly accountSid: string | null
  readonly authToken: string | null
  /** The sender's number in E.164 form; null if not set. */
  readonly phoneNumber: string | null
  /** The sender of text messages: a number, a name or the id of a messaging service; null if not set. */
  readonly smsFrom: string | null
  readonly apiBaseUrl: string
  /** Time for which a message or call that the provider did not accept is retried, in ms. */
  readonly retryMs: number
}

export function buildEmailSettings(
  env: CommsEnvironment & { PROJECT_NAME: string },
  isProduction: boolean,
): EmailSettings {
  return {
    smtpUrl: resolveSmtpUrl(env, isProduction),
    from: env.EMAIL_PROVIDER_FROM_EMAIL ?? (isProduction ? '' : `${env.PROJECT_NAME}@localhost`),
    apiKey: env.EMAIL_PROVIDER_API_KEY ?? null,
    apiBaseUrl: env.EMAIL_PROVIDER_API_BASE_URL,
    attachmentsMaxBytes: env.EMAIL_ATTACHMENTS_MAX_BYTES,
    retryMs: env.EMAIL_RETRY_HOURS * HOUR_MS,
    webhookSecret: env.EMAIL_PROVIDER_WEBHOOK_SECRET ?? null,
  }
}

/**
 * Returns the URL of the SMTP server. Default: the provider's relay with its key as password. Without a key: null in
 * production, otherwise `outbox:`.
 */
function resolveSmtpUrl(env: CommsEnvironment, isProduction: boolean): string | null {
  if (env.EMAIL_SMTP_URL !== undefined) return env.EMAIL_SMTP_URL
  if (env.EMAIL_PROVIDER_API_KEY !== undefined)
    return `smtps://resend:${encodeURIComponent(env.EMAIL_PROVIDER_API_KEY)}@smtp.resend.com:465`
  return isProduction ? null : 'outbox:'
}

export function buildTelephonySettings(env: CommsEnvironment): TelephonySettings {
  return {
    accountSid: env.TELEPHONY_ACCOUNT_SID ?? null,
    authToken: env.TELEPHONY_AUTH_TOKEN ?? null,
    phoneNumber: env.TELEPHONY_PHONE_NUMBER ?? null,
    smsFrom:
      env.TELEPHONY_MESSAGING_SERVICE_SID ?? env.TELEPHONY_SMS_FROM ?? env.TELEPHONY_PHONE_NUMBER ?? null,
    apiBaseUrl: env.TELEPHONY_API_BASE_URL,
    retryMs: env.TELEPHONY_RETRY_HOURS * HOUR_MS,
  }
}

/** Returns the names of missing settings for email. */
export function findMissingEmailSettings({ smtpUrl, from }: EmailSettings): readonly string[] {
  return [
    ...(smtpUrl === null ? ['EMAIL_PROVIDER_API_KEY'] : []),
    ...(from === '' ? ['EMAIL_PROVIDER_FROM_EMAIL'] : []),
  ]
}

/** Returns the names of missing settings for text messages or calls from a sender; null if none is set. */
export function findMissingTelephonySettings(
  settings: TelephonySettings,
  from: string | null,
): readonly string[] {
  return [
    ...(settings.accountSid === null ? ['TELEPHONY_ACCOUNT_SID'] : []),
    ...(settings.authToken === null ? ['TELEPHONY_AUTH_TOKEN'] : []),
    ...(from === null ? ['TELEPHONY_PHONE_NUMBER'] : []),
  ]
}
