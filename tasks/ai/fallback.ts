import type { AgentSettings } from '../../sql/ai/turns.ts'
import { Failure } from '../../sql/errors.ts'
import type { TaskContext } from '../context.ts'
import { type ModelRef, resolveFallback } from './model.ts'
import type { Completion } from './ports.ts'
import { keySettingName, MAX_INTERACTIVE_PAUSE_SECONDS } from './providers.ts'
import type { AdaptedQuestion } from './traits.ts'

/** An answer, with the question as the answering model got it. */
export interface Answered {
  readonly completion: Completion
  readonly question: AdaptedQuestion
}

/** A question that any model may get. */
export interface AskedQuestion {
  readonly model: ModelRef
  readonly agent: Pick<AgentSettings, 'chosen' | 'fallback_model_id'>
  /** Builds the question for a model, which may not see pictures or have a smaller context window. */
  build(model: ModelRef): Promise<AdaptedQuestion>
}

/**
 * Asks a model. If its provider fails before the first piece of text, asks the fallback model once. The
 * question itself may be the cause of a refusal, such as a content filter or an overlong conversation. Then the refusal
 * stands, because another model would refuse, too.
 */
export async function askOrFallBack(
  ctx: TaskContext,
  { model, agent: { chosen, fallback_model_id }, build }: AskedQuestion,
  ask: (question: AdaptedQuestion) => Promise<Completion>,
): Promise<Answered> {
  const first = await build(model)
  try {
    return { completion: await ask(first), question: first }
  } catch (error) {
    const fallback = resolveFallback(ctx.settings.ai, chosen, fallback_model_id, model)
    if (fallback === null || !permitsFallback(ctx, error)) throw error
    const { code, detail } = error
    if (ctx.settings.ai.endpoints[fallback.provider].apiKey === null) {
      ctx.log.warn({ code, setting: keySettingName(fallback.provider) }, 'The fallback model has no API key')
      throw error
    }
    ctx.log.warn({ code, detail, provider: model.provider, fallback }, 'The fallback model answers')
    const second = await build(fallback)
    return { completion: await ask(second), question: second }
  }
}

/** True if another provider may answer. A short pause that the provider asks for is first waited out by retries. */
function permitsFallback({ job, settings }: TaskContext, error: unknown): error is Failure {
  if (!(error instanceof Failure)) return false
  if (error.code === 'ai.interrupted' || !(error.isProviderFault || error.code.startsWith('provider.')))
    return false
  const { retryAfter } = error
  const isShortPause = retryAfter !== undefined && retryAfter <= MAX_INTERACTIVE_PAUSE_SECONDS
  return !isShortPause || job.attempt >= settings.workerMaxTries
}
