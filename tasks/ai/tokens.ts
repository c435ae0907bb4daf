/**
 * Counts tokens as OpenAI's models do, which is close enough for other models. The only importer of `gpt-tokenizer`.
 */

type Count = (text: string) => number

let counter: Promise<Count> | null = null

/** Loads the tokenizer's vocabulary on demand: it takes 0.4 s and 70 MB. */
export function loadCounter(): Promise<Count> {
  counter ??= import('gpt-tokenizer/encoding/o200k_base').then(({ countTokens }) => (text) => {
    return countTokens(breakLongRuns(text), SPECIAL_AS_TEXT)
  })
  return counter
}

// Special tokens in text count as text.
const SPECIAL_AS_TEXT = { disallowedSpecial: new Set<string>() }

/** Breaks up long runs, whose tokenization takes quadratic time: 0.3 s for 20,000 letters. */
function breakLongRuns(text: string): string {
  return text.replace(/\S{200}/g, '$& ').replace(/\s{200}/g, '$&.')
}

/** An upper bound: no text has more tokens than bytes. */
export function maxTokens(text: string): number {
  return Buffer.byteLength(text)
}

// Framing of each message: start, role and end (cookbook.openai.com, "How to count tokens").
export const TOKENS_PER_MESSAGE = 4
