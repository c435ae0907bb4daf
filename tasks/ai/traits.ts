import { findModelTraits, type ModelTraits } from '../../sql/llm/models.ts'
import type { TaskContext } from '../context.ts'
import type { Question } from './ports.ts'

/** A question with the catalog's entry of its model; null if the catalog has none. */
export interface AdaptedQuestion extends Question {
  readonly traits: ModelTraits | null
}

/**
 * Adapts a question to the catalog's entry of its model. Leaves the temperature out if the model accepts none, and limits
 * the length of the answer to that of the model. A model without an entry gets the question as it is.
 */
export async function adaptToModel(
  ctx: Pick<TaskContext, 'db'>,
  question: Question,
): Promise<AdaptedQuestion> {
  const { provider, model, temperature, maxTokens } = question
  const traits = await ctx.db.maybeOne(findModelTraits(provider, model))
  if (traits === null) return { ...question, traits }
  return {
    ...question,
    temperature: traits.temperature ? temperature : null,
    maxTokens: traits.max_output > 0 ? Math.min(maxTokens, traits.max_output) : maxTokens,
    traits,
  }
}
