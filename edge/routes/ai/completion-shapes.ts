import { z } from 'zod'
import type { CompletionMessage as Message } from '../../../tasks/ai/shapes.ts'
import { answerFields } from './shapes.ts'
import { checkTools, ToolCallId } from './tools.ts'

/**
 * Shapes of OpenAI's chat completions (platform.openai.com/docs/api-reference/chat). Clients send fields of many
 * versions, so unknown ones are ignored.
 */

const MAX_TEXT = 1_000_000
const MAX_MESSAGES = 1000
const Text = z.string().max(MAX_TEXT)

const TextPart = z.object({ type: z.literal('text'), text: Text })
const RefusalPart = z.object({ type: z.literal('refusal'), refusal: Text })
const PicturePart = z.object({
  type: z.literal('image_url'),
  image_url: z.object({
    url: z.string().regex(/^(https?:\/\/|data:image\/)/, 'must be an http(s) or data:image URL'),
  }),
})

const toText = (
  content: string | readonly { readonly text?: string; readonly refusal?: string }[],
): string =>
  typeof content === 'string' ? content : content.map(({ text, refusal }) => text ?? refusal ?? '').join('\n')

const SystemMessage = z.object({
  role: z.enum(['system', 'developer']),
  content: z.union([Text, z.array(TextPart)]),
})
const UserMessage = z.object({
  role: z.literal('user'),
  content: z.union([Text, z.array(z.discriminatedUnion('type', [TextPart, PicturePart])).min(1)]),
})
const AssistantMessage = z.object({
  role: z.literal('assistant'),
  content: z.union([Text, z.array(z.discriminatedUnion('type', [TextPart, RefusalPart]))]).nullish(),
  refusal: Text.nullish(),
  tool_calls: z
    .array(
      z.object({
        id: ToolCallId,
        type: z.literal('function').default('function'),
        function: z.object({ name: z.string().min(1).max(64), arguments: Text }),
        extra_content: z.unknown().optional(),
      }),
    )
    .nullish(),
})
const ToolMessage = z.object({
  role: z.literal('tool'),
  tool_call_id: ToolCallId,
  content: z.union([Text, z.array(TextPart)]),
})

const CompletionMessage = z.discriminatedUnion('role', [
  SystemMessage,
  UserMessage,
  AssistantMessage,
  ToolMessage,
])
type CompletionMessage = z.output<typeof CompletionMessage>

/** Parameters that go to the model as they are. A model that refuses one gets the question without it. */
const passedFields = {
  top_p: z.number().min(0).max(1).nullish(),
  presence_penalty: z.number().min(-2).max(2).nullish(),
  frequency_penalty: z.number().min(-2).max(2).nullish(),
  seed: z.int().nullish(),
  stop: z.union([z.string().max(1000), z.array(z.string().max(1000)).max(4)]).nullish(),
  reasoning_effort: z.string().max(20).nullish(),
}

export const CompletionRequest = z
  .object({
    /** The slug of an agent. */
    model: z.string().min(1).max(63),
    messages: z.array(CompletionMessage).min(1).max(MAX_MESSAGES),
    stream: z.boolean().nullish(),
    stream_options: z.object({ include_usage: z.boolean().optional() }).nullish(),
    temperature: z.number().min(0).max(2).nullish(),
    max_tokens: z.int().min(1).max(1_000_000).nullish(),
    max_completion_tokens: z.int().min(1).max(1_000_000).nullish(),
    n: z.literal(1, 'must be 1').nullish(),
    ...answerFields,
    ...passedFields,
  })
  .superRefine(checkTools)
  .meta({
    id: 'CompletionRequest',
    examples: [{ model: 'assistant', messages: [{ role: 'user', content: 'What is a millrace?' }] }],
  })
export type CompletionRequest = z.output<typeof CompletionRequest>

/** Returns the parameters of a request that go to the model as they are. */
export function listPassedParameters(request: CompletionRequest): Record<string, unknown> {
  const names = Object.keys(passedFields) as (keyof typeof passedFields)[]
  const given = names.map((name) => [name, request[name]] as const)
  return Object.fromEntries(given.filter(([, value]) => value != null))
}

const isSystemMessage = (message: CompletionMessage): message is z.output<typeof SystemMessage> =>
  message.role === 'system' || message.role === 'developer'

/** Returns the instructions of the caller, and the messages without them. */
export function splitMessages(messages: readonly CompletionMessage[]): {
  system: string
  messages: Message[]
} {
  const system = messages.filter(isSystemMessage)
  return {
    system: system.map(({ content }) => toText(content)).join('\n\n'),
    messages: messages.flatMap(toMessage),
  }
}

function toMessage(message: CompletionMessage): Message[] {
  if (message.role === 'user') {
    const { role, content } = message
    if (typeof content === 'string') return [{ role, content }]
    const texts = content.filter((part) => part.type === 'text')
    const pictures = content.filter((part) => part.type === 'image_url').map((part) => part.image_url.url)
    return [{ role, content: toText(texts), ...(pictures.length === 0 ? {} : { pictures }) }]
  }
  if (message.role === 'assistant') {
    const toolCalls = (message.tool_calls ?? []).map(({ id, function: called, extra_content: extra }) => {
      const { name, arguments: text } = called
      return { id, name, arguments: text, ...(extra === undefined ? {} : { extra_content: extra }) }
    })
    const content = toText(message.content ?? message.refusal ?? '')
    // Providers refuse an empty message.
    if (content.trim() === '' && toolCalls.length === 0) return []
    return [{ role: message.role, content, ...(toolCalls.length === 0 ? {} : { toolCalls }) }]
  }
  if (message.role !== 'tool') return []
  return [{ role: 'tool', toolCallId: message.tool_call_id, content: toText(message.content) }]
}

const WireToolCall = z.strictObject({
  id: z.string(),
  type: z.literal('function'),
  function: z.strictObject({ name: z.string(), arguments: z.string() }),
  extra_content: z.unknown().optional(),
})

const WireUsage = z.strictObject({
  prompt_tokens: z.int(),
  completion_tokens: z.int(),
  total_tokens: z.int(),
  prompt_tokens_details: z.strictObject({ cached_tokens: z.int() }),
  completion_tokens_details: z.strictObject({ reasoning_tokens: z.int() }),
})

export const WIRE_FINISH_REASONS = ['stop', 'length', 'content_filter', 'tool_calls'] as const

export const CompletionResponse = z
  .strictObject({
    id: z.string(),
    object: z.literal('chat.completion'),
    created: z.int(),
    model: z.string(),
    choices: z
      .array(
        z.strictObject({
          index: z.literal(0),
          message: z.strictObject({
            role: z.literal('assistant'),
            content: z.string().nullable(),
            refusal: z.null(),
            reasoning_content: z.string().optional(),
            tool_calls: z.array(WireToolCall).optional(),
          }),
          logprobs: z.null(),
          finish_reason: z.enum(WIRE_FINISH_REASONS),
        }),
      )
      .length(1),
    usage: WireUsage,
  })
  .meta({ id: 'CompletionResponse' })
export type CompletionResponse = z.output<typeof CompletionResponse>

export const AgentModel = z
  .strictObject({ id: z.string(), object: z.literal('model'), created: z.int(), owned_by: z.string() })
  .meta({ id: 'AgentModel' })
export const AgentModelList = z
  .strictObject({ object: z.literal('list'), data: z.array(AgentModel) })
  .meta({ id: 'AgentModelList' })
