import { z } from 'zod'
import { ToolCall } from '../../../sql/ai/turns.ts'
import { isUuid } from '../../../sql/ids.ts'
import { FINISH_REASONS } from '../../../tasks/ai/ports.ts'
import { ModelAnswer, ResponseFormat } from '../../../tasks/ai/shapes.ts'
import { NextField } from '../../pipeline/request/lists.ts'
import { count, Timestamp } from '../../pipeline/request/schemas.ts'
import { CollectionName } from '../rag/shapes.ts'
import { UserId } from './callers.ts'
import { checkTools, MAX_TOOLS, ToolChoice, ToolDefinition, ToolResult } from './tools.ts'

/** Requests and responses of the conversation and agent routes. */

const MAX_CHARACTERS = 100_000

/** The id of a conversation or an answer. */
export const Id = z.string().trim().toLowerCase().refine(isUuid, 'must be a UUID').meta({ format: 'uuid' })

const MessageText = z.string().max(MAX_CHARACTERS).regex(/\S/, 'must not be blank')
export const Slug = z
  .string()
  .max(63)
  .regex(/^[a-z0-9]+(-[a-z0-9]+)*$/, 'must be a slug such as assistant')

export const DEFAULT_CHUNKS = 5
const chatFields = {
  message: MessageText,
  user_id: UserId.optional(),
  agent_slug: Slug.optional(),
  rag_collection: CollectionName.optional(),
}
const MAX_CHUNKS = 50
const MAX_DOCUMENTS = 20

/** Tools and form of an answer, in the form of OpenAI's protocol. */
export const answerFields = {
  tools: z.array(ToolDefinition).max(MAX_TOOLS).optional(),
  tool_choice: ToolChoice.optional(),
  parallel_tool_calls: z.boolean().optional(),
  response_format: z
    .discriminatedUnion('type', [z.strictObject({ type: z.literal('text') }), ...ResponseFormat.options])
    .optional(),
}

const TurnRequest = z.strictObject({
  ...chatFields,
  ...answerFields,
  message: MessageText.optional(),
  rag_top_k: z.int().min(1).max(MAX_CHUNKS).optional(),
  conversation_id: Id.nullish(),
  document_ids: z.array(z.int().min(1)).min(1).max(MAX_DOCUMENTS).optional(),
  /** The answer that the message continues; default: the last one of the active branch. */
  parent_id: Id.optional(),
  /** The question that the message replaces, in a branch of its own. */
  edit_id: Id.optional(),
  /** A message whose question gets another answer. */
  regenerate_id: Id.optional(),
  tool_results: z.array(ToolResult).min(1).max(MAX_TOOLS).optional(),
})
export const ChatRequest = TurnRequest.superRefine(checkTurnRequest).meta({
  id: 'ChatRequest',
  examples: [{ message: 'What was in the annual report?', agent_slug: 'assistant' }],
})
export type ChatRequest = z.output<typeof TurnRequest>

/** Checks the parts of a chat request that depend on each other. */
function checkTurnRequest(request: ChatRequest, ctx: z.RefinementCtx): void {
  const problem = (field: string, message: string): void =>
    ctx.addIssue({ code: 'custom', path: [field], message })
  const {
    message,
    tool_results: results,
    regenerate_id: regenerated,
    conversation_id: conversation,
  } = request
  if (message === undefined && results === undefined && regenerated === undefined)
    problem('message', 'is required without tool_results and regenerate_id')
  for (const [field, given] of Object.entries({ tool_results: results, regenerate_id: regenerated }))
    if (given !== undefined && message !== undefined) problem(field, 'must not come with a message')
  if (results !== undefined && regenerated !== undefined)
    problem('regenerate_id', 'must not come with tool_results')
  const places = ['parent_id', 'edit_id', 'regenerate_id'] as const
  const given = places.filter((field) => request[field] !== undefined)
  if (given.length > 1) problem(given[1]!, `must not come with ${given[0]}`)
  for (const field of [...given, ...(results === undefined ? [] : ['tool_results'])])
    if (conversation == null) problem(field, 'needs a conversation_id')
  if (request.edit_id !== undefined && results !== undefined)
    problem('edit_id', 'must not come with tool_results')
  if (request.document_ids !== undefined && message === undefined) problem('document_ids', 'needs a message')
  checkTools(request, ctx)
}

/** A chat request as query parameters; an empty conversation_id counts as absent. */
export const ChatQuery = z.object({
  ...chatFields,
  rag_top_k: count({ min: 1, max: MAX_CHUNKS, fallback: DEFAULT_CHUNKS }),
  conversation_id: z
    .literal('')
    .transform(() => undefined)
    .or(Id)
    .optional(),
})

export const ChatResponse = z
  .strictObject({
    message_id: z.uuid(),
    content: z.string(),
    conversation_id: z.uuid(),
    response_time_ms: z.number(),
    /** Anything but `stop` may mean an incomplete answer. */
    finish_reason: z.enum(FINISH_REASONS),
    reasoning: z.string().optional(),
    /** Calls that `tool_results` of the next request must answer. */
    tool_calls: z.array(ToolCall).optional(),
    usage: ModelAnswer.shape.usage,
    rag_sources: z.array(z.unknown()).optional(),
  })
  .meta({ id: 'ChatResponse' })

export const ConversationSummary = z
  .strictObject({
    id: z.uuid(),
    title: z.string(),
    message_count: z.int(),
    last_activity: Timestamp,
    provider: z.string(),
    model: z.string(),
  })
  .meta({ id: 'ConversationSummary' })

/** A conversation in a list; `match` is the best match of a search, absent without one. */
export const FoundConversation = ConversationSummary.extend({
  match: z
    .strictObject({
      message_id: z.uuid().nullable().meta({ description: 'Null if the title matches' }),
      snippet: z.string(),
    })
    .nullable()
    .optional(),
}).meta({ id: 'FoundConversation' })

const Tokens = z.int().min(0)
/** Cost in US dollars; null if no price is known. */
const Cost = z.number().min(0).nullable()
const MessageUsage = z.strictObject({ input_tokens: Tokens, output_tokens: Tokens, cost: Cost })

export const Conversation = z
  .strictObject({
    id: z.uuid(),
    title: z.string(),
    provider: z.string(),
    model: z.string(),
    created_at: Timestamp,
    updated_at: Timestamp,
    message_count: z.int(),
    pending_message_id: z
      .uuid()
      .nullable()
      .meta({ description: 'The answer that a turn is writing, whose stream can be joined; null if none' }),
    usage: MessageUsage.extend({ unpriced_answers: z.int().min(0) }).meta({
      description: 'Sums over all branches. Answers without a known price have no cost.',
    }),
    messages: z.array(
      z.strictObject({
        id: z.uuid(),
        /** `tool` for results of calls. */
        role: z.enum(['user', 'assistant', 'tool']),
        content: z.string(),
        timestamp: Timestamp,
        /** For `failed` and `stopped`, the content is the text received until then. */
        status: z.enum(['complete', 'failed', 'stopped']),
        /** Null for questions, and for answers that are not `complete`. */
        finish_reason: z.enum(FINISH_REASONS).nullable(),
        reasoning: z.string().nullable(),
        /** The chunks that the model got; null without a collection. */
        rag_sources: z.array(z.unknown()).nullable(),
        /** Null for questions. */
        model: z.string().nullable(),
        /** Null for questions, and after `AI_USAGE_KEEP_DAYS`. */
        usage: MessageUsage.nullable(),
        /** The message before; null for the first one. */
        parent_id: z.uuid().nullable(),
        document_ids: z.array(z.int()),
        tool_calls: z.array(ToolCall).nullable(),
        tool_results: z.array(ToolResult).nullable(),
        /** Ids of all messages in this place, this one included, oldest first. */
        versions: z.array(z.uuid()),
      }),
    ),
    ...NextField,
    metadata: z.strictObject({ user_id: z.string(), last_response_time_ms: z.number() }),
  })
  .meta({ id: 'Conversation' })

export const Agent = z
  .strictObject({
    slug: z.string(),
    name: z.string(),
    description: z.string(),
    category: z.string(),
    model_id: z.string().nullable(),
    fallback_model_id: z.string().nullable(),
    temperature: z.number(),
    max_tokens: z.int(),
    system_prompt: z.string(),
    is_active: z.boolean(),
    tools: z.array(z.unknown()),
    memory_modules: z.array(z.unknown()),
    knowledge_base_ids: z.array(z.unknown()),
  })
  .meta({ id: 'Agent' })

const SingleLine = z.string().trim().min(1).max(200)
export const AgentChanges = z
  .strictObject({
    name: SingleLine.optional(),
    description: z.string().max(2000).optional(),
    category: SingleLine.optional(),
    model_id: SingleLine.nullable().optional(),
    fallback_model_id: SingleLine.nullable().optional(),
    temperature: z.number().min(0).max(2).optional(),
    max_tokens: z.int().min(1).max(1_000_000).optional(),
    system_prompt: z.string().max(MAX_CHARACTERS).regex(/\S/, 'must not be blank').optional(),
    is_active: z.boolean().optional(),
  })
  .meta({ id: 'AgentChanges' })

export const ConversationParams = z.object({ conversation_id: Id })
export const StreamParams = z.object({ message_id: Id })
export const UserQuery = z.object({ user_id: UserId.optional() })
