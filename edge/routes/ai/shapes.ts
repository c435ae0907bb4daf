import { z } from 'zod'
import { isUuid } from '../../../sql/ids.ts'
import { FINISH_REASONS } from '../../../tasks/ai/ports.ts'
import { NextField } from '../../pipeline/request/lists.ts'
import { count, Timestamp } from '../../pipeline/request/schemas.ts'
import { CollectionName } from '../rag/shapes.ts'
import { UserId } from './callers.ts'

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
export const ChatRequest = z
  .strictObject({
    ...chatFields,
    rag_top_k: z.int().min(1).max(MAX_CHUNKS).optional(),
    conversation_id: Id.nullish(),
  })
  .meta({ id: 'ChatRequest' })
export type ChatRequest = z.output<typeof ChatRequest>

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

export const Conversation = z
  .strictObject({
    id: z.uuid(),
    title: z.string(),
    provider: z.string(),
    model: z.string(),
    created_at: Timestamp,
    updated_at: Timestamp,
    message_count: z.int(),
    messages: z.array(
      z.strictObject({
        id: z.uuid(),
        role: z.enum(['user', 'assistant']),
        content: z.string(),
        timestamp: Timestamp,
        /** For `failed` and `stopped`, the content is the text received until then. */
        status: z.enum(['complete', 'failed', 'stopped']),
        /** Null for questions, and for answers that are not `complete`. */
        finish_reason: z.enum(FINISH_REASONS).nullable(),
        reasoning: z.string().nullable(),
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
