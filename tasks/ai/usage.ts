import { findPriceOn } from '../../sql/llm/models.ts'
import type { TaskContext } from '../context.ts'
import { computeCost } from '../llm/cost.ts'
import type { Question, Tokens } from './ports.ts'
import { loadCounter, TOKENS_PER_MESSAGE } from './tokens.ts'

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

/** Computes the usage of a request, with its cost at today's price. Counts the tokens itself if `reported` is null. */
export async function computeUsage(
  ctx: TaskContext,
  question: Question,
  reported: Tokens | null,
  text: string,
): Promise<Usage> {
  const { provider, model } = question
  const price = await ctx.db.maybeOne(findPriceOn(provider, model, null))
  const tokens = reported ?? (await countTokens(question, text))
  return { ...tokens, provider, model, cost: computeCost(price, tokens), estimated: reported === null }
}

async function countTokens({ system, messages }: Question, text: string): Promise<Tokens> {
  const count = await loadCounter()
  const input = [system, ...messages.map(({ content }) => content)].reduce(
    (sum, content) => sum + count(content) + TOKENS_PER_MESSAGE,
    0,
  )
  return { ...NO_TOKENS, input, output: count(text) }
}
