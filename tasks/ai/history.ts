import type { Message } from './ports.ts'
import { loadCounter, mostTokens, TOKENS_PER_MESSAGE } from './tokens.ts'

/**
 * What of a conversation is sent to the model: the last messages that fit in so many tokens. The last one, which is to be
 * answered, always is.
 */
export async function fitting(history: readonly Message[], limit: number): Promise<Message[]> {
  const bound = history.reduce((sum, { content }) => sum + mostTokens(content) + TOKENS_PER_MESSAGE, 0)
  // Most conversations fit whatever they count.
  const count = bound <= limit ? mostTokens : await loadCounter()
  const kept: Message[] = []
  let left = limit
  for (const message of [...history].reverse()) {
    left -= count(message.content) + TOKENS_PER_MESSAGE
    if (left < 0 && kept.length > 0) break
    kept.push(message)
  }
  kept.reverse()
  // An answer comes first nowhere: what it answers was left out.
  return kept[0]?.role === 'assistant' ? kept.slice(1) : kept
}
