import { requireRecognition } from './recognition.ts'

// Bytes, input tokens and output tokens of a second of speech, for estimates: MP3 has 128 kbit/s, and OpenAI's price for
// a minute stands for some 1000 tokens of audio (platform.openai.com/docs/pricing).
const PER_SECOND = { bytes: 16_000, input: 17, output: 4 }

/**
 * Estimates the tokens and the cost of a recording from its size. The cost is null if the price is unknown. The edge loads
 * this module, so it computes without the exact decimals of `cost.ts`.
 */
export function estimateRecognition(model: string, size: number): { tokens: number; cost: string | null } {
  const seconds = Math.ceil(size / PER_SECOND.bytes)
  const { price } = requireRecognition(model)
  if (price === null) return { tokens: 0, cost: null }
  if ('hour' in price) {
    const billed = Math.max(seconds, price.minSeconds ?? 0)
    return { tokens: 0, cost: ((Number(price.hour) * billed) / 3600).toFixed(12) }
  }
  const [input, output] = [PER_SECOND.input * seconds, PER_SECOND.output * seconds]
  const cost = (Number(price.input) * input + Number(price.output) * output) / 1_000_000
  return { tokens: input + output, cost: cost.toFixed(12) }
}
