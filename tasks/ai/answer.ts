import type { AgentSettings } from '../../sql/ai/turns.ts'
import { Failure, fail } from '../../sql/errors.ts'
import type { TaskContext } from '../context.ts'
import { type AnswerBuffer, createAnswerBuffer, toStorable } from './deltas.ts'
import { type AskedQuestion, askOrFallBack } from './fallback.ts'
import { createJsonFilter, isJson } from './json-answer.ts'
import type { Completion, Question, ToolCall } from './ports.ts'
import type { ModelAnswer } from './shapes.ts'
import type { AdaptedQuestion } from './traits.ts'
import { computeUsage, NO_TOKENS, type Usage } from './usage.ts'

/** Asks a model and emits its answer as events, the same way for conversations and for completions. */

export interface AnswerRequest extends AskedQuestion {
  readonly agent: AgentSettings
  readonly stream: boolean
  /** True if the caller wants an empty answer that the token limit or a filter cut; otherwise it fails. */
  readonly acceptsEmpty?: boolean
}

/**
 * Asks a model, or its fallback. Emits `chunk` for each piece, `tool_call` for each call, `usage`, and `restart` if the
 * pieces before it are void.
 */
export async function answerQuestion(ctx: TaskContext, request: AnswerRequest): Promise<ModelAnswer> {
  const { stream } = request
  const now = (): string => new Date().toISOString()
  if (request.agent.shown) ctx.emit('restart', { timestamp: now() })
  const startedAt = performance.now()
  const deltas = createAnswerBuffer((content) => ctx.emit('chunk', { content, timestamp: now() }))
  const { completion, question } = await askOrFallBack(ctx, request, (adapted) =>
    askModel(ctx, adapted, deltas, stream),
  )
  const response_time_ms = Math.round((performance.now() - startedAt) * 100) / 100
  const content = stream ? deltas.text : toStorable(filterText(question, completion.text))
  const reasoning = toStorable(completion.reasoning ?? '')
  const toolCalls = completion.toolCalls.map(toStorableCall)
  const usage = await computeUsage(question, completion.tokens, {
    content,
    reasoning,
    toolCalls,
  })
  ctx.emit('usage', usage)
  const isCut = completion.finishReason === 'length' || completion.finishReason === 'content_filter'
  if (content.trim() === '' && toolCalls.length === 0 && !(isCut && request.acceptsEmpty === true))
    throw fail('ai.refused', { reason: describeEmptyAnswer(completion) })
  if (question.responseFormat !== undefined && completion.finishReason === 'stop' && !isJson(content))
    throw fail('ai.refused', { reason: 'its answer is not JSON' })
  for (const call of toolCalls) ctx.emit('tool_call', { ...call, timestamp: now() })
  return {
    content,
    provider: question.provider,
    model: question.model,
    response_time_ms,
    timestamp: now(),
    finish_reason: completion.finishReason,
    ...(reasoning === '' ? {} : { reasoning }),
    ...(toolCalls.length === 0 ? {} : { tool_calls: toolCalls }),
    usage: toPublicUsage(usage),
  }
}

const toStorableCall = (call: ToolCall): ToolCall => ({
  ...call,
  id: toStorable(call.id),
  name: toStorable(call.name),
  arguments: toStorable(call.arguments),
})

const toPublicUsage = ({
  input,
  cached,
  output,
  reasoning,
  cost,
  estimated,
}: Usage): ModelAnswer['usage'] => ({
  input_tokens: input,
  cached_tokens: cached,
  output_tokens: output,
  reasoning_tokens: reasoning,
  cost: cost === null ? null : Number(cost),
  estimated,
})

/** Asks the model. If the attempt fails, emits its usage. */
async function askModel(
  ctx: TaskContext,
  question: AdaptedQuestion,
  deltas: AnswerBuffer,
  stream: boolean,
): Promise<Completion> {
  let filter = createTextFilter(question)
  // All text that arrived, shown or not: providers charge for it.
  let received = ''
  const push = (piece: string): void => {
    received += piece
    deltas.push(filter(piece))
  }
  const restart = (): void => {
    filter = createTextFilter(question)
    deltas.reset()
    ctx.emit('restart', { timestamp: new Date().toISOString(), reason: 'reasoning' })
  }
  const pendingAnswer = stream
    ? ctx.providers.chat.ask(question, ctx.signal, push, restart)
    : ctx.providers.chat.ask(question, ctx.signal)
  try {
    const completion = await pendingAnswer
    deltas.end()
    return completion
  } catch (error) {
    deltas.end()
    // Providers charge nothing for a request that they refuse before the first piece.
    const isRefused = error instanceof Failure && received === ''
    const text = { content: received, reasoning: '', toolCalls: [] }
    ctx.emit('usage', await computeUsage(question, isRefused ? NO_TOKENS : null, text))
    throw error
  }
}

const createTextFilter = ({ responseFormat }: Question): ((piece: string) => string) =>
  responseFormat === undefined ? (piece) => piece : createJsonFilter().push
const filterText = (question: Question, text: string): string => createTextFilter(question)(text)

function describeEmptyAnswer({ finishReason }: Completion): string {
  if (finishReason === 'length') return 'it reached the token limit before any text'
  if (finishReason === 'content_filter') return 'its filter blocked the answer'
  return 'the answer was empty'
}

/** Returns the temperature and the maximum length of an agent's answers. */
export function chooseLimits(
  { settings: { ai } }: Pick<TaskContext, 'settings'>,
  { temperature, max_tokens, chosen }: AgentSettings,
): { readonly temperature: number; readonly maxTokens: number } {
  return {
    temperature: temperature ?? chosen?.temperature ?? ai.temperature,
    maxTokens: max_tokens ?? chosen?.max_tokens ?? ai.maxTokens,
  }
}
