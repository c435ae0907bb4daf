import { Failure } from '../../sql/errors.ts'
import { type Attributes, getCurrentOrigin } from '../../tasks/platform/telemetry/tracing.ts'
import { describeNetworkError } from './wait.ts'

/** A call to a provider, as traces show it. The span is named after `provider` and `operation`. */
export interface Call {
  readonly provider: string
  readonly operation: string
  /** Base URL; the span contains only its host. */
  readonly url: string
  readonly attributes?: Attributes
}

/** Ends the span of a call, with the error if the call failed. */
export type EndSpan = (error?: unknown) => void

const endNoSpan: EndSpan = () => {}

/** Starts a client span under the current attempt; does nothing if the attempt is not traced. */
export function startCall({ provider, operation, url, attributes }: Call): EndSpan {
  const { record, traceParent } = getCurrentOrigin() ?? {}
  if (record == null || traceParent == null) return endNoSpan
  // As in spans of attempts, the wall clock gives the start and the monotonic clock the duration. `timeOrigin` dates
  // from the start of the thread, and the wall clock may have moved by seconds since then.
  const startMs = Date.now()
  const startedAt = performance.now()
  return (error) =>
    record({
      name: `${provider} ${operation}`,
      kind: 'client',
      parent: traceParent,
      startMs,
      endMs: startMs + performance.now() - startedAt,
      attributes: { 'peer.service': provider, 'server.address': new URL(url).hostname, ...attributes },
      error: error === undefined ? null : describeErrorType(error),
    })
}

/** Runs a call inside a span. */
export async function recordCall<T>(call: Call, work: () => Promise<T>): Promise<T> {
  const end = startCall(call)
  try {
    const result = await work()
    end()
    return result
  } catch (error) {
    end(error)
    throw error
  }
}

/** Returns a short label instead of the error's message, which may quote the request. */
function describeErrorType(error: unknown): string {
  if (error instanceof Failure) return error.code
  const { status, statusCode, responseCode, name } = error as Readonly<Record<string, unknown>>
  const httpStatus = status ?? statusCode ?? responseCode
  if (typeof httpStatus === 'number') return String(httpStatus)
  if (name === 'AbortError' || name === 'TimeoutError') return name
  return describeNetworkError(error).code
}
