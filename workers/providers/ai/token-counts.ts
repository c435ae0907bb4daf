import type { Tokens } from '../../../tasks/ai/ports.ts'

type Fields = Readonly<Record<string, unknown>>

/**
 * Returns the tokens that a provider reports; null if a count is missing or no whole number. With `hidesReasoning`, the
 * total exceeds the sum by the reasoning, as Google reports it; otherwise the total is ignored.
 */
export function countTokens(usage: unknown, hidesReasoning: boolean): Tokens | null {
  const { prompt_tokens, completion_tokens, total_tokens, ...details } = toFields(usage)
  if (!isCount(prompt_tokens) || !isCount(completion_tokens)) return null
  const hidden =
    hidesReasoning && isCount(total_tokens)
      ? Math.max(0, total_tokens - prompt_tokens - completion_tokens)
      : 0
  const output = completion_tokens + hidden
  const cached = toFields(details.prompt_tokens_details).cached_tokens
  const reasoning = toFields(details.completion_tokens_details).reasoning_tokens
  return {
    input: prompt_tokens,
    cached: limitPart(cached, prompt_tokens),
    output,
    reasoning: Math.max(hidden, limitPart(reasoning, output)),
  }
}

const toFields = (value: unknown): Fields =>
  typeof value === 'object' && value !== null ? (value as Fields) : {}

const limitPart = (part: unknown, whole: number): number => (isCount(part) ? Math.min(part, whole) : 0)

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0
