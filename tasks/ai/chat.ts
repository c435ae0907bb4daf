import { z } from 'zod'
import { defineTask, lazily } from '../task.ts'
import { AI_PROVIDERS } from './providers.ts'

const ChatPayload = z.strictObject({
  /** The answer's. */
  message_id: z.uuid(),
  conversation_id: z.uuid(),
  user_id: z.string(),
  owner_id: z.int().nullable(),
  agent_slug: z.string(),
  /** The model that answers: the agent's when the turn began, as the first frame says. */
  provider: z.enum(AI_PROVIDERS),
  model: z.string(),
  stream: z.boolean(),
  /** The collection that the answer is to draw on. */
  rag: z.strictObject({ collection: z.string(), top_k: z.int() }).optional(),
})
export type ChatPayload = z.output<typeof ChatPayload>

export const ChatResult = z.strictObject({
  message_id: z.uuid(),
  content: z.string(),
  conversation_id: z.uuid(),
  response_time_ms: z.number(),
  provider: z.string(),
  model: z.string(),
  /** When it was whole. */
  timestamp: z.iso.datetime(),
  /** What was put before the model of a collection; absent where none was asked for. */
  rag_sources: z.array(z.unknown()).optional(),
})
export type ChatResult = z.output<typeof ChatResult>

/**
 * Answers in a conversation. Its events: `chunk` for each piece; `restart` when an earlier attempt has shown some, which
 * are void; `usage` for what an attempt has used. The end of the job settles the answer (`ai_turn_settle`), so this
 * writes nothing by itself, and an attempt that is cut short anywhere leaves nothing behind.
 */
export const chat = defineTask({
  name: 'ai.chat',
  queue: 'ai',
  pool: 'io',
  payload: ChatPayload,
  result: ChatResult,
  actor: ({ conversation_id }) => `conversation:${conversation_id}`,
  settle: 'ai_turn_settle',
  run: lazily(() => import('./chat-run.ts')),
})
