import { findPriceOn } from '../../sql/llm/models.ts'
import type { TaskContext } from '../context.ts'
import { computeCost } from '../llm/cost.ts'
import type { Question, Tokens } from './ports.ts'
import { boundTokenCount, loadCounter, TOKENS_PER_MESSAGE } from './tokens.ts'
import type { AdaptedQuestion } from './traits.ts'

/** Usage of an attempt, as in the `usage` event of its job. */
export interface Usage extends Tokens {
  readonly provider: string
  readonly model: string
  /** Cost in US dollars, an exact decimal; null if the price is unknown. */
  readonly cost: string | null
  /** True if this service counted the tokens because the provider reported none. */
  readonly estimated: boolean
}

export const NO_TOKENS: Tokens = { input: 0, cached: 0, output: 0, reasoning: 0 }

/** The text of an answer, and the reasoning next to it. */
interface AnswerText {
  readonly content: string
  readonly reasoning: string
}

/**
 * Computes the usage of a request, with its cost at today's price. Counts the tokens itself if `reported` is null or
 * cannot be true.
 */
export async function computeUsage(
  ctx: Pick<TaskContext, 'db'>,
  question: AdaptedQuestion,
  reported: Tokens | null,
  answer: AnswerText,
): Promise<Usage> {
  const { provider, model } = question
  const price = await ctx.db.maybeOne(findPriceOn(provider, model, null))
  const believed = reported !== null && isPossible(question, reported, answer) ? reported : null
  const tokens = believed ?? (await countTokens(question, answer))
  return { ...tokens, provider, model, cost: computeCost(price, tokens), estimated: believed === null }
}

// Limit for models that are not in the catalog: the largest context window so far.
const MAX_CONTEXT = 10_000_000
// Providers may exceed the length that was asked for by some tokens of their own.
const OUTPUT_TOLERANCE = 2

/**
 * True if a report of usage is within the limits of the model and of the request. One wrong number would otherwise be
 * booked, priced and summed for a year.
 */
function isPossible(
  { traits, maxTokens }: AdaptedQuestion,
  { input, output }: Tokens,
  { content, reasoning }: AnswerText,
): boolean {
  const context = traits === null || traits.context_window === 0 ? MAX_CONTEXT : traits.context_window
  const asked = Math.max(maxTokens, boundTokenCount(content) + boundTokenCount(reasoning))
  return input <= context && output <= Math.min(context, OUTPUT_TOLERANCE * asked)
}

async function countTokens({ system, messages }: Question, answer: AnswerText): Promise<Tokens> {
  const count = await loadCounter()
  const input = [system, ...messages.map(({ content }) => content)].reduce(
    (sum, content) => sum + count(content) + TOKENS_PER_MESSAGE,
    0,
  )
  const reasoning = count(answer.reasoning)
  return { ...NO_TOKENS, input, output: count(answer.content) + reasoning, reasoning }
}
