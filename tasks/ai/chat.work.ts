import { readTurnInput, type TurnInput } from '../../sql/ai/turns.ts'
import { Failure, fail } from '../../sql/errors.ts'
import type { TaskContext } from '../context.ts'
import { type RagContext, retrieveContext } from './context.ts'
import { type AnswerBuffer, createAnswerBuffer, toStorable } from './deltas.ts'
import { askOrFallBack } from './fallback.ts'
import { fitHistory } from './history.ts'
import type { Completion, FinishReason, Question } from './ports.ts'
import { type AiProvider, keySettingName } from './providers.ts'
import type { AdaptedQuestion } from './traits.ts'
import { computeUsage, NO_TOKENS, type Usage } from './usage.ts'

interface ChatPayload {
  readonly message_id: string
  readonly conversation_id: string
  readonly user_id: string
  readonly owner_id: number | null
  readonly agent_slug: string
  readonly provider: AiProvider
  readonly model: string
  readonly stream: boolean
  readonly rag?:
    | { readonly collection: string; readonly top_k: number; readonly sees_all: boolean }
    | undefined
}

interface ChatResult {
  readonly message_id: string
  readonly content: string
  readonly conversation_id: string
  readonly response_time_ms: number
  readonly provider: string
  readonly model: string
  readonly timestamp: string
  readonly finish_reason: FinishReason
  readonly reasoning?: string
  readonly rag_sources?: unknown[]
}

/** Runs `ai.chat`. */
export async function run(ctx: TaskContext, payload: ChatPayload): Promise<ChatResult> {
  const { ai } = ctx.settings
  const turn = await ctx.db.maybeOne(
    readTurnInput(payload.message_id, payload.agent_slug, ai.historyMessages + 1, ctx.job.id),
  )
  if (turn === null) throw fail('conversation.gone')
  const ragContext = await retrieveContext(ctx, turn.history.at(-1)?.content ?? '', payload.rag)
  const asked = await buildQuestion(ctx, payload, turn, ragContext)
  if (turn.shown) ctx.emit('restart', { timestamp: new Date().toISOString() })

  const startedAt = performance.now()
  const deltas = createAnswerBuffer((content) =>
    ctx.emit('chunk', { content, timestamp: new Date().toISOString() }),
  )
  const { completion, question } = await askOrFallBack(ctx, asked, turn, (adapted) =>
    askModel(ctx, adapted, deltas, payload.stream),
  )
  const response_time_ms = Math.round((performance.now() - startedAt) * 100) / 100
  const content = payload.stream ? deltas.text : toStorable(completion.text)
  const reasoning = toStorable(completion.reasoning ?? '')
  ctx.emit('usage', await computeUsage(ctx, question, completion.tokens, { content, reasoning }))
  if (content.trim() === '') throw fail('ai.refused', { reason: describeEmptyAnswer(completion) })
  const { message_id, conversation_id } = payload
  return {
    message_id,
    content,
    conversation_id,
    response_time_ms,
    provider: question.provider,
    model: question.model,
    timestamp: new Date().toISOString(),
    finish_reason: completion.finishReason,
    ...(reasoning === '' ? {} : { reasoning }),
    ...(ragContext === null ? {} : { rag_sources: [...ragContext.sources] }),
  }
}

/**
 * Builds the question from the agent's current settings. Keeps the model of the turn, because the first frame has
 * already named it.
 */
async function buildQuestion(
  ctx: TaskContext,
  { provider, model }: ChatPayload,
  turn: TurnInput,
  ragContext: RagContext | null,
): Promise<Question> {
  const { ai } = ctx.settings
  const { chosen } = turn
  if (ai.endpoints[provider].apiKey === null)
    throw fail('ai.missing_key', { provider, setting: keySettingName(provider) })
  return {
    provider,
    model,
    system: ragContext === null ? turn.system_prompt : `${turn.system_prompt}\n\n${ragContext.system}`,
    messages: await fitHistory(turn.history, ai.historyTokens),
    temperature: turn.temperature ?? chosen?.temperature ?? ai.temperature,
    maxTokens: turn.max_tokens ?? chosen?.max_tokens ?? ai.maxTokens,
  }
}

/** Asks the model. If the attempt fails, emits its usage. */
async function askModel(
  ctx: TaskContext,
  question: AdaptedQuestion,
  deltas: AnswerBuffer,
  stream: boolean,
): Promise<Completion> {
  const restart = (): void => {
    deltas.reset()
    ctx.emit('restart', { timestamp: new Date().toISOString() })
  }
  const pendingAnswer = stream
    ? ctx.providers.chat.ask(question, ctx.signal, deltas.push, restart)
    : ctx.providers.chat.ask(question, ctx.signal)
  try {
    const completion = await pendingAnswer
    deltas.end()
    return completion
  } catch (error) {
    deltas.end()
    ctx.emit('usage', await computeFailureUsage(ctx, question, deltas.text, error))
    throw error
  }
}

/**
 * Computes the usage of a failed attempt. The usage is zero if the attempt failed before the first piece of text,
 * because providers then charge nothing.
 */
function computeFailureUsage(
  ctx: TaskContext,
  question: AdaptedQuestion,
  text: string,
  error: unknown,
): Promise<Usage> {
  const refused = error instanceof Failure && text === ''
  return computeUsage(ctx, question, refused ? NO_TOKENS : null, { content: text, reasoning: '' })
}

function describeEmptyAnswer({ finishReason }: Completion): string {
  if (finishReason === 'length') return 'it reached the token limit before any text'
  if (finishReason === 'content_filter') return 'its filter blocked the answer'
  return 'the answer was empty'
}
