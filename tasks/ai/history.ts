import type { PathMessage } from '../../sql/ai/turns.ts'
import { boundTokenCount, loadCounter, TOKENS_PER_MESSAGE } from './tokens.ts'

/**
 * Selects the messages of a branch that the model gets, oldest first. The last message, which the model answers, is
 * always among them, and so is the question before results of tools. The others are the latest ones within `messages` and
 * `tokens`.
 */
export async function selectHistory(
  branch: readonly PathMessage[],
  { messages, tokens }: { readonly messages: number; readonly tokens: number },
): Promise<PathMessage[]> {
  const usable = dropUnanswered(branch)
  const bound = usable.reduce(
    (sum, message) => sum + boundTokenCount(textOf(message)) + TOKENS_PER_MESSAGE,
    0,
  )
  // Counting bytes suffices for most conversations; only longer ones need the tokenizer.
  const count = bound <= tokens ? boundTokenCount : await loadCounter()
  let from = usable.length
  let remaining = tokens
  // A question and all that answers it stay together: no provider accepts results without their calls.
  for (let start = usable.length - 1; start >= 0; start--) {
    remaining -= count(textOf(usable[start]!)) + TOKENS_PER_MESSAGE
    if (usable[start]!.role !== 'user') continue
    const isOver = remaining < 0 || usable.length - start > messages
    if (isOver && from < usable.length) break
    from = start
  }
  return usable.slice(from)
}

/**
 * Drops unanswered questions, because a provider that refused one would refuse the whole request, and questions with a
 * blank answer, which Anthropic refuses. Drops calls without results, which OpenAI refuses.
 */
function dropUnanswered(branch: readonly PathMessage[]): PathMessage[] {
  const kept: PathMessage[] = []
  let next = null as PathMessage | null
  for (const message of branch.toReversed()) {
    const isLast = message === branch.at(-1)
    const fitted: PathMessage | null =
      message.role === 'assistant'
        ? toUsableAnswer(message, next)
        : isLast || next?.role === 'assistant'
          ? message
          : null
    if (fitted !== null) kept.push(fitted)
    next = fitted
  }
  return kept.reverse()
}

/** Returns an answer as the model gets it; null if it has nothing to show. `next` is the kept message after it. */
function toUsableAnswer(answer: PathMessage, next: PathMessage | null): PathMessage | null {
  if (answer.status !== 'complete' && answer.status !== 'stopped') return null
  if (next?.role === 'tool') return answer
  return /\S/.test(answer.content) ? { ...answer, tool_calls: null } : null
}

const textOf = ({ content, tool_calls, tool_results }: PathMessage): string =>
  [
    content,
    ...(tool_calls ?? []).flatMap((call) => [call.name, call.arguments]),
    ...(tool_results ?? []).map((result) => result.content),
  ].join('\n')
