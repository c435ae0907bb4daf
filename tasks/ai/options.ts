import type { ResponseFormat, Tools } from './ports.ts'

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
