import { AsyncLocalStorage } from 'node:async_hooks'
import type { SlowStatements } from '../../sql/slow.ts'

/** Spans of what this process does, sent to a collector. Nothing of OpenTelemetry is loaded where this is off. */
export interface Tracing {
  /** Begins a span below another one, which may be another process's; null: it begins a trace. `id`: absent, a new one. */
  start(name: string, kind: SpanKind, parent: string | null, attributes: Attributes, id?: string): Span
  /** Adds a span that has ended, such as in a thread or in a process that is gone. */
  add(span: FinishedSpan): void
  /** Sends what is left, and takes not much longer than a second. */
  close(): Promise<void>
}

export type SpanKind = 'server' | 'client' | 'producer' | 'consumer'

/** Absent ones are left out. */
export type Attributes = Readonly<Record<string, string | number | null | undefined>>

/** A span under way. */
export interface Span {
  /** Names it as the parent of others: a W3C `traceparent`. */
  readonly traceParent: string
  /** `error`: what went wrong, in a word; null: nothing. */
  end(end: { readonly name?: string; readonly attributes?: Attributes; readonly error: string | null }): void
}

export interface FinishedSpan {
  readonly name: string
  readonly kind: SpanKind
  /** As in `start`, both of them. */
  readonly parent: string | null
  readonly id?: string
  /** In ms since the epoch. */
  readonly startMs: number
  readonly endMs: number
  readonly attributes: Attributes
  readonly error: string | null
}

/** The trace that something belongs to, as in the header `traceparent` (https://www.w3.org/TR/trace-context/). */
export interface TraceParent {
  readonly traceId: string
  readonly spanId: string
  readonly isSampled: boolean
}

const TRACE_PARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const ZEROS = /^0+$/
const SAMPLED = 1

/** Reads a `traceparent`; null if it is invalid. Later versions may append more, which is ignored. */
export function parseTraceParent(text: string): TraceParent | null {
  const [, version, traceId, spanId, flags, more] = TRACE_PARENT.exec(text) ?? []
  if (version === undefined || version === 'ff' || (version === '00' && more !== undefined)) return null
  if (ZEROS.test(traceId!) || ZEROS.test(spanId!)) return null
  return { traceId: traceId!, spanId: spanId!, isSampled: (Number.parseInt(flags!, 16) & SAMPLED) !== 0 }
}

export function formatTraceParent({ traceId, spanId, isSampled }: TraceParent): string {
  return `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`
}

/** The id of the trace, for log lines, of a `traceparent` that was made here. */
export const traceIdOf = (traceParent: string): string => traceParent.slice(3, 35)

/** What code works for, wherever it is called from: a request, or an attempt of a job. */
export interface Origin {
  /** The span of it, which jobs and calls that come from it belong to; null while nothing is traced. */
  readonly traceParent: string | null
  /** How log lines name it; nothing once it has ended: what it has started may go on, for others. */
  about(): object | null
  /** Takes the spans of calls that it makes; null while they are not traced. */
  readonly record: ((span: FinishedSpan) => void) | null
}

const storage = new AsyncLocalStorage<Origin>()

/** Runs work that comes from this origin. */
export const within = <O extends Origin, T>(origin: O, work: (origin: O) => T): T =>
  storage.run(origin, work, origin)

export const currentOrigin = (): Origin | undefined => storage.getStore()

/** Logs slow statements with what they were for; undefined where none is slow. */
export function logSlowStatements(
  slowQueryMs: number,
  warn: (data: object, message: string) => void,
): SlowStatements | undefined {
  if (slowQueryMs === 0) return undefined
  return {
    fromMs: slowQueryMs,
    origin: currentOrigin,
    tell: (slow, origin) =>
      warn({ ...slow, ...(origin as Origin | undefined)?.about() }, 'A statement was slow'),
  }
}
