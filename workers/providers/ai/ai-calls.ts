import { Failure, fail } from '../../../sql/errors.ts'
import { type AiProvider, keyName } from '../../../tasks/ai/providers.ts'
import type { Settings } from '../../../tasks/settings.ts'
import { retryAfterOf } from '../breaker.ts'
import { networkError } from '../wait.ts'
import { clientOf, type OpenAI } from './openai.ts'

/** Shared by all calls to AI providers: clients, limits and errors. */

// The client's own timeout must fire after ours, whose error gives the reason.
const SLACK_MS = 5000

/** Creates one client per provider, on first use. @throws fail('ai.missing_key') */
export function createClients({ ai }: Pick<Settings, 'ai'>): (provider: AiProvider) => Promise<OpenAI> {
  const clients = new Map<AiProvider, Promise<OpenAI>>()
  return async (provider) => {
    const { apiKey, baseUrl } = ai.endpoints[provider]
    if (apiKey === null) throw fail('ai.missing_key', { provider, setting: keyName(provider) })
    const known = clients.get(provider)
    if (known !== undefined) return known
    // The job decides about retries: it knows what output is already visible, and how many attempts remain.
    const made = clientOf({ apiKey, baseUrl }, ai.timeoutSeconds * 1000 + SLACK_MS, 0)
    clients.set(provider, made)
    return made
  }
}

/** Limits the silence of a provider. */
export interface IdleTimeout {
  /** Aborts when the timeout expires. */
  readonly signal: AbortSignal
  /** The reason of the timeout; null before it expires. */
  readonly late: string | null
  heard(): void
  end(): void
}

export function createIdleTimeout(seconds: number): IdleTimeout {
  const abort = new AbortController()
  const timer = setTimeout(() => abort.abort(), seconds * 1000)
  return {
    signal: abort.signal,
    get late() {
      return abort.signal.aborted ? `it sent nothing for ${seconds} s` : null
    },
    heard: () => timer.refresh(),
    end: () => clearTimeout(timer),
  }
}

/**
 * Maximum size of an answer, in characters or bytes. The longest requested answer, a million tokens, has four to five
 * million characters. A day of speech has about one million, and its segment times another million.
 */
export const MAX_ANSWER = 16 * 1024 * 1024

export const tooLarge = (): Failure => fail('ai.refused', { reason: 'its answer is too large' })

/**
 * Parses the JSON body of an answer; `heard` is called for each chunk.
 * @throws {@link tooLarge}; Unreadable.
 */
export async function wholeAnswer(response: Response, heard: () => void = () => {}): Promise<unknown> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    heard()
    size += chunk.length
    // Leaving the loop cancels the download.
    if (size > MAX_ANSWER) throw tooLarge()
    chunks.push(chunk)
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString())
  } catch (error) {
    throw new Unreadable(UNREADABLE, { cause: error })
  }
}

/**
 * The text of an answer or of a chunk, without reasoning and tool calls. Those have their own fields; Mistral's reasoning
 * models send a list of parts instead (docs.mistral.ai/capabilities/reasoning).
 */
export function textOf(said: { readonly content?: unknown; readonly refusal?: unknown } | undefined): string {
  const given = said?.content ?? said?.refusal
  if (typeof given === 'string') return given
  const parts: readonly { readonly type?: unknown; readonly text?: unknown }[] = Array.isArray(given)
    ? given
    : []
  return parts
    .map((part) => (part?.type === 'text' && typeof part.text === 'string' ? part.text : ''))
    .join('')
}

/** An unusable answer; the message gives the reason. */
export class Unreadable extends Error {}

export const UNREADABLE = 'its answer could not be read'

export interface CallEnd {
  readonly provider: AiProvider
  /** True if part of the answer has already been passed on. */
  readonly begun: boolean
  readonly late: string | null
  /** Explains a permanent refusal; null if only its status is known. */
  readonly refusal?: (status: number, code: unknown) => string | null
}

/**
 * Converts an error of the client into a failure. The failure never contains the provider's own words, which may quote
 * keys and messages.
 */
export function callFailure(error: unknown, end: CallEnd): Failure {
  if (error instanceof Failure) return error
  const { reason, curable, retryAfter } = reasonOf(error, end)
  if (end.begun) return fail('ai.interrupted', { reason }, { cause: error })
  const options = retryAfter === null ? {} : { retryAfter }
  return fail(curable ? 'ai.failed' : 'ai.refused', { reason }, { cause: error, ...options })
}

/** True if the same request may succeed later. */
export const isPassing = (status: number): boolean =>
  status === 408 || status === 409 || status === 429 || status >= 500

interface Reason {
  readonly reason: string
  /** True if a retry can succeed. */
  readonly curable: boolean
  readonly retryAfter: number | null
}

function reasonOf(error: unknown, { provider, late, refusal }: CallEnd): Reason {
  const now = (reason: string): Reason => ({ reason, curable: true, retryAfter: null })
  const good = (reason: string): Reason => ({ reason, curable: false, retryAfter: null })
  if (late !== null) return now(late)
  const { status, code, headers } = error as { status?: unknown; code?: unknown; headers?: unknown }
  if (typeof status === 'number') {
    if (status === 401 || status === 403) return good(`it does not accept ${keyName(provider)}`)
    const known = refusal?.(status, code) ?? null
    if (known !== null) return good(known)
    if (status === 429) {
      const header = headers instanceof Headers ? headers.get('retry-after') : null
      return { ...now('too many requests'), retryAfter: retryAfterOf(header) }
    }
    return isPassing(status)
      ? now(`HTTP status ${status}`)
      : good(`it refused the request (HTTP status ${status})`)
  }
  if (error instanceof Unreadable) return now(error.message)
  const network = networkError(error)
  return now(
    network.code === 'no answer' ? 'the connection broke' : `the connection failed (${network.code})`,
  )
}
