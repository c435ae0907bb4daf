import { hostname } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import {
  type Attributes as ApiAttributes,
  type Span as ApiSpan,
  SpanKind as ApiSpanKind,
  type Context,
  ROOT_CONTEXT,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  BatchSpanProcessor,
  type IdGenerator,
  ParentBasedSampler,
  RandomIdGenerator,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import type { Log } from '../log.ts'
import type { TracingSettings } from './settings.ts'
import type { Attributes, FinishedSpan, Span, SpanKind, Tracing } from './tracing.ts'
import { formatTraceParent, parseTraceParent } from './tracing.ts'

/**
 * Implements tracing with the OpenTelemetry SDK. The provider is not registered globally, because slonik would then add
 * a span for each statement.
 */

// Leaves time for other shutdown steps: a process has 9 s to stop.
const CLOSE_TIMEOUT_MS = 1200
const SPAN_KINDS: Readonly<Record<SpanKind, ApiSpanKind>> = {
  server: ApiSpanKind.SERVER,
  client: ApiSpanKind.CLIENT,
  producer: ApiSpanKind.PRODUCER,
  consumer: ApiSpanKind.CONSUMER,
}

export function createTracing(
  { url, headers, serviceName, sampleRatio }: TracingSettings,
  name: string,
  log: Pick<Log, 'warn' | 'info'>,
): Tracing {
  const ids = new SpanIds()
  const provider = new TracerProvider({
    idGenerator: ids,
    resource: resourceFromAttributes({
      'service.name': serviceName,
      'service.instance.id': `${name}-${hostname()}-${process.pid}`,
      'process.pid': process.pid,
    }),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(sampleRatio) }),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: logFailures(new OTLPTraceExporter({ url, headers: { ...headers } }), log),
        scheduledDelayMillis: 1000,
        // Holds the spans of one second at full load. Further spans are dropped, so an unreachable collector cannot
        // exhaust memory.
        maxQueueSize: 8192,
      }),
    ],
  })
  const tracer = provider.getTracer(serviceName)
  return {
    start: (name, kind, parent, attributes, id) => {
      ids.next = id
      const options = { kind: SPAN_KINDS[kind], attributes: omitMissingAttributes(attributes) }
      return new SdkSpan(tracer.startSpan(name, options, contextOf(parent)))
    },
    add: ({ name, kind, parent, id, startMs, endMs, attributes, error }: FinishedSpan) => {
      ids.next = id
      const options = {
        kind: SPAN_KINDS[kind],
        startTime: startMs,
        attributes: omitMissingAttributes(attributes),
      }
      endSpan(tracer.startSpan(name, options, contextOf(parent)), error, endMs)
    },
    close: async () => {
      const late = new AbortController()
      const limit = delay(CLOSE_TIMEOUT_MS, undefined, { signal: late.signal }).catch(() => {})
      // Export failures are already logged.
      await Promise.race([provider.shutdown().catch(() => {}), limit])
      late.abort()
    },
  }
}

/** Generates random ids, except for spans with a given id. */
class SpanIds implements IdGenerator {
  /** Id of the next span; undefined means a random id. */
  next: string | undefined
  readonly #random = new RandomIdGenerator()

  generateTraceId(): string {
    return this.#random.generateTraceId()
  }

  generateSpanId(): string {
    const id = this.next ?? this.#random.generateSpanId()
    this.next = undefined
    return id
  }
}

class SdkSpan implements Span {
  readonly traceParent: string
  readonly #span: ApiSpan

  constructor(span: ApiSpan) {
    const { traceId, spanId, traceFlags } = span.spanContext()
    this.#span = span
    this.traceParent = formatTraceParent({ traceId, spanId, isSampled: isSampled(traceFlags) })
  }

  end({ name, attributes = {}, error }: Parameters<Span['end']>[0]): void {
    if (name !== undefined) this.#span.updateName(name)
    this.#span.setAttributes(omitMissingAttributes(attributes))
    endSpan(this.#span, error)
  }
}

function endSpan(span: ApiSpan, error: string | null, endMs?: number): void {
  if (error !== null) span.setAttribute('error.type', error).setStatus({ code: SpanStatusCode.ERROR })
  span.end(endMs)
}

const isSampled = (flags: number): boolean => (flags & TraceFlags.SAMPLED) !== 0

function contextOf(parent: string | null): Context {
  const parsed = parent === null ? null : parseTraceParent(parent)
  if (parsed === null) return ROOT_CONTEXT
  const { traceId, spanId } = parsed
  const traceFlags = parsed.isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: true })
}

function omitMissingAttributes(attributes: Attributes): ApiAttributes {
  return Object.fromEntries(
    Object.entries(attributes).filter(([, value]) => value !== null && value !== undefined),
  ) as ApiAttributes
}

/** Logs when exports start to fail, and when they recover. */
function logFailures(exporter: OTLPTraceExporter, log: Pick<Log, 'warn' | 'info'>): SpanExporter {
  let isFailing = false
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        const failed = result.error !== undefined
        if (failed && !isFailing) log.warn({ err: result.error }, 'Trace export failed; dropping spans')
        if (!failed && isFailing) log.info('Trace export recovered')
        isFailing = failed
        done(result)
      }),
    forceFlush: () => exporter.forceFlush(),
    shutdown: () => exporter.shutdown(),
  }
}
