/**
 * Limits and prices of the catalog's speech synthesis models. Sources, as of November 2026: developers.openai.com
 * (/api/reference/resources/audio, /api/docs/models), docs.mistral.ai/studio/audio/text-to-speech.
 */

/** Limits of the text of one request. */
export interface SpeakingLimits {
  readonly characters: number
  /** Length in UTF-8. Models that count tokens need more of them for other scripts than Latin. */
  readonly bytes: number
}

// OpenAI accepts 4,096 characters, and its latest model 2,000 tokens. A Chinese character has 3 bytes and about a token.
const OPENAI_CHARACTERS = 4096
const MAX_TOKEN_BYTES = 5500

export const findSpeakingLimits = (model: string): SpeakingLimits => ({
  characters: OPENAI_CHARACTERS,
  bytes: PRICES.has(model) ? OPENAI_CHARACTERS * 4 : MAX_TOKEN_BYTES,
})

/** US dollars per million characters. The other models charge for audio that their answers do not measure. */
const PRICES: ReadonlyMap<string, number> = new Map([
  ['tts-1', 15],
  ['tts-1-hd', 30],
])

/**
 * Returns the cost of a synthesized text in US dollars as an exact decimal; null if the price is unknown. The edge loads
 * this module, so it computes without the decimals of `cost.ts`: a price is a whole number of millionths a character.
 */
export function computeSpeechCost(model: string, text: string): string | null {
  const price = PRICES.get(model)
  return price === undefined ? null : String(([...text].length * price) / 1_000_000)
}
