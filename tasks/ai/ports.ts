import type { AiProvider } from './providers.ts'

/** Models as tasks see them. `workers/providers/ai/chat.ts` has the real ones. */
export interface ChatModels {
  /**
   * Asks a model, and hands on each piece of its answer as it comes when there is `onText`. Waits for no piece longer
   * than the settings say.
   *
   * @throws fail('ai.failed') for now and fail('ai.refused') for good, before the first piece; fail('ai.interrupted')
   * after it; the signal's reason.
   */
  ask(question: Question, signal: AbortSignal, onText?: (text: string) => void): Promise<Completion>
}

export interface Question {
  readonly provider: AiProvider
  readonly model: string
  readonly system: string
  /** The last one is what is to be answered. */
  readonly messages: readonly Message[]
  readonly temperature: number
  readonly maxTokens: number
}

export interface Message {
  readonly role: 'user' | 'assistant'
  readonly content: string
}

export interface Completion {
  /** All pieces; empty when the model said nothing that is text. */
  readonly text: string
  /** Null when the provider did not tell. */
  readonly tokens: Tokens | null
  /** Why it ended, in the provider's word. */
  readonly finish: string
}

/** Tokens of a request and its answer. */
export interface Tokens {
  /** All of the request, those from the provider's cache among them. */
  readonly input: number
  readonly cached: number
  /** All of the answer, those of reasoning among them. */
  readonly output: number
  readonly reasoning: number
}
