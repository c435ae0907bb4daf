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
  /** Functions that the model may call; the caller of the turn runs them. */
  readonly tools?: Tools | undefined
  /** Form of the answer; absent for text. */
  readonly responseFormat?: ResponseFormat | undefined
  /** More parameters of OpenAI's protocol; left out if the model refuses them. */
  readonly parameters?: Readonly<Record<string, unknown>> | undefined
}

export type Message = UserMessage | AssistantMessage | ToolMessage

export interface UserMessage {
  readonly role: 'user'
  readonly content: string
  /** URLs of pictures, most of them `data:` URLs. */
  readonly pictures?: readonly string[] | undefined
}

export interface AssistantMessage {
  readonly role: 'assistant'
  readonly content: string
  /** Calls that the `tool` messages after this one answer. */
  readonly toolCalls?: readonly ToolCall[] | undefined
}

/** The result of a call. */
export interface ToolMessage {
  readonly role: 'tool'
  readonly toolCallId: string
  readonly content: string
}

/** A call of a function that the model asks for. */
export interface ToolCall {
  readonly id: string
  readonly name: string
  /** JSON text. Models may produce invalid JSON, which callers must expect. */
  readonly arguments: string
  /** Data of the provider, which needs it back with the call, such as Gemini's signature of its thoughts. */
  readonly extra_content?: unknown
}

/** Tools in the form of OpenAI's protocol, which all providers take. */
export interface Tools {
  readonly definitions: unknown[]
  /** Absent for `auto`. */
  readonly choice?: unknown
  /** False if the model may ask for one call at a time only; absent for the provider's default. */
  readonly parallel?: boolean | undefined
}

/** A JSON form of the answer, in the form of OpenAI's protocol. */
export type ResponseFormat =
  | { readonly type: 'json_object' }
  | {
      readonly type: 'json_schema'
      readonly json_schema: {
        readonly name: string
        readonly description?: string | null | undefined
        readonly strict?: boolean | null | undefined
        readonly schema: Readonly<Record<string, unknown>>
      }
    }

export interface Completion {
  /** The whole answer, without reasoning; empty if the model produced no text. */
  readonly text: string
  /** Reasoning that the model shows apart from its answer; absent if it shows none. */
  readonly reasoning?: string
  /** Calls that the model asks for; empty if it asks for none. */
  readonly toolCalls: readonly ToolCall[]
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
