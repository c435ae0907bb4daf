import { Failure, fail } from '../../../sql/errors.ts'
import { type AiProvider, keyName } from '../../../tasks/ai/providers.ts'
import type { Settings } from '../../../tasks/settings.ts'
import { retryAfterOf } from '../breaker.ts'
import { networkError } from '../wait.ts'
import { clientOf, type OpenAI } from './openai.ts'

/** What all calls to AI providers have in common: clients, limits, and what errors mean. */

// The client's own limit must not fire before ours, which says why.
const SLACK_MS = 5000

/** One client per provider, created when it is first needed. @throws fail('ai.missing_key') */
export function createClients({ ai }: Pick<Settings, 'ai'>): (provider: AiProvider) => Promise<OpenAI> {
  const clients = new Map<AiProvider, Promise<OpenAI>>()
  return async (provider) => {
    const { apiKey, baseUrl } = ai.endpoints[provider]
    if (apiKey === null) throw fail('ai.missing_key', { provider, setting: keyName(provider) })
    const known = clients.get(provider)
    if (known !== undefined) return known
    // Retries are up to the job: it knows what has been shown, and how often to try.
    const made = clientOf({ apiKey, baseUrl }, ai.timeoutSeconds * 1000 + SLACK_MS, 0)
    clients.set(provider, made)
    return made
  }
}

/** Limits how long a provider may send nothing. */
export interface IdleTimeout {
  /** Aborted once nothing has arrived for too long. */
  readonly signal: AbortSignal
  /** What has timed out, in words; null if nothing has. */
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
 * How much of an answer is taken, in characters or bytes. A million tokens, the most that one is asked for, are four to five million
 * characters; a whole day of speech has about a million, and the times of its segments as many again.
 */
export const MAX_ANSWER = 16 * 1024 * 1024

export const tooLarge = (): Failure => fail('ai.refused', { reason: 'its answer is too large' })

/**
 * The JSON of an answer that comes at once; `heard` is called for each piece of it.
 * @throws {@link tooLarge}; Unreadable.
 */
export async function wholeAnswer(response: Response, heard: () => void = () => {}): Promise<unknown> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    heard()
    size += chunk.length
    // Leaving the loop cancels the answer.
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
 * The text of an answer, or of a piece of one. Reasoning and tool calls are not part of it: they come in fields of their own, or,
 * of Mistral's models that reason, as other parts of a list (docs.mistral.ai/capabilities/reasoning).
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

/** An answer that can't be used; the message says why. */
export class Unreadable extends Error {}

export const UNREADABLE = 'its answer could not be read'

export interface CallEnd {
  readonly provider: AiProvider
  /** Part of the answer has already been passed on. */
  readonly begun: boolean
  readonly late: string | null
  /** The meaning of a refusal that no retry can cure; null when nothing is known beyond its status. */
  readonly refusal?: (status: number, code: unknown) => string | null
}

/**
 * What an error of the client means, unless it is a failure already. It has none of the provider's own words: those may quote keys
 * and messages.
 */
export function callFailure(error: unknown, end: CallEnd): Failure {
  if (error instanceof Failure) return error
  const { reason, curable, retryAfter } = reasonOf(error, end)
  if (end.begun) return fail('ai.interrupted', { reason }, { cause: error })
  const options = retryAfter === null ? {} : { retryAfter }
  return fail(curable ? 'ai.failed' : 'ai.refused', { reason }, { cause: error, ...options })
}

/** Whether a status says that the same request may succeed later. */
export const isPassing = (status: number): boolean =>
  status === 408 || status === 409 || status === 429 || status >= 500

interface Reason {
  readonly reason: string
  /** Whether a retry can help. */
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
      return { ...now('it takes no more requests for now'), retryAfter: retryAfterOf(header) }
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
