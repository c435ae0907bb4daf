import { costOf, Exact } from '../llm/cost.ts'
import type { RecognitionUsage } from './ports.ts'
import { recognitionOf } from './recognition.ts'

/**
 * What a transcription cost in US dollars: an exact decimal number as text, to twelve places where it is priced by the
 * hour. Null when unknown: without a price, or without the usage that it is priced by.
 */
export function recognitionCost(model: string, used: RecognitionUsage): string | null {
  const { price } = recognitionOf(model)
  const { inputTokens: input, outputTokens: output, audioSeconds: seconds } = used
  if (price === null) return null
  if ('input' in price)
    return input === null || output === null
      ? null
      : costOf({ ...price, tiers: [] }, { input, output, cached: 0, reasoning: 0 })
  if (seconds === null) return null
  const billed = Math.max(seconds, price.minSeconds ?? 0)
  return new Exact(price.hour).times(billed).div(3600).toDecimalPlaces(12).toFixed()
}
