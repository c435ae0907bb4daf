import { AsyncLocalStorage } from 'node:async_hooks'
import type { SlowStatements } from '../../../sql/connections/slow.ts'

/**
 * Records spans of this process and sends them to a collector. If tracing is disabled, nothing of OpenTelemetry is
 * loaded.
 */
export interface Tracing {
  /**
   * Starts a span whose parent may be in another process. A null parent starts a new trace. Without `id`, the span gets
   * a random id.
   */
  start(name: string, kind: SpanKind, parent: string | null, attributes: Attributes, id?: string): Span
  /** Adds a finished span, such as that of a thread or of an exited process. */
  add(span: FinishedSpan): void
  /** Sends the remaining spans within about 1.2 s. */
  close(): Promise<void>
}

export type SpanKind = 'server' | 'client' | 'producer' | 'consumer'

/** Null and undefined attributes are omitted. */
export type Attributes = Readonly<Record<string, string | number | null | undefined>>

/** A span that has not ended. */
export interface Span {
  /** W3C `traceparent` of this span, for its children. */
  readonly traceParent: string
  /** Ends the span. `error` is a short error type; null means success. */
  end(end: { readonly name?: string; readonly attributes?: Attributes; readonly error: string | null }): void
}

export interface FinishedSpan {
  readonly name: string
  readonly kind: SpanKind
  /** `parent` and `id` as in `start`. */
  readonly parent: string | null
  readonly id?: string
  /** Start and end, in ms since the epoch. */
  readonly startMs: number
  readonly endMs: number
  readonly attributes: Attributes
  readonly error: string | null
}

/** The parsed header `traceparent` (https://www.w3.org/TR/trace-context/). */
export interface TraceParent {
  readonly traceId: string
  readonly spanId: string
  readonly isSampled: boolean
}

const TRACE_PARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const ALL_ZEROS = /^0+$/
const SAMPLED_FLAG = 1

/** Parses a `traceparent`; null if it is invalid. Later versions may append fields, which are ignored. */
export function parseTraceParent(text: string): TraceParent | null {
  const [, version, traceId, spanId, flags, more] = TRACE_PARENT.exec(text) ?? []
  if (version === undefined || version === 'ff' || (version === '00' && more !== undefined)) return null
  if (ALL_ZEROS.test(traceId!) || ALL_ZEROS.test(spanId!)) return null
  return { traceId: traceId!, spanId: spanId!, isSampled: (Number.parseInt(flags!, 16) & SAMPLED_FLAG) !== 0 }
}

export function formatTraceParent({ traceId, spanId, isSampled }: TraceParent): string {
  return `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`
}

/** Returns the trace id in a `traceparent` that this service created, for log lines. */
export const traceIdOf = (traceParent: string): string => traceParent.slice(3, 35)

/** The request or attempt that the running code serves. */
export interface Origin {
  /** `traceparent` of the request or attempt, the parent of its jobs and calls; null if tracing is disabled. */
  readonly traceParent: string | null
  /**
   * Returns the origin's fields for log lines; null once the origin has ended, because the running code may then serve
   * other origins.
   */
  logFields(): object | null
  /** Records spans of the origin's calls; null if they are not traced. */
  readonly record: ((span: FinishedSpan) => void) | null
}

const originStorage = new AsyncLocalStorage<Origin>()

/** Runs a function during which `getCurrentOrigin` returns this origin, also after an await. */
export const runWithOrigin = <O extends Origin, T>(origin: O, work: (origin: O) => T): T =>
  originStorage.run(origin, work, origin)

export const getCurrentOrigin = (): Origin | undefined => originStorage.getStore()

/** Returns an observer that logs slow statements with their origin; undefined if the threshold is 0. */
export function logSlowStatements(
  slowQueryMs: number,
  warn: (data: object, message: string) => void,
): SlowStatements | undefined {
  if (slowQueryMs === 0) return undefined
  return {
    thresholdMs: slowQueryMs,
    origin: getCurrentOrigin,
    report: (slow, origin) =>
      warn({ ...slow, ...(origin as Origin | undefined)?.logFields() }, 'Slow statement'),
  }
}
