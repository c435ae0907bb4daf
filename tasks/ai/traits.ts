import type { ModelTraits } from '../../sql/llm/models.ts'
import type { Question } from './ports.ts'

/** A question with the catalog's entry of its model; null if the catalog has none. */
export interface AdaptedQuestion extends Question {
  readonly traits: ModelTraits | null
}

/**
 * Adapts a question to the catalog's entry of its model. Leaves the temperature out if the model accepts none, and limits
 * the length of the answer to that of the model. A model without an entry gets the question as it is.
 */
export function adaptToModel(question: Question, traits: ModelTraits | null): AdaptedQuestion {
  if (traits === null) return { ...question, traits }
  const { temperature, maxTokens } = question
  return {
    ...question,
    temperature: traits.temperature ? temperature : null,
    maxTokens: traits.max_output > 0 ? Math.min(maxTokens, traits.max_output) : maxTokens,
    traits,
  }
}
