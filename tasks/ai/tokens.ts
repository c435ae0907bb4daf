/**
 * Counts tokens as OpenAI's models do, which is close enough for other models. No other module imports `gpt-tokenizer`.
 */
import { createLazy } from '../platform/lazy.ts'

type CountTokens = (text: string) => number

/** Loads the tokenizer's vocabulary on demand, because it takes 0.4 s and 70 MB. */
export const loadCounter = createLazy(async (): Promise<CountTokens> => {
  const { countTokens } = await import('gpt-tokenizer/encoding/o200k_base')
  return (text) => countTokens(breakLongRuns(text), SPECIAL_AS_TEXT)
})

// Makes the tokenizer count special tokens in a text as ordinary text.
const SPECIAL_AS_TEXT = { disallowedSpecial: new Set<string>() }

/**
 * Splits long runs of characters without white space, or of white space only. Their tokenization takes quadratic time:
 * 0.3 s for 20,000 letters.
 */
function breakLongRuns(text: string): string {
  return text.replace(/\S{200}/g, '$& ').replace(/\s{200}/g, '$&.')
}

/** Returns an upper bound of a text's tokens: no text has more tokens than bytes. */
export function boundTokenCount(text: string): number {
  return Buffer.byteLength(text)
}

// Framing tokens of each message: start, role and end (cookbook.openai.com, "How to count tokens").
export const TOKENS_PER_MESSAGE = 4
