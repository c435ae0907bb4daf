import { type Mode, startHttpStandIn } from './http.ts'

/** An OpenTelemetry collector that accepts traces as OTLP in JSON (https://opentelemetry.io/docs/specs/otlp/). */

export interface ReceivedSpan {
  readonly traceId: string
  readonly spanId: string
  /** Empty for the root span of a trace. */
  readonly parentSpanId: string
  readonly name: string
  readonly kind: 'internal' | 'server' | 'client' | 'producer' | 'consumer'
  readonly startMs: number
  readonly endMs: number
  readonly attributes: Readonly<Record<string, unknown>>
  /** True if the span's status is an error. */
  readonly failed: boolean
  readonly service: string
}

export interface CollectorStandIn {
  readonly url: string
  readonly spans: ReceivedSpan[]
  /** Headers of each request. */
  readonly headers: Readonly<Record<string, unknown>>[]
  /** Reaction to the next requests. */
  mode: Mode
  stop(): Promise<void>
}

interface Value {
  readonly stringValue?: string
  readonly intValue?: string | number
  readonly doubleValue?: number
  readonly boolValue?: boolean
}

interface Attribute {
  readonly key: string
  readonly value: Value
}

interface Sent {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] }
    readonly scopeSpans: readonly { readonly spans: readonly SentSpan[] }[]
  }[]
}

interface SentSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly kind: number
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: readonly Attribute[]
  readonly status: { readonly code?: number }
}

const SPAN_KINDS = ['internal', 'internal', 'server', 'client', 'producer', 'consumer'] as const
const ERROR_STATUS = 2

export async function startCollector(): Promise<CollectorStandIn> {
  const spans: ReceivedSpan[] = []
  const headers: CollectorStandIn['headers'] = []
  const server = await startHttpStandIn((asked) => {
    headers.push(asked.headers)
    return {
      mode: asked.path === '/v1/traces' ? standIn.mode : { status: 404 },
      take: () => {
        spans.push(...spansOf(JSON.parse(asked.body) as Sent))
        return { status: 200, body: {} }
      },
    }
  })
  const standIn: CollectorStandIn = { url: server.url, spans, headers, mode: 'take', stop: server.stop }
  return standIn
}

function* spansOf({ resourceSpans }: Sent): Generator<ReceivedSpan> {
  for (const { resource, scopeSpans } of resourceSpans) {
    const service = String(valuesOf(resource.attributes)['service.name'])
    for (const { spans } of scopeSpans) for (const span of spans) yield { ...parseSpan(span), service }
  }
}

function parseSpan(span: SentSpan): Omit<ReceivedSpan, 'service'> {
  const ms = (nanoseconds: string): number => Number(BigInt(nanoseconds) / 1000n) / 1000
  return {
    traceId: span.traceId,
    spanId: span.spanId,
    parentSpanId: span.parentSpanId ?? '',
    name: span.name,
    kind: SPAN_KINDS[span.kind]!,
    startMs: ms(span.startTimeUnixNano),
    endMs: ms(span.endTimeUnixNano),
    attributes: valuesOf(span.attributes),
    failed: span.status.code === ERROR_STATUS,
  }
}

function valuesOf(attributes: readonly Attribute[]): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => [
      key,
      value.stringValue ?? value.doubleValue ?? value.boolValue ?? Number(value.intValue),
    ]),
  )
}
