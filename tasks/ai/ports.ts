import type { AiProvider } from './providers.ts'

/** Chat models for tasks, implemented by `workers/providers/ai/chat.ts`. */
export interface ChatModels {
  /**
   * Asks a model and passes each piece of its answer to `onText` as it arrives. Waits at most `AI_TIMEOUT_SECONDS`
   * for each sign of life. `onRestart` voids all pieces so far, which turned out to be reasoning.
   *
   * @throws before the first piece: fail('ai.failed'), transient, and fail('ai.refused'), permanent. After it:
   * fail('ai.interrupted'). On abort: the signal's reason.
   */
  ask(
    question: Question,
    signal: AbortSignal,
    onText?: (text: string) => void,
    onRestart?: () => void,
  ): Promise<Completion>
}

export interface Question {
  readonly provider: AiProvider
  readonly model: string
  readonly system: string
  /** Conversation so far; the model answers the last message. */
  readonly messages: readonly Message[]
  /** Null for a model that accepts no temperature. */
  readonly temperature: number | null
  readonly maxTokens: number
}

export interface Message {
  readonly role: 'user' | 'assistant'
  readonly content: string
}

export interface Completion {
  /** The whole answer, without reasoning; empty if the model produced no text. */
  readonly text: string
  /** Reasoning that the model shows apart from its answer; absent if it shows none. */
  readonly reasoning?: string
  /** Null if the provider reported no usage. */
  readonly tokens: Tokens | null
  readonly finishReason: FinishReason
}

/**
 * Reason why an answer ended: the model finished, the token limit or the provider's filter cut it, or the model asked
 * for a tool. `error` never ends a completion, because it fails the call. `other` is a reason that we do not know.
 */
export const FINISH_REASONS = ['stop', 'length', 'content_filter', 'tool_calls', 'other'] as const
export type FinishReason = (typeof FINISH_REASONS)[number]

/** Token counts of a request and its answer. */
export interface Tokens {
  /** All input tokens, including those from the provider's cache. */
  readonly input: number
  readonly cached: number
  /** All output tokens, including reasoning. */
  readonly output: number
  readonly reasoning: number
}
