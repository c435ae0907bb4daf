import { readAgentSettings } from '../../sql/ai/turns.ts'
import { fail } from '../../sql/errors.ts'
import { readModelFacts } from '../../sql/llm/models.ts'
import type { TaskContext } from '../context.ts'
import { answerQuestion, chooseLimits } from './answer.ts'
import { describeResponseFormat } from './json-answer.ts'
import { requireApiKey } from './keys.ts'
import type { ModelRef } from './model.ts'
import { type AskPayload, parseAnswerOptions } from './options.ts'
import type { Message } from './ports.ts'
import type { ModelAnswer } from './shapes.ts'
import { type AdaptedQuestion, adaptToModel } from './traits.ts'

interface CompletionPayload extends AskPayload {
  readonly system: string
  readonly messages: readonly Message[]
  readonly temperature: number | null
  readonly max_tokens: number | null
  readonly parameters: Readonly<Record<string, unknown>>
}

interface CompletionResult extends ModelAnswer {
  readonly id: string
  readonly agent_slug: string
}

/** Runs `ai.completion`. */
export async function run(ctx: TaskContext, payload: CompletionPayload): Promise<CompletionResult> {
  const { agent_slug, provider, model, stream } = payload
  const { tools, responseFormat } = parseAnswerOptions(payload.answer_options)
  const agent = await ctx.db.maybeOne(readAgentSettings(agent_slug, ctx.job.id))
  if (agent === null) throw fail('agent.missing')
  requireApiKey(ctx.settings.ai, provider)
  const limits = chooseLimits(ctx, agent)
  const system = [
    agent.system_prompt,
    payload.system,
    responseFormat === undefined ? '' : describeResponseFormat(responseFormat),
  ]
  const question = {
    system: system.filter((part) => part !== '').join('\n\n'),
    messages: payload.messages,
    temperature: payload.temperature ?? limits.temperature,
    maxTokens: Math.min(payload.max_tokens ?? limits.maxTokens, limits.maxTokens),
    tools,
    responseFormat,
    parameters: payload.parameters,
  }
  const build = async (each: ModelRef): Promise<AdaptedQuestion> =>
    adaptToModel({ ...each, ...question }, await ctx.db.one(readModelFacts(each.provider, each.model)))
  return {
    id: ctx.job.id,
    agent_slug,
    ...(await answerQuestion(ctx, { model: { provider, model }, agent, stream, acceptsEmpty: true, build })),
  }
}
