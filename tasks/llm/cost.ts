import { Decimal } from 'decimal.js'
import type { Price } from '../../sql/llm.ts'

/** Tokens of one request, as OpenAI counts them. */
export interface TokenUsage {
  /** All of the input, including cached tokens. */
  readonly input: number
  /** The part of the input that the provider had in its cache. */
  readonly cached: number
  /** All of the output, including reasoning. */
  readonly output: number
  /** The part of the output that was reasoning. */
  readonly reasoning: number
}

/** Decimals of 200 digits. Counts have at most 16, and no price has 60: every sum and product of theirs is exact. */
export const Exact = Decimal.clone({ precision: 200, toExpNeg: -1000, toExpPos: 1000 })

/**
 * What a request cost in US dollars: an exact decimal number as text, without an exponent, such as `0.00046`. Null when
 * unknown: without a price, or for impossible counts (a part greater than its whole, not a whole number, below 0).
 *
 * A request with more input than the threshold of a tier is charged entirely at that tier
 * (https://ai.google.dev/gemini-api/docs/pricing). Cached input and reasoning without a price of their own cost the
 * same as other input and output of their tier.
 */
export function costOf(price: Price | null, usage: TokenUsage): string | null {
  const { input, cached, output, reasoning } = usage
  if (price === null || !isCount(input) || !isCount(output)) return null
  if (!isCount(cached) || cached > input || !isCount(reasoning) || reasoning > output) return null
  const rates = price.tiers.findLast(({ over }) => input > over) ?? price
  return new Exact(rates.input)
    .times(input - cached)
    .plus(new Exact(rates.cache_read ?? rates.input).times(cached))
    .plus(new Exact(rates.output).times(output - reasoning))
    .plus(new Exact(rates.reasoning ?? rates.output).times(reasoning))
    .div(1_000_000)
    .toFixed()
}

const isCount = (n: number): boolean => Number.isSafeInteger(n) && n >= 0
