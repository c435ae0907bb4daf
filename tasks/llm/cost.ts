import { Decimal } from 'decimal.js'
import type { Price } from '../../sql/llm/models.ts'

/** Tokens of one request, by OpenAI's definitions. */
export interface TokenUsage {
  /** All input tokens, including cached ones. */
  readonly input: number
  /** Input tokens from the provider's cache. */
  readonly cached: number
  /** All output tokens, including reasoning. */
  readonly output: number
  /** Output tokens that were reasoning. */
  readonly reasoning: number
}

/**
 * Decimals of 200 digits. Token counts have at most 16 digits and prices fewer than 60, so every sum and product is
 * exact.
 */
export const ExactDecimal = Decimal.clone({ precision: 200, toExpNeg: -1000, toExpPos: 1000 })

/**
 * Returns the cost of a request in US dollars: an exact decimal number as text, without an exponent, such as `0.00046`.
 * Null without a price, or if the counts are impossible (negative, fractional, or a part that exceeds its whole).
 *
 * If the input exceeds the threshold of a price tier, the whole request is charged at that tier
 * (https://ai.google.dev/gemini-api/docs/pricing). Cached input and reasoning without their own price cost the same as
 * other input and output of that tier.
 */
export function computeCost(price: Price | null, usage: TokenUsage): string | null {
  const { input, cached, output, reasoning } = usage
  if (price === null || !isCount(input) || !isCount(output)) return null
  if (!isCount(cached) || cached > input || !isCount(reasoning) || reasoning > output) return null
  const rates = price.tiers.findLast(({ over }) => input > over) ?? price
  return new ExactDecimal(rates.input)
    .times(input - cached)
    .plus(new ExactDecimal(rates.cache_read ?? rates.input).times(cached))
    .plus(new ExactDecimal(rates.output).times(output - reasoning))
    .plus(new ExactDecimal(rates.reasoning ?? rates.output).times(reasoning))
    .div(1_000_000)
    .toFixed()
}

const isCount = (n: number): boolean => Number.isSafeInteger(n) && n >= 0
