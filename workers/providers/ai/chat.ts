import type { ChatModels, Completion, Question } from '../../../tasks/ai/ports.ts'
import { PROVIDERS } from '../../../tasks/ai/providers.ts'
import type { Settings } from '../../../tasks/platform/settings/settings.ts'
import { type Call as ProviderCall, recordCall } from '../call.ts'
import { createClients, createIdleTimeout, isTransient, toCallFailure } from './ai-calls.ts'
import { type AnswerSink, readAnswer } from './answers.ts'
import type { OpenAI } from './openai.ts'
import { isContextOverflow, sendAdapted } from './parameters.ts'
import type { Report } from './reports.ts'

/** Creates chat completions with the six providers, through the client for OpenAI's protocol. */
export function createChat({ ai }: Pick<Settings, 'ai'>): ChatModels {
  const clientFor = createClients({ ai })
  return {
    ask: async (question, signal, onText, onRestart) => {
      const client = await clientFor(question.provider)
      const idleTimeout = createIdleTimeout(ai.timeoutSeconds)
      let hasOutput = false
      const call: Call = {
        client,
        question,
        signal: AbortSignal.any([signal, idleTimeout.signal]),
        isStreaming: onText !== undefined,
        sink: {
          onSign: idleTimeout.restart,
          onText: (text) => {
            hasOutput = onText !== undefined
            onText?.(text)
          },
          onRestart: () => {
            hasOutput = false
            onRestart?.()
          },
        },
      }
      try {
        return await recordCall(describeCall(question, client.baseURL), () => complete(call))
      } catch (error) {
        signal.throwIfAborted()
        const { provider, model } = question
        const timeoutReason = idleTimeout.reason
        throw toCallFailure(error, { provider, model, hasOutput, timeoutReason, explainRefusal })
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
  readonly isStreaming: boolean
  readonly sink: AnswerSink
}

async function complete({ client, question, signal, isStreaming, sink }: Call): Promise<Completion> {
  const { hidesReasoning } = PROVIDERS[question.provider]
  const response = await sendAdapted(
    {
      key: `${question.provider} ${client.baseURL} ${question.model}`,
      parameters: createParameters(question, isStreaming),
      optional: ['temperature', 'max_tokens', 'stream_options', 'stream'],
    },
    (parameters) =>
      client.chat.completions.create(parameters as never, { signal }).asResponse() as Promise<Response>,
  )
  return readAnswer(response, sink, { hidesReasoning })
}

function createParameters(
  { provider, model, system, messages, temperature, maxTokens }: Question,
  isStreaming: boolean,
): Readonly<Record<string, unknown>> {
  const { lengthField, requiresUsageOption } = PROVIDERS[provider]
  return {
    model,
    messages: [{ role: 'system', content: system }, ...messages],
    [lengthField]: maxTokens,
    ...(temperature === null ? {} : { temperature }),
    stream: isStreaming,
    ...(isStreaming && requiresUsageOption ? { stream_options: { include_usage: true } } : {}),
  }
}

/** Explains a refused chat; null if the report does not say more. */
function explainRefusal(report: Report): string | null {
  if (report.status !== null && isTransient(report.status)) return null
  if (isContextOverflow(report)) return 'the conversation is too long for the model'
  return report.codes.some((code) => /content_(filter|policy)|moderation/.test(code))
    ? 'its filter blocked the request'
    : null
}
