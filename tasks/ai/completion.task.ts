import { z } from 'zod'
import { defineTask, loadLazily } from '../task.ts'
import { MAX_INTERACTIVE_PAUSE_SECONDS } from './providers.ts'
import { askFields, CompletionMessage, ModelAnswer } from './shapes.ts'

const CompletionPayload = z.strictObject({
  ...askFields,
  /** Instructions of the caller, which follow those of the agent; empty without any. */
  system: z.string(),
  messages: z.array(CompletionMessage),
  temperature: z.number().nullable(),
  /** Maximum tokens of the answer; null for the agent's own. */
  max_tokens: z.int().nullable(),
  /** More parameters of OpenAI's protocol for the model. */
  parameters: z.record(z.string(), z.unknown()),
})

export const CompletionResult = ModelAnswer.extend({ id: z.uuid(), agent_slug: z.string() })
export type CompletionResult = z.output<typeof CompletionResult>

/** Answers messages that the caller keeps. Emits the events of `ai.chat`; the end of the job stores the usage. */
export const completeMessages = defineTask({
  name: 'ai.completion',
  queue: 'ai',
  maxPauseSeconds: MAX_INTERACTIVE_PAUSE_SECONDS,
  // A retry would bypass the budgets, and its answer would not reach the conversation.
  refusesRetry: true,
  pool: 'io',
  payload: CompletionPayload,
  result: CompletionResult,
  settleFunction: 'ai_turn_settle',
  run: loadLazily(() => import('./completion.work.ts')),
})
