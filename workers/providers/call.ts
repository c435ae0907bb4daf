import { Failure } from '../../sql/errors.ts'
import { type Attributes, currentOrigin } from '../../tasks/telemetry/tracing.ts'
import { networkError } from './wait.ts'

/** A call to a provider, as traces show it. */
export interface Call {
  /** Who it goes to, and what it asks for. */
  readonly provider: string
  readonly what: string
  /** The address of the provider. */
  readonly url: string
  readonly attributes?: Attributes
}

/** Ends the span of a call, which says what went wrong, if anything did. */
export type EndCall = (error?: unknown) => void

const ignored: EndCall = () => {}

/** Begins a call: a span of the attempt that makes it, while that is traced. */
export function startCall({ provider, what, url, attributes }: Call): EndCall {
  const { record, traceParent } = currentOrigin() ?? {}
  if (record == null || traceParent == null) return ignored
  // As the spans of attempts: the clock says when, and what does not follow its changes says how long. `timeOrigin` is of
  // when the thread began, from which the clock may have moved away by seconds.
  const startMs = Date.now()
  const startedAt = performance.now()
  return (error) =>
    record({
      name: `${provider} ${what}`,
      kind: 'client',
      parent: traceParent,
      startMs,
      endMs: startMs + performance.now() - startedAt,
      attributes: { 'peer.service': provider, 'server.address': new URL(url).hostname, ...attributes },
      error: error === undefined ? null : wordOf(error),
    })
}

/** Makes a call that is one promise. */
export async function recorded<T>(call: Call, work: () => Promise<T>): Promise<T> {
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

/** An error in a word: the text of one may quote what was sent. */
function wordOf(error: unknown): string {
  if (error instanceof Failure) return error.code
  const { status, statusCode, responseCode, name } = error as Readonly<Record<string, unknown>>
  const answered = status ?? statusCode ?? responseCode
  if (typeof answered === 'number') return String(answered)
  if (name === 'AbortError' || name === 'TimeoutError') return name
  return networkError(error).code
}
