import { Decimal } from 'decimal.js'
import type { Price } from '../../sql/llm.ts'

/** Tokens of one request, as OpenAI counts them. */
export interface TokenUsage {
  /** All of the input, with what was cached. */
  readonly input: number
  /** What of the input the provider had in its cache. */
  readonly cached: number
  /** All of the output, with what was reasoning. */
  readonly output: number
  /** What of the output was reasoning. */
  readonly reasoning: number
}

// Counts have at most 16 digits, a price with 60 is none: every sum and product below is exact.
const Exact = Decimal.clone({ precision: 200, toExpNeg: -1000, toExpPos: 1000 })

/**
 * What a request cost in US dollars: an exact decimal number as text, without an exponent, such as `0.00046`. Null where
 * nobody knows: without a price, or for counts that can't be (a part greater than its whole, no whole number, below 0).
 *
 * A request with more input than a tier begins at is paid by that tier, all of it
 * (https://ai.google.dev/gemini-api/docs/pricing). Cached input and reasoning cost what other input and output of their
 * tier do where they have no price of their own.
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
