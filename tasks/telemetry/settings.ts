import { z } from 'zod'
import { count, whole } from '../setting-fields.ts'

/** Settings of what the service tells about itself: log, metrics, traces. */

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const

const isHeader = (item: string): boolean => /^[!#$%&'*+.^_`|~0-9A-Za-z-]+=\S*$/.test(item.trim())

/** `NAME=VALUE,…`, values percent-encoded, as the W3C's baggage has them. */
const Headers = z
  .string()
  .refine((text) => text.split(',').every(isHeader), 'must be NAME=VALUE, separated by commas')
  .transform((text, context): Readonly<Record<string, string>> => {
    const pairs = text.split(',').map((item) => {
      const at = item.indexOf('=')
      return [item.slice(0, at).trim(), item.slice(at + 1).trim()] as const
    })
    try {
      return Object.fromEntries(pairs.map(([name, value]) => [name, decodeURIComponent(value)]))
    } catch {
      context.addIssue({ code: 'custom', message: 'must have percent-encoded values' })
      return z.NEVER
    }
  })

export const telemetryShape = {
  METRICS_TOKEN: z
    .string()
    .regex(/^[A-Za-z0-9._~+/=-]{16,}$/, 'must be 16 or more letters, digits and . _ ~ + / = -')
    .optional(),
  METRICS_PORT: whole(1, 65_535).optional(),
  LOG_LEVEL: z.enum(LEVELS).default('info'),
  ACCESS_LOG: z.enum(['all', 'errors', 'none']).default('all'),
  SLOW_QUERY_MS: count(1000, 0, 3_600_000),
  OTEL_EXPORTER_OTLP_ENDPOINT: z.url({ protocol: /^https?$/ }).optional(),
  OTEL_EXPORTER_OTLP_HEADERS: Headers.optional(),
  OTEL_SERVICE_NAME: z.string().min(1).max(255).optional(),
  OTEL_TRACES_SAMPLER_ARG: z
    .string()
    .regex(/^[01](\.\d{1,9})?$/, 'must be a number from 0 to 1')
    .transform(Number)
    .pipe(z.number().max(1))
    .default(1),
}

export interface TelemetrySettings {
  /** How `/metrics` is reached; with neither, not at all in production. */
  readonly metrics: { readonly token: string | undefined; readonly port: number | undefined }
  readonly logLevel: (typeof LEVELS)[number]
  /** Which requests are logged. */
  readonly accessLog: 'all' | 'errors' | 'none'
  /** From when on a statement is logged as slow; 0: none is. */
  readonly slowQueryMs: number
  /** Where traces go; null: nothing is traced. */
  readonly tracing: TracingSettings | null
}

export interface TracingSettings {
  /** Takes traces by OTLP over HTTP, in JSON. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly serviceName: string
  /** The share of the traces that begin here which are kept. */
  readonly ratio: number
}

type Env = z.output<z.ZodObject<typeof telemetryShape>> & { readonly PROJECT_NAME: string }

export function telemetrySettings(env: Env): TelemetrySettings {
  return {
    metrics: { token: env.METRICS_TOKEN, port: env.METRICS_PORT },
    logLevel: env.LOG_LEVEL,
    accessLog: env.ACCESS_LOG,
    slowQueryMs: env.SLOW_QUERY_MS,
    tracing: tracingSettings(env),
  }
}

function tracingSettings(env: Env): TracingSettings | null {
  const endpoint = env.OTEL_EXPORTER_OTLP_ENDPOINT
  if (endpoint === undefined) return null
  return {
    // The path of traces below the endpoint is the protocol's.
    url: `${endpoint.replace(/\/+$/, '')}/v1/traces`,
    headers: env.OTEL_EXPORTER_OTLP_HEADERS ?? {},
    serviceName: env.OTEL_SERVICE_NAME ?? env.PROJECT_NAME,
    ratio: env.OTEL_TRACES_SAMPLER_ARG,
  }
}
