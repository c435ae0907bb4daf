import type { Message } from './ports.ts'
import { boundTokenCount, loadCounter, TOKENS_PER_MESSAGE } from './tokens.ts'

/**
 * Returns the latest messages that fit into `limit` tokens. Always includes the last message, which the model answers.
 */
export async function fitHistory(history: readonly Message[], limit: number): Promise<Message[]> {
  const bound = history.reduce((sum, { content }) => sum + boundTokenCount(content) + TOKENS_PER_MESSAGE, 0)
  // Counting bytes suffices for most conversations; only longer ones need the tokenizer.
  const count = bound <= limit ? boundTokenCount : await loadCounter()
  const kept: Message[] = []
  let remaining = limit
  for (const message of [...history].reverse()) {
    remaining -= count(message.content) + TOKENS_PER_MESSAGE
    if (remaining < 0 && kept.length > 0) break
    kept.push(message)
  }
  kept.reverse()
  // Never start with an answer whose question does not fit.
  return kept[0]?.role === 'assistant' ? kept.slice(1) : kept
}
