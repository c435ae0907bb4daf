import { z } from 'zod'
import { countField, wholeNumberField } from '../settings/fields.ts'

/** Settings of logs, metrics and traces. */

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const

const isHeader = (item: string): boolean => /^[!#$%&'*+.^_`|~0-9A-Za-z-]+=\S*$/.test(item.trim())

/** `NAME=VALUE,…` with percent-encoded values, as in W3C Baggage. */
const HeadersField = z
  .string()
  .refine((text) => text.split(',').every(isHeader), 'must be comma-separated NAME=VALUE pairs')
  .transform((text, context): Readonly<Record<string, string>> => {
    const pairs = text.split(',').map((item) => {
      const at = item.indexOf('=')
      return [item.slice(0, at).trim(), item.slice(at + 1).trim()] as const
    })
    try {
      return Object.fromEntries(pairs.map(([name, value]) => [name, decodeURIComponent(value)]))
    } catch {
      context.addIssue({ code: 'custom', message: 'must have valid percent-encoding in values' })
      return z.NEVER
    }
  })

export const telemetryShape = {
  METRICS_TOKEN: z
    .string()
    .regex(/^[A-Za-z0-9._~+/=-]{16,}$/, 'must be 16 or more letters, digits and . _ ~ + / = -')
    .optional(),
  METRICS_PORT: wholeNumberField(1, 65_535).optional(),
  LOG_LEVEL: z.enum(LOG_LEVELS).default('info'),
  ACCESS_LOG: z.enum(['all', 'errors', 'none']).default('all'),
  SLOW_QUERY_MS: countField(1000, 0, 3_600_000),
  OTEL_EXPORTER_OTLP_ENDPOINT: z.url({ protocol: /^https?$/ }).optional(),
  OTEL_EXPORTER_OTLP_HEADERS: HeadersField.optional(),
  OTEL_SERVICE_NAME: z.string().min(1).max(255).optional(),
  OTEL_TRACES_SAMPLER_ARG: z
    .string()
    .regex(/^[01](\.\d{1,9})?$/, 'must be a number from 0 to 1')
    .transform(Number)
    .pipe(z.number().max(1))
    .default(1),
}

export interface TelemetrySettings {
  /** Access to `/metrics`; with neither, it is disabled in production. */
  readonly metrics: { readonly token: string | undefined; readonly port: number | undefined }
  readonly logLevel: (typeof LOG_LEVELS)[number]
  /** Requests to log. */
  readonly accessLog: 'all' | 'errors' | 'none'
  /** Duration from which a statement is logged as slow; 0 logs none. */
  readonly slowQueryMs: number
  /** Trace export; null disables tracing. */
  readonly tracing: TracingSettings | null
}

export interface TracingSettings {
  /** Endpoint for OTLP traces over HTTP, in JSON. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly serviceName: string
  /** Sampled share of the traces that start here, from 0 to 1. */
  readonly sampleRatio: number
}

type Env = z.output<z.ZodObject<typeof telemetryShape>> & { readonly PROJECT_NAME: string }

export function buildTelemetrySettings(env: Env): TelemetrySettings {
  return {
    metrics: { token: env.METRICS_TOKEN, port: env.METRICS_PORT },
    logLevel: env.LOG_LEVEL,
    accessLog: env.ACCESS_LOG,
    slowQueryMs: env.SLOW_QUERY_MS,
    tracing: buildTracingSettings(env),
  }
}

function buildTracingSettings(env: Env): TracingSettings | null {
  const endpoint = env.OTEL_EXPORTER_OTLP_ENDPOINT
  if (endpoint === undefined) return null
  return {
    // The OTLP specification fixes the path of traces below the endpoint.
    url: `${endpoint.replace(/\/+$/, '')}/v1/traces`,
    headers: env.OTEL_EXPORTER_OTLP_HEADERS ?? {},
    serviceName: env.OTEL_SERVICE_NAME ?? env.PROJECT_NAME,
    sampleRatio: env.OTEL_TRACES_SAMPLER_ARG,
  }
}
