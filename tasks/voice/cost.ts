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
