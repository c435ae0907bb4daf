import type { ModelFacts } from '../../sql/llm/models.ts'
import type { Question } from './ports.ts'

/** A question with what the catalog knows about its model. */
export type AdaptedQuestion = Question & ModelFacts

/**
 * Adapts a question to the catalog's entry of its model. Leaves the temperature out if the model accepts none, and limits
 * the length of the answer to that of the model. A model without an entry gets the question as it is.
 */
export function adaptToModel(question: Question, facts: ModelFacts): AdaptedQuestion {
  const { traits } = facts
  if (traits === null) return { ...question, ...facts }
  const { temperature, maxTokens } = question
  return {
    ...question,
    temperature: traits.temperature ? temperature : null,
    maxTokens: traits.max_output > 0 ? Math.min(maxTokens, traits.max_output) : maxTokens,
    ...facts,
  }
}
