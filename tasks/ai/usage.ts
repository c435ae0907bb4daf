import { computeCost } from '../llm/cost.ts'
import type { Message, Question, Tokens, ToolCall } from './ports.ts'
import { boundTokenCount, loadCounter, TOKENS_PER_MESSAGE } from './tokens.ts'
import type { AdaptedQuestion } from './traits.ts'

/** Usage of an attempt, as in the `usage` event of its job. */
export interface Usage extends Tokens {
  readonly provider: string
  readonly model: string
  /** Cost in US dollars, an exact decimal; null if the price is unknown. */
  readonly cost: string | null
  /** True if this service counted the tokens because the provider reported none. */
  readonly estimated: boolean
}

export const NO_TOKENS: Tokens = { input: 0, cached: 0, output: 0, reasoning: 0 }

/** The text of an answer, and what came next to it. */
interface AnswerText {
  readonly content: string
  readonly reasoning: string
  readonly toolCalls: readonly ToolCall[]
}

/**
 * Computes the usage of a request, with its cost at the price of its start. Counts the tokens itself if `reported` is
 * null or cannot be true.
 */
export async function computeUsage(
  question: AdaptedQuestion,
  reported: Tokens | null,
  answer: AnswerText,
): Promise<Usage> {
  const { provider, model, price } = question
  const believed = reported !== null && isPossible(question, reported, answer) ? reported : null
  const tokens = believed ?? (await countTokens(question, answer))
  return { ...tokens, provider, model, cost: computeCost(price, tokens), estimated: believed === null }
}

// Limit for models that are not in the catalog: the largest context window so far.
const MAX_CONTEXT = 10_000_000
// Providers may exceed the length that was asked for by some tokens of their own.
const OUTPUT_TOLERANCE = 2

/**
 * True if a report of usage is within the limits of the model and of the request. One wrong number would otherwise be
 * booked, priced and summed for a year.
 */
function isPossible(
  { maxTokens, traits }: AdaptedQuestion,
  { input, output }: Tokens,
  answer: AnswerText,
): boolean {
  const context = traits === null || traits.context_window === 0 ? MAX_CONTEXT : traits.context_window
  const shown = [answer.content, answer.reasoning, ...answer.toolCalls.map(textOfCall)]
  const asked = Math.max(
    maxTokens,
    shown.reduce((sum, text) => sum + boundTokenCount(text), 0),
  )
  return input <= context && output <= Math.min(context, OUTPUT_TOLERANCE * asked)
}

// Estimate for a picture: providers count 85 to 1,600 tokens, by its size.
const TOKENS_PER_PICTURE = 1000

async function countTokens({ system, messages, tools }: Question, answer: AnswerText): Promise<Tokens> {
  const count = await loadCounter()
  const definitions = tools === undefined ? 0 : count(JSON.stringify(tools.definitions))
  const input = messages.reduce(
    (sum, message) => sum + countMessage(message, count) + TOKENS_PER_MESSAGE,
    count(system) + TOKENS_PER_MESSAGE + definitions,
  )
  const reasoning = count(answer.reasoning)
  const calls = answer.toolCalls.reduce((sum, call) => sum + count(textOfCall(call)), 0)
  return { ...NO_TOKENS, input, output: count(answer.content) + calls + reasoning, reasoning }
}

function countMessage(message: Message, count: (text: string) => number): number {
  const text = count(message.content)
  if (message.role === 'user') return text + (message.pictures?.length ?? 0) * TOKENS_PER_PICTURE
  if (message.role === 'tool') return text
  return (message.toolCalls ?? []).reduce((sum, call) => sum + count(textOfCall(call)), text)
}

const textOfCall = (call: ToolCall): string => `${call.name} ${call.arguments}`
