import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'
import { AI_PROVIDERS } from './providers.ts'

const ChatPayload = z.strictObject({
  /** The id of the answer. */
  message_id: z.uuid(),
  conversation_id: z.uuid(),
  user_id: z.string(),
  owner_id: z.int().nullable(),
  agent_slug: z.string(),
  /** The model of the agent at the start of the turn, as named in the first frame. */
  provider: z.enum(AI_PROVIDERS),
  model: z.string(),
  stream: z.boolean(),
  /** The collection to answer from. */
  rag: z.strictObject({ collection: z.string(), top_k: z.int(), sees_all: z.boolean() }).optional(),
})
export type ChatPayload = z.output<typeof ChatPayload>

export const ChatResult = z.strictObject({
  message_id: z.uuid(),
  content: z.string(),
  conversation_id: z.uuid(),
  response_time_ms: z.number(),
  provider: z.string(),
  model: z.string(),
  /** Time of completion. */
  timestamp: z.iso.datetime(),
  /** The chunks given to the model; absent if no collection was requested. */
  rag_sources: z.array(z.unknown()).optional(),
})
export type ChatResult = z.output<typeof ChatResult>

/**
 * Answers in a conversation. Its events: `chunk` for each piece; `restart` if an earlier attempt showed pieces, which
 * are now void; `usage` for the usage of an attempt. The job's end stores the answer (`ai_turn_settle`), so the task
 * itself writes nothing, and an attempt that is cut short leaves nothing behind.
 */
export const chat = defineTask({
  name: 'ai.chat',
  queue: 'ai',
  pool: 'io',
  payload: ChatPayload,
  result: ChatResult,
  actor: ({ conversation_id }) => `conversation:${conversation_id}`,
  links: ({ conversation_id, rag }) => [
    { kind: 'conversation', id: conversation_id },
    ...(rag === undefined ? [] : [{ kind: 'collection' as const, id: rag.collection }]),
  ],
  settle: 'ai_turn_settle',
  run: loadLazily(() => import('./chat-run.ts')),
})
