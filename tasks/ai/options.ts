import type { ResponseFormat, Tools } from './ports.ts'
import type { AiProvider } from './providers.ts'

/** The part of a request about tools and the form of the answer. */
export interface AnswerOptions {
  readonly tools?: Tools | undefined
  readonly responseFormat?: ResponseFormat | undefined
}

/**
 * Formats the options for a payload. Payloads are stored as `jsonb`, which reorders keys, but a model answers in the order
 * of the keys of its schema.
 */
export const formatAnswerOptions = (options: AnswerOptions): string => JSON.stringify(options)

/** Parses the options of a payload, whose route has checked them; undefined for none. */
export const parseAnswerOptions = (text: string | undefined): AnswerOptions =>
  text === undefined ? {} : (JSON.parse(text) as AnswerOptions)

/** The part of a payload that questions of conversations and completions share. */
export interface AskPayload {
  readonly user_id: string
  readonly owner_id: number | null
  /** API key of the request, whose budget the answer uses; absent without one. */
  readonly key_id?: string | undefined
  readonly agent_slug: string
  /** The agent's provider and model at the start; the first frame of a turn names both. */
  readonly provider: AiProvider
  readonly model: string
  readonly stream: boolean
  /** See {@link formatAnswerOptions}; absent for text without tools. */
  readonly answer_options?: string | undefined
}
