import type { AiProvider } from './providers.ts'

/** Chat models as tasks see them. `workers/providers/ai/chat.ts` implements them. */
export interface ChatModels {
  /**
   * Asks a model, and passes each piece of its answer to `onText` as it arrives. Waits for a piece no longer than
   * `AI_TIMEOUT_SECONDS`.
   *
   * @throws fail('ai.failed') temporarily and fail('ai.refused') permanently, before the first piece;
   * fail('ai.interrupted') after it; the signal's reason.
   */
  ask(question: Question, signal: AbortSignal, onText?: (text: string) => void): Promise<Completion>
}

export interface Question {
  readonly provider: AiProvider
  readonly model: string
  readonly system: string
  /** The last one is to be answered. */
  readonly messages: readonly Message[]
  readonly temperature: number
  readonly maxTokens: number
}

export interface Message {
  readonly role: 'user' | 'assistant'
  readonly content: string
}

export interface Completion {
  /** All pieces; empty when the model produced no text. */
  readonly text: string
  /** Null when the provider did not report them. */
  readonly tokens: Tokens | null
  /** Why it ended, in the provider's term. */
  readonly finish: string
}

/** Tokens of a request and its answer. */
export interface Tokens {
  /** All of the request, including those from the provider's cache. */
  readonly input: number
  readonly cached: number
  /** All of the answer, including reasoning. */
  readonly output: number
  readonly reasoning: number
}
