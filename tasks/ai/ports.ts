import type { AiProvider } from './providers.ts'

/** Chat models for tasks, implemented by `workers/providers/ai/chat.ts`. */
export interface ChatModels {
  /**
   * Asks a model and passes each piece of its answer to `onText` as it arrives. Waits at most `AI_TIMEOUT_SECONDS` for
   * each piece.
   *
   * @throws before the first piece: fail('ai.failed'), transient, and fail('ai.refused'), permanent. After it:
   * fail('ai.interrupted'). On abort: the signal's reason.
   */
  ask(question: Question, signal: AbortSignal, onText?: (text: string) => void): Promise<Completion>
}

export interface Question {
  readonly provider: AiProvider
  readonly model: string
  readonly system: string
  /** Conversation so far; the model answers the last message. */
  readonly messages: readonly Message[]
  readonly temperature: number
  readonly maxTokens: number
}

export interface Message {
  readonly role: 'user' | 'assistant'
  readonly content: string
}

export interface Completion {
  /** The whole answer; empty if the model produced no text. */
  readonly text: string
  /** Null if the provider reported no usage. */
  readonly tokens: Tokens | null
  /** Finish reason in the provider's terms. */
  readonly finishReason: string
}

/** Token counts of a request and its answer. */
export interface Tokens {
  /** All input tokens, including those from the provider's cache. */
  readonly input: number
  readonly cached: number
  /** All output tokens, including reasoning. */
  readonly output: number
  readonly reasoning: number
}
