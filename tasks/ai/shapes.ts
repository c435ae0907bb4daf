import { z } from 'zod'
import { ToolCall } from '../../sql/ai/turns.ts'
import { FINISH_REASONS } from './ports.ts'
import { AI_PROVIDERS } from './providers.ts'

/** Shapes of payloads and results. The edge loads this module. */

/** The part of a payload that questions of conversations and completions share, see `AskPayload`. */
export const askFields = {
  user_id: z.string(),
  owner_id: z.int().nullable(),
  key_id: z.uuid().optional(),
  agent_slug: z.string(),
  provider: z.enum(AI_PROVIDERS),
  model: z.string(),
  stream: z.boolean(),
  answer_options: z.string().optional(),
}

const JsonSchemaFormat = z.object({
  name: z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/, 'must have 1 to 64 letters, digits, _ and -'),
  description: z.string().max(1000).nullish(),
  strict: z.boolean().nullish(),
  schema: z.record(z.string(), z.unknown()),
})

/** A JSON form of the answer, in the form of OpenAI's protocol. */
export const ResponseFormat = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('json_object') }),
  z.strictObject({ type: z.literal('json_schema'), json_schema: JsonSchemaFormat }),
])

/** A message for a model, see `Message` in `ports.ts`. */
export const CompletionMessage = z.discriminatedUnion('role', [
  z.strictObject({ role: z.literal('user'), content: z.string(), pictures: z.array(z.string()).optional() }),
  z.strictObject({
    role: z.literal('assistant'),
    content: z.string(),
    toolCalls: z.array(ToolCall).optional(),
  }),
  z.strictObject({ role: z.literal('tool'), content: z.string(), toolCallId: z.string() }),
])

export type CompletionMessage = z.output<typeof CompletionMessage>

/** The answer of a model, as results of jobs have it. */
export const ModelAnswer = z.strictObject({
  content: z.string(),
  provider: z.string(),
  model: z.string(),
  response_time_ms: z.number(),
  /** Time of completion. */
  timestamp: z.iso.datetime(),
  /** Reason why the answer ended; an answer that is not `stop` or `tool_calls` may be incomplete. */
  finish_reason: z.enum(FINISH_REASONS),
  /** The model's reasoning, if it shows any; no later turn sends it. */
  reasoning: z.string().optional(),
  /** Calls that the caller has to answer; absent if the model asks for none. */
  tool_calls: z.array(ToolCall).optional(),
  usage: z.strictObject({
    input_tokens: z.int(),
    cached_tokens: z.int(),
    output_tokens: z.int(),
    reasoning_tokens: z.int(),
    /** In US dollars; null if the price is unknown. */
    cost: z.number().min(0).nullable(),
    /** True if this service counted the tokens. */
    estimated: z.boolean(),
  }),
})
export type ModelAnswer = z.output<typeof ModelAnswer>
