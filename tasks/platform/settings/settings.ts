import { z } from 'zod'
import type { JobRetention } from '../../../sql/jobs/jobs.ts'
import type { Quotas } from '../../../sql/quotas/quotas.ts'
import type { ReadKind } from '../../../sql/reads/slow-reads.ts'
import { type AccountSettings, accountShape, buildAccountSettings } from '../../accounts/settings.ts'
import { resolveWebauthn, type WebauthnSettings } from '../../accounts/webauthn.ts'
import { AI_PROVIDERS, keySettingName, PROVIDERS } from '../../ai/providers.ts'
import { type AiModel, type AiSettings, aiShape, buildAiSettings } from '../../ai/settings.ts'
import { type BlogSettings, blogShape, buildBlogSettings } from '../../blog/settings.ts'
import {
  buildEmailSettings,
  buildTelephonySettings,
  commsShape,
  type EmailSettings,
  type TelephonySettings,
} from '../../comms/settings.ts'
import { type BlobSettings, blobShape, buildBlobSettings } from '../../documents/blobs/settings.ts'
import { InstalledLanguages, Languages } from '../../documents/languages.ts'
import { buildPaymentSettings, type PaymentSettings, paymentShape } from '../../payments/settings.ts'
import { buildRagSettings, type RagSettings, ragShape } from '../../rag/settings.ts'
import { buildRetentionSettings, type RetentionSettings, retentionShape } from '../../system/settings.ts'
import { parseWebhookSettings, type WebhookSettings, webhookShape } from '../../webhooks/settings.ts'
import { isLoopback, resolveServedHosts, type ServedHosts } from '../addresses.ts'
import { buildTelemetrySettings, type TelemetrySettings, telemetryShape } from '../telemetry/settings.ts'
import { checkCombinations } from './checks.ts'
import {
  countField,
  databaseUrlField,
  flagField,
  hostsField,
  isOrigin,
  listField,
  type RateLimit,
  rateField,
  startRateField,
} from './fields.ts'
import { buildSizeLimits, type SizeLimits, sizeLimitShape } from './limits.ts'
import { buildQuotas, quotaShape } from './quotas.ts'
import { type SecretSettings, secretShape } from './secrets.ts'

/**
 * Every setting of the service, in one schema. `loadSettingsOrExit` reads the settings of every process. A test checks
 * `.env.example` against this file.
 */

export const AREAS = ['ai', 'llm', 'rag', 'voice', 'comms', 'tasks', 'jobs'] as const

const MODELS_DEV_URL = 'https://models.dev/api.json'

const Environment = z.object({
  PROJECT_NAME: z
    .string()
    .regex(/^[a-z][a-z0-9_-]{0,39}$/, 'must be lower-case letters, digits, - and _')
    .default('millrace'),
  NODE_ENV: z.enum(['development', 'production', 'test']).default('development'),
  HOST: z.string().min(1).default('127.0.0.1'),
  PORT: countField(8000, 0, 65_535),
  PUBLIC_BASE_URL: z
    .url({ protocol: /^https?$/ })
    .transform((url) => url.replace(/\/+$/, ''))
    .optional(),
  ALLOWED_HOSTS: hostsField().optional(),
  WEB_CONCURRENCY: countField(1, 1, 256),
  SHARE_PORT: flagField(false),
  DATABASE_URL: databaseUrlField('standby').optional(),
  DATABASE_URL_UNPOOLED: databaseUrlField('standby').optional(),
  DATABASE_REPLICA_URL: databaseUrlField('primary').optional(),
  DATABASE_APP_ROLE: z.string().min(1).max(63).optional(),
  DATA_DIR: z.string().min(1).default('.data'),
  ...secretShape,
  AUTH_LEVEL: z.enum(['rbac', 'basic', 'none']).default('rbac'),
  OPEN_AREAS: listField(...AREAS).optional(),
  ...accountShape,
  RATE_LIMIT_LOGIN: rateField({ max: 30, seconds: 60 }),
  RATE_LIMIT_REGISTER: rateField({ max: 30, seconds: 60 }),
  RATE_LIMIT_PASSWORD_RESET: rateField({ max: 10, seconds: 60 }),
  RATE_LIMIT_API_KEY: rateField(null, 7),
  MAX_STREAMS_PER_ADDRESS: countField(100),
  MAX_STREAMS_PER_ACCOUNT: countField(1000),
  RATE_LIMIT_INVITE: rateField({ max: 20, seconds: 3600 }),
  RATE_LIMIT_EXPORT: rateField({ max: 5, seconds: 86_400 }),
  RATE_LIMIT_SMS: startRateField(),
  RATE_LIMIT_EMAIL: startRateField(),
  RATE_LIMIT_AI_PROVIDER: startRateField(),
  CORS_ORIGINS: listField()
    .refine(
      (items) => items.every(isOrigin),
      'must be a comma-separated list of origins such as https://app.example.com',
    )
    .optional(),
  WORKER_PROCESSES: countField(1, 0, 256),
  WORKER_THREADS: countField(8, 1, 256),
  WORKER_QUEUES: listField()
    .transform((queues) => [...new Set(queues)])
    .refine((queues) => queues.length > 0, 'must be a comma-separated list of queues')
    .optional(),
  LEASE_SECONDS: z
    .string()
    .regex(/^\d{1,3}(\.\d{1,3})?$/, 'must be a number')
    .transform(Number)
    .pipe(z.number().min(0.2).max(300))
    .default(2),
  WORKER_MAX_TRIES: countField(3, 1, 100),
  WORKER_KEEP_RESULT_SECONDS: countField(3600, 1),
  HIGH_PRIORITY: z.enum(['admins', 'everyone']).default('admins'),
  WORKER_KEEP_FAILED_SECONDS: countField(604_800, 1),
  REQUEST_WAIT_SECONDS: countField(120, 0, 3600),
  READ_TIMEOUT_SECONDS: countField(2, 1, 3600),
  LIST_TIMEOUT_SECONDS: countField(5, 1, 3600),
  SEARCH_TIMEOUT_SECONDS: countField(10, 1, 3600),
  STATISTICS_TIMEOUT_SECONDS: countField(20, 1, 3600),
  WRITE_TIMEOUT_SECONDS: countField(30, 1, 3600),
  ...blogShape,
  ...commsShape,
  ...blobShape,
  ...paymentShape,
  ...ragShape,
  ...retentionShape,
  ...webhookShape,
  ...quotaShape,
  TRASH_DAYS: countField(30, 0, 3650),
  ...sizeLimitShape,
  OCR_LANGUAGES: Languages.pipe(InstalledLanguages).default('eng'),
  VISION_PROVIDER: z.enum(['tesseract', 'none', ...AI_PROVIDERS]).default('tesseract'),
  VISION_PICTURES: z.enum(['off', 'auto']).default('auto'),
  ...aiShape,
  LLM_CATALOG_URL: z
    .literal('none')
    .or(z.url({ protocol: /^https?$/ }))
    .optional(),
  ...telemetryShape,
})

type Env = z.output<typeof Environment>

/** Names of all settings; `.env.example` must list them. */
export const SETTING_NAMES = Object.keys(Environment.shape)

export interface Settings extends TelemetrySettings, AccountSettings, SizeLimits, SecretSettings {
  readonly projectName: string
  readonly production: boolean
  readonly host: string
  readonly port: number
  readonly publicBaseUrl: string
  /** Hosts that an edge serves; null allows every host. */
  readonly servedHosts: ServedHosts | null
  /**
   * True if the first account to register becomes admin: only in development, on a loopback host, without ADMIN_EMAIL.
   */
  readonly firstAccountIsAdmin: boolean
  readonly webConcurrency: number
  readonly sharePort: boolean
  /** Undefined uses the embedded PostgreSQL. */
  readonly databaseUrl: string | undefined
  readonly databaseUrlUnpooled: string | undefined
  /** A standby that serves the reads that may lag; undefined if there is none. */
  readonly databaseReplicaUrl: string | undefined
  /**
   * Database role of edges and workers, to which migrations grant rights. If undefined, edges and workers connect as
   * the owner.
   */
  readonly databaseAppRole: string | undefined
  /** True if `DATABASE_URL` goes through a pooler. */
  readonly databasePooled: boolean
  readonly dataDir: string
  readonly authLevel: 'rbac' | 'basic' | 'none'
  /** Areas open to callers without a credential. */
  readonly openAreas: ReadonlySet<string>
  /** Rate limits by action; null means no limit. */
  readonly limits: Readonly<
    Record<'login' | 'register' | 'passwordReset' | 'invite' | 'export', RateLimit | null>
  >
  /** Rate limit of an API key; null means no limit. */
  readonly apiKeyRate: RateLimit | null
  /** Rates at which requests to providers start, in all workers together; null means no limit. */
  readonly startRates: Readonly<Record<'sms' | 'email' | 'aiProvider', RateLimit | null>>
  /** Maximum number of concurrent event streams; 0 means no limit. */
  readonly maxStreams: { readonly perAddress: number; readonly perAccount: number }
  readonly corsOrigins: ReadonlySet<string>
  readonly webauthn: WebauthnSettings
  readonly workerProcesses: number
  readonly workerThreads: number
  /** Undefined means all queues. */
  readonly workerQueues: readonly string[] | undefined
  /** Time after which a worker's lease expires unless it is renewed. */
  readonly leaseMs: number
  readonly workerMaxTries: number
  /** The accounts that may choose the priority `high`. */
  readonly highPriority: 'admins' | 'everyone'
  readonly jobRetention: JobRetention
  readonly requestWaitSeconds: number
  /** Time limit of a read by key; on timeout, its connection is dropped. */
  readonly readTimeoutMs: number
  /** Time limits of the edge's reads whose cost grows with the data. */
  readonly slowReadMs: Readonly<Record<ReadKind, number>>
  /** Time limit of all other statements. */
  readonly writeTimeoutMs: number
  readonly blog: BlogSettings
  readonly email: EmailSettings
  readonly telephony: TelephonySettings
  readonly blobs: BlobSettings
  readonly payments: PaymentSettings
  readonly ai: AiSettings
  readonly rag: RagSettings
  readonly retentionDays: RetentionSettings
  readonly webhooks: WebhookSettings
  /** Quotas of an account. */
  readonly quotas: Quotas
  /** Number of days in which a deleted document can be restored. */
  readonly trashDays: number
  /** OCR languages of tesseract, such as `deu+fra`. */
  readonly ocrLanguages: string
  /** Reader of pages without a text layer. */
  readonly visionProvider: 'tesseract' | 'none' | AiModel
  /** Mode of OCR of pictures on pages with text, and in office files. */
  readonly visionPictures: 'off' | 'auto'
  /** URL of the model list; null disables the sync. */
  readonly llmCatalogUrl: string | null
  /** True if rows and responses are validated against their schemas. */
  readonly validateSchemas: boolean
}

/** Thrown for invalid settings, with one line per problem. */
export class SettingsError extends Error {
  readonly problems: readonly string[]
  constructor(problems: readonly string[]) {
    super(`Invalid settings:\n${problems.map((line) => `  ${line}`).join('\n')}`)
    this.name = 'SettingsError'
    this.problems = problems
  }
}

/** Parses settings from an environment; treats an empty variable as unset. @throws SettingsError with all problems. */
export function parseSettings(environment: Readonly<Record<string, string | undefined>>): Settings {
  const { settings, problems } = parseWithProblems(environment)
  if (problems.length > 0) throw new SettingsError(problems)
  return settings
}

/**
 * Like `parseSettings`, but returns the problems, one line each, instead of throwing. Replaces invalid settings with
 * their defaults.
 */
export function parseWithProblems(environment: Readonly<Record<string, string | undefined>>): {
  readonly settings: Settings
  readonly problems: readonly string[]
} {
  const nonEmpty = Object.fromEntries(
    Object.entries(environment).filter(([, value]) => value !== undefined && value !== ''),
  )
  const issues = Environment.safeParse(nonEmpty).error?.issues ?? []
  const problems = [
    ...issues.map(({ path, message }) => `${path.join('.')}: ${message}`),
    ...checkCombinations(nonEmpty),
  ]
  const invalidNames = new Set(issues.map(({ path }) => path[0]))
  const valid = Object.entries(nonEmpty).filter(([name]) => !invalidNames.has(name))
  return { settings: buildSettings(Environment.parse(Object.fromEntries(valid))), problems }
}

function buildSettings(env: Env): Settings {
  const production = env.NODE_ENV === 'production'
  return Object.freeze({
    ...buildServerSettings(env, production),
    ...buildDatabaseSettings(env),
    ...buildAccessSettings(env, production),
    ...buildLimitSettings(env),
    ...buildWorkerSettings(env),
    ...buildTelemetrySettings(env),
    ...buildAccountSettings(env),
    blog: buildBlogSettings(env),
    email: buildEmailSettings(env, production),
    telephony: buildTelephonySettings(env),
    blobs: buildBlobSettings(env),
    payments: buildPaymentSettings(env),
    ai: buildAiSettings(env),
    rag: buildRagSettings(env),
    retentionDays: buildRetentionSettings(env),
    webhooks: parseWebhookSettings(env, production),
    quotas: buildQuotas(env),
    trashDays: env.TRASH_DAYS,
    ocrLanguages: env.OCR_LANGUAGES,
    visionProvider: resolveVisionProvider(env),
    visionPictures: env.VISION_PICTURES,
    llmCatalogUrl: resolveCatalogUrl(env),
  })
}

/** Builds the server's addresses and the checks that depend on the environment. */
function buildServerSettings(env: Env, production: boolean) {
  const { HOST: host } = env
  const publicBaseUrl = env.PUBLIC_BASE_URL ?? `http://${host.includes(':') ? `[${host}]` : host}:${env.PORT}`
  return {
    projectName: env.PROJECT_NAME,
    production,
    host,
    port: env.PORT,
    publicBaseUrl,
    servedHosts: resolveServedHosts({ production, host, publicBaseUrl, allowedHosts: env.ALLOWED_HOSTS }),
    firstAccountIsAdmin: !production && isLoopback(host) && env.ADMIN_EMAIL === undefined,
    webConcurrency: env.WEB_CONCURRENCY,
    sharePort: env.SHARE_PORT,
    corsOrigins: new Set(env.CORS_ORIGINS ?? []),
    webauthn: resolveWebauthn({
      rpId: env.WEBAUTHN_RP_ID,
      origins: env.WEBAUTHN_ORIGINS,
      publicBaseUrl,
      corsOrigins: env.CORS_ORIGINS ?? [],
    }),
    validateSchemas: !production,
  } satisfies Partial<Settings>
}

function buildDatabaseSettings(env: Env) {
  return {
    databaseUrl: env.DATABASE_URL,
    databaseReplicaUrl: env.DATABASE_REPLICA_URL,
    databaseAppRole: env.DATABASE_APP_ROLE,
    databaseUrlUnpooled: env.DATABASE_URL && (env.DATABASE_URL_UNPOOLED ?? env.DATABASE_URL),
    databasePooled:
      env.DATABASE_URL !== undefined && (env.DATABASE_URL_UNPOOLED ?? env.DATABASE_URL) !== env.DATABASE_URL,
    dataDir: env.DATA_DIR,
  } satisfies Partial<Settings>
}

/** Builds the signing key and access rules. */
function buildAccessSettings(env: Env, production: boolean) {
  return {
    secretKey: env.SECRET_KEY,
    secretKeysPrevious: env.SECRET_KEYS_PREVIOUS,
    authLevel: env.AUTH_LEVEL,
    openAreas: new Set(env.OPEN_AREAS ?? (production ? [] : AREAS)),
  } satisfies Partial<Settings>
}

/** Builds the limits on the number and size of requests. */
function buildLimitSettings(env: Env) {
  return {
    limits: {
      login: env.RATE_LIMIT_LOGIN,
      register: env.RATE_LIMIT_REGISTER,
      passwordReset: env.RATE_LIMIT_PASSWORD_RESET,
      invite: env.RATE_LIMIT_INVITE,
      export: env.RATE_LIMIT_EXPORT,
    },
    apiKeyRate: env.RATE_LIMIT_API_KEY,
    startRates: {
      sms: env.RATE_LIMIT_SMS,
      email: env.RATE_LIMIT_EMAIL,
      aiProvider: env.RATE_LIMIT_AI_PROVIDER,
    },
    maxStreams: { perAddress: env.MAX_STREAMS_PER_ADDRESS, perAccount: env.MAX_STREAMS_PER_ACCOUNT },
    ...buildSizeLimits(env),
  } satisfies Partial<Settings>
}

/** Builds the settings of workers, and the time limits of jobs and statements. */
function buildWorkerSettings(env: Env) {
  return {
    workerProcesses: env.WORKER_PROCESSES,
    workerThreads: env.WORKER_THREADS,
    workerQueues: env.WORKER_QUEUES,
    leaseMs: env.LEASE_SECONDS * 1000,
    workerMaxTries: env.WORKER_MAX_TRIES,
    highPriority: env.HIGH_PRIORITY,
    jobRetention: [env.WORKER_KEEP_RESULT_SECONDS, env.WORKER_KEEP_FAILED_SECONDS],
    requestWaitSeconds: env.REQUEST_WAIT_SECONDS,
    readTimeoutMs: env.READ_TIMEOUT_SECONDS * 1000,
    slowReadMs: {
      list: env.LIST_TIMEOUT_SECONDS * 1000,
      search: env.SEARCH_TIMEOUT_SECONDS * 1000,
      statistics: env.STATISTICS_TIMEOUT_SECONDS * 1000,
    },
    writeTimeoutMs: env.WRITE_TIMEOUT_SECONDS * 1000,
  } satisfies Partial<Settings>
}

/** Returns the URL of the model list. Tests make no external requests by default. */
function resolveCatalogUrl({ LLM_CATALOG_URL: given, NODE_ENV }: Env): string | null {
  const url = given ?? (NODE_ENV === 'test' ? 'none' : MODELS_DEV_URL)
  return url === 'none' ? null : url
}

/** Returns the reader of pages. `AI_MODEL` applies only to `AI_PROVIDER`. Other providers use their default models. */
function resolveVisionProvider(env: Env): Settings['visionProvider'] {
  const provider = env.VISION_PROVIDER
  if (provider === 'tesseract' || provider === 'none') return provider
  const { endpoints, timeoutSeconds, model } = buildAiSettings(env)
  return {
    provider,
    name: provider === env.AI_PROVIDER ? model : PROVIDERS[provider].model,
    apiKey: env[keySettingName(provider)]!,
    baseUrl: endpoints[provider].baseUrl,
    timeoutSeconds,
  }
}
