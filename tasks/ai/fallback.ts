import type { TurnInput } from '../../sql/ai/turns.ts'
import { Failure } from '../../sql/errors.ts'
import type { TaskContext } from '../context.ts'
import { resolveFallback } from './model.ts'
import type { Completion, Question } from './ports.ts'
import { keySettingName, MAX_INTERACTIVE_PAUSE_SECONDS } from './providers.ts'
import { type AdaptedQuestion, adaptToModel } from './traits.ts'

/** An answer, with the question as the answering model got it. */
export interface Answered {
  readonly completion: Completion
  readonly question: AdaptedQuestion
}

/**
 * Asks the model of a question. If its provider fails before the first piece of text, asks the fallback model once. The
 * question itself may be the cause of a refusal, such as a content filter or an overlong conversation. Then the refusal
 * stands, because another model would refuse, too.
 */
export async function askOrFallBack(
  ctx: TaskContext,
  question: Question,
  { chosen, fallback_model_id }: Pick<TurnInput, 'chosen' | 'fallback_model_id'>,
  ask: (question: AdaptedQuestion) => Promise<Completion>,
): Promise<Answered> {
  const first = await adaptToModel(ctx, question)
  try {
    return { completion: await ask(first), question: first }
  } catch (error) {
    const fallback = resolveFallback(ctx.settings.ai, chosen, fallback_model_id, question)
    if (fallback === null || !permitsFallback(ctx, error)) throw error
    const { code, detail } = error
    if (ctx.settings.ai.endpoints[fallback.provider].apiKey === null) {
      ctx.log.warn({ code, setting: keySettingName(fallback.provider) }, 'The fallback model has no API key')
      throw error
    }
    ctx.log.warn({ code, detail, provider: question.provider, fallback }, 'The fallback model answers')
    const second = await adaptToModel(ctx, { ...question, ...fallback })
    return { completion: await ask(second), question: second }
  }
}

/** True if another provider may answer. A short pause that the provider asks for is first waited out by retries. */
function permitsFallback({ job, settings }: TaskContext, error: unknown): error is Failure {
  if (!(error instanceof Failure)) return false
  if (error.code === 'ai.interrupted' || !(error.isProviderFault || error.code === 'provider.paused'))
    return false
  const { retryAfter } = error
  const isShortPause = retryAfter !== undefined && retryAfter <= MAX_INTERACTIVE_PAUSE_SECONDS
  return !isShortPause || job.attempt >= settings.workerMaxTries
}
