import type { ChatModels, Completion, Question, Tokens } from '../../../tasks/ai/ports.ts'
import { PROVIDERS } from '../../../tasks/ai/providers.ts'
import type { Settings } from '../../../tasks/platform/settings/settings.ts'
import { type Call as ProviderCall, recordCall } from '../call.ts'
import {
  createClients,
  createIdleTimeout,
  createTooLargeFailure,
  extractText,
  type IdleTimeout,
  isTransient,
  MAX_ANSWER_SIZE,
  readJson,
  toCallFailure,
  UNREADABLE_REASON,
  Unreadable,
} from './ai-calls.ts'
import type { OpenAI } from './openai.ts'

/** Creates chat completions with the six providers, through the client for OpenAI's protocol. */
export function createChat({ ai }: Pick<Settings, 'ai'>): ChatModels {
  const clientFor = createClients({ ai })
  return {
    ask: async (question, signal, onText) => {
      const client = await clientFor(question.provider)
      const idleTimeout = createIdleTimeout(ai.timeoutSeconds)
      const call: Call = {
        client,
        question,
        signal: AbortSignal.any([signal, idleTimeout.signal]),
        idleTimeout,
      }
      let hasOutput = false
      const emit = (text: string): void => {
        hasOutput = true
        onText?.(text)
      }
      try {
        return await recordCall(describeCall(question, client.baseURL), () =>
          onText === undefined ? complete(call) : completeStreaming(call, emit),
        )
      } catch (error) {
        signal.throwIfAborted()
        const { provider, model } = question
        throw toCallFailure(error, {
          provider,
          model,
          hasOutput,
          timeoutReason: idleTimeout.reason,
          explainRefusal,
        })
      } finally {
        idleTimeout.clear()
      }
    },
  }
}

const describeCall = ({ provider, model }: Question, url: string): ProviderCall => ({
  provider,
  operation: 'chat',
  url,
  attributes: { 'gen_ai.request.model': model },
})

interface Call {
  readonly client: OpenAI
  readonly question: Question
  readonly signal: AbortSignal
  readonly idleTimeout: IdleTimeout
}

type Parameters = Omit<OpenAI.Chat.ChatCompletionCreateParams, 'stream'>

function createParameters({
  provider,
  model,
  system,
  messages,
  temperature,
  maxTokens,
}: Question): Parameters {
  const { lengthField, fixedTemperature } = PROVIDERS[provider]
  return {
    model,
    messages: [{ role: 'system', content: system }, ...messages],
    [lengthField]: maxTokens,
    ...(fixedTemperature?.test(model) === true ? {} : { temperature }),
  }
}

async function complete({ client, question, signal }: Call): Promise<Completion> {
  const parameters = { ...createParameters(question), stream: false } as const
  const response = await client.chat.completions.create(parameters, { signal }).asResponse()
  const completion = (await readJson(response)) as OpenAI.ChatCompletion | null
  const choice = completion?.choices?.[0]
  if (choice === undefined) throw new Unreadable(UNREADABLE_REASON)
  const text = extractText(choice.message)
  return { text, tokens: countTokens(completion?.usage), finishReason: choice.finish_reason ?? '' }
}

async function completeStreaming(call: Call, onText: (text: string) => void): Promise<Completion> {
  const { client, question, signal, idleTimeout } = call
  const stream = await client.chat.completions.create(
    {
      ...createParameters(question),
      stream: true,
      ...(PROVIDERS[question.provider].requiresUsageOption
        ? { stream_options: { include_usage: true } }
        : {}),
    },
    { signal },
  )
  let text = ''
  let tokens: Tokens | null = null
  let finishReason = ''
  try {
    for await (const chunk of stream) {
      idleTimeout.restart()
      tokens = countTokens(chunk.usage ?? readGroqUsage(chunk)) ?? tokens
      const choice = chunk.choices?.[0]
      const piece = extractText(choice?.delta)
      if (piece !== '') {
        text += piece
        if (text.length > MAX_ANSWER_SIZE) throw createTooLargeFailure()
        onText(piece)
      }
      if (choice?.finish_reason) finishReason = choice.finish_reason
    }
  } catch (error) {
    // With a finish reason the answer is complete; only its usage may be missing.
    if (finishReason === '') throw error
  }
  // A connection that closes midway looks like the end of the stream.
  if (finishReason === '') throw new Unreadable('the connection was closed')
  return { text, tokens, finishReason: finishReason }
}

/** Returns the usage that Groq reports for a stream, in a field of its own. */
function readGroqUsage(chunk: object): OpenAI.CompletionUsage | undefined {
  return (chunk as { x_groq?: { usage?: OpenAI.CompletionUsage } }).x_groq?.usage
}

/** Returns the tokens of an answer; null if the usage is missing or invalid. */
function countTokens(usage: OpenAI.CompletionUsage | null | undefined): Tokens | null {
  const { prompt_tokens: input, completion_tokens: visible, total_tokens: total } = usage ?? {}
  if (!isCount(input) || !isCount(visible)) return null
  // Google excludes reasoning from the completion tokens, but includes it in the total.
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

/** Explains a refused chat; null if only its status is known. */
const explainRefusal = (status: number, code: unknown): string | null =>
  status === 413 || (code === 'context_length_exceeded' && !isTransient(status))
    ? 'the conversation is too long for the model'
    : null
