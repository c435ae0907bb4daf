import { type PathMessage, readTurnInput, type TurnInput } from '../../sql/ai/turns.ts'
import { fail } from '../../sql/errors.ts'
import { readModelFacts } from '../../sql/llm/models.ts'
import type { TaskContext } from '../context.ts'
import { answerQuestion, chooseLimits } from './answer.ts'
import { buildMessages, DOCUMENT_INSTRUCTIONS } from './attachments.ts'
import { type RagContext, type RagRequest, retrieveContext } from './context.ts'
import { selectHistory } from './history.ts'
import { describeResponseFormat } from './json-answer.ts'
import { requireApiKey } from './keys.ts'
import type { ModelRef } from './model.ts'
import { type AskPayload, parseAnswerOptions } from './options.ts'
import type { ModelAnswer } from './shapes.ts'
import { type AdaptedQuestion, adaptToModel } from './traits.ts'

interface ChatPayload extends AskPayload {
  readonly message_id: string
  readonly conversation_id: string
  readonly rag?: RagRequest | undefined
  readonly sees_documents: boolean
}

interface ChatResult extends ModelAnswer {
  readonly message_id: string
  readonly conversation_id: string
  readonly rag_sources?: unknown[]
}

/** Runs `ai.chat`. */
export async function run(ctx: TaskContext, payload: ChatPayload): Promise<ChatResult> {
  const { ai } = ctx.settings
  const { message_id, conversation_id, provider, model, stream } = payload
  const messages = ai.historyMessages + 1
  const turn = await ctx.db.maybeOne(readTurnInput(message_id, payload.agent_slug, messages, ctx.job.id))
  if (turn === null) throw fail('conversation.gone')
  requireApiKey(ctx.settings.ai, provider)
  const asked = turn.path.findLast(({ role }) => role === 'user')?.content ?? ''
  const ragContext = await retrieveContext(ctx, asked, payload.rag)
  const history = await selectHistory(turn.path, { messages, tokens: ai.historyTokens })
  const build = (each: ModelRef): Promise<AdaptedQuestion> =>
    buildQuestion(ctx, payload, { model: each, turn, history, ragContext })
  const answer = await answerQuestion(ctx, { model: { provider, model }, agent: turn, stream, build })
  return {
    message_id,
    conversation_id,
    ...answer,
    ...(ragContext === null ? {} : { rag_sources: [...ragContext.sources] }),
  }
}

interface TurnParts {
  readonly model: ModelRef
  readonly turn: TurnInput
  readonly history: readonly PathMessage[]
  readonly ragContext: RagContext | null
}

/** Builds the question for a model from the agent's current settings. */
async function buildQuestion(
  ctx: TaskContext,
  { answer_options, sees_documents: seesDocuments }: ChatPayload,
  { model, turn, history, ragContext }: TurnParts,
): Promise<AdaptedQuestion> {
  const { tools, responseFormat } = parseAnswerOptions(answer_options)
  const facts = await ctx.db.one(readModelFacts(model.provider, model.model))
  const system = [
    turn.system_prompt,
    ragContext?.system,
    history.some(({ document_ids }) => document_ids.length > 0) ? DOCUMENT_INSTRUCTIONS : undefined,
    responseFormat === undefined ? undefined : describeResponseFormat(responseFormat),
  ]
  const question = {
    ...model,
    ...chooseLimits(ctx, turn),
    system: system.filter((part) => part !== undefined).join('\n\n'),
    messages: await buildMessages(ctx, history, { traits: facts.traits, seesDocuments }),
    tools,
    responseFormat,
  }
  return adaptToModel(question, facts)
}
