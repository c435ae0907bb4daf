import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'
import { FINISH_REASONS } from './ports.ts'
import { AI_PROVIDERS, MAX_INTERACTIVE_PAUSE_SECONDS } from './providers.ts'

const ChatPayload = z.strictObject({
  /** Id of the message that will hold the answer. */
  message_id: z.uuid(),
  conversation_id: z.uuid(),
  user_id: z.string(),
  owner_id: z.int().nullable(),
  /** API key of the request, whose budget the turn uses; absent without one. */
  key_id: z.uuid().optional(),
  agent_slug: z.string(),
  /** The agent's provider and model at the start of the turn; the first frame names both. */
  provider: z.enum(AI_PROVIDERS),
  model: z.string(),
  stream: z.boolean(),
  /** Collection from which the model gets context. */
  rag: z.strictObject({ collection: z.string(), top_k: z.int(), sees_all: z.boolean() }).optional(),
})

export const ChatResult = z.strictObject({
  message_id: z.uuid(),
  content: z.string(),
  conversation_id: z.uuid(),
  response_time_ms: z.number(),
  provider: z.string(),
  model: z.string(),
  /** Time of completion. */
  timestamp: z.iso.datetime(),
  /** Reason why the answer ended; an answer that is not \`stop\` may be incomplete. */
  finish_reason: z.enum(FINISH_REASONS),
  /** The model's reasoning, if it shows any; no later turn sends it. */
  reasoning: z.string().optional(),
  /** The chunks given to the model; absent if no collection was requested. */
  rag_sources: z.array(z.unknown()).optional(),
})
export type ChatResult = z.output<typeof ChatResult>

/**
 * Answers a message in a conversation. Emits `chunk` for each piece, `usage` for each attempt, and `restart` if the
 * pieces of an earlier attempt are now void. The task writes nothing itself: `ai_turn_settle` stores the answer when
 * the job ends. An interrupted attempt therefore leaves nothing behind.
 */
export const answerMessage = defineTask({
  name: 'ai.chat',
  queue: 'ai',
  maxPauseSeconds: MAX_INTERACTIVE_PAUSE_SECONDS,
  pool: 'io',
  payload: ChatPayload,
  result: ChatResult,
  actor: ({ conversation_id }) => `conversation:${conversation_id}`,
  links: ({ conversation_id, rag }) => [
    { kind: 'conversation', id: conversation_id },
    ...(rag === undefined ? [] : [{ kind: 'collection' as const, id: rag.collection }]),
  ],
  settleFunction: 'ai_turn_settle',
  run: loadLazily(() => import('./chat.work.ts')),
})
