import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'
import { MAX_INTERACTIVE_PAUSE_SECONDS } from './providers.ts'
import { askFields, ModelAnswer } from './shapes.ts'

const ChatPayload = z.strictObject({
  /** Id of the message that will hold the answer. */
  message_id: z.uuid(),
  conversation_id: z.uuid(),
  ...askFields,
  /** Collection from which the model gets context. */
  rag: z.strictObject({ collection: z.string(), top_k: z.int(), sees_all: z.boolean() }).optional(),
  /** True if the caller may read documents; then the model gets those of the conversation. */
  sees_documents: z.boolean(),
})

export const ChatResult = ModelAnswer.extend({
  message_id: z.uuid(),
  conversation_id: z.uuid(),
  /** The chunks given to the model; absent if no collection was requested. */
  rag_sources: z.array(z.unknown()).optional(),
})
export type ChatResult = z.output<typeof ChatResult>

/** Returns the actor that runs the turns of a conversation. */
export const conversationActorOf = (id: string): string => `conversation:${id}`

/**
 * Answers a message in a conversation. Emits `chunk` for each piece, `tool_call` for each call, `usage` for each attempt,
 * and `restart` if the events of an earlier attempt are now void. The task writes nothing itself: `ai_turn_settle` stores
 * the answer when the job ends. An interrupted attempt therefore leaves nothing behind.
 */
export const answerMessage = defineTask({
  name: 'ai.chat',
  queue: 'ai',
  maxPauseSeconds: MAX_INTERACTIVE_PAUSE_SECONDS,
  // A retry would bypass the budgets, and its answer would not reach the conversation.
  refusesRetry: true,
  pool: 'io',
  payload: ChatPayload,
  result: ChatResult,
  actor: ({ conversation_id }) => conversationActorOf(conversation_id),
  links: ({ conversation_id, rag }) => [
    { kind: 'conversation', id: conversation_id },
    ...(rag === undefined ? [] : [{ kind: 'collection' as const, id: rag.collection }]),
  ],
  settleFunction: 'ai_turn_settle',
  run: loadLazily(() => import('./chat.work.ts')),
})
