import { Failure, fail } from '../../../sql/errors.ts'
import { type AiProvider, keySettingName } from '../../../tasks/ai/providers.ts'
import type { Settings } from '../../../tasks/platform/settings/settings.ts'
import { parseRetryAfter } from '../breaker.ts'
import { describeNetworkError } from '../wait.ts'
import { createClient, type OpenAI } from './openai.ts'

/** Provides clients, limits and errors for all calls to AI providers. */

// The client's own timeout must fire after ours, because only our error gives the reason.
const CLIENT_TIMEOUT_MARGIN_MS = 5000

/** Creates one client per provider, on first use. @throws fail('ai.missing_key') */
export function createClients({ ai }: Pick<Settings, 'ai'>): (provider: AiProvider) => Promise<OpenAI> {
  const clients = new Map<AiProvider, Promise<OpenAI>>()
  return async (provider) => {
    const { apiKey, baseUrl } = ai.endpoints[provider]
    if (apiKey === null) throw fail('ai.missing_key', { provider, setting: keySettingName(provider) })
    const existing = clients.get(provider)
    if (existing !== undefined) return existing
    // The job decides about retries: it knows what output is already visible, and how many attempts remain.
    const created = createClient({ apiKey, baseUrl }, ai.timeoutSeconds * 1000 + CLIENT_TIMEOUT_MARGIN_MS, 0)
    clients.set(provider, created)
    return created
  }
}

/** Limits the time between two chunks of an answer. */
export interface IdleTimeout {
  /** Aborts when the timeout expires. */
  readonly signal: AbortSignal
  /** Error text of the timeout; null before it expires. */
  readonly reason: string | null
  restart(): void
  clear(): void
}

export function createIdleTimeout(seconds: number): IdleTimeout {
  const abort = new AbortController()
  const timer = setTimeout(() => abort.abort(), seconds * 1000)
  return {
    signal: abort.signal,
    get reason() {
      return abort.signal.aborted ? `it sent nothing for ${seconds} s` : null
    },
    restart: () => timer.refresh(),
    clear: () => clearTimeout(timer),
  }
}

/**
 * Maximum size of an answer, in characters or bytes. The longest requested answer, a million tokens, has four to five
 * million characters. A day of speech has about one million, and its segment times another million.
 */
export const MAX_ANSWER_SIZE = 16 * 1024 * 1024

export const createTooLargeFailure = (): Failure => fail('ai.refused', { reason: 'its answer is too large' })

/**
 * Parses the JSON body of an answer; calls `onChunk` for each chunk.
 * @throws {@link createTooLargeFailure}; Unreadable.
 */
export async function readJson(response: Response, onChunk: () => void = () => {}): Promise<unknown> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    onChunk()
    size += chunk.length
    // Leaving the loop cancels the download.
    if (size > MAX_ANSWER_SIZE) throw createTooLargeFailure()
    chunks.push(chunk)
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString())
  } catch (error) {
    throw new Unreadable(UNREADABLE_REASON, { cause: error })
  }
}

/**
 * Returns the text of an answer or of a chunk, without reasoning and tool calls. Those have their own fields, but
 * Mistral's reasoning models send a list of parts instead (docs.mistral.ai/capabilities/reasoning).
 */
export function extractText(
  message: { readonly content?: unknown; readonly refusal?: unknown } | undefined,
): string {
  const content = message?.content ?? message?.refusal
  if (typeof content === 'string') return content
  const parts: readonly { readonly type?: unknown; readonly text?: unknown }[] = Array.isArray(content)
    ? content
    : []
  return parts
    .map((part) => (part?.type === 'text' && typeof part.text === 'string' ? part.text : ''))
    .join('')
}

/** An unusable answer; the message gives the reason. */
export class Unreadable extends Error {}

export const UNREADABLE_REASON = 'its answer could not be read'

export interface FailedCall {
  readonly provider: AiProvider
  readonly model: string
  /** True if part of the answer has already been passed on. */
  readonly hasOutput: boolean
  readonly timeoutReason: string | null
  /** Explains a refusal that only some calls can get; null if only its status is known. */
  readonly explainRefusal?: (status: number, code: unknown) => string | null
}

/**
 * Converts an error of the client into a failure. The failure never contains the provider's own words, which may quote
 * keys and messages.
 */
export function toCallFailure(error: unknown, call: FailedCall): Failure {
  if (error instanceof Failure) return error
  const { reason, canRetry, retryAfter } = describeError(error, call)
  if (call.hasOutput) return fail('ai.interrupted', { reason }, { cause: error })
  const options = retryAfter === null ? {} : { retryAfter }
  return fail(canRetry ? 'ai.failed' : 'ai.refused', { reason }, { cause: error, ...options })
}

/** True if the same request may succeed later. */
export const isTransient = (status: number): boolean =>
  status === 408 || status === 409 || status === 429 || status >= 500

interface Reason {
  readonly reason: string
  /** True if a retry can succeed. */
  readonly canRetry: boolean
  readonly retryAfter: number | null
}

function describeError(
  error: unknown,
  { provider, model, timeoutReason, explainRefusal }: FailedCall,
): Reason {
  const transient = (reason: string): Reason => ({ reason, canRetry: true, retryAfter: null })
  const permanent = (reason: string): Reason => ({ reason, canRetry: false, retryAfter: null })
  if (timeoutReason !== null) return transient(timeoutReason)
  const { status, code, headers } = error as { status?: unknown; code?: unknown; headers?: unknown }
  if (typeof status === 'number') {
    if (status === 401 || status === 403) return permanent(`it does not accept ${keySettingName(provider)}`)
    if (status === 402 || code === 'insufficient_quota')
      return permanent('the quota of the account is exhausted')
    if (status === 404) return permanent(`it has no model ${model}`)
    const explained = explainRefusal?.(status, code) ?? null
    if (explained !== null) return permanent(explained)
    if (status === 429) {
      const header = headers instanceof Headers ? headers.get('retry-after') : null
      return { ...transient('too many requests'), retryAfter: parseRetryAfter(header) }
    }
    return isTransient(status)
      ? transient(`HTTP status ${status}`)
      : permanent(`it refused the request (HTTP status ${status})`)
  }
  if (error instanceof Unreadable) return transient(error.message)
  // The client throws a SyntaxError for a chunk that is not JSON.
  if (error instanceof SyntaxError) return transient(UNREADABLE_REASON)
  const network = describeNetworkError(error)
  return transient(
    network.code === 'no answer' ? 'the connection broke' : `the connection failed (${network.code})`,
  )
}
