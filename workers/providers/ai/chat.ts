import type { ChatModels, Completion, Message, Question } from '../../../tasks/ai/ports.ts'
import { PROVIDERS } from '../../../tasks/ai/providers.ts'
import type { Settings } from '../../../tasks/platform/settings/settings.ts'
import { type Call as ProviderCall, recordCall } from '../call.ts'
import {
  createClients,
  createIdleTimeout,
  createStartOption,
  isTransient,
  NO_STARTS,
  toCallFailure,
} from './ai-calls.ts'
import { type AnswerSink, readAnswer } from './answers.ts'
import type { OpenAI, StartOption } from './openai.ts'
import { isContextOverflow, sendAdapted } from './parameters.ts'
import type { Report } from './reports.ts'

/** Creates chat completions with the six providers, through the client for OpenAI's protocol. */
export function createChat({ ai }: Pick<Settings, 'ai'>, starts = NO_STARTS): ChatModels {
  const clientFor = createClients({ ai })
  return {
    ask: async (question, signal, onText, onRestart) => {
      const client = await clientFor(question.provider)
      const idleTimeout = createIdleTimeout(ai.timeoutSeconds)
      let hasOutput = false
      const call: Call = {
        client,
        question,
        options: {
          signal: AbortSignal.any([signal, idleTimeout.signal]),
          ...createStartOption(starts, question.provider, signal, idleTimeout),
        },
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
  readonly options: { readonly signal: AbortSignal } & StartOption
  readonly isStreaming: boolean
  readonly sink: AnswerSink
}

async function complete({ client, question, options, isStreaming, sink }: Call): Promise<Completion> {
  const { hidesReasoning } = PROVIDERS[question.provider]
  const response = await sendAdapted(
    {
      key: `${question.provider} ${client.baseURL} ${question.model}`,
      parameters: createParameters(question, isStreaming),
      optional: [...OPTIONAL_PARAMETERS, ...Object.keys(question.parameters ?? {})],
    },
    (parameters) =>
      client.chat.completions.create(parameters as never, options).asResponse() as Promise<Response>,
  )
  return readAnswer(response, sink, { hidesReasoning })
}

const OPTIONAL_PARAMETERS = [
  'temperature',
  'max_tokens',
  'stream_options',
  'stream',
  'response_format',
  'parallel_tool_calls',
]

function createParameters(question: Question, isStreaming: boolean): Readonly<Record<string, unknown>> {
  const { provider, model, system, messages, temperature, maxTokens, tools, responseFormat } = question
  const { lengthField, requiresUsageOption } = PROVIDERS[provider]
  return {
    ...question.parameters,
    model,
    messages: [{ role: 'system', content: system }, ...messages.map(toWire)],
    [lengthField]: maxTokens,
    ...(tools === undefined ? {} : { tools: tools.definitions }),
    ...(tools?.choice === undefined ? {} : { tool_choice: tools.choice }),
    ...(tools?.parallel === undefined ? {} : { parallel_tool_calls: tools.parallel }),
    ...(responseFormat === undefined ? {} : { response_format: responseFormat }),
    ...(temperature === null ? {} : { temperature }),
    stream: isStreaming,
    ...(isStreaming && requiresUsageOption ? { stream_options: { include_usage: true } } : {}),
  }
}

function toWire(message: Message): object {
  const { role, content } = message
  if (role === 'tool') return { role, tool_call_id: message.toolCallId, content }
  if (role === 'user') {
    if (message.pictures === undefined || message.pictures.length === 0) return { role, content }
    const pictures = message.pictures.map((url) => ({ type: 'image_url', image_url: { url } }))
    // Anthropic refuses an empty text.
    return { role, content: [...(content === '' ? [] : [{ type: 'text', text: content }]), ...pictures] }
  }
  if (message.toolCalls === undefined || message.toolCalls.length === 0) return { role, content }
  const calls = message.toolCalls.map(({ id, name, arguments: text, extra_content: extra }) => {
    return {
      id,
      type: 'function',
      function: { name, arguments: text },
      ...(extra === undefined ? {} : { extra_content: extra }),
    }
  })
  return { role, content: content === '' ? null : content, tool_calls: calls }
}

/** Explains a refused chat; null if the report does not say more. */
function explainRefusal(report: Report): string | null {
  if (report.status !== null && isTransient(report.status)) return null
  if (isContextOverflow(report)) return 'the conversation is too long for the model'
  if (report.codes.some((code) => /content_(filter|policy)|moderation/.test(code)))
    return 'its filter blocked the request'
  if (/\b(tools?|tool_choice|function calling)\b/i.test(report.parameter ?? report.message))
    return 'the model refused the tools'
  if (/\b(image|vision|image_url|multimodal)/i.test(report.parameter ?? report.message))
    return 'the model refused a picture'
  return null
}
