import { type Failure, fail } from '../../sql/errors.ts'
import type { ChatModels, Question, Said, Tokens } from '../../tasks/ai/outside.ts'
import { keyName, PROVIDERS } from '../../tasks/ai/providers.ts'
import type { Settings } from '../../tasks/settings.ts'
import { retryAfterOf } from './breaker.ts'
import { clientOf, type OpenAI } from './openai.ts'
import { networkError } from './wait.ts'

/** Models of the six providers, asked through the real client. */
export function createChat({ ai }: Pick<Settings, 'ai'>): ChatModels {
  const clients = new Map<string, Promise<OpenAI>>()
  const clientFor = (provider: Question['provider']): Promise<OpenAI> => {
    const { apiKey, baseUrl } = ai.endpoints[provider]
    if (apiKey === null) throw fail('ai.missing_key', { provider, setting: keyName(provider) })
    const known = clients.get(provider)
    if (known !== undefined) return known
    // Attempts are the job's: it knows what has been shown, and how often to try.
    const made = clientOf({ apiKey, baseUrl }, ai.timeoutSeconds * 1000 + SLACK_MS, 0)
    clients.set(provider, made)
    return made
  }

  return {
    ask: async (question, signal, onText) => {
      const client = await clientFor(question.provider)
      const patience = createPatience(ai.timeoutSeconds)
      const call: Call = { client, question, signal: AbortSignal.any([signal, patience.signal]), patience }
      let begun = false
      const shown = (text: string): void => {
        begun = true
        onText?.(text)
      }
      try {
        return await (onText === undefined ? askAtOnce(call) : askInPieces(call, shown))
      } catch (error) {
        signal.throwIfAborted()
        const late = patience.signal.aborted ? `it sent nothing for ${ai.timeoutSeconds} s` : null
        throw failureOf(error, question, begun, late)
      } finally {
        patience.end()
      }
    },
  }
}

// The client's own limit must not fire before ours, which tells why.
const SLACK_MS = 5000

interface Call {
  readonly client: OpenAI
  readonly question: Question
  readonly signal: AbortSignal
  readonly patience: Patience
}

interface Patience {
  /** Aborted once nothing has come for too long. */
  readonly signal: AbortSignal
  heard(): void
  end(): void
}

function createPatience(seconds: number): Patience {
  const abort = new AbortController()
  const timer = setTimeout(() => abort.abort(), seconds * 1000)
  return { signal: abort.signal, heard: () => timer.refresh(), end: () => clearTimeout(timer) }
}

type Parameters = Omit<OpenAI.Chat.ChatCompletionCreateParams, 'stream'>

function parametersOf({ provider, model, system, messages, temperature, maxTokens }: Question): Parameters {
  const { lengthField, fixedTemperature } = PROVIDERS[provider]
  return {
    model,
    messages: [{ role: 'system', content: system }, ...messages],
    [lengthField]: maxTokens,
    ...(fixedTemperature?.test(model) === true ? {} : { temperature }),
  }
}

async function askAtOnce({ client, question, signal }: Call): Promise<Said> {
  const completion = await client.chat.completions.create(
    { ...parametersOf(question), stream: false },
    { signal },
  )
  const choice = completion.choices?.[0]
  if (choice === undefined) throw new Unreadable()
  const text = choice.message?.content ?? choice.message?.refusal ?? ''
  return { text, tokens: tokensOf(completion.usage), finish: choice.finish_reason ?? '' }
}

async function askInPieces(call: Call, onText: (text: string) => void): Promise<Said> {
  const { client, question, signal, patience } = call
  const stream = await client.chat.completions.create(
    {
      ...parametersOf(question),
      stream: true,
      ...(PROVIDERS[question.provider].asksForUsage ? { stream_options: { include_usage: true } } : {}),
    },
    { signal },
  )
  let text = ''
  let tokens: Tokens | null = null
  let finish = ''
  for await (const chunk of stream) {
    patience.heard()
    tokens = tokensOf(chunk.usage ?? groqUsage(chunk)) ?? tokens
    const choice = chunk.choices?.[0]
    // Reasoning and calls of tools come in fields of their own, and are not the answer.
    const piece = choice?.delta?.content ?? choice?.delta?.refusal ?? ''
    if (piece !== '') {
      text += piece
      onText(piece)
    }
    if (choice?.finish_reason) finish = choice.finish_reason
  }
  // A connection that was closed in the middle looks like an end.
  if (finish === '') throw new Unreadable('the connection was closed')
  return { text, tokens, finish }
}

/** An answer that is not one. */
class Unreadable extends Error {
  readonly reason: string
  constructor(reason = 'its answer could not be read') {
    super(reason)
    this.reason = reason
  }
}

/** Groq tells the usage of a stream in a field of its own. */
function groqUsage(chunk: object): OpenAI.CompletionUsage | undefined {
  return (chunk as { x_groq?: { usage?: OpenAI.CompletionUsage } }).x_groq?.usage
}

/** Null when it does not tell, or tells what can't be. */
function tokensOf(usage: OpenAI.CompletionUsage | null | undefined): Tokens | null {
  const { prompt_tokens: input, completion_tokens: visible, total_tokens: total } = usage ?? {}
  if (!isCount(input) || !isCount(visible)) return null
  // Google leaves reasoning out of the answer's tokens, and has it in the total.
  const hidden = isCount(total) ? Math.max(0, total - input - visible) : 0
  const output = visible + hidden
  const part = (value: unknown, whole: number): number => (isCount(value) ? Math.min(value, whole) : 0)
  return {
    input,
    cached: part(usage?.prompt_tokens_details?.cached_tokens, input),
    output,
    reasoning: Math.max(hidden, part(usage?.completion_tokens_details?.reasoning_tokens, output)),
  }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

/** What an error of the client means. Nothing that the provider wrote is in it: that may quote keys and messages. */
function failureOf(error: unknown, question: Question, begun: boolean, late: string | null): Failure {
  const { reason, curable, retryAfter } = reasonOf(error, question, late)
  if (begun) return fail('ai.interrupted', { reason }, { cause: error })
  const options = retryAfter === null ? {} : { retryAfter }
  return fail(curable ? 'ai.failed' : 'ai.refused', { reason }, { cause: error, ...options })
}

interface Reason {
  readonly reason: string
  /** Whether trying again can help. */
  readonly curable: boolean
  readonly retryAfter: number | null
}

function reasonOf(error: unknown, { provider, model }: Question, late: string | null): Reason {
  const now = (reason: string, retryAfter: number | null = null): Reason => ({
    reason,
    curable: true,
    retryAfter,
  })
  const good = (reason: string): Reason => ({ reason, curable: false, retryAfter: null })
  if (late !== null) return now(late)
  const { status, code, headers } = error as { status?: unknown; code?: unknown; headers?: unknown }
  if (typeof status === 'number') {
    if (status === 401 || status === 403) return good(`it does not accept ${keyName(provider)}`)
    if (status === 404) return good(`it has no model ${model}`)
    if (status === 402 || code === 'insufficient_quota') return good('the quota of the account is used up')
    if (status === 429)
      return now(
        'it takes no more requests for now',
        headers instanceof Headers ? retryAfterOf(headers.get('retry-after') ?? '') : null,
      )
    if (status === 408 || status === 409 || status >= 500) return now(`HTTP status ${status}`)
    if (code === 'context_length_exceeded' || status === 413)
      return good('the conversation is too long for the model')
    return good(`it refused the request (HTTP status ${status})`)
  }
  if (error instanceof Unreadable) return now(error.reason)
  const network = networkError(error)
  if (network.code !== 'no answer') return now(`the connection failed (${network.code})`)
  return now(error instanceof SyntaxError ? 'its answer could not be read' : 'the connection broke')
}
