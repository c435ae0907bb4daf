import { computeCost, ExactDecimal } from '../llm/cost.ts'
import type { RecognitionUsage } from './ports.ts'
import { requireRecognition } from './recognition.ts'

/**
 * Returns the cost of a transcription in US dollars as an exact decimal string, or null if the price or the billed
 * usage is unknown. Costs by the hour are rounded to twelve decimal places.
 */
export function computeRecognitionCost(model: string, used: RecognitionUsage): string | null {
  const { price } = requireRecognition(model)
  const { inputTokens: input, outputTokens: output, audioSeconds: seconds } = used
  if (price === null) return null
  if ('input' in price)
    return input === null || output === null
      ? null
      : computeCost({ ...price, tiers: [] }, { input, output, cached: 0, reasoning: 0 })
  if (seconds === null) return null
  const billed = Math.max(seconds, price.minSeconds ?? 0)
  return new ExactDecimal(price.hour).times(billed).div(3600).toDecimalPlaces(12).toFixed()
}

// Bytes, input tokens and output tokens of a second of speech, for estimates: MP3 has 128 kbit/s, and OpenAI's price for
// a minute stands for some 1000 tokens of audio (platform.openai.com/docs/pricing).
const PER_SECOND = { bytes: 16_000, input: 17, output: 4 }

/** Estimates the tokens and the cost of a recording from its size; the cost is null if the price is unknown. */
export function estimateRecognition(model: string, size: number): { tokens: number; cost: string | null } {
  const seconds = Math.ceil(size / PER_SECOND.bytes)
  const [inputTokens, outputTokens] = [PER_SECOND.input * seconds, PER_SECOND.output * seconds]
  const { price } = requireRecognition(model)
  const hasTokens = price !== null && 'input' in price
  return {
    tokens: hasTokens ? inputTokens + outputTokens : 0,
    cost: computeRecognitionCost(model, { inputTokens, outputTokens, audioSeconds: seconds }),
  }
}
